//! Tests of the service, each on SQLite and on PostgreSQL. There is one file for each noun. The tests set
//! the clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod account_proofs;
mod accounts;
mod appends;
mod application_life;
mod application_usage;
mod applications;
mod bulk;
mod channel_events;
mod chat_rules;
mod consents;
mod credentials;
mod deliveries;
mod developers;
mod drops;
mod due;
mod group_commits;
mod housekeeping;
mod interruptions;
mod lives;
mod lost_events;
mod message_times;
mod nodes;
mod owned_webhooks;
mod people;
mod retention;
mod sessions;
mod sign_in;
mod subscriptions;
mod tokens;
mod upstream;
mod webhooks;
mod world;
mod write_retries;
