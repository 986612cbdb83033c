//! Counters of webhook attempts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use domain::delivery::Outcome;
use domain::outbound::SendFailure;

/// Names of the outcomes with an answer: a 2xx status, and any other.
const ANSWERS: [&str; 2] = ["delivered", "refused"];

/// Bounds of the time from a claim to the first attempt of its message, in milliseconds.
pub const DELAY_BOUNDS_MS: [u64; 10] = [5, 10, 25, 50, 100, 250, 1_000, 5_000, 60_000, 3_600_000];

/// Counts finished attempts.
#[derive(Debug, Default)]
pub struct WebhookMetrics {
    outcomes: [AtomicU64; ANSWERS.len() + SendFailure::ALL.len()],
    dead: AtomicU64,
    in_flight: AtomicU64,
    delays: [AtomicU64; DELAY_BOUNDS_MS.len() + 1],
    delay_ms: AtomicU64,
}

impl WebhookMetrics {
    /// Attempts so far, by outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = ANSWERS.into_iter().chain(SendFailure::ALL.into_iter().map(SendFailure::name));
        names.zip(self.outcomes.iter().map(|count| count.load(Relaxed)))
    }

    /// Messages that became dead letters so far.
    pub fn dead(&self) -> u64 {
        self.dead.load(Relaxed)
    }

    /// Attempts in flight now.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// First attempts by their delay after the claim: one count for each bound of [`DELAY_BOUNDS_MS`] (above
    /// the bound before it), and one for the rest.
    pub fn delays(&self) -> [u64; DELAY_BOUNDS_MS.len() + 1] {
        std::array::from_fn(|bucket| self.delays[bucket].load(Relaxed))
    }

    /// The sum of these delays, in milliseconds.
    pub fn delay_sum_ms(&self) -> u64 {
        self.delay_ms.load(Relaxed)
    }

    pub(super) fn began(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// Records the delay of a first attempt after its claim.
    pub(super) fn began_after(&self, delay_ms: u64) {
        let bucket = DELAY_BOUNDS_MS.partition_point(|bound| *bound < delay_ms);
        self.delays[bucket].fetch_add(1, Relaxed);
        self.delay_ms.fetch_add(delay_ms, Relaxed);
    }

    pub(super) fn ended(&self, outcome: &Outcome) {
        self.in_flight.fetch_sub(1, Relaxed);
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
        let metrics = WebhookMetrics::default();
        let answered = |status| Outcome::Answered { status, retry_after: None };
        let outcomes = [answered(204), answered(302)].into_iter();
        for outcome in outcomes.chain(SendFailure::ALL.map(Outcome::Failed)) {
            metrics.began();
            metrics.ended(&outcome);
        }
        let names =
            ["delivered", "refused", "dns", "address", "connect", "tls", "timeout", "closed", "protocol"];
        assert!(metrics.outcomes().eq(names.map(|name| (name, 1))));
        assert_eq!(metrics.in_flight(), 0);
    }
}
