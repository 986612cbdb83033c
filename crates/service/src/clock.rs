//! The one source of time. Edges read it and pass values on; rules only see the values.
#![allow(clippy::disallowed_methods, reason = "this is the one place that reads the system's clocks")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use tokio::sync::watch;

/// What time it is. Lifetimes (tokens, codes) run on the wall side, [`now`](Self::now); intervals (pings,
/// deadlines, quotas) on the monotonic side, [`monotonic`](Self::monotonic), which never goes back. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { started: Instant },
    Manual(Arc<Manual>),
}

/// A clock that stands still until it is moved, for tests.
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

    /// A clock that is moved by hand.
    pub fn manual(start: Timestamp) -> (Self, ManualClock) {
        let manual = Arc::new(Manual { started: start, elapsed: watch::Sender::new(Duration::ZERO) });
        (Self(Source::Manual(manual.clone())), ManualClock(manual))
    }

    /// The wall side.
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
        }
    }

    /// The monotonic side: time since this clock was made.
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System { started } => started.elapsed(),
            Source::Manual(manual) => *manual.elapsed.borrow(),
        }
    }

    /// How long work took that began at `started` on the monotonic side. On a clock that is moved by hand
    /// work takes no time: a move that falls into it by chance must not make it seem slow.
    pub fn worked(&self, started: Duration) -> Duration {
        match &self.0 {
            Source::System { .. } => self.monotonic().saturating_sub(started),
            Source::Manual(_) => Duration::ZERO,
        }
    }

    /// Returns once [`monotonic`](Self::monotonic) has reached `deadline`.
    pub async fn sleep_until(&self, deadline: Duration) {
        match &self.0 {
            Source::System { started } => tokio::time::sleep_until((*started + deadline).into()).await,
            Source::Manual(manual) => {
                let mut elapsed = manual.elapsed.subscribe();
                // The sender lives in this very clock, so the wait cannot fail.
                let _ = elapsed.wait_for(|elapsed| *elapsed >= deadline).await;
            }
        }
    }

    /// Returns once `span` has passed.
    pub async fn sleep(&self, span: Duration) {
        self.sleep_until(self.monotonic().saturating_add(span)).await;
    }
}

impl ManualClock {
    /// Moves both sides on.
    pub fn advance(&self, span: Duration) {
        self.0.elapsed.send_modify(|elapsed| *elapsed += span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_when_it_is_moved() {
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

    #[test]
    fn work_takes_time_on_the_systems_clock_and_none_on_one_that_is_moved_by_hand() {
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
