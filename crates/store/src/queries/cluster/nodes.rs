//! The nodes of a service: their roles, the addresses of their sockets, and their heartbeats.

use domain::{NodeId, Timestamp};

use crate::{StoreError, Tx, params};

const REGISTER: &str = "
    INSERT INTO nodes (node_id, seen_at, roles, session_base, started_at, version) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (node_id) DO UPDATE SET seen_at = excluded.seen_at, session_base = excluded.session_base";

/// Two heartbeats of a node may be written in another order than they read the clock.
const HEARTBEAT: &str =
    "UPDATE nodes SET seen_at = CASE WHEN seen_at > $2 THEN seen_at ELSE $2 END WHERE node_id = $1";

const RETIRE: &str = "UPDATE nodes SET session_base = NULL WHERE node_id = $1";

const SESSION_BASES: &str = "
    SELECT session_base FROM nodes WHERE session_base IS NOT NULL AND seen_at > $1 AND node_id <> $2 ORDER BY node_id";

const DEREGISTER_SILENT: &str = "DELETE FROM nodes WHERE seen_at <= $1 RETURNING node_id";

const DEREGISTER: &str = "DELETE FROM nodes WHERE node_id = $1";

const DEREGISTER_OTHERS: &str = "DELETE FROM nodes WHERE node_id <> $1";

/// A node that registers.
#[derive(Clone, Debug)]
pub struct NodeRecord {
    /// Its name.
    pub node_id: NodeId,
    /// Its roles, separated by a space.
    pub roles: String,
    /// The address of its sockets; `None` on a node that accepts no sessions.
    pub session_base: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// The version of its program.
    pub version: String,
}

impl Tx {
    /// Adds a node to the list.
    pub async fn register_node(&mut self, node: &NodeRecord, now: Timestamp) -> Result<(), StoreError> {
        let NodeRecord { node_id, roles, session_base, started_at, version } = node;
        let values = params![node_id, now, roles, session_base, *started_at, version];
        self.execute(REGISTER, values).await?;
        Ok(())
    }

    /// Records the heartbeat of a node: `false` if the others have declared it dead.
    pub async fn node_heartbeat(&mut self, node: &NodeId, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.execute(HEARTBEAT, params![node, now]).await? > 0)
    }

    /// Records that a node accepts no new sessions.
    pub async fn retire_node(&mut self, node: &NodeId) -> Result<(), StoreError> {
        self.execute(RETIRE, params![node]).await?;
        Ok(())
    }

    /// The addresses of the other nodes that accept new sessions and had a heartbeat after `seen_after`.
    pub async fn session_bases(
        &mut self,
        but: &NodeId,
        seen_after: Timestamp,
    ) -> Result<Vec<String>, StoreError> {
        self.fetch_all(SESSION_BASES, params![seen_after, but]).await
    }

    /// Deregisters the nodes whose last heartbeat was at `silent_since` or before, and gives them.
    pub async fn deregister_silent_nodes(
        &mut self,
        silent_since: Timestamp,
    ) -> Result<Vec<NodeId>, StoreError> {
        self.fetch_all(DEREGISTER_SILENT, params![silent_since]).await
    }

    /// Deregisters a node that stops.
    pub async fn deregister_node(&mut self, node: &NodeId) -> Result<(), StoreError> {
        self.execute(DEREGISTER, params![node]).await?;
        Ok(())
    }

    /// Deregisters every other node, for a store that one process uses alone.
    pub async fn deregister_other_nodes(&mut self, node: &NodeId) -> Result<(), StoreError> {
        self.execute(DEREGISTER_OTHERS, params![node]).await?;
        Ok(())
    }
}
