//! Hostile or broken peers: their connection ends with a named reason, their resources are freed, and other
//! sessions are not affected. Each test has a [`crowd::Crowd`] of well-behaved sessions, which must not lose
//! a message.

mod acts;
mod crowd;
mod descriptors;
mod http;
mod mutated;
mod origins;
mod polling;
mod process;
mod sessions;
mod silence;
mod unfinished;
mod upgrades;
