//! Tests of the whole service through its public interfaces, on both databases. Files in `api` and `realtime`
//! mirror the pages of `docs/spec/`. Rules for all endpoints are in `conventions`, `bad_input` and `quotas`,
//! tests of the program in `cli`, of the pages in `pages`, and checks of the source code in `source`.

mod api;
mod cli;
mod cluster;
mod fixture;
mod pages;
mod realtime;
mod robustness;
mod sandbox;
mod source;
mod webhooks;
