//! Which requests are traced.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::collector::SampleRatio;
use crate::trace_context::{RemoteParent, TraceId};

/// Requests a second that are traced because their callers trace them. Callers are strangers, and a trace
/// costs more than most requests.
const BY_CALLERS_MAX: u64 = 50;
/// The bits of a second in the counter, above those of the number of requests.
const SECOND_SHIFT: u32 = 32;

/// Decides which requests are traced.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// A trace is sampled if the random bits of its id are at most this.
    threshold: Option<u64>,
    /// The second of the monotonic clock, and the number of requests that callers had traced in it.
    by_callers: AtomicU64,
}

impl Sampler {
    pub fn new(ratio: SampleRatio) -> Self {
        // A float of 64 bits has no exact 2^64 - 1. The conversion saturates there.
        let threshold = (ratio.get() > 0.0).then(|| (ratio.get() * u64::MAX as f64) as u64);
        Self { threshold, by_callers: AtomicU64::new(0) }
    }

    /// Whether a request is traced, at the monotonic time `now`.
    pub fn samples(&self, trace: TraceId, parent: Option<&RemoteParent>, now: Duration) -> bool {
        match parent {
            Some(parent) if parent.is_sampled => self.has_room_for_callers(now),
            Some(_) => false,
            None => self.threshold.is_some_and(|threshold| trace.low_bits() <= threshold),
        }
    }

    fn has_room_for_callers(&self, now: Duration) -> bool {
        let second = now.as_secs() << SECOND_SHIFT;
        let count = |counted: u64| match counted {
            counted if counted >> SECOND_SHIFT != now.as_secs() => Some(second + 1),
            counted if counted - second < BY_CALLERS_MAX => Some(counted + 1),
            _ => None,
        };
        self.by_callers.fetch_update(Relaxed, Relaxed, count).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(ratio: &str) -> Sampler {
        Sampler::new(SampleRatio::parse(ratio).expect("a ratio"))
    }

    #[test]
    fn the_share_of_traces_is_sampled_by_their_ids() {
        for (ratio, low, expected) in [
            ("0", 0, false),
            ("1", u64::MAX, true),
            ("0.5", u64::MAX / 2 - 4_096, true),
            ("0.5", u64::MAX / 2 + 4_096, false),
        ] {
            let trace = TraceId::of(1, low);
            assert_eq!(sampler(ratio).samples(trace, None, Duration::ZERO), expected, "{ratio} {low}");
        }
    }

    #[test]
    fn callers_decide_about_their_requests_up_to_a_number_a_second() {
        let sampler = sampler("1");
        let parent =
            |flags: &str| RemoteParent::parse(&format!("00-{}-{}-{flags}", "a".repeat(32), "b".repeat(16)));
        let (traced, other) = (parent("01").expect("good"), parent("00").expect("good"));
        let at =
            |second, parent| sampler.samples(TraceId::of(1, 1), Some(parent), Duration::from_secs(second));
        assert!(!at(0, &other), "the caller does not trace it");
        for second in [0, 7] {
            for _ in 0..BY_CALLERS_MAX {
                assert!(at(second, &traced));
            }
            assert!(!at(second, &traced));
        }
    }
}
