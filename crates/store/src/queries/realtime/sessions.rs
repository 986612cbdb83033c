//! Session URLs and sessions.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use domain::event::EventType;
use domain::secret::SecretHash;
use domain::session::{SessionListing, SessionOwner, Subscription};
use domain::{ApplicationSecretId, ChannelId, ClientId, NodeId, Profile, SessionKey, Timestamp};

use crate::queries::Page;
use crate::queries::batched::{BatchedStatement, ColumnType};
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, Value, params};

const INSERT_URL: &str = "
    INSERT INTO session_urls (token_hash, client_id, channel_id, secret_id, expires_at) VALUES ($1, $2, $3, $4, $5)";

const TAKE_URL: &str = sql!(
    "
    DELETE FROM session_urls WHERE token_hash = $1 AND expires_at > $2 AND EXISTS (
        SELECT 1 FROM applications a
        WHERE a.client_id = session_urls.client_id AND a.deleted_at IS NULL AND a.disabled_at IS NULL)
    AND (channel_id IS NULL OR EXISTS (
        SELECT 1 FROM channels u WHERE u.channel_id = session_urls.channel_id AND u.barred_at IS NULL))
    AND (secret_id IS NULL OR EXISTS (
        SELECT 1 FROM application_secrets s
        WHERE s.secret_id = session_urls.secret_id AND (s.expires_at IS NULL OR s.expires_at > $2)))
    RETURNING ",
    TakenUrl::COLUMNS
);

const FIND_URL: &str = "SELECT client_id, channel_id, expires_at FROM session_urls WHERE token_hash = $1";

const LOCK_OWNER: &str = "
    INSERT INTO session_owners (counted_as, version) VALUES ($1, 1)
    ON CONFLICT (counted_as) DO UPDATE SET version = session_owners.version + 1";

const COUNT_CONNECTED: &str =
    "SELECT COUNT(*) FROM sessions WHERE counted_as = $1 AND disconnected_at IS NULL";

/// Sessions are counted up to `$2`.
const COUNT_OF_APPLICATION: &str = "
    SELECT COUNT(*) FROM (
        SELECT 1 FROM sessions WHERE client_id = $1 AND disconnected_at IS NULL LIMIT $2) b";

static COUNTS_CONNECTED: LazyLock<BatchedStatement<1>> = LazyLock::new(|| {
    BatchedStatement::new([ColumnType::Text], |owners| {
        format!(
            "SELECT counted_as, COUNT(*) FROM sessions WHERE counted_as IN ({owners}) AND disconnected_at IS NULL
             GROUP BY counted_as"
        )
    })
});

/// Numbers the session in its list, under the lock of its owner.
const INSERT_SESSION: &str = "
    INSERT INTO sessions (session_key, counted_as, client_id, channel_id, node_id, version, connected_at, secret_id,
        ordinal, oldest_connected)
    SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), 0,
        CAST($6 AS BIGINT), CAST($7 AS TEXT), n.ordinal, COALESCE((
            SELECT MIN(s.ordinal) FROM sessions s
            WHERE s.counted_as = $2 AND s.client_id = $3 AND s.disconnected_at IS NULL), n.ordinal)
    FROM (
        SELECT COALESCE(MAX(ordinal), 0) + 1 AS ordinal FROM sessions
        WHERE client_id = $3 AND COALESCE(channel_id, '') = COALESCE(CAST($4 AS TEXT), '')
    ) n";

static DISCONNECT: LazyLock<BatchedStatement<3>> = LazyLock::new(|| {
    BatchedStatement::new([ColumnType::Text, ColumnType::BigInt, ColumnType::Text], |ends| {
        format!(
            "UPDATE sessions SET disconnected_at = e.column2, close_reason = e.column3 FROM ({ends}) AS e
             WHERE session_key = e.column1 AND disconnected_at IS NULL
             RETURNING session_key"
        )
    })
});

const NEXT_VERSION: &str = "
    UPDATE sessions SET version = version + 1
    WHERE session_key = $1 AND disconnected_at IS NULL AND client_id = $2 AND (channel_id IS NULL OR channel_id = $3)
    RETURNING version, node_id";

