//! What the source, the documents and their citations promise.

mod citations;
mod contract;
mod modules;
mod tidy;
