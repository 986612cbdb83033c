//! Every statement, as a named constant beside the method that runs it. Each noun has a file, and related
//! nouns share a folder. Callers do not see the folders: `queries::tokens`. SQL that several folders share is
//! in this folder.
//!
//! A method is one statement. The `service` crate combines methods into a transaction.

mod batched;
mod channel;
mod chat;
mod cluster;
mod columns;
mod developer;
pub mod drops;
mod identity;
pub mod invariants;
mod list_blocks;
mod live;
mod page;
#[cfg(test)]
mod plan;
mod platform;
mod realtime;
mod sql;
mod webhook;

use domain::audit::{ActorKind, AuditAction, SubjectKind};
use domain::channel::UserRole;
use domain::chat_settings::{Condition, Group};
use domain::delivery::DeliveryState;
use domain::drops::FulfillmentState;
use domain::event::EventType;
use domain::live::CategoryType;
use domain::member::MemberRole;
use domain::operator_key::OperatorRole;
use domain::outbound::SendFailure;
use domain::review::{ReviewKind, ReviewState};
use domain::secret::SecretHash;
use domain::session::ChangeKind;
use domain::{
    ApplicationSecretId, AuditEntryId, BatchId, BrowserSessionId, CampaignId, CategoryId, ChannelId, ClaimId,
    ClientId, DeliveryId, MessageId, NodeId, OperatorKeyId, OrganizationId, ReviewRequestId, RewardId,
    ScopeSet, SessionKey, StoreId, Timestamp, WebhookId, WebhookSecretId,
};

pub use channel::{
    broadcast_settings, channel_admin, channel_deletions, channels, follow_groups, named_channels, relations,
    restrictions, stream_keys,
};
pub use chat::{chat_appends, chat_log, chat_settings, chats};
pub use cluster::{due, expire, locks, nodes, overview, store_identity, store_origin, sweeps};
pub use developer::{
    application_load, application_offers, application_usage, organization_invitations, organization_members,
    owned_applications, review_requests,
};
pub use identity::{
    accounts, application_admin, application_life, application_logos, application_search,
    application_secrets, applications, browser_sessions, connected_applications, consents,
    credential_changes, form_drafts, operator_keys, operators, organizations, password_resets,
    pending_sign_ins, tokens, two_factors, upstreams,
};
pub use live::{categories, lives, watching, watching_groups};
pub use page::Page;
pub use platform::{audit_log, idempotency, mail_outbox, name_search, seals, world_rows};
pub use realtime::{
    event_outbox, lost_events, routed_sessions, session_details, session_ends, sessions, subscription_groups,
    subscriptions,
};
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
    AuditEntryId,
    OperatorKeyId,
    BatchId,
    BrowserSessionId,
    CampaignId,
    CategoryId,
    ChannelId,
    ClaimId,
    ClientId,
    DeliveryId,
    MessageId,
    NodeId,
    OrganizationId,
    ReviewRequestId,
    RewardId,
    SessionKey,
    SecretHash,
    StoreId,
    WebhookId,
    WebhookSecretId
);

/// Types that are stored by a name.
macro_rules! named_values {
    ($($name:ty: $wanted:literal = $from_name:expr),+ $(,)?) => {$(
        impl FromValue<'_> for $name {
            const WANTED: &'static str = $wanted;
            fn from_value(value: &Value<'static>) -> Option<Self> {
                let from_name: fn(&str) -> Option<Self> = $from_name;
                <&str>::from_value(value).and_then(from_name)
            }
        }
    )+};
}
named_values!(
    ActorKind: "a kind of actor" = Self::from_name,
    AuditAction: "an audited action" = Self::from_name,
    CategoryType: "a category type" = Self::stored,
    ChangeKind: "a kind of change" = Self::from_name,
    Condition: "a condition" = |name| Self::parse(name).ok(),
    DeliveryState: "a delivery state" = Self::from_name,
    EventType: "an event type" = Self::from_name,
    FulfillmentState: "a fulfillment state" = |name| Self::parse(name).ok(),
    OperatorRole: "an operator role" = Self::from_name,
    MemberRole: "a role of members" = Self::from_name,
    ReviewKind: "a kind of request" = Self::from_name,
    ReviewState: "a state of a request" = Self::from_name,
    Group: "a group" = |name| Self::parse(name).ok(),
    SubjectKind: "a kind of subject" = Self::from_name,
    SendFailure: "a failure" = Self::of_name,
    UserRole: "a role" = Self::from_name,
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