/// The nodes of connected sessions are found one by one along their index. The cost depends on the number of
/// nodes, not of sessions.
const DISCONNECT_DEAD_NODES: &str = "
    WITH RECURSIVE homes (node_id) AS (
        SELECT MIN(node_id) FROM sessions WHERE disconnected_at IS NULL
        UNION ALL
        SELECT (SELECT MIN(s.node_id) FROM sessions s WHERE s.disconnected_at IS NULL AND s.node_id > homes.node_id)
        FROM homes WHERE homes.node_id IS NOT NULL
    )
    UPDATE sessions SET disconnected_at = $1, close_reason = 'node_dead'
    WHERE disconnected_at IS NULL AND node_id IN (
        SELECT node_id FROM homes WHERE node_id IS NOT NULL AND node_id NOT IN (SELECT node_id FROM nodes))";

const END_OF_DELETED: &str = "
    UPDATE sessions SET disconnected_at = $1, close_reason = $2, closing_node = node_id
    WHERE disconnected_at IS NULL AND client_id IN (
        SELECT client_id FROM applications WHERE deleted_at IS NOT NULL)";

const CLOSING: &str = "
    SELECT session_key, close_reason FROM sessions WHERE closing_node = $1 AND session_key > $2
    ORDER BY session_key LIMIT $3";

static CLOSED: LazyLock<BatchedStatement<1>> = LazyLock::new(|| {
    BatchedStatement::new([ColumnType::Text], |keys| {
        format!(
            "UPDATE sessions SET closing_node = NULL WHERE session_key IN ({keys}) AND closing_node IS NOT NULL"
        )
    })
});

/// 0 for a session of an application itself, 1 for a session of a user, as in the index
/// `sessions_of_application`.
pub(super) const IS_USERS: &str = "(CASE WHEN channel_id IS NULL THEN 0 ELSE 1 END)";

/// The first and the last ordinal of a list. Each is a statement of its own, because SQLite finds only one of
/// them in an index.
const ENDS_OF_LIST: &str = "
    SELECT (SELECT MIN(ordinal) FROM sessions WHERE client_id = $1 AND COALESCE(channel_id, '') = $2),
        (SELECT MAX(ordinal) FROM sessions WHERE client_id = $1 AND COALESCE(channel_id, '') = $2)";

/// The last session of a list whose key is below `$3`.
macro_rules! last_below_sql {
    ($($whose:expr),+) => {
        sql!(
            "SELECT ordinal, oldest_connected FROM sessions WHERE ",
            $($whose),+,
            " AND session_key < $3 ORDER BY session_key DESC LIMIT 1"
        )
    };
}
/// A user has few sessions of other applications.
const LAST_OF_USER: &str = last_below_sql!("channel_id = $2 AND client_id = $1");
const LAST_OF_CLIENT: &str =
    last_below_sql!("client_id = $1 AND CAST($2 AS TEXT) = '' AND ", IS_USERS, " = 0");

/// The sessions of a list from one ordinal to another that are connected or ended after `$3`, with their
/// subscriptions, newest first. They are fewer than the limit, a constant, so that PostgreSQL looks up the
/// subscriptions of each.
const LISTED: &str = sql!(
    "SELECT ",
    SessionListing::COLUMNS,
    ", ",
    JoinedSubscription::COLUMNS,
    " FROM (
         SELECT session_key, connected_at, disconnected_at, ordinal FROM sessions
         WHERE client_id = $1 AND COALESCE(channel_id, '') = $2 AND ordinal >= $4 AND ordinal <= $5
         AND (disconnected_at IS NULL OR disconnected_at > $3)
         ORDER BY ordinal DESC LIMIT 100
     ) p
     LEFT JOIN session_subscriptions s ON s.session_key = p.session_key
     ORDER BY p.ordinal DESC, s.created_at, s.event_type, s.channel_id"
);

/// The sessions of an owner by their ordinals (`docs/adr/0004-deep-pages.md`).
///
/// A session that connected after a time has not ended before it. So all those sessions are listed, and their
/// ordinals have no gaps: a place in the list is an ordinal. Of the sessions before them, those are listed
/// that were connected at that time. The last one of these sessions says from which ordinal on they are.
#[derive(Debug)]
struct SessionList {
    /// The ordinal of the newest session.
    newest: i64,
    /// The ordinals of the sessions before the recent ones, from the oldest that may be listed on.
    before: RangeInclusive<i64>,
}

