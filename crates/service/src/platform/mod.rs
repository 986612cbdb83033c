//! Reports of the platform: batches, channel events, idempotency keys.

pub mod audit_log;
pub mod bulk;
pub mod channel_events;
pub mod idempotency;
pub mod name_search;
pub(crate) mod node_locks;
pub mod seals;
pub mod service_key;
pub mod world_rows;
