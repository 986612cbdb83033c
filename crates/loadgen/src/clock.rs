//! The real clock, in one place. A load program measures real time, so unlike in the service no test moves
//! the clock. Functions with tests take nanoseconds as arguments.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since a clock's origin.
pub(crate) type Nanos = u64;

/// One second, in nanoseconds.
pub(crate) const SECOND_NS: Nanos = 1_000_000_000;

/// A monotonic clock. Copies have the same origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
impl Clock {
    /// A clock whose origin is now.
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Time since the origin.
    pub(crate) fn now(self) -> Nanos {
        Nanos::try_from(Instant::now().saturating_duration_since(self.origin).as_nanos())
            .unwrap_or(Nanos::MAX)
    }

    /// Milliseconds since 1970, which make the ids of this run unique.
    pub(crate) fn unix_millis() -> u128 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
    }
}

/// `nanos` in seconds.
pub(crate) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND_NS as f64
}
