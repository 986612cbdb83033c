//! The sandbox: its API and its commands.

mod clock;
mod environment;
mod expect;
mod explain;
mod faults;
mod listen;
mod recording;
mod timeline;
mod tokens;
mod trigger;
