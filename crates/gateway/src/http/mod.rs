//! The HTTP side of the gateway: handshakes, long polling, upgrades, refusals.

mod polling;
mod refusal;
mod reply;
mod request;
mod socket;
mod upgrade;

pub(crate) use polling::{poll, post};
pub(crate) use refusal::Denied;
pub use reply::ConnectionLost;
pub(crate) use reply::{Reply, allow_origin, poll_answer, preflight, switching_protocols};
pub use request::RequestBody;
pub(crate) use request::{Auth, Params, websocket_accept};
pub use socket::{Hold, Socket};
pub(crate) use upgrade::{raw_stream, take_over};
