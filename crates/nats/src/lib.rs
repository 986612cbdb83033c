//! A client of NATS core that treats messages as opaque bytes. `docs/adr/0009-the-bus.md` has the reasons for
//! an own client.
//!
//! | Module | What it does |
//! |---|---|
//! | `address` | the servers and the login |
//! | `protocol` | the operations as bytes |
//! | `connection` | one connection to one server |
//!
//! A server processes operations in order, so its `PONG` confirms every operation before the `PING`. A lost
//! connection is an error. The caller then connects again, and sends its subscriptions again.

mod address;
mod connection;
mod protocol;

pub use address::{Address, BadAddress};
pub use connection::{Connection, ConnectionError};
pub use protocol::{NotNats, PAYLOAD_BYTES_MAX, ServerOp};
