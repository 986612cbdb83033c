//! The sandbox: its API and its commands.

mod clock;
mod expect;
mod faults;
mod recording;
mod timeline;
mod tokens;
mod trigger;
