//! Many changes of subscriptions in one transaction, on PostgreSQL
//! (`docs/adr/0030-requests-of-a-kind-share-a-commit.md`). SQLite's writer commits waiting
//! requests together by itself.

use domain::event::EventType;
use domain::session::ChangeKind;
use domain::token::Caller;
use domain::{NodeId, ScopeSet, SessionKey, Timestamp};

use crate::{StoreError, Tx, Value};

/// Consents are locked before sessions, as by [`Tx::lock_consent`] and [`Tx::next_session_version`]. Rows
/// that another transaction has locked are left out, so nothing waits here.
const LOCK: &str = "
    WITH consented AS MATERIALIZED (
        SELECT c.client_id, c.channel_id FROM consents c
        WHERE (c.client_id, c.channel_id) IN (SELECT * FROM unnest(CAST($2 AS TEXT[]), CAST($3 AS TEXT[])))
        FOR NO KEY UPDATE OF c SKIP LOCKED
    ), connected AS MATERIALIZED (
        SELECT s.session_key FROM sessions s
        WHERE s.session_key = ANY(CAST($1 AS TEXT[])) AND (SELECT COUNT(*) FROM consented) > 0
        FOR NO KEY UPDATE OF s SKIP LOCKED
    )
    SELECT a.place - 1 FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS TEXT[]))
        WITH ORDINALITY AS a (session_key, client_id, channel_id, place)
    JOIN consented c ON c.client_id = a.client_id AND c.channel_id = a.channel_id
    JOIN connected s ON s.session_key = a.session_key
    ORDER BY a.place";

/// Writes the changes that their tokens, scopes and sessions allow, and numbers them. A session that would
/// get too many subscriptions gets none, even if some repeat others.
const CHANGE: &str = "
    WITH asked AS MATERIALIZED (
        SELECT * FROM unnest(
            CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS TEXT[]), CAST($4 AS TEXT[]), CAST($5 AS TEXT[]),
            CAST($6 AS BIGINT[]), CAST($7 AS TEXT[]), CAST($8 AS BOOLEAN[])
        ) WITH ORDINALITY AS a
            (session_key, client_id, channel_id, family, event_type, scope, kind, subscribes, place)
    ), allowed AS MATERIALIZED (
        SELECT a.*, s.version, s.node_id,
            SUM(CASE WHEN a.subscribes THEN 1 ELSE 0 END) OVER (PARTITION BY a.session_key) AS wanted
        FROM asked a
        JOIN sessions s ON s.session_key = a.session_key AND s.disconnected_at IS NULL
            AND s.client_id = a.client_id AND (s.channel_id IS NULL OR s.channel_id = a.channel_id)
        JOIN consents c ON c.client_id = a.client_id AND c.channel_id = a.channel_id
            AND c.scopes & a.scope = a.scope
        JOIN applications p ON p.client_id = a.client_id AND p.deleted_at IS NULL AND p.disabled_at IS NULL
        WHERE EXISTS (SELECT 1 FROM access_tokens t
            WHERE t.client_id = a.client_id AND t.channel_id = a.channel_id AND t.family = a.family
            AND t.generation = p.token_generation)
    ), admitted AS MATERIALIZED (
        SELECT a.*, a.version + ROW_NUMBER() OVER (PARTITION BY a.session_key ORDER BY a.place) AS next
        FROM allowed a
        WHERE a.wanted = 0 OR a.wanted + (
            SELECT COUNT(*) FROM session_subscriptions h WHERE h.session_key = a.session_key) <= $9
    ), numbered AS (
        UPDATE sessions s SET version = n.next
        FROM (SELECT session_key, MAX(next) AS next FROM admitted GROUP BY session_key) n
        WHERE s.session_key = n.session_key
    ), subscribed AS (
        INSERT INTO session_subscriptions (session_key, event_type, channel_id, client_id, family, created_at)
        SELECT session_key, event_type, channel_id, client_id, family, $10 FROM admitted WHERE subscribes
        ON CONFLICT (session_key, channel_id, event_type) DO UPDATE SET family = excluded.family
    ), unsubscribed AS (
        DELETE FROM session_subscriptions s USING admitted a
        WHERE NOT a.subscribes AND s.session_key = a.session_key AND s.event_type = a.event_type
            AND s.channel_id = a.channel_id
    ), logged AS (
        INSERT INTO session_changes (session_key, version, kind, event_type, channel_id, untold_node)
        SELECT session_key, next, kind, event_type, channel_id, node_id FROM admitted
    ), forgotten AS (
        DELETE FROM session_changes o USING admitted a
        WHERE a.next % $11 = 0 AND o.session_key = a.session_key AND o.version <= a.next - $12
    )
    SELECT place - 1, next, node_id FROM admitted ORDER BY place";

