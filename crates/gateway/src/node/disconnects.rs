//! Records the ends of sessions in the store, in batches. When a network link breaks, thousands of sessions
//! end at once. One write for each would fill the store's queue and block other writers. So only a few writes
//! run at a time, and each includes all waiting sessions.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use domain::SessionKey;
use socketio::CloseReason;
use tokio::sync::Semaphore;

use super::registry::Registry;
use crate::config::{DISCONNECT_TRIES, DISCONNECT_WRITES_MAX, DISCONNECTS_PER_WRITE, backoff};
use crate::context::Context;

/// Sessions that have ended and whose ends are not recorded yet.
pub(crate) struct Disconnects {
    waiting: Mutex<VecDeque<(SessionKey, &'static str)>>,
    permits: Semaphore,
}

impl Default for Disconnects {
    fn default() -> Self {
        Self { waiting: Mutex::default(), permits: Semaphore::new(DISCONNECT_WRITES_MAX) }
    }
}

impl Disconnects {
    /// Records the end of a session, which frees its place in the store. Retries while the store does not
    /// answer, a limited number of times. Returns when the end is recorded, or when another task records it.
    pub(crate) async fn record(
        &self,
        context: &Context,
        registry: &Registry,
        key: &SessionKey,
        reason: CloseReason,
    ) {
        self.waiting().push_back((key.clone(), reason.as_str()));
        // There are as many waiters as sessions, so one of them takes each session. The semaphore is never
        // closed.
        let _permit = self.permits.acquire().await;
        let ended = self.take();
        if !ended.is_empty() {
            write(context, &ended).await;
            registry.recorded(ended.len());
        }
    }

    fn take(&self) -> Vec<(SessionKey, &'static str)> {
        let mut waiting = self.waiting();
        let count = waiting.len().min(DISCONNECTS_PER_WRITE);
        let mut ended: Vec<_> = waiting.drain(..count).collect();
        if waiting.is_empty() {
            waiting.shrink_to_fit();
        }
        // Every writer locks the rows in the same order, which avoids deadlocks.
        ended.sort_unstable();
        ended
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<(SessionKey, &'static str)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(context: &Context, ended: &[(SessionKey, &'static str)]) {
    for tries in 0..DISCONNECT_TRIES {
        match context.service.disconnect_sessions(ended.to_vec()).await {
            Ok(()) => return,
            Err(error) if tries + 1 < DISCONNECT_TRIES => {
                context.service.log_failure("failed to record the ends of sessions: retrying", &error);
                context.clock().sleep(backoff(tries)).await;
            }
            Err(error) => {
                context.service.log_failure("failed to record the ends of sessions: giving up", &error)
            }
        }
    }
}
