//! Webhooks, their messages and listeners.

pub(crate) mod attempt;
pub mod attempt_faults;
pub mod connection_tests;
pub mod deliveries;
pub(crate) mod delivery_queue;
pub(crate) mod listener_attempts;
mod listener_faults;
pub mod listeners;
pub mod owned_webhooks;
pub(crate) mod webhook_settings;
pub mod webhooks;
