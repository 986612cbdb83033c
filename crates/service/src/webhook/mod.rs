//! Webhooks, their messages and listeners.

pub mod deliveries;
pub mod listeners;
pub mod webhooks;
