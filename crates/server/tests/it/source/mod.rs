//! The rules of the source code, the documents and their citations.

mod citations;
mod contract;
mod modules;
mod tidy;
