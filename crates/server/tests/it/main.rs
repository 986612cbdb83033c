//! The whole service through its public surface, on both engines. Files mirror the pages of `docs/spec/`;
//! what holds everywhere is in `conventions`, `bad_input` and `quotas`; what the program promises is in
//! `command_line`, `shutdown` and `durability`; what the source promises is in `tidy` and `citations`.

mod api;
mod cli;
mod cluster;
mod fixture;
mod realtime;
mod robustness;
mod source;
mod webhooks;
