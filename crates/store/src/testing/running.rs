//! Time limits on machines that sometimes stand still.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// The part of a standstill that counts.
const STEP: Duration = Duration::from_millis(50);

/// What the future gives, if it does so while the machine runs for that long; else `None`.
///
/// A shared machine may give its processor to others for seconds. A promise to answer within 3 s is then not
/// broken, and `tokio::time::timeout` would say that it is. Here the time is made of short waits, and what
/// one of them takes longer than it should does not count.
pub async fn while_running<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = limit;
    while !left.is_zero() {
        let step = left.min(STEP);
        if let Ok(value) = tokio::time::timeout(step, &mut future).await {
            return Some(value);
        }
        left -= step;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_future_that_ends_within_the_limit_gives_its_value() {
        let limit = Duration::from_millis(120);
        assert!(while_running(limit, tokio::time::sleep(limit / 2)).await.is_some());
        assert!(while_running(limit, std::future::pending::<()>()).await.is_none());
    }

    #[tokio::test]
    async fn a_standstill_of_the_machine_does_not_count() {
        let limit = Duration::from_millis(300);
        let late = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            // Nothing runs meanwhile.
            std::thread::sleep(2 * limit);
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert!(while_running(limit, late).await.is_some());
    }
}
