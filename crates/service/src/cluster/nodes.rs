//! The roles of a node, the address of its sockets, and its readiness
//! (`docs/adr/0010-nodes-hear-from-the-store.md`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::limits::{NODE_DEAD_AFTER_MS, NODE_HEARTBEAT_MS};
use domain::{Refusal, Timestamp};
use store::queries::nodes::NodeRecord;
use store::{Disk, Tx};

use crate::work::Work;
use crate::{Clock, Error, Service};

/// A node gets new sessions while its last heartbeat is no older than this, in milliseconds: two heartbeats
/// and the deadline of a slow one.
const TAKES_SESSIONS_MS: i64 = 2 * NODE_HEARTBEAT_MS + 2_500;
/// How long after its last answer the store counts as reachable, in milliseconds: the maximum time between
/// two successful heartbeats.
pub const STORE_SILENT_MS: i64 = NODE_HEARTBEAT_MS + 2_500;
/// How long after the store's last answer a node ends its sessions if it has no bus either, in milliseconds.
/// This is before the other nodes declare it dead, also when its last heartbeat has only just been given up.
const CUT_OFF_AFTER_MS: i64 = NODE_DEAD_AFTER_MS - 4_000;
/// How long a node is not ready after a write found the disk full, in milliseconds. On a nearly full disk
/// small writes succeed between large ones that fail.
pub const DISK_FULL_HOLD_MS: i64 = 10_000;
/// How long a client waits before it requests a session URL again while no node takes sessions, in
/// seconds. A starting node is registered within this time.
const NO_NODE_RETRY_S: u32 = 5;

/// The roles of a node. Several nodes can share the work of a service, each with its own roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// REST, the sign-in and the platform API.
    pub web: bool,
    /// The sockets.
    pub gateway: bool,
    /// Background work.
    pub jobs: bool,
}

impl Roles {
    /// All roles.
    pub const ALL: Self = Self { web: true, gateway: true, jobs: true };

    /// The names of the roles, separated by a space.
    pub fn names(self) -> String {
        let named = [(self.web, "web"), (self.gateway, "gateway"), (self.jobs, "jobs")];
        named.into_iter().filter_map(|(has, name)| has.then_some(name)).collect::<Vec<_>>().join(" ")
    }
}

/// How a node registers with the others.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The roles.
    pub roles: Roles,
    /// The base URL of its sockets, without a slash at the end. `None` on a node without sockets.
    pub session_base: Option<String>,
}

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
}

/// The state of this node in memory.
#[derive(Debug)]
pub(crate) struct NodeState {
    membership: Membership,
    started_at: Timestamp,
    retired: AtomicBool,
    /// When the store answered last, in milliseconds of the monotonic clock.
    store_answered: AtomicU64,
    /// When a heartbeat failed last, in milliseconds of the monotonic clock. [`NEVER`] before the first
    /// failure.
    heartbeat_failed: AtomicU64,
    disk_full: Mutex<DiskFullSeen>,
    /// `Some` while the node has yet to register. The value is the argument `alone` of [`Service::join`].
    pending_join: Mutex<Option<bool>>,
}

/// When a write last found the disk full.
#[derive(Debug, Default)]
struct DiskFullSeen {
    /// The number of such writes so far.
    times: u64,
    /// The time of the last such write, in milliseconds of the monotonic clock.
    at: Option<u64>,
}

const NEVER: u64 = u64::MAX;

impl NodeState {
    pub fn new(membership: Membership, clock: &Clock) -> Self {
        Self {
            membership,
            started_at: clock.now(),
            retired: AtomicBool::new(false),
            store_answered: AtomicU64::new(ms(clock.monotonic())),
            heartbeat_failed: AtomicU64::new(NEVER),
            disk_full: Mutex::default(),
            pending_join: Mutex::default(),
        }
    }

    fn retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    /// Whether this node may declare other nodes dead. Its own heartbeats must have succeeded for as long
    /// as a node may be silent. While the store was away all heartbeats failed, so no node may be
    /// declared dead.
    pub fn may_declare_dead(&self, now: Duration) -> bool {
        let failed = self.heartbeat_failed.load(Ordering::SeqCst);
        failed == NEVER || ms(now).saturating_sub(failed) >= NODE_DEAD_AFTER_MS.unsigned_abs()
    }

    pub fn heartbeat_failed(&self, now: Duration) {
        self.heartbeat_failed.store(ms(now), Ordering::SeqCst);
    }

    /// Whether the disk is full, or was within [`DISK_FULL_HOLD_MS`].
    fn disk_is_full(&self, disk: Disk, now: Duration) -> bool {
        let mut seen = self.disk_full.lock().unwrap_or_else(PoisonError::into_inner);
        if disk.is_full || disk.times_full > seen.times {
            *seen = DiskFullSeen { times: disk.times_full, at: Some(ms(now)) };
        }
        seen.at.is_some_and(|at| ms(now).saturating_sub(at) < DISK_FULL_HOLD_MS.unsigned_abs())
    }

