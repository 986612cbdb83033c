//! When a commit is worth waiting for more who write. A sync costs some 60 µs of CPU, however many share it; where thousands
//! write a second, one at a time, most of them would pay for one alone.
//!
//! Whoever waits for nobody must not be kept waiting: one who writes again and again, or two. So it is tried only when the
//! last commit was shared, and when nobody came, not again for a while.

use std::time::Duration;

/// How long a commit waits.
pub(super) const GATHER_FOR: Duration = Duration::from_micros(400);
/// Requests that are enough to share a sync.
const ENOUGH: usize = 4;
/// Commits that do not wait after one that waited for nobody.
const REST_COMMITS: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Gathering {
    was_shared: bool,
    rests: u32,
}

impl Gathering {
    /// Whether a commit of so many requests waits for more, when no other is there.
    pub(super) fn is_worth_it(&self, requests: usize) -> bool {
        self.was_shared && self.rests == 0 && requests < ENOUGH
    }

    /// It waited, and somebody came or not.
    pub(super) fn waited(&mut self, somebody_came: bool) {
        if !somebody_came {
            self.rests = REST_COMMITS;
        }
    }

    /// So many requests were committed together.
    pub(super) fn committed(&mut self, requests: usize) {
        self.was_shared = requests > 1;
        self.rests = self.rests.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_writes_alone_never_waits() {
        let mut gathering = Gathering::default();
        for _ in 0..1_000 {
            assert!(!gathering.is_worth_it(1));
            gathering.committed(1);
        }
    }

    #[test]
    fn commits_that_are_shared_wait_as_long_as_somebody_comes() {
        let mut gathering = Gathering::default();
        gathering.committed(2);
        for _ in 0..1_000 {
            assert!(gathering.is_worth_it(1) && !gathering.is_worth_it(ENOUGH));
            gathering.waited(true);
            gathering.committed(3);
        }
        gathering.waited(false);
        let tries = (0..1_000).filter(|_| {
            let waits = gathering.is_worth_it(2);
            if waits {
                gathering.waited(false);
            }
            gathering.committed(2);
            waits
        });
        assert!(tries.count() <= 1_000 / REST_COMMITS as usize);
    }
}
