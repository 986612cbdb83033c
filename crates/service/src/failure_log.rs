//! Failures in the log: each at once, and while it lasts once a minute with how often it happened. A full
//! disk or a database that is away fails every call: a line for each would fill the disk of the log too.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{Error, LogLimit, Service};

/// Different failures that are counted apart; when there are more, all counts begin anew.
const FAILURES_MAX: usize = 64;

/// What was logged lately, by the text of the failure: the same failure of requests and of jobs is one line.
#[derive(Debug, Default)]
pub struct FailureLog(Mutex<HashMap<String, LogLimit>>);

impl FailureLog {
    /// Logs at `now` of the monotonic clock that something failed, with the number of times since the last
    /// such line. `message` says what failed this time.
    pub fn report(&self, message: &'static str, error: &Error, now: Duration) {
        match self.due(error.to_string(), now) {
            Some(times) => tracing::error!(%error, times, "{message}"),
            None => tracing::debug!(%error, "{message}"),
        }
    }

    fn due(&self, failure: String, now: Duration) -> Option<u64> {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= FAILURES_MAX && !failures.contains_key(&failure) {
            failures.clear();
        }
        failures.entry(failure).or_default().due(now)
    }
}

impl Service {
    /// Logs that something failed, the same failure once a minute. With the level `debug` each time.
    pub fn log_failure(&self, message: &'static str, error: &Error) {
        self.0.failures.report(message, error, self.clock().monotonic());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_is_logged_once_a_minute_with_how_often_it_happened() {
        let log = FailureLog::default();
        let due = |failure: &str, s| log.due(failure.to_owned(), Duration::from_secs(s));
        assert_eq!(due("full", 100), Some(1));
        assert_eq!(due("full", 101), None);
        assert_eq!(due("full", 159), None);
        assert_eq!(due("away", 159), Some(1));
        assert_eq!(due("full", 160), Some(3));
        assert_eq!(due("full", 161), None);
    }

    #[test]
    fn many_different_failures_take_no_room_without_a_bound() {
        let log = FailureLog::default();
        for n in 0..2 * FAILURES_MAX {
            assert_eq!(log.due(n.to_string(), Duration::ZERO), Some(1));
            assert!(log.0.lock().unwrap().len() <= FAILURES_MAX);
        }
    }
}
