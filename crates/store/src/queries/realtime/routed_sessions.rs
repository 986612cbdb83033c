//! The connected sessions of a node with their subscriptions, to compare them with the memory of the node.

use domain::session::Subscription;
use domain::{NodeId, SessionKey};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::realtime::sessions::{JoinedSubscription, with_subscriptions};
use crate::{StoreError, Tx, params};

/// The sessions of a node after a key, in the order of their keys.
const ROUTED: &str = sql!(
    "SELECT ",
    RoutedSession::COLUMNS,
    ", ",
    JoinedSubscription::COLUMNS,
    " FROM (
        SELECT session_key FROM sessions
        WHERE disconnected_at IS NULL AND node_id = $1 AND session_key > $2 ORDER BY session_key LIMIT $3
    ) p
    LEFT JOIN session_subscriptions s ON s.session_key = p.session_key
    ORDER BY p.session_key"
);

const ROUTED_ONE: &str = sql!(
    "SELECT ",
    RoutedSession::COLUMNS,
    ", ",
    JoinedSubscription::COLUMNS,
    " FROM sessions p LEFT JOIN session_subscriptions s ON s.session_key = p.session_key
    WHERE p.session_key = $2 AND p.disconnected_at IS NULL AND p.node_id = $1"
);

/// A connected session with its subscriptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedSession {
    /// Its key.
    pub session_key: SessionKey,
    /// Its subscriptions, in any order.
    pub subscriptions: Vec<Subscription>,
}

columns!(RoutedSession { session_key: "p.session_key"; subscriptions: Vec::new() });

impl Tx {
    /// Up to `limit` connected sessions of a node after `after`, in the order of their keys.
    pub async fn routed_sessions(
        &mut self,
        node: &NodeId,
        after: &SessionKey,
        limit: i64,
    ) -> Result<Vec<RoutedSession>, StoreError> {
        let rows: Vec<(RoutedSession, _)> = self.fetch_all(ROUTED, params![node, after, limit]).await?;
        Ok(merged(rows))
    }

    /// A session, if it is connected to this node.
    pub async fn routed_session(
        &mut self,
        node: &NodeId,
        key: &SessionKey,
    ) -> Result<Option<RoutedSession>, StoreError> {
        let rows: Vec<(RoutedSession, _)> = self.fetch_all(ROUTED_ONE, params![node, key]).await?;
        Ok(merged(rows).pop())
    }
}

fn merged(rows: Vec<(RoutedSession, JoinedSubscription)>) -> Vec<RoutedSession> {
    with_subscriptions(rows, |session| &session.session_key, |session| &mut session.subscriptions)
}
