//! Sessions, their subscriptions, and their events.

pub mod event_outbox;
pub mod lost_events;
pub mod routed_sessions;
pub mod session_details;
pub mod session_ends;
pub mod sessions;
pub mod subscription_groups;
pub mod subscriptions;
