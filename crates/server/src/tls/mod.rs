//! TLS of a listener: of a sandbox, for clients with the platform's hosts built in
//! (`docs/sandbox/fixed-hosts.md`), and of `serve`, with the operator's certificate.
//!
//! | Module | What it does |
//! |---|---|
//! | `options` | the options of `stagedoor dev` |
//! | `authority` | the local certificate authority, made once for each user |
//! | `certificates` | the short-lived certificate of a sandbox |
//! | `served` | the certificate of `serve`, read again when its files change |
//! | `https` | the options of `serve` |

mod authority;
mod certificates;
mod https;
mod options;
mod served;

pub use https::{HttpsOptions, HttpsSettings};
pub use options::{TlsOptions, TlsSettings};
pub use served::ServedCertificate;
