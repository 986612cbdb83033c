//! Tests of the gateway through its sockets: a real service on a temporary store, and a clock that the tests
//! move.

mod changes;
mod client;
mod delivery;
mod handshake;
mod interest;
mod polling;
mod reconcile;
mod session_ends;
mod upgrade;
mod websocket;
mod world;
