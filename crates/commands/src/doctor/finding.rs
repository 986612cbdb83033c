//! What the doctor finds: the misdeeds of bots, each with what to change.

use crate::failure::CommandFailure;

/// What a bot should not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misdeed {
    /// It made no call.
    MadeNoCall,
    /// It ended by itself.
    Ended,
    /// A call was refused although nothing was wrong with the service.
    Refused,
    /// It subscribed before SYSTEM `connected`.
    SubscribedEarly,
    /// It subscribed to an event twice.
    SubscribedTwice,
    /// It opened a second session.
    ConnectedTwice,
    /// It read more slowly than events came.
    FellBehind,
    /// It handled a message twice that came twice.
    HandledTwice,
    /// Its receiver could not be reached.
    NotListening,
    /// It refused a good message.
    RefusedGoodMessage,
    /// It took a message with a wrong signature.
    AcceptedBadSignature,
    /// It took an old message.
    AcceptedOldTimestamp,
    /// It used a session URL again.
    ReusedSessionUrl,
    /// It used a refresh token again.
    ReusedRefreshToken,
    /// It did not refresh its tokens.
    DidNotRefresh,
    /// It went on with the old access token.
    KeptOldToken,
    /// It repeated refused calls without an end.
    Hammered,
    /// It did nothing at all when it could not go on.
    DidNotNotice,
    /// It did not wait for `Retry-After`.
    IgnoredRetryAfter,
    /// It did not wait longer after each failure.
    DidNotBackOff,
    /// It did not try again.
    GaveUp,
    /// It did not connect again.
    DidNotReconnect,
    /// It did not subscribe again.
    DidNotResubscribe,
}

impl Misdeed {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MadeNoCall => "made-no-call",
            Self::Ended => "ended",
            Self::Refused => "refused",
            Self::SubscribedEarly => "subscribed-early",
            Self::SubscribedTwice => "subscribed-twice",
            Self::ConnectedTwice => "connected-twice",
            Self::FellBehind => "fell-behind",
            Self::HandledTwice => "handled-twice",
            Self::NotListening => "not-listening",
            Self::RefusedGoodMessage => "refused-good-message",
            Self::AcceptedBadSignature => "accepted-bad-signature",
            Self::AcceptedOldTimestamp => "accepted-old-timestamp",
            Self::ReusedSessionUrl => "reused-session-url",
            Self::ReusedRefreshToken => "reused-refresh-token",
            Self::DidNotRefresh => "did-not-refresh",
            Self::KeptOldToken => "kept-old-token",
            Self::Hammered => "hammered",
            Self::DidNotNotice => "did-not-notice",
            Self::IgnoredRetryAfter => "ignored-retry-after",
            Self::DidNotBackOff => "did-not-back-off",
            Self::GaveUp => "gave-up",
            Self::DidNotReconnect => "did-not-reconnect",
            Self::DidNotResubscribe => "did-not-resubscribe",
        }
    }

    /// What to change.
    pub fn advice(self) -> &'static str {
        match self {
            Self::MadeNoCall => {
                "Let the bot read its base URL, its application and its tokens from the environment: \
                 docs/sandbox/doctor.md lists the variables."
            }
            Self::Ended => {
                "Handle the failure, and go on. A bot should end only when a user has to sign in again."
            }
            Self::Refused => "Read the message of the refusal. It names the correction.",
            Self::SubscribedEarly => {
                "Wait for SYSTEM `connected`. Subscribe with the session key that it holds."
            }
            Self::SubscribedTwice => {
                "Handle a repeated SYSTEM message once: remember the key of the session."
            }
            Self::ConnectedTwice => "Connect again only after the socket has closed.",
            Self::FellBehind => "Take events from the socket at once, and work on them elsewhere.",
            Self::HandledTwice => {
                "Remember what was handled: a chat message by its channel, sender and time, a webhook message by its id."
            }
            Self::NotListening => "Let the receiver listen at the address of --webhook.",
            Self::RefusedGoodMessage => {
                "Compare the signature with that of the raw body, not of JSON that was parsed and written again: \
                 docs/webhooks.md has the code."
            }
            Self::AcceptedBadSignature => {
                "Verify the signature of the raw body before anything else, and answer 401: docs/webhooks.md has the \
                 code."
            }
            Self::AcceptedOldTimestamp => {
                "Refuse a message whose timestamp is more than five minutes off. An attacker may replay it."
            }
            Self::ReusedSessionUrl => {
                "Ask for a new session URL before each connection. A URL works once, so turn off the reconnection of \
                 the client library."
            }
            Self::ReusedRefreshToken => {
                "Store the new refresh token before anything else, and forget the old one. Refresh in one place, for all \
                 calls that wait for it. A used refresh token that comes back later than 10 seconds revokes every token \
                 of the user."
            }
            Self::DidNotRefresh => {
                "On 401 ask once for new tokens with the refresh token, and repeat the call with the new access token."
            }
            Self::KeptOldToken => "Use the new access token for every call after the refresh.",
            Self::Hammered => {
                "Stop after a refusal that a repetition does not change, and let the user sign in again."
            }
            Self::DidNotNotice => {
                "On SYSTEM `revoked`, or on a 401 that a refresh does not change, end the bot, or let it print that the \
                 user has to sign in again."
            }
            Self::IgnoredRetryAfter => "Wait as many seconds as `Retry-After` says before the next call.",
            Self::DidNotBackOff => {
                "Wait one or two seconds at random before the first repetition, and twice as long after each failure, \
                 up to a minute."
            }
            Self::GaveUp => "Repeat the call after a pause. A failure of the service passes.",
            Self::DidNotReconnect => "When the socket closes, ask for a new session URL, and connect.",
            Self::DidNotResubscribe => {
                "A new session has no subscriptions. Subscribe to every event again after each SYSTEM `connected`."
            }
        }
    }
}

/// A misdeed that the doctor saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The misdeed.
    pub misdeed: Misdeed,
    /// What the bot did.
    pub saw: String,
    /// The records that show it.
    pub records: Vec<String>,
}

/// The outcome, or why the check could not be made.
pub type CheckResult = Result<CheckOutcome, CommandFailure>;

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The bot did well. The text says what it did.
    Passed(String),
    /// The check says nothing about this bot, for this reason.
    NotApplicable(String),
    /// The bot did something wrong.
    Failed(Vec<Finding>),
}

impl CheckOutcome {
    /// Failed with these findings, or passed without any.
    pub fn of(findings: impl IntoIterator<Item = Finding>, did: impl Into<String>) -> Self {
        let findings: Vec<Finding> = findings.into_iter().collect();
        if findings.is_empty() { Self::Passed(did.into()) } else { Self::Failed(findings) }
    }

    /// Failed with one finding.
    pub fn failed(misdeed: Misdeed, saw: impl Into<String>) -> Self {
        Self::Failed(vec![Finding { misdeed, saw: saw.into(), records: Vec::new() }])
    }
}
