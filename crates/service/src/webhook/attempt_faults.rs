//! The fault point of webhook attempts: a sandbox may change what is sent or handed to a listener, and
//! receives the results. `stagedoor serve` has none.

use std::time::Duration;

use domain::delivery::{Next, Outcome};
use domain::limits::MINUTE_MS;
use domain::{ClaimId, ClientId, Timestamp};

use crate::webhook::attempt::{Attempt, AttemptKey};

/// How old the timestamp of [`AttemptFault::OldTimestamp`] is.
pub const OLD_TIMESTAMP_MS: i64 = 10 * MINUTE_MS;

/// The end of the name of the signature's header.
const SIGNATURE: &str = "Signature";
/// A changed body names another claim: its id gets this beginning.
const CLAIM_ID: &[u8] = b"\"claimId\":\"";
const CHANGED: &[u8] = b"changed-";

/// What a sandbox does to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptFault {
    /// The signature is wrong.
    WrongSignature,
    /// The timestamp is 10 minutes old. The signature is right.
    OldTimestamp,
    /// The body was changed after it was signed.
    ChangedBody,
    /// The request is sent twice. The first answer counts.
    Duplicate,
    /// The request waits, in real time.
    Late(Duration),
    /// The connection ends before the request is sent.
    NotSent,
    /// The receiver answers, and the connection ends before its answer arrives.
    AnswerLost,
}

/// An attempt that was made, for the record of a sandbox.
#[derive(Clone, Debug)]
pub struct SentAttempt {
    /// Its message and its number.
    pub key: AttemptKey,
    /// The application.
    pub client_id: ClientId,
    /// The claim that the message reports; `None` for a test message.
    pub claim_id: Option<ClaimId>,
    /// The address without its query; `None` for the attempt of a listener.
    pub url: Option<String>,
    /// When it began.
    pub began_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: i64,
    /// The outcome.
    pub outcome: Outcome,
    /// The consequence for the message; `None` for a result that was recorded too late, and for a copy.
    pub next: Option<Next>,
    /// The id of the rule that changed it.
    pub fault: Option<String>,
    /// Whether this is the second request of [`AttemptFault::Duplicate`].
    pub is_copy: bool,
}

/// Stands around every attempt.
pub trait AttemptFaultPoint: std::fmt::Debug + Send + Sync {
    /// The fault of an attempt that begins, with the id of its rule.
    fn fault(&self, attempt: &Attempt) -> Option<(String, AttemptFault)>;

    /// An attempt was made, and its result was recorded.
    fn attempted(&self, attempt: SentAttempt);
}

/// The attempt as it is sent with a fault.
pub fn tampered(mut attempt: Attempt, fault: AttemptFault) -> Attempt {
    match fault {
        AttemptFault::WrongSignature => {
            for (_, value) in attempt.headers.iter_mut().filter(|(name, _)| name.ends_with(SIGNATURE)) {
                *value = other_signature(value);
            }
        }
        AttemptFault::OldTimestamp => attempt = attempt.backdated(OLD_TIMESTAMP_MS),
        AttemptFault::ChangedBody => attempt.body = changed(attempt.body),
        AttemptFault::Duplicate
        | AttemptFault::Late(_)
        | AttemptFault::NotSent
        | AttemptFault::AnswerLost => {}
    }
    attempt
}

/// A signature of the same form with another last digit.
fn other_signature(signature: &str) -> String {
    let mut other = signature.to_owned();
    let last = other.pop();
    other.push(if last == Some('0') { '1' } else { '0' });
    other
}

fn changed(body: Vec<u8>) -> Vec<u8> {
    let found = body.windows(CLAIM_ID.len()).position(|window| window == CLAIM_ID);
    let Some(at) = found.map(|at| at + CLAIM_ID.len()) else { return [&body[..], b" "].concat() };
    [&body[..at], CHANGED, &body[at..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_body_names_another_claim_and_a_wrong_signature_has_the_form_of_a_right_one() {
        let body = br#"{"event":{"data":{"claimId":"c-1"}}}"#.to_vec();
        assert_eq!(changed(body), br#"{"event":{"data":{"claimId":"changed-c-1"}}}"#);
        assert_eq!(changed(b"{}".to_vec()), b"{} ");
        for (right, wrong) in [("sha256=a0", "sha256=a1"), ("sha256=af", "sha256=a0")] {
            assert_eq!(other_signature(right), wrong);
        }
    }
}
