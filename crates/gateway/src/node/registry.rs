//! The registry of a node: its polling sessions, the number of its sessions, and whether it accepts more.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::session::{Session, Sid};

/// Number of locks that share the sids of polling sessions.
const SID_LOCKS: usize = 16;

/// The registry of a node.
pub(crate) struct Registry {
    sessions_max: usize,
    /// Sessions by sid, for requests. A session that was opened by polling is listed until its upgrade or its
    /// end.
    sids: [Mutex<HashMap<Sid, Arc<Session>>>; SID_LOCKS],
    /// Number of handshakes that are being answered.
    handshakes: AtomicUsize,
    /// Number of sessions whose end is not recorded in the store yet.
    live: watch::Sender<usize>,
    draining: AtomicBool,
    /// Number of times that the other nodes declared this node dead.
    declared_dead: AtomicU64,
}

/// Reserves room for the session of one handshake.
pub(crate) struct HandshakePermit<'a>(&'a AtomicUsize);

impl Drop for HandshakePermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Registry {
    pub(crate) fn new(sessions_max: usize) -> Arc<Self> {
        Arc::new(Self {
            sessions_max,
            sids: std::array::from_fn(|_| Mutex::default()),
            handshakes: AtomicUsize::new(0),
            live: watch::Sender::new(0),
            draining: AtomicBool::new(false),
            declared_dead: AtomicU64::new(0),
        })
    }

    fn sids(&self, sid: &Sid) -> MutexGuard<'_, HashMap<Sid, Arc<Session>>> {
        let mut hash = DefaultHasher::new();
        sid.hash(&mut hash);
        let lock = &self.sids[(hash.finish() % SID_LOCKS as u64) as usize];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a polling session, so that its requests find it.
    pub(crate) fn add_sid(&self, session: &Arc<Session>) {
        self.sids(session.sid()).insert(*session.sid(), session.clone());
    }

    pub(crate) fn remove_sid(&self, sid: &Sid) {
        self.sids(sid).remove(sid);
    }

    /// The listed session with this sid.
    pub(crate) fn find(&self, sid: &Sid) -> Option<Arc<Session>> {
        self.sids(sid).get(sid).cloned()
    }

    /// Reserves room for the session of one handshake, until the guard is dropped. `None` when the node has
    /// its maximum number of sessions.
    pub(crate) fn reserve_handshake(&self) -> Option<HandshakePermit<'_>> {
        let handshakes = self.handshakes.fetch_add(1, SeqCst);
        let permit = HandshakePermit(&self.handshakes);
        let taken = handshakes.saturating_add(self.live());
        (taken < self.sessions_max).then_some(permit)
    }

    /// Counts a session that has opened.
    pub(crate) fn opened(&self) {
        self.live.send_modify(|live| *live += 1);
    }

    /// Counts sessions whose ends are recorded, or given up.
    pub(crate) fn recorded(&self, sessions: usize) {
        self.live.send_modify(|live| *live -= sessions);
    }

    /// Number of sessions whose end is not recorded in the store yet.
    pub(crate) fn live(&self) -> usize {
        *self.live.borrow()
    }

    /// Waits until the end of every session is recorded.
    pub(crate) async fn empty(&self) {
        // The sender lives in this registry, so the wait cannot fail.
        let _ = self.live.subscribe().wait_for(|live| *live == 0).await;
    }

    /// Refuses handshakes from now on.
    pub(crate) fn start_drain(&self) {
        self.draining.store(true, SeqCst);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(SeqCst)
    }

    /// The other nodes declared this node dead.
    pub(crate) fn on_declared_dead(&self) {
        self.declared_dead.fetch_add(1, SeqCst);
    }

    /// Number of times that the other nodes declared this node dead.
    pub(crate) fn times_declared_dead(&self) -> u64 {
        self.declared_dead.load(SeqCst)
    }
}
