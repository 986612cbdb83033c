//! The gateway as its clients see it: real sockets, a real service on a temporary store, a clock moved by hand.

mod changes;
mod client;
mod delivery;
mod endings;
mod fuzz;
mod handshake;
mod interest;
mod polling;
mod upgrade;
mod vigil;
mod websocket;
mod world;
