//! Realtime sessions: their owners, their subscriptions, and the changes of these (`docs/spec/realtime.md`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::EventType;
use crate::refusal::Cap;
use crate::token::Caller;
use crate::{ChannelId, ClientId, NodeId, SessionKey, Timestamp};

/// The owner of a session. It decides the session's cap and the callers that may subscribe on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionOwner {
    /// Opened with client authentication: receives events of every user of the application.
    Client {
        /// The application.
        client_id: ClientId,
    },
    /// Opened with a user token: receives events of that user only (`docs/spec/realtime.md#session-url`).
    User {
        /// The application of the token.
        client_id: ClientId,
        /// The user.
        channel_id: ChannelId,
    },
}

impl SessionOwner {
    /// The application of the session.
    pub fn client_id(&self) -> &ClientId {
        match self {
            Self::Client { client_id } | Self::User { client_id, .. } => client_id,
        }
    }

    /// The user, if this is a user's session.
    pub fn channel_id(&self) -> Option<&ChannelId> {
        match self {
            Self::Client { .. } => None,
            Self::User { channel_id, .. } => Some(channel_id),
        }
    }

    /// Maximum number of connected sessions that count together with this one: 10 per client, 3 per user over
    /// all applications.
    pub const fn sessions_max(&self) -> i64 {
        self.cap().limit()
    }

    /// The cap of these sessions, as a refusal names it.
    pub const fn cap(&self) -> Cap {
        match self {
            Self::Client { .. } => Cap::ApplicationSessions,
            Self::User { .. } => Cap::UserSessions,
        }
    }

    /// The key under which these sessions are counted together.
    pub fn counted_as(&self) -> String {
        match self {
            Self::Client { client_id } => format!("client:{client_id}"),
            Self::User { channel_id, .. } => format!("user:{channel_id}"),
        }
    }

    /// Whether a user token may subscribe on this session: on the user's own session of the same application,
    /// or on a client session of the same application (`docs/spec/realtime.md#subscriptions`).
    pub fn admits(&self, caller: &Caller) -> bool {
        match self {
            Self::Client { client_id } => *client_id == caller.client_id,
            Self::User { client_id, channel_id } => {
                *client_id == caller.client_id && *channel_id == caller.channel_id
            }
        }
    }
}

/// One event subscription: a kind of event on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// The kind of event.
    pub event_type: EventType,
    /// The channel of the events.
    pub channel_id: ChannelId,
}

/// What happened to a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// A subscribe call.
    Subscribed,
    /// An unsubscribe call.
    Unsubscribed,
    /// Consent withdrawn, tokens revoked, scope changed.
    Revoked,
}

impl ChangeKind {
    /// The `type` of the SYSTEM message, also the name in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Subscribed => "subscribed",
            Self::Unsubscribed => "unsubscribed",
            Self::Revoked => "revoked",
        }
    }

    /// The change of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Subscribed, Self::Unsubscribed, Self::Revoked].into_iter().find(|kind| kind.name() == name)
    }
}

/// One change of a session's subscriptions. Changes of a session are numbered from 1 without a gap, and each
/// becomes exactly one SYSTEM message, in that order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionChange {
    /// Its number.
    pub version: i64,
    /// What happened.
    pub kind: ChangeKind,
    /// The subscription.
    pub subscription: Subscription,
}

/// A session as the lists show it (`docs/spec/realtime.md#session-lists`).
#[derive(Clone, Debug)]
pub struct SessionListing {
    /// Its key.
    pub session_key: SessionKey,
    /// The time of the socket's handshake.
    pub connected_at: crate::Timestamp,
    /// The end of the session, if it has ended.
    pub disconnected_at: Option<crate::Timestamp>,
    /// The subscriptions, or for an ended session the last ones.
    pub subscribed_events: Vec<Subscription>,
}

/// A session as the platform API shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDetails {
    /// Its key.
    pub session_key: SessionKey,
    /// Its owner.
    pub owner: SessionOwner,
    /// The node that holds the session, or held it.
    pub node_id: NodeId,
    /// The time of the socket's handshake.
    pub connected_at: Timestamp,
    /// The end of the session, if it has ended.
    pub disconnected_at: Option<Timestamp>,
    /// The close reason, if the session has ended.
    pub close_reason: Option<String>,
    /// The subscriptions, or for an ended session the last ones.
    pub subscribed_events: Vec<Subscription>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScopeSet;
    use crate::quota::QuotaShare;
    use crate::token::TokenFamily;

    #[test]
    fn a_session_admits_users_of_its_application() {
        let client = |id: &str| ClientId::stored(id.into());
        let channel = |id: &str| ChannelId::stored(id.into());
        let caller = Caller {
            client_id: client("app"),
            channel_id: channel("me"),
            scopes: ScopeSet::EMPTY,
            profile: None,
            quota: QuotaShare::FULL,
            family: TokenFamily("f".into()),
        };
        let check = |owner: SessionOwner, ok| assert_eq!(owner.admits(&caller), ok, "{owner:?}");
        check(SessionOwner::Client { client_id: client("app") }, true);
        check(SessionOwner::Client { client_id: client("other") }, false);
        check(SessionOwner::User { client_id: client("app"), channel_id: channel("me") }, true);
        check(SessionOwner::User { client_id: client("app"), channel_id: channel("you") }, false);
        check(SessionOwner::User { client_id: client("other"), channel_id: channel("me") }, false);
    }
}
