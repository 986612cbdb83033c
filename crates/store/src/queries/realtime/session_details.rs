//! Sessions as the operator sees and ends them.

use domain::session::SessionDetails;
use domain::{ChannelId, ClientId, NodeId, SessionKey, Timestamp};

use super::sessions::{self, IS_USERS, JoinedSubscription, session_owner};
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, Value, params};

/// Sorts behind every key.
const BEHIND_ALL: &str = "~";

/// Sessions under a condition.
macro_rules! sessions_sql {
    ($($condition:expr),+) => {
        sql!(
            "SELECT session_key, client_id, channel_id, node_id, connected_at, disconnected_at, close_reason
             FROM sessions WHERE ",
            $($condition),+
        )
    };
}

/// Such sessions, each with its subscriptions, newest first: a key begins with its time.
macro_rules! details_sql {
    ($($sessions:expr),+) => {
        sql!(
            "SELECT ",
            SessionDetails::COLUMNS,
            ", ",
            JoinedSubscription::COLUMNS,
            " FROM (",
            $($sessions),+,
            ") p
             LEFT JOIN session_subscriptions s ON s.session_key = p.session_key
             ORDER BY p.session_key DESC, s.created_at, s.event_type, s.channel_id"
        )
    };
}

/// The first sessions under a condition from the one before `$1` on.
macro_rules! newest_sql {
    ($($condition:expr),+) => {
        sql!(sessions_sql!($($condition),+), " session_key < $1 ORDER BY session_key DESC LIMIT $2")
    };
}

/// A page of an application's sessions: its own and those of its users, which its index keeps apart.
macro_rules! of_client_sql {
    ($state:literal) => {
        details_sql!(
            "SELECT * FROM (",
            newest_sql!("client_id = $3 AND ", IS_USERS, " = 0 AND ", $state),
            ") o UNION ALL SELECT * FROM (",
            newest_sql!("client_id = $3 AND ", IS_USERS, " = 1 AND ", $state),
            ") u ORDER BY session_key DESC LIMIT $2"
        )
    };
}

/// The pages under one filter of whose sessions: all, those still connected, those that have ended.
macro_rules! pages_sql {
    ($whose:literal) => {
        [
            details_sql!(newest_sql!($whose)),
            details_sql!(newest_sql!($whose, " disconnected_at IS NULL AND")),
            details_sql!(newest_sql!($whose, " disconnected_at IS NOT NULL AND")),
        ]
    };
}

const ONE: &str = details_sql!(sessions_sql!("session_key = $1"));
const OF_ALL: [&str; 3] = pages_sql!("");
const OF_CLIENT: [&str; 3] = [
    of_client_sql!(""),
    // These have an index of their own, for both kinds.
    details_sql!(newest_sql!("client_id = $3 AND disconnected_at IS NULL AND")),
    of_client_sql!("disconnected_at IS NOT NULL AND"),
];
const OF_CHANNEL: [&str; 3] = pages_sql!("channel_id = $3 AND");
const OF_BOTH: [&str; 3] = pages_sql!("client_id = $3 AND channel_id = $4 AND");

const END: &str = "
    UPDATE sessions SET disconnected_at = $2, close_reason = $3, closing_node = node_id
    WHERE session_key = $1 AND disconnected_at IS NULL
    RETURNING node_id";

/// Which sessions a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Those of this application.
    pub client_id: Option<ClientId>,
    /// Those of this user.
    pub channel_id: Option<ChannelId>,
    /// Those that are connected, or those that are not.
    pub connected: Option<bool>,
}

columns!(SessionDetails {
    session_key: "p.session_key",
    owner: "p.client_id, p.channel_id" => session_owner,
    node_id: "p.node_id",
    connected_at: "p.connected_at",
    disconnected_at: "p.disconnected_at",
    close_reason: "p.close_reason";
    subscribed_events: Vec::new(),
});

impl SessionFilter {
    /// The statement, and its parameters from `$3` on.
    fn statement(&self) -> (&'static str, Vec<Value<'_>>) {
        let (pages, ids) = match (&self.client_id, &self.channel_id) {
            (None, None) => (OF_ALL, Vec::new()),
            (Some(client), None) => (OF_CLIENT, vec![client.into()]),
            (None, Some(channel)) => (OF_CHANNEL, vec![channel.into()]),
            (Some(client), Some(channel)) => (OF_BOTH, vec![client.into(), channel.into()]),
        };
        let [all, connected, ended] = pages;
        let sql = match self.connected {
            None => all,
            Some(true) => connected,
            Some(false) => ended,
        };
        (sql, ids)
    }
}

impl Tx {
    /// A session of any owner.
    pub async fn session_details(&mut self, key: &SessionKey) -> Result<Option<SessionDetails>, StoreError> {
        Ok(with_subscriptions(self.fetch_all(ONE, params![key]).await?).pop())
    }

    /// Up to `size` sessions older than `after`, newest first. Every page costs the same.
    pub async fn list_session_details(
        &mut self,
        filter: &SessionFilter,
        after: Option<&SessionKey>,
        size: i64,
    ) -> Result<Vec<SessionDetails>, StoreError> {
        let (sql, ids) = filter.statement();
        let mut params = vec![after.map_or(BEHIND_ALL, SessionKey::as_str).into(), size.into()];
        params.extend(ids);
        Ok(with_subscriptions(self.fetch_all(sql, &params).await?))
    }

    /// Ends a connected session, and gives its node, which finds the session by
    /// [`sessions_closing`](Self::sessions_closing); `None` if there is no such session, or it has ended.
    pub async fn end_session(
        &mut self,
        key: &SessionKey,
        now: Timestamp,
        reason: &str,
    ) -> Result<Option<NodeId>, StoreError> {
        self.fetch_optional(END, params![key, now, reason]).await
    }
}

fn with_subscriptions(rows: Vec<(SessionDetails, JoinedSubscription)>) -> Vec<SessionDetails> {
    sessions::with_subscriptions(
        rows,
        |session| &session.session_key,
        |session| &mut session.subscribed_events,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    /// A page is read from its position on: in both halves of the index, or in that of connected sessions.
    #[test]
    fn sqlite_reads_the_pages_of_an_application_from_their_position_on() {
        let all = ("sessions_of_application (client_id=? AND <expr>=? AND session_key<?)", 2);
        let connected = ("sessions_connected_of_application (client_id=? AND session_key<?)", 1);
        for (sql, (place, times)) in OF_CLIENT.into_iter().zip([all, connected, all]) {
            let plan = sqlite_plan(sql);
            assert_eq!(plan.iter().filter(|step| step.ends_with(place)).count(), times, "{plan:#?}");
        }
    }
}
