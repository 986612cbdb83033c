//! Sessions, subscriptions and the delivery of events.

pub(crate) mod event_batches;
pub mod event_outbox;
pub(crate) mod lost_event_recorder;
pub mod lost_events;
pub(crate) mod publication;
pub mod routed_sessions;
pub mod session_details;
pub(crate) mod session_ends;
pub mod sessions;
pub(crate) mod subscription_change;
mod subscription_groups;
pub mod subscriptions;
pub(crate) mod undelivered_changes;
pub(crate) mod used_urls;
