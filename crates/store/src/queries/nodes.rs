//! The nodes that hold sockets, and whether they live.

use domain::{NodeId, Timestamp};

use crate::{StoreError, Tx, params};

const REGISTER: &str = "
    INSERT INTO nodes (node_id, seen_at) VALUES ($1, $2) ON CONFLICT (node_id) DO UPDATE SET seen_at = excluded.seen_at";

const HEARTBEAT: &str = "UPDATE nodes SET seen_at = $2 WHERE node_id = $1";

const FORGET_SILENT: &str = "DELETE FROM nodes WHERE seen_at <= $1";

const FORGET: &str = "DELETE FROM nodes WHERE node_id = $1";

const FORGET_OTHERS: &str = "DELETE FROM nodes WHERE node_id <> $1";

impl Tx {
    /// Adds a node to the list.
    pub async fn register_node(&mut self, node: &NodeId, now: Timestamp) -> Result<(), StoreError> {
        self.execute(REGISTER, params![node, now]).await?;
        Ok(())
    }

    /// Says that a node lives: `false` when the others took it for dead and struck it off.
    pub async fn node_heartbeat(&mut self, node: &NodeId, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.execute(HEARTBEAT, params![node, now]).await? > 0)
    }

    /// Strikes off the nodes that were last heard of at `silent_since` or before. Gives how many.
    pub async fn forget_silent_nodes(&mut self, silent_since: Timestamp) -> Result<u64, StoreError> {
        self.execute(FORGET_SILENT, params![silent_since]).await
    }

    /// Strikes off a node that says goodbye.
    pub async fn forget_node(&mut self, node: &NodeId) -> Result<(), StoreError> {
        self.execute(FORGET, params![node]).await?;
        Ok(())
    }

    /// Strikes off every other node: for a store that one process has to itself.
    pub async fn forget_other_nodes(&mut self, node: &NodeId) -> Result<(), StoreError> {
        self.execute(FORGET_OTHERS, params![node]).await?;
        Ok(())
    }
}
