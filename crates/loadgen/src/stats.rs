//! Counters and histograms of the load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::clock::Nanos;

/// Maximum number of kinds in one tally. Further kinds are counted together.
const KINDS_MAX: usize = 64;
/// The name under which further kinds are counted.
const OTHER_KINDS: &str = "other kinds";
/// Maximum time of a histogram, in microseconds: 10 minutes.
const LONGEST_US: u64 = 600_000_000;

/// Counts by kind.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<String, u64>>);

impl Tally {
    /// Counts one of `kind`.
    pub(crate) fn count(&self, kind: &str) {
        self.add(kind, 1);
    }

    /// Counts `times` of `kind`.
    pub(crate) fn add(&self, kind: &str, times: u64) {
        if times == 0 {
            return;
        }
        let mut kinds = lock(&self.0);
        if let Some(count) = kinds.get_mut(kind) {
            *count += times;
        } else {
            let kind = if kinds.len() < KINDS_MAX { kind } else { OTHER_KINDS };
            *kinds.entry(kind.to_owned()).or_default() += times;
        }
    }

    /// The sum of all kinds.
    pub(crate) fn total(&self) -> u64 {
        lock(&self.0).values().sum()
    }

    /// Each kind with its count.
    pub(crate) fn kinds(&self) -> BTreeMap<String, u64> {
        lock(&self.0).clone()
    }
}

/// The value behind a lock, also after a panic of another thread: counts are always consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that several threads increment.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub(crate) fn raise_to(&self, at_least: u64) {
        self.0.fetch_max(at_least, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A histogram of times, with three significant digits.
#[derive(Debug)]
pub(crate) struct Times(Histogram<u32>);

impl Default for Times {
    fn default() -> Self {
        // The bounds are valid constants: 1 us to 10 minutes, three digits.
        Self(
            Histogram::new_with_bounds(1, LONGEST_US, 3)
                .unwrap_or_else(|_| unreachable!("constant bounds are valid")),
        )
    }
}

impl Times {
    /// Adds the time from `from` to `to`.
    pub(crate) fn record(&mut self, from: Nanos, to: Nanos) {
        self.0.saturating_record(to.saturating_sub(from) / 1_000);
    }

    /// Adds all times of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        // Both histograms have the same bounds, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// The summary.
    pub(crate) fn summary(&self) -> Summary {
        let ms = |micros: u64| micros as f64 / 1e3;
        Summary {
            count: self.0.len(),
            p50_ms: ms(self.0.value_at_quantile(0.5)),
            p90_ms: ms(self.0.value_at_quantile(0.9)),
            p99_ms: ms(self.0.value_at_quantile(0.99)),
            max_ms: ms(self.0.max()),
        }
    }
}

/// A histogram in five numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) p50_ms: f64,
    pub(crate) p90_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_recorded_times() {
        let mut times = Times::default();
        for ms in 1..=100 {
            times.record(5_000_000, 5_000_000 + ms * 1_000_000);
        }
        let Summary { count, p50_ms, p90_ms, p99_ms, max_ms } = times.summary();
        assert_eq!(count, 100);
        for (measured, exact) in [(p50_ms, 50.0), (p90_ms, 90.0), (p99_ms, 99.0), (max_ms, 100.0)] {
            assert!((measured - exact).abs() <= exact / 500.0, "{measured} is not {exact}");
        }
    }

    #[test]
    fn times_beyond_the_bounds_are_kept_at_the_bounds() {
        let mut times = Times::default();
        times.record(10, 5);
        times.record(0, Nanos::MAX);
        let summary = times.summary();
        assert_eq!(summary.count, 2);
        assert!(summary.max_ms >= 600_000.0);
    }

    #[test]
    fn merged_histograms_hold_both_parts() {
        let (mut left, mut right) = (Times::default(), Times::default());
        left.record(0, 1_000_000);
        right.record(0, 9_000_000);
        left.merge(&right);
        assert_eq!((left.summary().count, left.summary().max_ms.round()), (2, 9.0));
    }

    #[test]
    fn an_empty_histogram_has_zeros() {
        assert_eq!(Times::default().summary(), Summary::default());
    }

    #[test]
    fn the_number_of_kinds_in_a_tally_is_bounded() {
        let tally = Tally::default();
        for number in 0..KINDS_MAX + 5 {
            tally.count(&format!("kind {number:03}"));
        }
        tally.add("kind 000", 2);
        tally.add("nothing", 0);
        let kinds = tally.kinds();
        assert_eq!(kinds.len(), KINDS_MAX + 1);
        assert_eq!((kinds["kind 000"], kinds[OTHER_KINDS]), (3, 5));
        assert_eq!(tally.total(), KINDS_MAX as u64 + 7);
    }
}
