//! The effect of a rule in the form of the sandbox API.

use std::time::Duration;

use http::HeaderValue;
use jobs::webhooks::LATE_MAX;
use schemars::JsonSchema;
use serde::Deserialize;
use service::attempt_faults::AttemptFault;

use crate::fault::{Effect, FaultAnswer, FaultBody, MessageEffect, Moment, RequestEffect};
use crate::http::answer::Problem;
use crate::http::close_reason::close_reason;
use crate::time_text;

/// Maximum length of a message, in characters.
const MESSAGE_CHARS_MAX: usize = 512;
/// Maximum length of an own body, in bytes.
const BODY_BYTES_MAX: usize = 32 * 1024;
/// Maximum length of a header of an answer, in bytes.
const HEADER_BYTES_MAX: usize = 2_048;
/// The statuses that have the header `Location`.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
/// The statuses whose answers have no body.
const BODILESS: [u16; 3] = [204, 205, 304];
/// Maximum delay of a request or of a message.
const DELAY_MAX: Duration = Duration::from_secs(600);
/// Maximum of `retryAfter`, in seconds.
const RETRY_AFTER_S_MAX: u64 = 86_400;

/// What happens: exactly one of the fields, besides `when`, which goes with `delay`, and `message`,
/// `retryAfter`,
/// `location`, `body` and `contentType`, which go with `status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewEffect {
    /// A request is answered with this status, and nothing takes effect. A status below 300 needs a `body`.
    status: Option<u16>,
    /// The message of that answer.
    message: Option<String>,
    /// The header `Retry-After` of that answer, in seconds.
    retry_after: Option<u64>,
    /// The header `Location` of that answer, with the statuses 301, 302, 303, 307 and 308, which need it.
    location: Option<String>,
    /// The body of that answer instead of the envelope, as in a proxy's page or in broken JSON.
    body: Option<String>,
    /// The media type of `body`. Default: `text/html` for a text that begins with `<`, else
    /// `application/json`.
    content_type: Option<String>,
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
            [_] => self.of_messages().map(Effect::Message),
            _ => Err(Problem::invalid("do", format!("must have exactly one of {}", NAMES.join(", ")))),
        }
    }

    /// The names of the given effects. A flag that is `false` is the same as none.
    fn given(&self) -> Vec<&'static str> {
        let given = [
            self.status.is_some(),
            self.delay.is_some(),
            self.cut.is_some(),
            matches!(self.truncate, Some(Length::Bytes(_) | Length::Half(true))),
            self.drop == Some(true),
            self.duplicate == Some(true),
            self.reorder == Some(true),
            self.late.is_some(),
            self.silence == Some(true),
            self.close.is_some(),
            self.tamper.is_some(),
        ];
        NAMES.into_iter().zip(given).filter_map(|(name, is_given)| is_given.then_some(name)).collect()
    }

    /// Checks that each companion stands beside what it belongs to.
    fn check_companions(&self) -> Result<(), Problem> {
        let Self { status, message, retry_after, location, body, content_type, delay, when, .. } = self;
        for (field, is_given, owner, has_owner) in [
            ("do.message", message.is_some(), "status", status.is_some()),
            ("do.retryAfter", retry_after.is_some(), "status", status.is_some()),
            ("do.location", location.is_some(), "status", status.is_some()),
            ("do.body", body.is_some(), "status", status.is_some()),
            ("do.contentType", content_type.is_some(), "body", body.is_some()),
            ("do.when", when.is_some(), "delay", delay.is_some()),
        ] {
            if is_given && !has_owner {
                return Err(Problem::invalid(field, format!("goes only with {owner}")));
            }
        }
        Ok(())
    }

    fn of_requests(self) -> Result<RequestEffect, Problem> {
        if let Some(delay) = self.delay {
            let when = self.when.unwrap_or(Moment::Before);
            return Ok(RequestEffect::Delay(span("do.delay", &delay)?, when));
        }
        if let Some(moment) = self.cut {
            return Ok(RequestEffect::Cut(moment));
        }
        match self.truncate {
            Some(Length::Bytes(bytes)) => return Ok(RequestEffect::Truncate(Some(bytes))),
            Some(Length::Half(true)) => return Ok(RequestEffect::Truncate(None)),
            Some(Length::Half(false)) | None => {}
        }
        self.answer().map(RequestEffect::Answer)
    }

    /// The answer instead of the service's.
    fn answer(self) -> Result<FaultAnswer, Problem> {
        let Self { status, message, retry_after, location, body, content_type, .. } = self;
        let status = status.filter(|status| (200..=599).contains(status));
        let status =
            status.ok_or_else(|| Problem::invalid("do.status", "must be a number from 200 to 599"))?;
        let wrong = |field: &str, rule: &str| Err(Problem::invalid(field, rule));
        if message.as_ref().is_some_and(|message| message.chars().count() > MESSAGE_CHARS_MAX) {
            return wrong("do.message", &format!("must be at most {MESSAGE_CHARS_MAX} characters"));
        }
        if retry_after.is_some_and(|seconds| seconds > RETRY_AFTER_S_MAX) {
            return wrong("do.retryAfter", &format!("must be seconds, at most {RETRY_AFTER_S_MAX}"));
        }
        if BODILESS.contains(&status) {
            return wrong("do.status", "must be another one: its answers have no body");
        }
        let body = match (location, body, message) {
            (Some(_), _, _) if !REDIRECTS.contains(&status) => {
                return wrong("do.location", "goes only with the statuses 301, 302, 303, 307 and 308");
            }
            (Some(location), None, None) => FaultBody::Redirect(header_text("do.location", location)?),
            (Some(_), _, _) => return wrong("do.location", "goes with neither body nor message"),
            (None, ..) if REDIRECTS.contains(&status) => {
                return wrong("do.location", "must be given with a redirect");
            }
            (None, Some(_), Some(_)) => return wrong("do.message", "does not go with body"),
            (None, Some(text), None) if text.len() <= BODY_BYTES_MAX => {
                let content_type = content_type.unwrap_or_else(|| usual_type(&text).to_owned());
                FaultBody::Text { text, content_type: header_text("do.contentType", content_type)? }
            }
            (None, Some(_), None) => {
                return wrong("do.body", &format!("must be at most {BODY_BYTES_MAX} bytes"));
            }
            (None, None, _) if status < 400 => {
                return wrong("do.body", "must be given with a status below 400");
            }
            (None, None, message) => FaultBody::Refusal(message),
        };
        Ok(FaultAnswer { status, retry_after_s: retry_after, body })
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
        let wrong = || Problem::invalid("do", "must be tamper, cut, duplicate or late for a webhook");
        (self.duplicate == Some(true)).then_some(AttemptFault::Duplicate).ok_or_else(wrong)
    }

    fn of_messages(self) -> Result<MessageEffect, Problem> {
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
        found.map(|(_, effect)| effect).ok_or_else(|| {
            Problem::invalid("do", "must be drop, duplicate, reorder, late, silence or close for a message")
        })
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

/// The media type of a body without one.
fn usual_type(text: &str) -> &'static str {
    if text.trim_start().starts_with('<') { "text/html; charset=utf-8" } else { "application/json" }
}

/// A text that a header can hold.
fn header_text(field: &str, text: String) -> Result<String, Problem> {
    let fits = !text.is_empty() && text.len() <= HEADER_BYTES_MAX && HeaderValue::from_str(&text).is_ok();
    let rule = format!("must be 1 to {HEADER_BYTES_MAX} bytes that a header can hold");
    if fits { Ok(text) } else { Err(Problem::invalid(field, rule)) }
}

fn span(field: &str, text: &str) -> Result<Duration, Problem> {
    let span = time_text::parse_span(text).filter(|span| *span <= DELAY_MAX);
    span.ok_or_else(|| Problem::invalid(field, "must be a duration like 250ms or 2s, of at most 10m"))
}
