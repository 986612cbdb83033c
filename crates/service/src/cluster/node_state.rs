//! The state of this node in memory: its roles, whether the store answers, and whether the disk is full.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::limits::NODE_DEAD_AFTER_MS;
use domain::{NodeId, Timestamp};
use store::Disk;
use store::queries::nodes::NodeRecord;

use crate::Clock;

/// How long a node is not ready after a write found the disk full, in milliseconds. On a nearly full disk
/// small writes succeed between large ones that fail.
pub const DISK_FULL_HOLD_MS: i64 = 10_000;

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
    /// `Some` while the node has yet to register. The value is the argument `alone` of `Service::join`.
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

    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    pub fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
    }

    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    /// The entry of this node in the list of nodes.
    pub fn record(&self, node_id: NodeId) -> NodeRecord {
        let Self { membership, started_at, .. } = self;
        NodeRecord {
            node_id,
            roles: membership.roles.names(),
            session_base: membership.session_base.clone().filter(|_| !self.is_retired()),
            started_at: *started_at,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
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
    pub fn disk_is_full(&self, disk: Disk, now: Duration) -> bool {
        let mut seen = self.disk_full.lock().unwrap_or_else(PoisonError::into_inner);
        if disk.is_full || disk.times_full > seen.times {
            *seen = DiskFullSeen { times: disk.times_full, at: Some(ms(now)) };
        }
        seen.at.is_some_and(|at| ms(now).saturating_sub(at) < DISK_FULL_HOLD_MS.unsigned_abs())
    }

    /// `Some` while the node has yet to register. The value is the argument `alone` of `Service::join`.
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

    /// How long ago the store answered last, in milliseconds.
    pub fn store_silent_ms(&self, now: Duration) -> u64 {
        ms(now).saturating_sub(self.store_answered.load(Ordering::SeqCst))
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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
