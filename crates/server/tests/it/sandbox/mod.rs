//! The sandbox: its API and its commands.

mod clock;
mod doctor;
mod environment;
mod deliveries;
mod expect;
mod explain;
mod faults;
mod listen;
mod recording;
mod scenario;
mod timeline;
mod tokens;
mod trigger;
mod webhook;
