//! What became of attempts, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use domain::delivery::Outcome;
use domain::outbound::SendFailure;

/// Outcomes that are answers, before the failures: a status of 2xx, and any other.
const ANSWERS: [&str; 2] = ["delivered", "refused"];

/// Counts attempts as they end.
#[derive(Debug, Default)]
pub struct Figures {
    outcomes: [AtomicU64; ANSWERS.len() + SendFailure::ALL.len()],
    dead: AtomicU64,
    under_way: AtomicU64,
}

impl Figures {
    /// Attempts so far, by outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = ANSWERS.into_iter().chain(SendFailure::ALL.into_iter().map(SendFailure::name));
        names.zip(self.outcomes.iter().map(|count| count.load(Relaxed)))
    }

    /// Messages that were given up so far.
    pub fn dead(&self) -> u64 {
        self.dead.load(Relaxed)
    }

    /// Attempts under way now.
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Relaxed)
    }

    pub(super) fn began(&self) {
        self.under_way.fetch_add(1, Relaxed);
    }

    pub(super) fn ended(&self, outcome: &Outcome) {
        self.under_way.fetch_sub(1, Relaxed);
        let index = match outcome {
            Outcome::Failed(failure) => ANSWERS.len() + *failure as usize,
            answered => usize::from(!answered.is_success()),
        };
        self.outcomes[index].fetch_add(1, Relaxed);
    }

    pub(super) fn given_up(&self, messages: usize) {
        self.dead.fetch_add(messages as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_own_count() {
        let figures = Figures::default();
        let answered = |status| Outcome::Answered { status, retry_after: None };
        let outcomes = [answered(204), answered(302)].into_iter();
        for outcome in outcomes.chain(SendFailure::ALL.map(Outcome::Failed)) {
            figures.began();
            figures.ended(&outcome);
        }
        let names =
            ["delivered", "refused", "dns", "address", "connect", "tls", "timeout", "closed", "protocol"];
        assert!(figures.outcomes().eq(names.map(|name| (name, 1))));
        assert_eq!(figures.under_way(), 0);
    }
}
