//! Messages to webhooks: their signature, their retries and their end (`docs/spec/drops.md#webhook`).
//!
//! A message is attempted until a 2xx status answers it, at most once more than [`WEBHOOK_RETRY_MS`] has
//! entries. Time and randomness are arguments.

use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use crate::limits::{
    WEBHOOK_EXCERPT_CHARS_MAX, WEBHOOK_FAILING_MAX_MS, WEBHOOK_RETRY_AFTER_MAX_MS, WEBHOOK_RETRY_MS,
};
use crate::outbound::SendFailure;
use crate::secret::WebhookSecret;
use crate::{DeliveryId, Timestamp};

/// Jitter of the time until the next attempt: up to a tenth of it is added. So messages that failed together
/// are not retried together, and no attempt is early.
const JITTER_DIVISOR: i64 = 10;

/// The value of the signature header: `sha256=` and the HMAC of id, timestamp and body. Nothing separates
/// them, so id and timestamp must have fixed widths (36 and 24 characters), as [`DeliveryId`] and
/// [`Timestamp::rfc3339`] have.
pub fn signature(secret: &WebhookSecret, id: &DeliveryId, timestamp: Timestamp, body: &[u8]) -> String {
    let timestamp = timestamp.rfc3339();
    format!("sha256={}", secret.sign(&[id.as_str().as_bytes(), timestamp.as_bytes(), body]))
}

/// Declares an enum of names on the wire and in the store.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$variant_doc])* $variant,)+ }

        impl $type {
            /// Every name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name on the wire and in the store.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The value with that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

names! {
    /// The state of a message.
    DeliveryState {
        /// An attempt is running or due later.
        Waiting = "WAITING",
        /// A 2xx status answered it.
        Delivered = "DELIVERED",
        /// No attempt follows unless one is requested: a dead letter.
        Dead = "DEAD",
    }
}

names! {
    /// Why a webhook is disabled.
    DisabledReason {
        /// The operator disabled it.
        Operator = "OPERATOR",
        /// The receiver answered 410.
        Gone = "GONE",
        /// Every attempt in five days failed.
        Failing = "FAILING",
    }
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver answered.
    Answered {
        /// With this status. A redirect is an answer like any other: it is not followed.
        status: u16,
        /// The receiver wants no other attempt before this time; see [`retry_after`].
        retry_after: Option<Timestamp>,
    },
    /// There was no answer.
    Failed(SendFailure),
}

impl Outcome {
    /// An answer with this status and `Retry-After` header, received at `now`.
    pub fn answered(status: u16, retry_after_header: Option<&str>, now: Timestamp) -> Self {
        let retry_after = retry_after_header.and_then(|value| retry_after(value, now));
        Self::Answered { status, retry_after }
    }

    /// Whether the message has arrived.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Answered { status: 200..=299, .. })
    }

    /// Whether the receiver answered that the webhook is gone.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Answered { status: 410, .. })
    }
}

/// The consequence of an outcome for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The message was delivered.
    Done,
    /// The message is attempted again at this time.
    Again(Timestamp),
    /// The message is given up.
    Dead,
    /// The message is given up, and its webhook is disabled, because the receiver answered that it is gone.
    Gone,
}

/// The consequence of an attempt that ended at `now`, after `failures` failed attempts since the message was
/// last queued. `spread` is the source of the jitter: see [`spread`].
pub fn next(outcome: &Outcome, failures: i64, now: Timestamp, spread: u16) -> Next {
    let not_before = match *outcome {
        Outcome::Answered { status: 200..=299, .. } => return Next::Done,
        Outcome::Answered { status: 410, .. } => return Next::Gone,
        Outcome::Answered { retry_after, .. } => retry_after,
        Outcome::Failed(_) => None,
    };
    let Some(pause) = usize::try_from(failures).ok().and_then(|n| WEBHOOK_RETRY_MS.get(n)) else {
        return Next::Dead;
    };
    let jitter = pause / JITTER_DIVISOR * i64::from(spread) / i64::from(u16::MAX);
    let at = now.plus_ms(pause + jitter);
    Next::Again(not_before.map_or(at, |not_before| at.max(not_before)))
}

/// Where the jitter after an attempt lies in its range. It differs from message to message, and depends on
/// nothing else. So a sandbox with a seed retries at the same times, whichever of several attempts ends
/// first.
pub fn spread(message_id: &DeliveryId, number: i64) -> u16 {
    let hash = Sha256::new_with_prefix(message_id.as_str()).chain_update(number.to_be_bytes()).finalize();
    u16::from_be_bytes([hash[0], hash[1]])
}

/// Parses `Retry-After`, seconds or an HTTP date, at most a day from `now`; `None` for anything else.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Timestamp> {
    let value = value.trim();
    let latest = now.plus_ms(WEBHOOK_RETRY_AFTER_MAX_MS);
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // A number with too many digits for `i64` is also more than a day.
        let ms = value.parse::<i64>().map_or(i64::MAX, |seconds| seconds.saturating_mul(1_000));
        return Some(now.plus_ms(ms).min(latest));
    }
    let since = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let at = i64::try_from(since.as_millis()).map_or(Timestamp::LAST, Timestamp::from_millis);
    Some(at.clamp(now, latest))
}

/// A webhook is disabled if all attempts have failed since this time or earlier.
pub fn given_up_when_failing_since(now: Timestamp) -> Timestamp {
    now.plus_ms(-WEBHOOK_FAILING_MAX_MS)
}