/// A change of a session's subscriptions that a caller asks for.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionRow<'a> {
    /// The session.
    pub session_key: &'a SessionKey,
    /// The caller, whose channel it is about.
    pub caller: &'a Caller,
    /// The kind of event.
    pub event: EventType,
    /// Whether the session subscribes or unsubscribes.
    pub kind: ChangeKind,
}

/// Bounds of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionBounds {
    /// The most subscriptions.
    pub subscriptions: i64,
    /// The number of changes that are kept.
    pub changes_kept: i64,
    /// Older changes are deleted when the number of a change is a multiple of it.
    pub delete_every: i64,
}

impl Tx {
    /// Locks the consents and sessions of changes. Gives the places of the changes both of whose rows exist
    /// and were free.
    pub async fn lock_subscription_changes(
        &mut self,
        changes: &[SubscriptionRow<'_>],
    ) -> Result<Vec<usize>, StoreError> {
        let params = [
            texts(changes, |change| change.session_key.as_str()),
            texts(changes, |change| change.caller.client_id.as_str()),
            texts(changes, |change| change.caller.channel_id.as_str()),
        ];
        let places: Vec<i64> = self.fetch_all(LOCK, &params).await?;
        Ok(places.into_iter().filter_map(|place| usize::try_from(place).ok()).collect())
    }

    /// Writes [locked](Self::lock_subscription_changes) changes, each subscription once, and commits. Gives
    /// the numbers of the changes, with the nodes of their sessions. `None` for a change that is not allowed,
    /// or whose session is full.
    pub async fn change_subscriptions(
        &mut self,
        changes: &[SubscriptionRow<'_>],
        bounds: SessionBounds,
        now: Timestamp,
    ) -> Result<Vec<Option<(i64, NodeId)>>, StoreError> {
        let scopes =
            changes.iter().map(|change| Some(ScopeSet::from_iter([change.event.scope()]).to_stored()));
        let params = [
            texts(changes, |change| change.session_key.as_str()),
            texts(changes, |change| change.caller.client_id.as_str()),
            texts(changes, |change| change.caller.channel_id.as_str()),
            texts(changes, |change| change.caller.family.0.as_str()),
            texts(changes, |change| change.event.name()),
            Value::Ints(scopes.collect()),
            texts(changes, |change| change.kind.name()),
            Value::Bools(changes.iter().map(|change| change.kind == ChangeKind::Subscribed).collect()),
            bounds.subscriptions.into(),
            now.into(),
            bounds.delete_every.into(),
            bounds.changes_kept.into(),
        ];
        let mut numbers = vec![None; changes.len()];
        for (place, number, node) in self.fetch_with_commit::<(i64, i64, NodeId)>(CHANGE, &params).await? {
            let of_place = usize::try_from(place).ok().and_then(|place| numbers.get_mut(place));
            *of_place.ok_or(StoreError::Misuse("a row's place is not in its list"))? = Some((number, node));
        }
        Ok(numbers)
    }
}

/// A column of a statement.
fn texts<'c>(
    changes: &'c [SubscriptionRow<'_>],
    text: impl Fn(&'c SubscriptionRow<'_>) -> &'c str,
) -> Value<'c> {
    Value::Texts(changes.iter().map(|change| text(change).into()).collect())
}
