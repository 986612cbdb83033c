//! Every statement, as a named constant beside the method that runs it. Each noun has a file.
//!
//! A method is one statement. The `service` crate combines methods into a transaction.

pub mod application_life;
pub mod application_secrets;
pub mod application_switch;
pub mod applications;
mod batched;
pub mod broadcast_settings;
pub mod browser_sessions;
pub mod categories;
pub mod channel_admin;
pub mod channel_deletions;
pub mod channels;
pub mod chat_settings;
pub mod chats;
pub mod consents;
pub mod credential_changes;
pub mod deliveries;
pub mod drops;
pub mod event_outbox;
pub mod idempotency;
mod list_blocks;
pub mod lives;
pub mod locks;
pub mod lost_events;
pub mod nodes;
pub mod organizations;
pub mod relations;
pub mod restrictions;
pub mod session_details;
pub mod session_ends;
pub mod sessions;
mod sql;
pub mod store_origin;
pub mod stream_keys;
pub mod subscriptions;
pub mod sweeps;
pub mod tokens;
pub mod watching;
pub mod webhooks;

use domain::secret::SecretHash;
use domain::{
    ApplicationSecretId, BatchId, CampaignId, CategoryId, ChannelId, ClaimId, ClientId, DeliveryId,
    MessageId, NodeId, OrganizationId, RewardId, SessionKey, Timestamp, WebhookId, WebhookSecretId,
};

use crate::Value;

macro_rules! text_values {
    ($($name:ident),+) => {$(
        impl<'a> From<&'a $name> for Value<'a> {
            fn from(value: &'a $name) -> Self {
                value.as_str().into()
            }
        }
    )+};
}
text_values!(
    ApplicationSecretId,
    BatchId,
    CampaignId,
    CategoryId,
    ChannelId,
    ClaimId,
    ClientId,
    DeliveryId,
    MessageId,
    NodeId,
    OrganizationId,
    RewardId,
    SessionKey,
    SecretHash,
    WebhookId,
    WebhookSecretId
);

impl From<Timestamp> for Value<'_> {
    fn from(value: Timestamp) -> Self {
        value.as_millis().into()
    }
}

/// How SQLite runs a statement, by the whole schema: the steps that it names itself.
#[cfg(test)]
fn sqlite_plan(sql: &str) -> Vec<String> {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    for migration in crate::migrate::MIGRATIONS {
        database.execute_batch(migration.sql).unwrap();
    }
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nothing = std::iter::repeat_n(None::<i64>, statement.parameter_count());
    let steps = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get(3)).unwrap();
    steps.map(Result::unwrap).collect()
}
