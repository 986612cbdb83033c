//! The gateway as its clients see it: real sockets, a real service on a temporary store, a clock moved by hand.

mod changes;
mod client;
mod delivery;
mod endings;
mod handshake;
mod polling;
mod upgrade;
mod websocket;
mod world;
