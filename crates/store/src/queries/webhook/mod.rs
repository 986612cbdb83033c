//! Webhooks and the messages to them.

pub mod deliveries;
pub mod webhooks;
