//! TLS by files: trusted authorities, certificates with their keys, and what a failed handshake means. The
//! files are in PEM.
//!
//! | Module | What it does |
//! |---|---|
//! | `files` | reads the files |
//! | `client` | how a client checks its server |
//! | `meaning` | the sentence for a failed handshake |
//! | `testing` | authorities that issue certificates, for tests (feature `testing`) |

mod client;
mod files;
mod meaning;
#[cfg(feature = "testing")]
pub mod testing;

pub use client::{Check, client_config};
pub use files::{BadFile, Pair, PairFiles, read_roots, system_certificates, system_roots, validity};
pub use meaning::meaning;
