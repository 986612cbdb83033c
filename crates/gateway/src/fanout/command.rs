//! The messages to a shard: commands, and sessions that join.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::SessionKey;
use domain::session::{SessionChange, Subscription};
use service::lost_events::Lost;
use socketio::CloseReason;
use tokio::sync::oneshot;

use super::batch::Encoded;
use crate::session::Session;

/// A registered session on its way to its shard. `S` is the handle of the session.
pub(crate) struct Join<S = Arc<Session>> {
    pub(crate) key: SessionKey,
    pub(crate) session: S,
    /// The node's count of unmatched changes before the session was registered.
    pub(crate) unmatched_changes: u64,
    /// SYSTEM `connected` is queued, so changes may follow it.
    pub(crate) is_introduced: bool,
}

/// A command to a shard. `S` is the handle of a session.
pub(crate) enum Command<S = Arc<Session>> {
    /// SYSTEM `connected` is queued, so changes may follow it.
    Introduced(SessionKey),
    /// The session's websocket accepts no bytes: the shard checks the write deadline.
    Watch(SessionKey),
    /// The session has ended.
    Leave(SessionKey),
    /// What happened on channels, in order: up to [`COMMAND_EVENTS_MAX`](crate::config::COMMAND_EVENTS_MAX)
    /// events.
    Events(Vec<Arc<Encoded>>),
    /// A session's subscriptions changed.
    Change(Box<(SessionKey, SessionChange)>),
    /// The changes that a session missed, read from the store.
    CaughtUp { key: SessionKey, changes: Vec<SessionChange>, interests: Vec<bus::Interest> },
    /// Another node or a call ended the session in the store.
    End(SessionKey, CloseReason),
    /// Events were lost.
    Lost(Arc<Lost>),
    /// Asks for a session by its key.
    Find(SessionKey, oneshot::Sender<Option<S>>),
    /// Asks for the subscriptions of sessions, in their order. `None` for a session that is not there.
    Subscriptions(Vec<SessionKey>, oneshot::Sender<Vec<Option<Vec<Subscription>>>>),
    /// Asks for every session.
    List(oneshot::Sender<Vec<S>>),
}

/// Sessions that have joined since their shard's last round. A join does not wake the shard, because that
/// would cost more than all other steps of a connect. Joins are processed before the next command, or within
/// one tick. Every command about a session is sent after its join, so the shard finds the session.
///
/// `None` once the shard has stopped. A session that joined later would never be dropped.
pub(super) struct PendingJoins(Mutex<Option<Vec<Join>>>);

impl Default for PendingJoins {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl PendingJoins {
    /// Returns `false` if the shard has stopped.
    pub(super) fn push(&self, join: Join) -> bool {
        self.joins().as_mut().map(|joins| joins.push(join)).is_some()
    }

    pub(super) fn take(&self) -> Vec<Join> {
        self.joins().as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn close(&self) {
        // Dropped after the lock is released, because dropping a session takes long.
        let _left = self.joins().take();
    }

    fn joins(&self) -> MutexGuard<'_, Option<Vec<Join>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
