//! Ends of sessions on their way into the store. When a link breaks, thousands end at once: a write for each would fill the
//! store's queue, and nobody else could write. So only a few are under way, and each takes along who waits meanwhile.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use domain::SessionKey;
use socketio::CloseReason;
use tokio::sync::Semaphore;

use crate::config::{DEPARTURE_WRITES_MAX, DEPARTURES_PER_WRITE, DISCONNECT_TRIES};
use crate::hub::Hub;
use crate::life::backoff;

/// Sessions that are over and whose ends are not recorded yet.
pub(crate) struct Departures {
    waiting: Mutex<VecDeque<(SessionKey, &'static str)>>,
    turns: Semaphore,
}

impl Default for Departures {
    fn default() -> Self {
        Self { waiting: Mutex::default(), turns: Semaphore::new(DEPARTURE_WRITES_MAX) }
    }
}

impl Departures {
    /// Records that a session is over, which frees its slot, however long the store is away, within reason. Returns when
    /// that is done, or left to somebody who does it.
    pub(crate) async fn record(&self, hub: &Hub, key: &SessionKey, reason: CloseReason) {
        self.waiting().push_back((key.clone(), reason.as_str()));
        // As many turns are waited for as sessions, so each of them is taken by somebody's. It is never closed.
        let _turn = self.turns.acquire().await;
        let ended = self.take();
        if !ended.is_empty() {
            write(hub, &ended).await;
            hub.live.send_modify(|live| *live -= ended.len());
        }
    }

    fn take(&self) -> Vec<(SessionKey, &'static str)> {
        let mut waiting = self.waiting();
        let count = waiting.len().min(DEPARTURES_PER_WRITE);
        let mut ended: Vec<_> = waiting.drain(..count).collect();
        if waiting.is_empty() {
            waiting.shrink_to_fit();
        }
        // Rows are locked in the same order by everybody.
        ended.sort_unstable();
        ended
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<(SessionKey, &'static str)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(hub: &Hub, ended: &[(SessionKey, &'static str)]) {
    for tries in 0..DISCONNECT_TRIES {
        match hub.service.disconnect_sessions(ended.to_vec()).await {
            Ok(()) => return,
            Err(error) if tries + 1 < DISCONNECT_TRIES => {
                hub.service.log_failure("ends of sessions are not recorded yet", &error);
                hub.service.clock().sleep(backoff(tries)).await;
            }
            Err(error) => hub.service.log_failure("ends of sessions could not be recorded", &error),
        }
    }
}
