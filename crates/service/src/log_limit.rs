//! Lines that anybody outside can cause, kept from filling the log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The pause between two lines about the same.
const PAUSE: Duration = Duration::from_secs(60);

/// Lets one line a minute into the log. Each thing that is logged so has its own.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    logged_at: Option<Duration>,
    unlogged: u64,
}

impl LogLimit {
    /// Something happened at `now` of the monotonic clock. When a line about it is due, gives how often it happened since
    /// the last one.
    pub fn due(&self, now: Duration) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.unlogged += 1;
        if state.logged_at.is_some_and(|logged_at| now < logged_at + PAUSE) {
            return None;
        }
        state.logged_at = Some(now);
        Some(std::mem::take(&mut state.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_counts_what_the_others_would_have_said() {
        let (limit, at) = (LogLimit::default(), Duration::from_secs);
        assert_eq!(limit.due(at(5)), Some(1));
        assert_eq!([limit.due(at(5)), limit.due(at(64))], [None, None]);
        assert_eq!(limit.due(at(65)), Some(3));
        assert_eq!(limit.due(at(66)), None);
        assert_eq!(limit.due(at(500)), Some(2));
    }
}
