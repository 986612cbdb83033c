//! The real clock, in one place: a run is bounded by time that really passes.

use std::time::{Duration, Instant};

/// Runs from its start.
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
