//! Writes that are run again after a deadlock or a serialization failure.
//!
//! Only a deadlock and a lost race are tried again: the database says that it rolled back, and what a write
//! does outside of its transaction follows its commit. A commit without an answer is never tried again.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use store::{Contention, StoreError};

use crate::Error;

/// Maximum number of runs of a write.
const TRIES_MAX: u32 = 5;
/// The longest pause after the first run. After each further run it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Counts the writes that were run again.
#[derive(Debug, Default)]
pub(crate) struct WriteRetries {
    deadlocks: AtomicU64,
    lost_races: AtomicU64,
    given_up: AtomicU64,
}

/// The writes that were run again since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetriedWrites {
    /// Runs again after a deadlock.
    pub after_deadlock: u64,
    /// Runs again after another transaction was first.
    pub after_lost_race: u64,
    /// Writes that were refused in the end.
    pub given_up: u64,
}

impl WriteRetries {
    /// The pause before a write is run again, after `tries` runs of which the last failed. `None` if it is
    /// not run again. `random` spreads the writes that conflicted.
    pub fn pause(&self, error: &Error, tries: u32, random: u16) -> Option<Duration> {
        let counter = match error {
            Error::Store(StoreError::Contention(Contention::Deadlock)) => &self.deadlocks,
            Error::Store(StoreError::Contention(Contention::LostRace)) => &self.lost_races,
            _ => return None,
        };
        if tries >= TRIES_MAX {
            self.given_up.fetch_add(1, Relaxed);
            return None;
        }
        counter.fetch_add(1, Relaxed);
        Some(pause(tries, random))
    }

    pub fn counts(&self) -> RetriedWrites {
        RetriedWrites {
            after_deadlock: self.deadlocks.load(Relaxed),
            after_lost_race: self.lost_races.load(Relaxed),
            given_up: self.given_up.load(Relaxed),
        }
    }
}

/// Between half of the longest pause and all of it.
fn pause(tries: u32, random: u16) -> Duration {
    let longest = FIRST_PAUSE * (1 << tries.saturating_sub(1).min(TRIES_MAX));
    longest / 2 + (longest / 2) * u32::from(random) / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use domain::Refusal;

    use super::*;

    #[test]
    fn pauses_get_longer_and_are_spread() {
        let pauses =
            |random| (1..TRIES_MAX).map(|tries| pause(tries, random).as_millis()).collect::<Vec<_>>();
        assert_eq!(pauses(0), [10, 20, 40, 80]);
        assert_eq!(pauses(u16::MAX), [20, 40, 80, 160]);
        assert_eq!(pauses(u16::MAX / 2)[0], 14);
    }

    #[test]
    fn only_what_the_database_rolled_back_for_others_is_run_again() {
        let retries = WriteRetries::default();
        let again = |error: Error, tries| retries.pause(&error, tries, 0).is_some();
        let deadlock = || Error::Store(Contention::Deadlock.into());
        assert!(again(deadlock(), 1) && again(deadlock(), TRIES_MAX - 1));
        assert!(again(Error::Store(Contention::LostRace.into()), 1));
        assert!(!again(deadlock(), TRIES_MAX));
        for error in [
            StoreError::CommitUnknown,
            StoreError::Unavailable("it is away".to_owned()),
            StoreError::Busy("too many requests are waiting"),
            Contention::LockTimeout.into(),
            Contention::StatementTimeout.into(),
            StoreError::DiskFull,
        ] {
            assert!(!again(error.into(), 1));
        }
        assert!(!again(Refusal::NotTheStreamer.into(), 1));
        let counts = RetriedWrites { after_deadlock: 2, after_lost_race: 1, given_up: 1 };
        assert_eq!(retries.counts(), counts);
    }
}
