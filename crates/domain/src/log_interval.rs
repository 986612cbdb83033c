//! Limits how often the same log line is written.

use std::time::Duration;

/// The pause between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(60);

/// Lets one line a minute into the log, and counts the suppressed ones.
#[derive(Debug, Default)]
pub struct LogInterval {
    logged_at: Option<Duration>,
    unlogged: u64,
}

impl LogInterval {
    /// Counts one occurrence at `now`, a time of a monotonic clock. If a line is due, returns the number of
    /// occurrences since the last line.
    pub fn due(&mut self, now: Duration) -> Option<u64> {
        self.unlogged += 1;
        if self.logged_at.is_some_and(|logged_at| now < logged_at + PAUSE) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_counts_the_others() {
        let (mut interval, at) = (LogInterval::default(), Duration::from_secs);
        assert_eq!(interval.due(at(5)), Some(1));
        assert_eq!([interval.due(at(5)), interval.due(at(64))], [None, None]);
        assert_eq!(interval.due(at(65)), Some(3));
        assert_eq!(interval.due(at(66)), None);
        assert_eq!(interval.due(at(500)), Some(2));
    }
}
