//! The effect of a rule in the form of the sandbox API.

use std::time::Duration;

use jobs::webhooks::{AttemptFault, LATE_MAX};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::fault::{Effect, MessageEffect, Moment, RequestEffect};
use crate::http::answer::Problem;
use crate::http::close_reason::close_reason;
use crate::time_text;

/// Maximum length of a message, in characters.
const MESSAGE_CHARS_MAX: usize = 512;
/// Maximum delay of a request or of a message.
const DELAY_MAX: Duration = Duration::from_secs(600);
/// Maximum of `retryAfter`, in seconds.
const RETRY_AFTER_S_MAX: u64 = 86_400;

/// What happens: exactly one of the fields, besides `message` and `retryAfter`, which go with `status`, and
/// `when`, which goes with `delay`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewEffect {
    /// A request is answered with this status, and nothing takes effect.
    status: Option<u16>,
    /// The message of that answer.
    message: Option<String>,
    /// The header `Retry-After` of that answer, in seconds.
    retry_after: Option<u64>,
    /// A request waits.
    delay: Option<String>,
    /// Whether it waits before its effect or after it.
    when: Option<Moment>,
    /// The connection ends without an answer, without a close frame, or before the answer of a receiver.
    cut: Option<Moment>,
    /// The connection ends within the answer.
    truncate: Option<Length>,
    /// A message is not sent.
    drop: Option<bool>,
    /// A message is sent twice.
    duplicate: Option<bool>,
    /// A message is sent after the session's next one, or after 2 seconds if none comes.
    reorder: Option<bool>,
    /// A message is sent this much later. Others overtake it.
    late: Option<String>,
    /// From this message on the session is half open.
    silence: Option<bool>,
    /// The session is closed instead, with this close reason.
    close: Option<String>,
    /// A webhook message has a wrong signature, an old timestamp, or a body that was changed after it was
    /// signed.
    tamper: Option<Tampered>,
}

/// What is wrong with a webhook message.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tampered {
    /// The signature is wrong.
    Signature,
    /// The timestamp is 10 minutes old. The signature is right.
    Timestamp,
    /// The body was changed after it was signed.
    Body,
}

/// What a rule means besides requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// It does not say.
    Any,
    /// Messages of sockets.
    Messages,
    /// Attempts at webhooks.
    Attempts,
}

/// Number of bytes, or `true` for half of the answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Length {
    Bytes(u64),
    Half(bool),
}

impl NewEffect {
    /// Checks the effect. What may happen to several things happens to those that the rule means.
    pub(super) fn checked(self, meant: Meant) -> Result<Effect, Problem> {
        self.check_companions()?;
        let found = self.given();
        match found[..] {
            [name] if meant == Meant::Attempts || name == "tamper" => self.of_attempts().map(Effect::Attempt),
            ["cut"] if meant == Meant::Messages => {
                let moment = self.cut.unwrap_or(Moment::Before);
                Ok(Effect::Message(MessageEffect::Cut(moment)))
            }
            ["status" | "delay" | "cut" | "truncate"] => self.of_requests().map(Effect::Request),
            [name] => self.of_messages(name).map(Effect::Message),
            _ => Err(Problem::invalid("do", format!("must have exactly one of {}", NAMES.join(", ")))),
        }
    }