    /// `Some` while the node has yet to register. The value is the argument `alone` of [`Service::join`].
    pub fn pending_join(&self) -> Option<bool> {
        *self.pending_join.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_pending_join(&self, alone: Option<bool>) {
        *self.pending_join.lock().unwrap_or_else(PoisonError::into_inner) = alone;
    }

    /// Records that the store answered a query that began at `asked`.
    pub fn store_answered(&self, asked: Duration) {
        self.store_answered.fetch_max(ms(asked), Ordering::SeqCst);
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Service {
    /// The roles of this node.
    pub fn roles(&self) -> Roles {
        self.0.node_state.membership.roles
    }

    fn store_silent_ms(&self) -> u64 {
        ms(self.clock().monotonic()).saturating_sub(self.0.node_state.store_answered.load(Ordering::SeqCst))
    }

    /// Whether the disk is full, or was within [`DISK_FULL_HOLD_MS`]. A failed write counts from the next
    /// call on, so each heartbeat calls this function too.
    pub(crate) fn disk_is_full(&self) -> bool {
        self.0.node_state.disk_is_full(self.0.store.disk(), self.clock().monotonic())
    }

    /// Whether this node is ready for work. Makes no query, because the background loops record whether
    /// the store answers.
    pub fn readiness(&self) -> Readiness {
        if self.0.node_state.retired() {
            Readiness::Draining
        } else if self.disk_is_full() {
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
        self.0.node_state.retired.store(true, Ordering::SeqCst);
        let (service, node) = (self.clone(), self.node().clone());
        async move { service.write(async move |work: &mut Work<'_>| Ok(work.retire_node(&node).await?)).await }
    }

    /// Returns the base URL for a new session: of this node if it has sockets, else of any node with
    /// sockets.
    ///
    /// # Errors
    /// [`Refusal::Busy`] while no node takes sessions.
    pub async fn session_base(&self) -> Result<String, Error> {
        let own = self.0.node_state.membership.session_base.as_ref();
        if let (Some(own), false) = (own, self.0.node_state.retired()) {
            return Ok(own.clone());
        }
        let (node, seen_after) = (self.node().clone(), self.now().plus_ms(-TAKES_SESSIONS_MS));
        let others =
            self.read(async move |tx: &mut Tx| Ok(tx.session_bases(&node, seen_after).await?)).await?;
        let chosen = usize::from_be_bytes(self.random()).checked_rem(others.len());
        chosen
            .and_then(|chosen| others.into_iter().nth(chosen))
            .or_else(|| own.cloned())
            .ok_or(Refusal::Busy { retry_after_s: NO_NODE_RETRY_S }.into())
    }

    pub(crate) fn node_record(&self) -> NodeRecord {
        let NodeState { membership, started_at, .. } = &self.0.node_state;
        NodeRecord {
            node_id: self.node().clone(),
            roles: membership.roles.names(),
            session_base: membership.session_base.clone().filter(|_| !self.0.node_state.retired()),
            started_at: *started_at,
        }
    }

    pub(crate) fn node_state(&self) -> &NodeState {
        &self.0.node_state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_ready_ten_seconds_after_the_disk_was_last_full() {
        let membership = Membership { roles: Roles::ALL, session_base: None };
        let state = NodeState::new(membership, &Clock::manual(Timestamp::default()).0);
        let full =
            |is_full, times_full, s| state.disk_is_full(Disk { is_full, times_full }, Duration::from_secs(s));
        assert!(!full(false, 0, 100));
        assert!(full(true, 1, 101));
        assert!(full(true, 1, 150), "nothing was written since");
        assert!(full(false, 2, 151), "a small write succeeded after one that failed");
        assert!(full(false, 2, 160));
        assert!(!full(false, 2, 161));
    }

    #[test]
    fn after_a_failed_heartbeat_no_node_is_declared_dead_until_all_could_have_written_theirs() {
        let membership = Membership { roles: Roles::ALL, session_base: None };
        let state = NodeState::new(membership, &Clock::manual(Timestamp::default()).0);
        let at = Duration::from_secs;
        assert!(state.may_declare_dead(at(0)), "a new node trusts the rows that it finds");
        state.heartbeat_failed(at(100));
        for (now, may) in [(100, false), (119, false), (120, true), (200, true)] {
            assert_eq!(state.may_declare_dead(at(now)), may, "{now}");
        }
    }

    #[test]
    fn roles_have_their_names() {
        assert_eq!(Roles::ALL.names(), "web gateway jobs");
        assert_eq!(Roles { gateway: false, ..Roles::ALL }.names(), "web jobs");
    }
}