/// The beginning of a receiver's answer, as text without control characters that a store or a page could
/// reject.
pub fn excerpt(answer: &[u8]) -> String {
    // No code point has more than four bytes, so the rest can be ignored.
    let beginning = &answer[..answer.len().min(4 * WEBHOOK_EXCERPT_CHARS_MAX)];
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(beginning).chars().take(WEBHOOK_EXCERPT_CHARS_MAX).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};

    const NOW: i64 = 784_111_777_000;

    fn now() -> Timestamp {
        Timestamp::from_millis(NOW)
    }

    #[test]
    fn the_jitter_spreads_messages_and_attempts_and_is_the_same_again() {
        let of = |id: &str, number| spread(&DeliveryId::stored(id.to_owned()), number);
        assert_eq!(of("a", 1), of("a", 1));
        let ids: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        let late = ids.iter().filter(|id| of(id, 1) > u16::MAX / 2).count();
        assert!((400..600).contains(&late), "{late}");
        assert!((1..9).any(|number| of("a", number) != of("a", 0)));
    }

    #[test]
    fn a_signature_is_of_id_timestamp_and_body_joined() {
        let secret = WebhookSecret::given("0123456789abcdef0123456789abcdef").expect("long enough");
        let id = DeliveryId::stored("0198c0de-0000-7000-8000-000000000001".into());
        let at = Timestamp::from_millis(1_784_385_132_345);
        let body = r#"{"한글":"값"}"#.as_bytes();
        // printf '%s' '0198c0de-…12.345Z{"한글":"값"}' | openssl dgst -sha256 -hmac 0123…
        let expected = "sha256=f589ad3d8dc2a93b92fabe57027e9117e20aa5a786307df798db271d363615d5";
        assert_eq!(signature(&secret, &id, at, body), expected);
        let other = WebhookSecret::given(&"x".repeat(32)).expect("long enough");
        assert_ne!(signature(&other, &id, at, body), expected);
    }

    #[test]
    fn failed_attempts_are_retried_on_schedule() {
        let failed = Outcome::Failed(SendFailure::Timeout);
        let pauses = [
            5 * SECOND_MS,
            5 * MINUTE_MS,
            30 * MINUTE_MS,
            2 * HOUR_MS,
            5 * HOUR_MS,
            10 * HOUR_MS,
            10 * HOUR_MS,
        ];
        for (failures, pause) in (0..).zip(pauses) {
            assert_eq!(next(&failed, failures, now(), 0), Next::Again(now().plus_ms(pause)));
            let latest = now().plus_ms(pause + pause / 10);
            assert_eq!(next(&failed, failures, now(), u16::MAX), Next::Again(latest));
        }
        assert_eq!(next(&failed, 7, now(), 0), Next::Dead);
        assert_eq!(next(&failed, 70, now(), 0), Next::Dead);
    }

    #[test]
    fn the_status_decides_the_outcome() {
        let check = |status, failures, expected| {
            let outcome = Outcome::answered(status, None, now());
            assert_eq!(next(&outcome, failures, now(), 0), expected, "{status}");
            assert_eq!(outcome.is_success(), expected == Next::Done, "{status}");
            assert_eq!(outcome.is_gone(), expected == Next::Gone, "{status}");
        };
        let again = Next::Again(now().plus_ms(5 * SECOND_MS));
        check(199, 0, again);
        check(200, 0, Next::Done);
        check(299, 7, Next::Done);
        check(300, 0, again);
        check(308, 0, again);
        check(400, 0, again);
        check(409, 7, Next::Dead);
        check(410, 0, Next::Gone);
        check(410, 7, Next::Gone);
        check(500, 0, again);
        check(999, 0, again);
    }

    #[test]
    fn the_receiver_may_ask_for_a_later_attempt_but_not_an_earlier_one() {
        let check = |header, failures, expected_ms| {
            let outcome = Outcome::answered(503, Some(header), now());
            assert_eq!(
                next(&outcome, failures, now(), 0),
                Next::Again(now().plus_ms(expected_ms)),
                "{header}"
            );
        };
        check("60", 0, 60 * SECOND_MS);
        check("3", 0, 5 * SECOND_MS);
        check("60", 1, 5 * MINUTE_MS);
        check("864000", 0, DAY_MS);
        assert_eq!(next(&Outcome::answered(503, Some("60"), now()), 7, now(), 0), Next::Dead);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let check = |value: &str, expected: Option<i64>| {
            assert_eq!(retry_after(value, now()), expected.map(|ms| now().plus_ms(ms)), "{value:?}");
        };
        check("0", Some(0));
        check(" 120 ", Some(120 * SECOND_MS));
        check("99999999999999999999999", Some(DAY_MS));
        check("Sun, 06 Nov 1994 08:50:37 GMT", Some(60 * SECOND_MS));
        check("Sunday, 06-Nov-94 08:50:37 GMT", Some(60 * SECOND_MS));
        check("Sun Nov  6 08:50:37 1994", Some(60 * SECOND_MS));
        check("Sun, 06 Nov 1994 08:40:37 GMT", Some(0));
        check("Fri, 31 Dec 9999 23:59:59 GMT", Some(DAY_MS));
        for wrong in ["", "-1", "+5", "1.5", "soon", "1e3", "Sun, 06 Nov 1994 08:49:37 KST", "６０"] {
            check(wrong, None);
        }
    }

    #[test]
    fn an_excerpt_is_short_and_plain() {
        assert_eq!(excerpt(b""), "");
        assert_eq!(excerpt(b"no\0such\r\nthing\xff"), "no such  thing\u{fffd}");
        let long = "가".repeat(100_000);
        assert_eq!(excerpt(long.as_bytes()).chars().count(), WEBHOOK_EXCERPT_CHARS_MAX);
    }

    #[test]
    fn names_parse_back() {
        for name in DeliveryState::NAMES {
            assert_eq!(DeliveryState::from_name(name).map(DeliveryState::name), Some(*name));
        }
        assert_eq!(DeliveryState::from_name("nothing"), None);
    }
}
