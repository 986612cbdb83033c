//! Peers that mean harm, or are broken: their connection ends with a named reason, what they held is free
//! again, and nobody else notices. Each test has a [`crowd::Crowd`] of well-behaved sessions beside them,
//! which must not lose a message.

mod acts;
mod crowd;
mod descriptors;
mod http;
mod mutated;
mod origins;
mod peer;
mod polling;
mod process;
mod silence;
mod unfinished;
mod upgrades;
