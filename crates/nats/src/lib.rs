//! A client of NATS core that treats messages as opaque bytes. `docs/adr/0009-the-bus.md` has the reasons for
//! an own client.
//!
//! | Module | What it does |
//! |---|---|
//! | `address` | the servers and the login |
//! | `access` | the address with its files: authorities, client certificate, credentials |
//! | `credentials` | nkeys and JWTs |
//! | `servers` | the servers of the address, and those that their cluster names |
//! | `protocol` | the operations as bytes |
//! | `connection` | one connection to one server |
//!
//! A server processes operations in order, so its `PONG` confirms every operation before the `PING`. A lost
//! connection is an error. The caller then connects again, and sends its subscriptions again.

mod access;
mod address;
mod connection;
mod credentials;
mod protocol;
mod servers;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use access::{Access, BadAccess};
pub use address::{Address, BadAddress, Server};
pub use connection::{Connection, ConnectionError};
pub use credentials::BadCredentials;
pub use protocol::{NotNats, PAYLOAD_BYTES_MAX, ServerOp};
pub use servers::Servers;