impl SessionList {
    /// The number of recent sessions.
    fn recent(&self) -> i64 {
        (self.newest - self.before.end()).max(0)
    }
}

/// The owner of a session URL, and what the URL was issued for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenUrl {
    /// The owner of the session.
    pub owner: SessionOwner,
    /// The client secret that it was issued for.
    pub secret_id: Option<ApplicationSecretId>,
    /// The profile that the application chose for itself.
    pub profile: Option<Profile>,
}

columns!(TakenUrl {
    owner: "client_id, channel_id" => session_owner,
    secret_id: "secret_id",
    profile: "(SELECT profile FROM applications a WHERE a.client_id = session_urls.client_id)"
        => |name: Option<&str>| name.and_then(Profile::from_name),
});

columns!(SessionListing {
    session_key: "p.session_key",
    connected_at: "p.connected_at",
    disconnected_at: "p.disconnected_at";
    subscribed_events: Vec::new(),
});

/// The subscription in a row of a session; both columns are NULL for a session without one.
pub(super) struct JoinedSubscription {
    event_type: Option<EventType>,
    channel_id: Option<ChannelId>,
}

columns!(JoinedSubscription {
    event_type: "s.event_type" => |name: Option<&str>| name.and_then(EventType::from_name),
    channel_id: "s.channel_id",
});

