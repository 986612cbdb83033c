//! Webhooks, their messages and listeners.

pub mod connection_tests;
pub mod deliveries;
pub(crate) mod delivery_queue;
pub mod listeners;
pub mod owned_webhooks;
pub(crate) mod webhook_settings;
pub mod webhooks;
