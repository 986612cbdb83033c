//! Event subscriptions of sessions, and the numbered log of the sessions' changes.

use domain::event::EventType;
use domain::session::{SessionChange, Subscription};
use domain::token::{Caller, TokenFamily};
use domain::{ChannelId, ClientId, NodeId, SessionKey, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const PUT: &str = "
    INSERT INTO session_subscriptions (session_key, event_type, channel_id, client_id, family, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (session_key, channel_id, event_type) DO UPDATE SET family = excluded.family";

const COUNT: &str = "SELECT COUNT(*) FROM session_subscriptions WHERE session_key = $1";

const DELETE: &str = "
    DELETE FROM session_subscriptions WHERE session_key = $1 AND event_type = $2 AND channel_id = $3";

const DEPENDING_ON: &str = "
    SELECT s.session_key, s.event_type FROM session_subscriptions s
    JOIN sessions c ON c.session_key = s.session_key
    WHERE s.client_id = $1 AND s.channel_id = $2 AND (CAST($3 AS TEXT) IS NULL OR s.family = $3)
      AND c.disconnected_at IS NULL
    ORDER BY s.session_key, s.event_type";

const OF_CLIENT: &str = "
    SELECT s.session_key, s.channel_id FROM session_subscriptions s
    JOIN sessions c ON c.session_key = s.session_key
    WHERE s.client_id = $1 AND s.event_type = $2 AND c.disconnected_at IS NULL
    ORDER BY s.session_key, s.channel_id";

const INSERT_CHANGE: &str = "
    INSERT INTO session_changes (session_key, version, kind, event_type, channel_id, untold_node)
    VALUES ($1, $2, $3, $4, $5, $6)";

const HAS_UNREAD: &str = "SELECT version FROM session_changes WHERE untold_node = $1 LIMIT 1";

const TAKE_UNREAD: &str = sql!(
    "
    UPDATE session_changes SET untold_node = NULL WHERE untold_node = $1 AND (session_key, version) IN (
        SELECT session_key, version FROM session_changes WHERE untold_node = $1
        ORDER BY session_key, version LIMIT $2)
    RETURNING session_key, ",
    SessionChange::COLUMNS
);

const DELETE_CHANGES: &str = "DELETE FROM session_changes WHERE session_key = $1 AND version <= $2";

const CHANGES_AFTER: &str = sql!(
    "SELECT ",
    SessionChange::COLUMNS,
    " FROM session_changes WHERE session_key = $1 AND version > $2 ORDER BY version"
);

columns!(SessionChange { version: "version", kind: "kind", subscription: Subscription::COLUMNS });

columns!(Subscription { event_type: "event_type", channel_id: "channel_id" });

impl Tx {
    /// Subscribes a session to events of the caller's channel. A repeated call changes only the token family
    /// that the subscription depends on.
    pub async fn put_subscription(
        &mut self,
        key: &SessionKey,
        event: EventType,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let family = caller.family.0.as_str();
        self.execute(PUT, params![key, event.name(), &caller.channel_id, &caller.client_id, family, now])
            .await?;
        Ok(())
    }

    /// How many subscriptions a session holds.
    pub async fn count_subscriptions(&mut self, key: &SessionKey) -> Result<i64, StoreError> {
        self.fetch_one(COUNT, params![key]).await
    }

    /// Ends a subscription: `false` if there was none.
    pub async fn delete_subscription(
        &mut self,
        key: &SessionKey,
        event: EventType,
        channel: &ChannelId,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE, params![key, event.name(), channel]).await? > 0)
    }

    /// The subscriptions of connected sessions that depend on the tokens of a client and a user, or on one
    /// family.
    pub async fn subscriptions_depending_on(
        &mut self,
        client_id: &ClientId,
        channel_id: &ChannelId,
        family: Option<&TokenFamily>,
    ) -> Result<Vec<(SessionKey, EventType)>, StoreError> {
        let family = family.map(|family| family.0.as_str());
        self.fetch_all(DEPENDING_ON, params![client_id, channel_id, family]).await
    }

    /// The subscriptions of connected sessions of an application to a kind of event.
    pub async fn subscriptions_of_client(
        &mut self,
        client_id: &ClientId,
        event: EventType,
    ) -> Result<Vec<(SessionKey, ChannelId)>, StoreError> {
        self.fetch_all(OF_CLIENT, params![client_id, event.name()]).await
    }

    /// Appends a change to a session's log, for the session's node to read.
    pub async fn insert_session_change(
        &mut self,
        key: &SessionKey,
        node: &NodeId,
        change: &SessionChange,
    ) -> Result<(), StoreError> {
        let Subscription { event_type, channel_id } = &change.subscription;
        self.execute(
            INSERT_CHANGE,
            params![key, change.version, change.kind.name(), event_type.name(), channel_id, node],
        )
        .await?;
        Ok(())
    }

    /// Whether there are changes of a node's sessions that the node has not read. Costs one index look-up.
    pub async fn has_unread_changes(&mut self, node: &NodeId) -> Result<bool, StoreError> {
        Ok(self.query_opt(HAS_UNREAD, params![node]).await?.is_some())
    }

    /// Takes up to `limit` changes of a node's sessions that the node has not read. The changes of a session
    /// are in order. The node applies them whether or not the commit is confirmed.
    pub async fn take_unread_changes(
        &mut self,
        node: &NodeId,
        limit: i64,
    ) -> Result<Vec<(SessionKey, SessionChange)>, StoreError> {
        let mut taken: Vec<(SessionKey, SessionChange)> =
            self.fetch_all(TAKE_UNREAD, params![node, limit]).await?;
        taken.sort_by(|(a, one), (b, other)| (a, one.version).cmp(&(b, other.version)));
        Ok(taken)
    }

    /// Deletes the changes of a session up to a version.
    pub async fn delete_session_changes(&mut self, key: &SessionKey, up_to: i64) -> Result<(), StoreError> {
        self.execute(DELETE_CHANGES, params![key, up_to]).await?;
        Ok(())
    }

    /// The changes of a session after a version, in order.
    pub async fn session_changes_after(
        &mut self,
        key: &SessionKey,
        version: i64,
    ) -> Result<Vec<SessionChange>, StoreError> {
        self.fetch_all(CHANGES_AFTER, params![key, version]).await
    }
}