impl Tx {
    /// The number of connected sessions of an application and of its users, counted up to `limit`.
    pub async fn count_connected_of_application(
        &mut self,
        client_id: &ClientId,
        limit: i64,
    ) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_OF_APPLICATION, params![client_id, limit]).await
    }

    /// Records a session URL, and the client secret that it was issued for, if any.
    pub async fn insert_session_url(
        &mut self,
        token: &SecretHash,
        owner: &SessionOwner,
        secret: Option<&ApplicationSecretId>,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let values = params![token, owner.client_id(), owner.channel_id(), secret, expires_at];
        self.execute(INSERT_URL, values).await?;
        Ok(())
    }

    /// Uses a session URL and gives its owner: `Some` for exactly one of any number of callers. `None` while
    /// the application is deleted or disabled, while the user is barred, or once the client secret has
    /// expired.
    pub async fn take_session_url(
        &mut self,
        token: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<TakenUrl>, StoreError> {
        self.fetch_optional(TAKE_URL, params![token, now]).await
    }

    /// The owner and the expiry of an unused session URL.
    pub async fn session_url(
        &mut self,
        token: &SecretHash,
    ) -> Result<Option<(SessionOwner, Timestamp)>, StoreError> {
        let found = self.fetch_optional(FIND_URL, params![token]).await?;
        Ok(found.map(|(owner, expires_at)| (session_owner(owner), expires_at)))
    }

    /// Locks the count of an owner's sessions for the rest of the transaction.
    pub async fn lock_session_owner(&mut self, owner: &SessionOwner) -> Result<(), StoreError> {
        if self.writes_alone() {
            return Ok(());
        }
        self.execute(LOCK_OWNER, params![owner.counted_as()]).await?;
        Ok(())
    }

    /// The number of connected sessions that count for this owner.
    pub async fn count_connected(&mut self, owner: &SessionOwner) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_CONNECTED, params![owner.counted_as()]).await
    }

    /// The numbers of connected sessions by [`SessionOwner::counted_as`]. Owners without any are left out.
    pub async fn counts_connected(
        &mut self,
        counted_as: &[String],
    ) -> Result<HashMap<String, i64>, StoreError> {
        let owners = counted_as.iter().map(|owner| [Value::from(owner)]).collect();
        let counts: Vec<(String, i64)> = self.fetch_all_batched(&COUNTS_CONNECTED, owners).await?;
        Ok(counts.into_iter().collect())
    }

    /// Records a session at the handshake of its socket.
    pub async fn insert_session(
        &mut self,
        key: &SessionKey,
        owner: &SessionOwner,
        secret: Option<&ApplicationSecretId>,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(
            INSERT_SESSION,
            params![key, owner.counted_as(), owner.client_id(), owner.channel_id(), node, now, secret],
        )
        .await?;
        Ok(())
    }

    /// Records the end of a session whose socket is closed, once: `false` if it had ended before.
    pub async fn disconnect_session(
        &mut self,
        key: &SessionKey,
        now: Timestamp,
        reason: &str,
    ) -> Result<bool, StoreError> {
        Ok(self.disconnect_sessions(&[(key, reason)], now).await? > 0)
    }

    /// Records the ends of sessions like [`disconnect_session`](Self::disconnect_session). Gives the number
    /// of those that had not ended before.
    pub async fn disconnect_sessions(
        &mut self,
        ends: &[(&SessionKey, &str)],
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let rows = ends.iter().map(|(key, reason)| [(*key).into(), now.into(), (*reason).into()]).collect();
        let ended: HashSet<SessionKey> =
            self.fetch_all_batched(&DISCONNECT, rows).await?.into_iter().collect();
        let others = ends.iter().filter(|(key, _)| !ended.contains(*key)).map(|(key, _)| [(*key).into()]);
        self.execute_batched(&CLOSED, others.collect()).await?;
        Ok(ended.len())
    }

    /// Ends the connected sessions of deleted applications. Their nodes find them by
    /// [`sessions_closing`](Self::sessions_closing). Gives their number.
    pub async fn end_sessions_of_deleted_applications(
        &mut self,
        now: Timestamp,
        reason: &str,
    ) -> Result<u64, StoreError> {
        self.execute(END_OF_DELETED, params![now, reason]).await
    }

    /// Up to `limit` sessions of a node that were ended elsewhere and whose sockets are open, with the
    /// reasons, after `after` in the order of their keys.
    pub async fn sessions_closing(
        &mut self,
        node: &NodeId,
        after: &SessionKey,
        limit: i64,
    ) -> Result<Vec<(SessionKey, String)>, StoreError> {
        self.fetch_all(CLOSING, params![node, after, limit]).await
    }

    /// Takes the next version of a connected session that this client and user may change, gives the
    /// session's node, and locks the session for the rest of the transaction; `None` if there is no such
    /// session.
    pub async fn next_session_version(
        &mut self,
        key: &SessionKey,
        client_id: &ClientId,
        channel_id: &ChannelId,
    ) -> Result<Option<(i64, NodeId)>, StoreError> {
        self.fetch_optional(NEXT_VERSION, params![key, client_id, channel_id]).await
    }

    /// Ends every session of a node that is not registered. Gives their number. Cheap if there are none.
    pub async fn disconnect_sessions_of_dead_nodes(&mut self, now: Timestamp) -> Result<u64, StoreError> {
        self.execute(DISCONNECT_DEAD_NODES, params![now]).await
    }

    /// The number of sessions that [`sessions_of`](Self::sessions_of) lists on all pages.
    pub async fn count_sessions_of(
        &mut self,
        owner: &SessionOwner,
        ended_after: Timestamp,
    ) -> Result<i64, StoreError> {
        let list = self.session_list(owner, ended_after).await?;
        let long = self.listed_sessions(owner, ended_after, &list.before).await?;
        Ok(list.recent() + long.len() as i64)
    }

    /// One page of an owner's sessions, newest first: those connected, and those that ended after
    /// `ended_after`. Every page costs the same.
    pub async fn sessions_of(
        &mut self,
        owner: &SessionOwner,
        ended_after: Timestamp,
        page: Page,
    ) -> Result<Vec<SessionListing>, StoreError> {
        let list = self.session_list(owner, ended_after).await?;
        let (recent, from) = (list.recent(), page.offset());
        let mut sessions = Vec::new();
        if from < recent {
            let newest = list.newest - from;
            let oldest = (newest - page.size + 1).max(list.newest - recent + 1);
            sessions = self.listed_sessions(owner, ended_after, &(oldest..=newest)).await?;
        }
        let left = from + page.size - recent;
        if left > 0 {
            let long = self.listed_sessions(owner, ended_after, &list.before).await?.into_iter();
            let passed = usize::try_from(from - recent).unwrap_or_default();
            let left = usize::try_from(left.min(page.size)).unwrap_or_default();
            sessions.extend(long.skip(passed).take(left));
        }
        Ok(sessions)
    }

    /// Finds where the sessions of a list that connected after `ended_after` begin.
    async fn session_list(
        &mut self,
        owner: &SessionOwner,
        ended_after: Timestamp,
    ) -> Result<SessionList, StoreError> {
        let user = owner.channel_id().map_or("", ChannelId::as_str);
        let ends = params![owner.client_id(), user];
        let (first, newest): (Option<i64>, Option<i64>) = self.fetch_one(ENDS_OF_LIST, ends).await?;
        let (Some(first), Some(newest)) = (first, newest) else {
            return Ok(SessionList { newest: 0, before: 0..=0 });
        };
        let sql = if owner.channel_id().is_some() { LAST_OF_USER } else { LAST_OF_CLIENT };
        let bound = SessionKey::bound_at(ended_after.plus_ms(1));
        let last: Option<(i64, i64)> =
            self.fetch_optional(sql, params![owner.client_id(), user, &bound]).await?;
        let (last, oldest_connected) = last.unwrap_or((first - 1, first));
        Ok(SessionList { newest, before: oldest_connected.max(first)..=last })
    }

    async fn listed_sessions(
        &mut self,
        owner: &SessionOwner,
        ended_after: Timestamp,
        ordinals: &RangeInclusive<i64>,
    ) -> Result<Vec<SessionListing>, StoreError> {
        if ordinals.is_empty() {
            return Ok(Vec::new());
        }
        let user = owner.channel_id().map_or("", ChannelId::as_str);
        let params = params![owner.client_id(), user, ended_after, *ordinals.start(), *ordinals.end()];
        let rows: Vec<(SessionListing, _)> = self.fetch_all(LISTED, params).await?;
        Ok(with_subscriptions(rows, |session| &session.session_key, |session| &mut session.subscribed_events))
    }
}

