//! Webhooks for drops.

pub(crate) mod delivery;
mod listener;
mod management;
mod outages;
pub(crate) mod verifier;
mod verifiers;
