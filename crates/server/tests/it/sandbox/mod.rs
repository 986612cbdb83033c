//! The sandbox: its API and its commands.

mod clock;
mod console;
mod deliveries;
mod doctor;
mod environment;
mod expect;
mod expire;
mod explain;
mod faults;
mod listen;
mod recording;
mod scenario;
mod storm;
mod timeline;
mod tokens;
mod trigger;
mod webhook;
