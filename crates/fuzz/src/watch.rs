//! The real clock, which bounds the duration of a run.

use std::time::{Duration, Instant};

/// A stopwatch.
pub(crate) struct Watch(Instant);

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
impl Watch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
