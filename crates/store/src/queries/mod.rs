//! Every statement, as a named constant beside the method that runs it. Each noun has a file, and related
//! nouns share a folder. Callers do not see the folders: `queries::tokens`. SQL that several folders share is
//! in this folder.
//!
//! A method is one statement. The `service` crate combines methods into a transaction.

mod batched;
mod channel;
mod chat;
mod cluster;
pub mod drops;
mod identity;
mod list_blocks;
mod live;
mod page;
mod platform;
mod realtime;
mod sql;
mod webhook;

use domain::secret::SecretHash;
use domain::{
    ApplicationSecretId, BatchId, CampaignId, CategoryId, ChannelId, ClaimId, ClientId, DeliveryId,
    MessageId, NodeId, OrganizationId, RewardId, ScopeSet, SessionKey, Timestamp, WebhookId, WebhookSecretId,
};

pub use channel::{
    broadcast_settings, channel_admin, channel_deletions, channels, relations, restrictions, stream_keys,
};
pub use chat::{chat_settings, chats};
pub use cluster::{locks, nodes, store_origin, sweeps};
pub use identity::{
    application_life, application_secrets, application_switch, applications, browser_sessions, consents,
    credential_changes, organizations, tokens,
};
pub use live::{categories, lives, watching};
pub use page::Page;
pub use platform::idempotency;
pub use realtime::{event_outbox, lost_events, session_details, session_ends, sessions, subscriptions};
pub use webhook::{deliveries, webhooks};

use crate::{FromValue, Value};

macro_rules! text_values {
    ($($name:ident),+) => {$(
        impl<'a> From<&'a $name> for Value<'a> {
            fn from(value: &'a $name) -> Self {
                value.as_str().into()
            }
        }

        impl FromValue<'_> for $name {
            const WANTED: &'static str = "text";
            fn from_value(value: &Value<'static>) -> Option<Self> {
                String::from_value(value).map(Self::stored)
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

impl FromValue<'_> for Timestamp {
    const WANTED: &'static str = "bigint";
    fn from_value(value: &Value<'static>) -> Option<Self> {
        i64::from_value(value).map(Self::from_millis)
    }
}

impl FromValue<'_> for ScopeSet {
    const WANTED: &'static str = "bigint";
    fn from_value(value: &Value<'static>) -> Option<Self> {
        i64::from_value(value).map(Self::from_stored)
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
