//! What the service promises of its answers, for the error budgets. Thirty days have a budget: the share of
//! requests that may miss the promise.

use std::time::Duration;

/// The share of requests that are answered without a 5xx.
pub const ANSWERED_RATIO: f64 = 0.999;
/// The share of requests that are answered within the time of their endpoint.
pub const FAST_RATIO: f64 = 0.99;

/// The time of a call of the API.
const CALL: Duration = Duration::from_millis(500);
/// The time of everything else. Pages check passwords, and talk to providers and receivers of others.
const PAGE: Duration = Duration::from_millis(2_500);
/// The time of a batch of events, which includes the time in which its body arrives.
const BATCH: Duration = Duration::from_secs(10);

/// The time within which an endpoint answers, by the pattern of its route.
pub(crate) fn fast_within(route: &str) -> Duration {
    let is_call = ["/open/", "/auth/", "/platform/"].iter().any(|start| route.starts_with(start));
    match route {
        "/platform/v1/events" => BATCH,
        _ if is_call => CALL,
        _ => PAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_pages_and_batches_have_their_own_times() {
        for (route, expected) in [
            ("/open/v1/chats/send", CALL),
            ("/auth/v1/token", CALL),
            ("/platform/v1/channels/{channelId}/chats", CALL),
            ("/platform/v1/events", BATCH),
            ("/sign-in", PAGE),
            ("/openapi.json", PAGE),
            ("unmatched", PAGE),
        ] {
            assert_eq!(fast_within(route), expected, "{route}");
        }
    }
}
