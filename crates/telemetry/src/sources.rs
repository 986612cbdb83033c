//! The sources of time and randomness, which the caller has.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;

/// The sources of time and randomness.
#[derive(Clone)]
pub struct Sources {
    /// The time of the wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The time of a clock that never goes back.
    pub monotonic: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Random bits.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}
