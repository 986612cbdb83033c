//! The only source of time. The edges read the clock. Rules get the values.
#![allow(clippy::disallowed_methods, reason = "this is the one place that reads the system's clocks")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use tokio::sync::watch;

use crate::sandbox_clock::{ClockMode, SandboxClock};

/// The time. Lifetimes of tokens and codes use the wall clock, [`now`](Self::now). Intervals such as pings
/// and deadlines use the monotonic clock, [`monotonic`](Self::monotonic), which never goes back. Quotas use
/// the service's time, [`elapsed`](Self::elapsed). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { started: Instant },
    Manual(Arc<Manual>),
    Sandbox(SandboxClock),
}

/// Moves a manual clock, for tests. Between moves the clock stands still.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Manual>);

#[derive(Debug)]
struct Manual {
    started: Timestamp,
    elapsed: watch::Sender<Duration>,
}

impl Clock {
    /// The system's clocks.
    pub fn system() -> Self {
        Self(Source::System { started: Instant::now() })
    }

    /// A clock that stands still until the [`ManualClock`] moves it.
    pub fn manual(start: Timestamp) -> (Self, ManualClock) {
        let manual = Arc::new(Manual { started: start, elapsed: watch::Sender::new(Duration::ZERO) });
        (Self(Source::Manual(manual.clone())), ManualClock(manual))
    }

    /// The clock of a sandbox. Its wall clock and its elapsed time follow `clock`. Its monotonic clock is the
    /// system's, so that connections live on when the time is moved.
    pub fn sandbox(clock: SandboxClock) -> Self {
        Self(Source::Sandbox(clock))
    }

    /// The time of the wall clock.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System { .. } => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Manual(manual) => {
                let elapsed = manual.elapsed.borrow().as_millis();
                manual.started.plus_ms(i64::try_from(elapsed).unwrap_or(i64::MAX))
            }
            Source::Sandbox(clock) => clock.now(),
        }
    }

    /// The time of the monotonic clock: the time since this clock was created.
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System { started } => started.elapsed(),
            Source::Manual(manual) => *manual.elapsed.borrow(),
            Source::Sandbox(clock) => clock.created_at().elapsed(),
        }
    }

    /// The service's time since this clock was created. It never goes back. It is the monotonic time, except
    /// in a sandbox, where it follows the sandbox's clock.
    pub fn elapsed(&self) -> Duration {
        match &self.0 {
            Source::System { .. } | Source::Manual(_) => self.monotonic(),
            Source::Sandbox(clock) => clock.elapsed(),
        }
    }

    /// The duration of work that began at the monotonic time `started`. On a manual clock work takes no
    /// time, so that a move of the clock during the work does not make the work seem slow.
    pub fn worked(&self, started: Duration) -> Duration {
        match &self.0 {
            Source::System { .. } | Source::Sandbox(_) => self.monotonic().saturating_sub(started),
            Source::Manual(_) => Duration::ZERO,
        }
    }

    /// The duration of work as answers show it. In a sandbox whose clock stands still work takes no time, so
    /// that the same calls get the same answers.
    pub fn shown(&self, took: Duration) -> Duration {
        match &self.0 {
            Source::Sandbox(clock) if clock.mode() == ClockMode::Frozen => Duration::ZERO,
            _ => took,
        }
    }

    /// Returns once [`monotonic`](Self::monotonic) has reached `deadline`.
    pub async fn sleep_until(&self, deadline: Duration) {
        match &self.0 {
            Source::System { started } => tokio::time::sleep_until((*started + deadline).into()).await,
            Source::Manual(manual) => {
                let mut elapsed = manual.elapsed.subscribe();
                // This clock owns the sender, so the wait cannot fail.
                let _ = elapsed.wait_for(|elapsed| *elapsed >= deadline).await;
            }
            Source::Sandbox(clock) => tokio::time::sleep_until((clock.created_at() + deadline).into()).await,
        }
    }

    /// Returns once `span` has passed in the [time of the service](Self::elapsed). A sandbox's clock may run
    /// so fast that this takes no real time, so in a sandbox it takes `at_least` of real time.
    pub async fn elapse(&self, span: Duration, at_least: Duration) {
        match &self.0 {
            Source::System { .. } | Source::Manual(_) => self.sleep(span).await,
            Source::Sandbox(clock) => {
                let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
                let until = clock.now().plus_ms(span_ms);
                self.sleep(at_least).await;
                clock.reached(until).await;
            }
        }
    }

    /// Returns once `span` has passed.
    pub async fn sleep(&self, span: Duration) {
        self.sleep_until(self.monotonic().saturating_add(span)).await;
    }
}

impl ManualClock {
    /// Advances the wall clock and the monotonic clock.
    pub fn advance(&self, span: Duration) {
        self.0.elapsed.send_modify(|elapsed| *elapsed += span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_move_of_a_manual_clock_wakes_sleepers() {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(1_000));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(5)).await }
        });
        tokio::task::yield_now().await;
        hand.advance(Duration::from_millis(4_999));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        hand.advance(Duration::from_millis(1));
        sleeper.await.expect("the sleeper wakes");
        assert_eq!(clock.now(), Timestamp::from_millis(6_000));
    }

    #[tokio::test]
    async fn a_span_of_the_service_follows_a_sandboxs_clock() {
        let hand = SandboxClock::new(Timestamp::from_millis(0), crate::ClockMode::Frozen);
        let waiting = tokio::spawn({
            let clock = Clock::sandbox(hand.clone());
            async move { clock.elapse(Duration::from_secs(3_600), Duration::ZERO).await }
        });
        tokio::task::yield_now().await;
        hand.advance_to(Timestamp::from_millis(3_599_999));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        hand.advance_to(Timestamp::from_millis(3_600_000));
        waiting.await.expect("the wait ends");
    }

    #[test]
    fn work_takes_time_on_the_system_clock_and_none_on_a_manual_clock() {
        let system = Clock::system();
        let started = system.monotonic();
        while system.monotonic() == started {}
        assert!(system.worked(started) > Duration::ZERO);
        let (clock, hand) = Clock::manual(Timestamp::from_millis(0));
        let started = clock.monotonic();
        hand.advance(Duration::from_secs(1));
        assert_eq!(clock.worked(started), Duration::ZERO);
    }
}
