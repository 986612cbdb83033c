//! The channels that wait to be written to `lost_events`. One call at a time writes for all waiting calls.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use domain::ChannelId;

use crate::LogLimit;

/// Channels that wait to be written to `lost_events`.
#[derive(Debug, Default)]
pub(crate) struct LostEventRecorder {
    waiting: Mutex<Round>,
    /// Limits the log lines about calls whose events were not confirmed.
    pub log: LogLimit,
    /// Held by the call that writes for all waiting calls.
    pub turn: tokio::sync::Mutex<()>,
}

/// Channels that are written in one transaction.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub channels: BTreeSet<ChannelId>,
    /// Whether the channels were recorded. Empty until the transaction has ended.
    pub is_recorded: Arc<OnceLock<bool>>,
}

impl LostEventRecorder {
    fn waiting(&self) -> MutexGuard<'_, Round> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds channels to the waiting round and returns the cell for its outcome.
    pub fn add(&self, channels: Vec<ChannelId>) -> Arc<OnceLock<bool>> {
        let mut round = self.waiting();
        round.channels.extend(channels);
        round.is_recorded.clone()
    }

    /// Takes the waiting round. Only the holder of the turn calls this function.
    pub fn take_round(&self) -> Round {
        std::mem::take(&mut *self.waiting())
    }
}
