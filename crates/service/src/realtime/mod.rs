//! Sessions, subscriptions and the delivery of events.

pub mod event_outbox;
pub mod lost_events;
pub(crate) mod publication;
pub mod session_details;
pub(crate) mod session_ends;
pub mod sessions;
pub mod subscriptions;
pub(crate) mod used_urls;
