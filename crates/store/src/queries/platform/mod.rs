//! What every call of the platform API uses.

pub mod audit_log;
pub mod idempotency;
pub mod mail_outbox;
pub mod name_search;
pub mod seals;
pub mod world_rows;
