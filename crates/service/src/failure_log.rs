//! Limits the log lines of failures. The first failure is logged at once. While it repeats, one line a
//! minute has the number of times. A full disk or an unreachable database fails every call, and a line for
//! each call would fill the disk of the log.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{Error, LogLimit};

/// Maximum number of different failures with a count. When there are more, all counts are reset.
const FAILURES_MAX: usize = 64;

/// The logged failures by their text, so requests and jobs that fail for the same reason share one line.
#[derive(Debug, Default)]
pub struct FailureLog(Mutex<HashMap<String, LogLimit>>);

impl FailureLog {
    /// Logs a failure at the monotonic time `now`, with the number of times since the last line. `message`
    /// names the operation that failed this time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_is_logged_once_a_minute_with_the_number_of_times() {
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
    fn the_number_of_counted_failures_is_bounded() {
        let log = FailureLog::default();
        for n in 0..2 * FAILURES_MAX {
            assert_eq!(log.due(n.to_string(), Duration::ZERO), Some(1));
            assert!(log.0.lock().unwrap().len() <= FAILURES_MAX);
        }
    }
}
