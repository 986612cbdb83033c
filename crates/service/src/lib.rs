//! The operations of the service, one function for each. A function reads the store, applies the rules,
//! writes, commits, and only then publishes.
//!
//! The edges (`web`, `gateway`, `jobs`) hold a [`Service`] and call these functions. They send no query to
//! the store. If an operation returns rows of the store unchanged, the module of the operation re-exports
//! their type.
//!
//! Each noun has a file. The files are grouped in directories: `channel`, `chat`, `cluster`, `developer`,
//! `identity`, `live`, `platform`, `realtime` and `webhook`. Several directories use the modules at the
//! root. The modules of the directories are private. The modules of the operations are re-exported here.
//!
//! The modules use each other in one direction. The types of a node's state in memory stand in files without
//! operations. `service.rs` holds them in a [`Service`]. `lost_events.rs` and `event_outbox.rs` deliver the
//! events of a transaction. `work.rs` adds the unit of work. All other operations use the unit of work.

mod acting;
mod channel;
mod chat;
mod clock;
mod cluster;
mod commit_queue;
mod developer;
pub mod drops;
mod entropy;
mod error;
mod failure_log;
pub mod fault_points;
mod group_commit;
mod identity;
mod live;
mod log_limit;
mod platform;
pub mod quotas;
mod realtime;
mod run_to_completion;
mod sandbox_clock;
mod service;
mod webhook;
mod work;
mod write_retries;

pub use channel::{
    badges, broadcast_settings, channel_admin, channels, people_search, relations, restrictions,
};
pub use chat::{chat_log, chat_settings, chats};
pub use cluster::{due, expire, health, housekeeping, measures, nodes, overview};
pub use developer::{
    application_offers, application_sessions, application_usage, find_by_id, organization_invitations,
    organization_members, owned_applications, registration, review_requests,
};
pub use identity::{
    accounts, application_life, application_secrets, application_switch, applications, browser_sessions,
    confirmations, consents, credentials, email_proofs, form_drafts, leaked_credentials, mail, notices,
    operator_keys, operators, organizations, password_resets, sign_in, tokens, two_factor, upstream,
};
pub use live::{categories, lives, watching};
pub use platform::{
    audit_log, bulk, channel_events, idempotency, name_search, seals, service_key, world_rows,
};
pub use realtime::{event_outbox, lost_events, routed_sessions, session_details, sessions, subscriptions};
pub use webhook::{attempt_faults, connection_tests, deliveries, listeners, owned_webhooks, webhooks};

pub use clock::{Clock, ManualClock};
pub use cluster::job_metrics::{Job, JobRuns};
pub use developer::developer_settings::DeveloperSettings;
pub use entropy::{Entropy, Purpose, SeedState};
pub use error::Error;
pub use failure_log::FailureLog;
pub use identity::account_settings::AccountSettings;
pub use identity::credential_cache::Holder;
pub use identity::password::{PasswordCost, is_password_hash};
pub use log_limit::LogLimit;
pub use sandbox_clock::{ClockMode, RATE_MAX, RATE_MIN, SandboxClock};
pub use service::{Service, ServiceDeps};
pub use store::queries::Page;
pub use store::queries::channels::{ChannelRecord, PersonListing};
pub use store::queries::session_details::SessionFilter;
pub use write_retries::RetriedWrites;