    /// The names of the given effects.
    fn given(&self) -> Vec<&'static str> {
        let given = [
            self.status.is_some(),
            self.delay.is_some(),
            self.cut.is_some(),
            self.truncate.is_some(),
            self.drop.is_some(),
            self.duplicate.is_some(),
            self.reorder.is_some(),
            self.late.is_some(),
            self.silence.is_some(),
            self.close.is_some(),
            self.tamper.is_some(),
        ];
        NAMES.into_iter().zip(given).filter_map(|(name, is_given)| is_given.then_some(name)).collect()
    }

    /// Checks that `message`, `retryAfter` and `when` stand beside what they belong to.
    fn check_companions(&self) -> Result<(), Problem> {
        if self.status.is_none() && (self.message.is_some() || self.retry_after.is_some()) {
            let field = if self.message.is_some() { "do.message" } else { "do.retryAfter" };
            return Err(Problem::invalid(field, "goes only with status"));
        }
        if self.delay.is_none() && self.when.is_some() {
            return Err(Problem::invalid("do.when", "goes only with delay"));
        }
        Ok(())
    }

    fn of_requests(self) -> Result<RequestEffect, Problem> {
        let Self { status, message, retry_after, delay, when, cut, truncate, .. } = self;
        if let Some(delay) = delay {
            return Ok(RequestEffect::Delay(span("do.delay", &delay)?, when.unwrap_or(Moment::Before)));
        }
        if let Some(moment) = cut {
            return Ok(RequestEffect::Cut(moment));
        }
        match truncate {
            Some(Length::Bytes(bytes)) => return Ok(RequestEffect::Truncate(Some(bytes))),
            Some(Length::Half(true)) => return Ok(RequestEffect::Truncate(None)),
            Some(Length::Half(false)) => {
                return Err(Problem::invalid("do.truncate", "must be a number of bytes or true"));
            }
            None => {}
        }
        let status = status.filter(|status| (400..=599).contains(status));
        let status =
            status.ok_or_else(|| Problem::invalid("do.status", "must be a number from 400 to 599"))?;
        if message.as_ref().is_some_and(|message| message.chars().count() > MESSAGE_CHARS_MAX) {
            let rule = format!("must be at most {MESSAGE_CHARS_MAX} characters");
            return Err(Problem::invalid("do.message", rule));
        }
        if retry_after.is_some_and(|seconds| seconds > RETRY_AFTER_S_MAX) {
            let rule = format!("must be seconds, at most {RETRY_AFTER_S_MAX}");
            return Err(Problem::invalid("do.retryAfter", rule));
        }
        Ok(RequestEffect::Status { status, message, retry_after_s: retry_after })
    }

    fn of_attempts(self) -> Result<AttemptFault, Problem> {
        if let Some(tampered) = self.tamper {
            return Ok(match tampered {
                Tampered::Signature => AttemptFault::WrongSignature,
                Tampered::Timestamp => AttemptFault::OldTimestamp,
                Tampered::Body => AttemptFault::ChangedBody,
            });
        }
        if let Some(late) = self.late {
            let span = time_text::parse_span(&late).filter(|span| *span <= LATE_MAX);
            let rule = format!(
                "must be a duration like 250ms or 2s, of at most {}s for a webhook: a message that waits longer \
                 is sent again",
                LATE_MAX.as_secs()
            );
            return span.map(AttemptFault::Late).ok_or_else(|| Problem::invalid("do.late", rule));
        }
        match self.cut {
            Some(Moment::Before) => return Ok(AttemptFault::NotSent),
            Some(Moment::After) => return Ok(AttemptFault::AnswerLost),
            None => {}
        }
        match self.duplicate {
            Some(true) => Ok(AttemptFault::Duplicate),
            Some(false) => Err(Problem::invalid("do.duplicate", "must be true")),
            None => Err(Problem::invalid("do", "must be tamper, cut, duplicate or late for a webhook")),
        }
    }

    fn of_messages(self, name: &str) -> Result<MessageEffect, Problem> {
        if let Some(late) = self.late {
            return Ok(MessageEffect::Late(span("do.late", &late)?));
        }
        if let Some(reason) = self.close {
            return close_reason("do.close", &reason).map(MessageEffect::Close);
        }
        let flags = [
            (self.drop, MessageEffect::Drop),
            (self.duplicate, MessageEffect::Duplicate),
            (self.reorder, MessageEffect::Reorder),
            (self.silence, MessageEffect::Silence),
        ];
        let found = flags.into_iter().find(|(flag, _)| *flag == Some(true));
        found.map(|(_, effect)| effect).ok_or_else(|| Problem::invalid(&format!("do.{name}"), "must be true"))
    }
}

/// The names of the effects.
const NAMES: [&str; 11] = [
    "status",
    "delay",
    "cut",
    "truncate",
    "drop",
    "duplicate",
    "reorder",
    "late",
    "silence",
    "close",
    "tamper",
];

fn span(field: &str, text: &str) -> Result<Duration, Problem> {
    let span = time_text::parse_span(text).filter(|span| *span <= DELAY_MAX);
    span.ok_or_else(|| Problem::invalid(field, "must be a duration like 250ms or 2s, of at most 10m"))
}
