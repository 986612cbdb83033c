//! The clock of a sandbox: it stands still, runs, or runs faster, and it moves forward on demand.
#![allow(clippy::disallowed_methods, reason = "a sandbox's clock stands on the system's clocks")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::Timestamp;
use tokio::sync::watch;

/// The highest rate of a [scaled](ClockMode::Scaled) clock.
pub const RATE_MAX: f64 = 1_000_000.0;
/// The lowest rate of a scaled clock.
pub const RATE_MIN: f64 = 0.001;

/// How a sandbox's clock runs between moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockMode {
    /// As fast as the system's clock.
    Real,
    /// It stands still.
    Frozen,
    /// This many times as fast as the system's clock, [`RATE_MIN`] to [`RATE_MAX`].
    Scaled(f64),
}

impl ClockMode {
    /// Seconds of the clock in a second of the system's clock.
    pub fn rate(self) -> f64 {
        match self {
            Self::Real => 1.0,
            Self::Frozen => 0.0,
            Self::Scaled(rate) => rate.clamp(RATE_MIN, RATE_MAX),
        }
    }
}

/// Steers the clock of a sandbox. Only the wall clock and the service's elapsed time follow it. The monotonic
/// clock of pings and I/O deadlines stays that of the system. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SandboxClock(Arc<Steered>);

#[derive(Debug)]
struct Steered {
    /// The time at the creation.
    created: Timestamp,
    created_at: Instant,
    course: Mutex<Course>,
    /// Changes with every move and every new mode.
    changes: watch::Sender<u64>,
}

/// The time `since` the instant `from`, and how it goes on.
#[derive(Clone, Copy, Debug)]
struct Course {
    time: Timestamp,
    from: Instant,
    mode: ClockMode,
}

impl Course {
    fn at(&self, instant: Instant) -> Timestamp {
        let passed = instant.saturating_duration_since(self.from).as_secs_f64() * 1_000.0 * self.mode.rate();
        // A clock that would leave the range of i64 stays at its end.
        self.time.plus_ms(passed as i64)
    }
}

impl SandboxClock {
    /// A clock that shows `time` now and runs in this mode.
    pub fn new(time: Timestamp, mode: ClockMode) -> Self {
        let from = Instant::now();
        let course = Mutex::new(Course { time, from, mode });
        Self(Arc::new(Steered { created: time, created_at: from, course, changes: watch::Sender::new(0) }))
    }

    /// The time of the clock.
    pub fn now(&self) -> Timestamp {
        self.course().at(Instant::now())
    }

    /// The mode of the clock.
    pub fn mode(&self) -> ClockMode {
        self.course().mode
    }

    /// Changes the mode. The time stays.
    pub fn set_mode(&self, mode: ClockMode) {
        self.steer(|course, now| *course = Course { time: course.at(now), from: now, mode });
    }

    /// Moves the clock forward to `time`. An earlier time changes nothing.
    pub fn advance_to(&self, time: Timestamp) {
        self.steer(|course, now| {
            *course = Course { time: course.at(now).max(time), from: now, mode: course.mode };
        });
    }

    /// Returns once the clock shows `time`. A frozen clock has to be moved there.
    pub async fn reached(&self, time: Timestamp) {
        let mut changes = self.0.changes.subscribe();
        loop {
            changes.borrow_and_update();
            let (now, rate) = (self.now(), self.mode().rate());
            let left_ms = time.as_millis().saturating_sub(now.as_millis());
            if left_ms <= 0 {
                return;
            }
            let real_s = if rate > 0.0 { left_ms as f64 / 1_000.0 / rate } else { f64::MAX };
            let wait = Duration::from_secs_f64(real_s.clamp(MIN_WAIT_S, MAX_WAIT_S));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // This clock owns the sender, so the wait cannot fail.
                _ = changes.changed() => {}
            }
        }
    }

    /// Changes with every move and every new mode of the clock.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// The time since the creation, on this clock.
    pub(crate) fn elapsed(&self) -> Duration {
        let passed_ms = self.now().as_millis().saturating_sub(self.0.created.as_millis());
        Duration::from_millis(u64::try_from(passed_ms).unwrap_or(0))
    }

    /// When the clock was created, on the system's monotonic clock.
    pub(crate) fn created_at(&self) -> Instant {
        self.0.created_at
    }

    fn course(&self) -> Course {
        *self.0.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn steer(&self, change: impl FnOnce(&mut Course, Instant)) {
        change(&mut self.0.course.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        self.0.changes.send_modify(|count| *count += 1);
    }
}

/// The shortest wait between two looks at the clock, in seconds.
const MIN_WAIT_S: f64 = 0.001;
/// The longest wait between two looks at the clock, in seconds: timers have a range.
const MAX_WAIT_S: f64 = 3_600.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        Timestamp::from_millis(1_000_000)
    }

    #[test]
    fn a_frozen_clock_moves_only_forward_and_only_on_demand() {
        let clock = SandboxClock::new(start(), ClockMode::Frozen);
        assert_eq!(clock.now(), start());
        clock.advance_to(start().plus_ms(5));
        clock.advance_to(start());
        assert_eq!((clock.now(), clock.elapsed()), (start().plus_ms(5), Duration::from_millis(5)));
    }

    #[test]
    fn a_scaled_clock_runs_at_its_rate() {
        let course = Course { time: start(), from: Instant::now(), mode: ClockMode::Scaled(60.0) };
        let later = course.from + Duration::from_millis(250);
        assert_eq!(course.at(later), start().plus_ms(15_000));
        let frozen = Course { mode: ClockMode::Frozen, ..course };
        assert_eq!(frozen.at(later), start());
    }

    #[tokio::test]
    async fn a_move_of_a_frozen_clock_wakes_those_who_wait_for_its_time() {
        let clock = SandboxClock::new(start(), ClockMode::Frozen);
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.reached(start().plus_ms(10)).await }
        });
        clock.advance_to(start().plus_ms(9));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        clock.advance_to(start().plus_ms(10));
        waiting.await.expect("the wait ends");
    }
}
