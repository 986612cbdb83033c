//! One HTTP/1.1 connection of a client, over TCP or TLS, with a limit on all received bytes. The caller opens
//! the TCP stream, so it decides which address is connected to. The caller also sets the deadlines.
//!
//! | Module | What it does |
//! |---|---|
//! | `connection` | requests and answers on one connection |
//! | `tls` | TLS, and the certificate authorities that are trusted |
//! | `byte_limit` | the limit of received bytes |

mod byte_limit;
mod connection;
mod tls;

pub use connection::{Answer, Connection, Error, Limits};
pub use tls::{RootCertStore, Tls, TlsProblem, TlsUnavailable, system_certificates, system_roots};
