//! What the reports of the platform share: batches, channel events, idempotency keys.

pub mod bulk;
pub mod channel_events;
pub mod idempotency;
