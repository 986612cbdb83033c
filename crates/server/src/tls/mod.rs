//! TLS of a sandbox, for clients with the platform's hosts built in (`docs/sandbox/fixed-hosts.md`).
//!
//! | Module | What it does |
//! |---|---|
//! | `options` | the options of `stagedoor dev` |
//! | `authority` | the local certificate authority, made once for each user |
//! | `certificates` | the short-lived certificate of a sandbox |
//! | `terminator` | the handshake, and the plain stream behind it |

mod authority;
mod certificates;
mod options;
mod terminator;

pub use options::{FixedName, TlsOptions, TlsSettings};
pub use terminator::Terminator;
pub(crate) use terminator::{DESCRIPTORS, Opened};
