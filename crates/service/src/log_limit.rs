//! Limits log lines that requests from outside can cause, so that they do not fill the log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::LogInterval;

/// A [`LogInterval`] that threads share. Each kind of line has its own.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<LogInterval>);

impl LogLimit {
    /// See [`LogInterval::due`].
    pub fn due(&self, now: Duration) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).due(now)
    }
}