/// Adds the subscriptions to their sessions. The rows of a session are adjacent: one for each subscription,
/// or one without a subscription.
pub(super) fn with_subscriptions<T>(
    rows: Vec<(T, JoinedSubscription)>,
    key: fn(&T) -> &SessionKey,
    subscriptions: fn(&mut T) -> &mut Vec<Subscription>,
) -> Vec<T> {
    let mut sessions: Vec<T> = Vec::new();
    for (session, JoinedSubscription { event_type, channel_id }) in rows {
        if sessions.last().is_none_or(|last| key(last) != key(&session)) {
            sessions.push(session);
        }
        if let (Some(last), Some(event_type), Some(channel_id)) =
            (sessions.last_mut(), event_type, channel_id)
        {
            subscriptions(last).push(Subscription { event_type, channel_id });
        }
    }
    sessions
}

/// The owner of a session: an application, or a user of it.
pub(super) fn session_owner((client_id, channel_id): (ClientId, Option<ChannelId>)) -> SessionOwner {
    match channel_id {
        Some(channel_id) => SessionOwner::User { client_id, channel_id },
        None => SessionOwner::Client { client_id },
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::{CLIENT_SESSIONS_MAX, SESSION_LIST_SIZE_MAX};

    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn a_page_is_smaller_than_the_limit_of_its_statement() {
        assert!(LISTED.contains("LIMIT 100\n") && SESSION_LIST_SIZE_MAX < 100 && CLIENT_SESSIONS_MAX < 100);
    }

    /// No statement of a list walks over the sessions before its place.
    #[test]
    fn sqlite_finds_a_place_in_a_list_by_its_index() {
        let by_list = "sessions_of_list (client_id=? AND <expr>=?";
        for (sql, by) in [
            (INSERT_SESSION, "sessions_of_list (client_id=? AND <expr>=?)".to_owned()),
            (LISTED, format!("{by_list} AND ordinal>? AND ordinal<?)")),
            (
                LAST_OF_CLIENT,
                "sessions_of_application (client_id=? AND <expr>=? AND session_key<?)".to_owned(),
            ),
            (LAST_OF_USER, "sessions_of_channel (channel_id=? AND session_key<?)".to_owned()),
        ] {
            let plan = sqlite_plan(sql);
            assert!(plan.iter().any(|step| step.ends_with(&by)), "{plan:#?}");
            assert!(!plan.iter().any(|step| step.contains("SCAN sessions")), "{plan:#?}");
            // Only the subscriptions of one session are put in order.
            assert!(!plan.contains(&"USE TEMP B-TREE FOR ORDER BY".to_owned()), "{plan:#?}");
        }
    }
}
