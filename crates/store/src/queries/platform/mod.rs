//! What every call of the platform API uses.

pub mod idempotency;
pub mod mail_outbox;
pub mod world_rows;
