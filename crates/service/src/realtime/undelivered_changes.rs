//! The changes of this node's sessions on their way from the store to the gateway.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::SessionKey;
use domain::session::SessionChange;

/// Changes of this node's sessions, each with the session's key.
pub type SessionChanges = Vec<(SessionKey, SessionChange)>;

/// Changes that were taken from the store and are not delivered to the gateway yet. They outlive the call
/// that took them, because a commit can succeed after its caller gave up.
#[derive(Debug, Default)]
pub(crate) struct UndeliveredChanges(Mutex<SessionChanges>);

impl UndeliveredChanges {
    fn changes(&self) -> MutexGuard<'_, SessionChanges> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, changes: SessionChanges) {
        self.changes().extend(changes);
    }

    pub fn take(&self) -> SessionChanges {
        std::mem::take(&mut *self.changes())
    }
}
