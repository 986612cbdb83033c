//! The roles of a node, the address of its sockets, and its readiness
//! (`docs/adr/0010-nodes-hear-from-the-store.md`).

use domain::Refusal;
use domain::limits::{NODE_DEAD_AFTER_MS, NODE_HEARTBEAT_MS};
use store::Tx;
use store::queries::nodes::NodeRecord;

use crate::cluster::node_state::NodeState;
pub use crate::cluster::node_state::{DISK_FULL_HOLD_MS, Membership, Roles};
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// A node gets new sessions while its last heartbeat is no older than this, in milliseconds: two heartbeats
/// and the deadline of a slow one.
const TAKES_SESSIONS_MS: i64 = 2 * NODE_HEARTBEAT_MS + 2_500;
/// How long after its last answer the store counts as reachable, in milliseconds: the maximum time between
/// two successful heartbeats.
pub const STORE_SILENT_MS: i64 = NODE_HEARTBEAT_MS + 2_500;
/// How long after the store's last answer a node ends its sessions if it has no bus either, in milliseconds.
/// This is before the other nodes declare it dead, also when its last heartbeat has only just been given up.
const CUT_OFF_AFTER_MS: i64 = NODE_DEAD_AFTER_MS - 4_000;
/// How long a client waits before it requests a session URL again while no node takes sessions, in
/// seconds. A starting node is registered within this time.
const NO_NODE_RETRY_S: u32 = 5;

/// Whether a node is ready for work, for load balancers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The node is ready.
    Ready,
    /// The node is about to stop, and finishes running work.
    Draining,
    /// The store has not answered for [`STORE_SILENT_MS`].
    StoreAway,
    /// The disk of the database is full. Reads are answered, writes are refused.
    DiskFull,
    /// The server of the bus refuses this node: its login, or the subjects of the service.
    BusRefused,
}

impl Service {
    /// The roles of this node.
    pub fn roles(&self) -> Roles {
        self.node_state().membership().roles
    }

    pub(crate) fn store_silent_ms(&self) -> u64 {
        self.node_state().store_silent_ms(self.clock().monotonic())
    }

    /// Whether the disk is full, or was within [`DISK_FULL_HOLD_MS`]. A failed write counts from the next
    /// call on, so each heartbeat calls this function too.
    pub(crate) fn disk_is_full(&self) -> bool {
        self.node_state().disk_is_full(self.0.store.disk(), self.clock().monotonic())
    }

    /// Whether this node is ready for work. Makes no query, because the background loops record whether
    /// the store answers.
    pub fn readiness(&self) -> Readiness {
        match self.store_readiness() {
            _ if self.node_state().is_retired() => Readiness::Draining,
            Readiness::Ready if self.0.bus.is_refused() => Readiness::BusRefused,
            store => store,
        }
    }

    /// Whether the store is ready for work.
    pub(crate) fn store_readiness(&self) -> Readiness {
        if self.disk_is_full() {
            // This is checked before `StoreAway`, because heartbeats are writes and fail on a full disk.
            Readiness::DiskFull
        } else if self.store_silent_ms() > STORE_SILENT_MS.unsigned_abs() {
            Readiness::StoreAway
        } else {
            Readiness::Ready
        }
    }

    /// Whether this node has had neither store nor bus for nearly as long as a node may be silent. The
    /// other nodes are then about to declare this node dead, and it cannot receive that message.
    pub fn is_cut_off(&self) -> bool {
        !self.0.bus.is_receiving() && self.store_silent_ms() >= CUT_OFF_AFTER_MS.unsigned_abs()
    }

    /// Marks this node as about to stop. From now on this node is not ready, and new session URLs name
    /// other nodes if there are any. Requests are still served. The returned future marks the node in the
    /// store for other nodes. The caller need not wait for that future.
    pub fn retire(&self) -> impl Future<Output = Result<(), Error>> + use<> {
        self.node_state().retire();
        let (service, node) = (self.clone(), self.node().clone());
        async move { service.write(async move |work: &mut Work<'_>| Ok(work.retire_node(&node).await?)).await }
    }

    /// Returns the base URL for a new session: of this node if it has sockets, else of any node with
    /// sockets.
    ///
    /// # Errors
    /// [`Refusal::Busy`] while no node takes sessions.
    pub async fn session_base(&self) -> Result<String, Error> {
        let own = self.node_state().membership().session_base.as_ref();
        if let (Some(own), false) = (own, self.node_state().is_retired()) {
            return Ok(own.clone());
        }
        let (node, seen_after) = (self.node().clone(), self.now().plus_ms(-TAKES_SESSIONS_MS));
        let others =
            self.read(async move |tx: &mut Tx| Ok(tx.session_bases(&node, seen_after).await?)).await?;
        let chosen = usize::from_be_bytes(self.random(Purpose::NodeChoice)).checked_rem(others.len());
        chosen
            .and_then(|chosen| others.into_iter().nth(chosen))
            .or_else(|| own.cloned())
            .ok_or(Refusal::Busy { retry_after_s: NO_NODE_RETRY_S }.into())
    }

    pub(crate) fn node_record(&self) -> NodeRecord {
        self.node_state().record(self.node().clone())
    }

    pub(crate) fn node_state(&self) -> &NodeState {
        &self.0.node_state
    }
}
