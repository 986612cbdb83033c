//! Tests of the gateway through its sockets, with a real service on a temporary store and a manual clock.

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
