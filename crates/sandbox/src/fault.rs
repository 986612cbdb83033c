//! The faults of requests, of socket messages and of webhook attempts: which of them fail, and how. The rules
//! are pure: the same requests, messages and attempts, and the same seed give the same decisions.

use std::time::Duration;

use gateway::CloseReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::attempt_faults::AttemptFault;

use crate::network::NetworkProfile;
use crate::random::draw;

/// The seed of a rule without one.
pub(crate) const DEFAULT_SEED: u64 = 1;

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// The requests or messages that it means.
    pub matching: Matching,
    /// Begins with the `nth` of these, counted from 1.
    pub nth: Option<u64>,
    /// The share of these that is affected, from 0 to 1.
    pub probability: Option<f64>,
    /// Maximum number of affected ones.
    pub times: Option<u64>,
    /// The seed of the decisions by probability.
    pub seed: u64,
    /// What happens.
    pub effect: Effect,
}

/// The requests or messages that a rule means. What is `None` fits each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matching {
    /// The client id of the caller, or of the session.
    pub client_id: Option<String>,
    /// The channel id of the caller, or of the session's user.
    pub user: Option<String>,
    /// The method, in capitals.
    pub method: Option<String>,
    /// The path, or its beginning and `*`.
    pub path: Option<String>,
    /// The name of the event, as in [`EVENT_NAMES`].
    pub event: Option<String>,
    /// The channel of the event.
    pub channel_id: Option<String>,
    /// The id of the webhook, or the client id of its application.
    pub webhook: Option<String>,
    /// The claim that a webhook message reports.
    pub claim_id: Option<String>,
}

/// The names of events. `SYSTEM` means every SYSTEM message.
pub(crate) const EVENT_NAMES: [&str; 8] = [
    "CHAT",
    "DONATION",
    "SUBSCRIPTION",
    "SYSTEM",
    "SYSTEM/connected",
    "SYSTEM/subscribed",
    "SYSTEM/unsubscribed",
    "SYSTEM/revoked",
];

/// Before or after what a rule affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Moment {
    /// The request is not handled yet, or the message is not sent yet.
    Before,
    /// The request was handled, and its effects stay. Or the message was sent.
    After,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// To a request.
    Request(RequestEffect),
    /// To a message of a socket.
    Message(MessageEffect),
    /// To an attempt at a webhook.
    Attempt(AttemptFault),
    /// Requests and sockets pass this network.
    Network(&'static NetworkProfile),
}

/// What happens to an affected request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestEffect {
    /// The request is not handled. The answer is another one.
    Answer(FaultAnswer),
    /// The request waits.
    Delay(Duration, Moment),
    /// The connection ends without an answer.
    Cut(Moment),
    /// The connection ends within the answer, after this number of bytes of its body; `None` for half of it.
    Truncate(Option<u64>),
}

/// The answer to a request that is not handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultAnswer {
    /// The status.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
    /// The body.
    pub body: FaultBody,
}

/// The body of such an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FaultBody {
    /// A refusal in the envelope of the service, with this message, or with the usual one of the status.
    Refusal(Option<String>),
    /// An empty body, and the header `Location`.
    Redirect(String),
    /// This text, with its media type.
    Text {
        /// The text. It need not be what its type says.
        text: String,
        /// The media type.
        content_type: String,
    },
}

/// What happens to an affected message of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageEffect {
    /// The message is not sent.
    Drop,
    /// The message is sent twice.
    Duplicate,
    /// The message is sent after the session's next one, or alone if none comes in time.
    Reorder,
    /// The message is sent later. Others overtake it.
    Late(Duration),
    /// Nothing is sent or read any more, and the connection stays.
    Silence,
    /// The session ends instead.
    Close(CloseReason),
    /// The connection ends without a close frame.
    Cut(Moment),
}

impl Effect {
    /// The effect in the form of the sandbox API.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Request(effect) => effect.to_json(),
            Self::Message(effect) => effect.to_json(),
            Self::Attempt(AttemptFault::WrongSignature) => json!({ "tamper": "signature" }),
            Self::Attempt(AttemptFault::OldTimestamp) => json!({ "tamper": "timestamp" }),
            Self::Attempt(AttemptFault::ChangedBody) => json!({ "tamper": "body" }),
            Self::Attempt(AttemptFault::NotSent) => json!({ "cut": Moment::Before }),
            Self::Attempt(AttemptFault::AnswerLost) => json!({ "cut": Moment::After }),
            Self::Attempt(AttemptFault::Duplicate) => json!({ "duplicate": true }),
            Self::Attempt(AttemptFault::Late(span)) => json!({ "late": span_text(*span) }),
            Self::Network(_) => Value::Null,
        }
    }

    /// The effect on a request.
    pub fn on_request(&self) -> Option<RequestEffect> {
        match self {
            Self::Request(effect) => Some(effect.clone()),
            Self::Message(_) | Self::Attempt(_) | Self::Network(_) => None,
        }
    }

    /// The effect on a message.
    pub fn on_message(&self) -> Option<MessageEffect> {
        match self {
            Self::Message(effect) => Some(*effect),
            Self::Request(_) | Self::Attempt(_) | Self::Network(_) => None,
        }
    }

    /// The effect on an attempt at a webhook.
    pub fn on_attempt(&self) -> Option<AttemptFault> {
        match self {
            Self::Attempt(fault) => Some(*fault),
            Self::Request(_) | Self::Message(_) | Self::Network(_) => None,
        }
    }

    /// The network.
    pub fn network(&self) -> Option<&'static NetworkProfile> {
        match self {
            Self::Network(profile) => Some(profile),
            Self::Attempt(_) => None,
            Self::Request(_) | Self::Message(_) => None,
        }
    }
}

impl RequestEffect {
    /// The effect in the form of the sandbox API.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Answer(answer) => answer.to_json(),
            Self::Delay(span, when) => json!({ "delay": span_text(*span), "when": when }),
            Self::Cut(moment) => json!({ "cut": moment }),
            Self::Truncate(bytes) => json!({ "truncate": bytes.map_or(Value::Bool(true), Value::from) }),
        }
    }
}

impl FaultAnswer {
    fn to_json(&self) -> Value {
        let Self { status, retry_after_s, body } = self;
        let mut effect = json!({ "status": status, "retryAfter": retry_after_s });
        match body {
            FaultBody::Refusal(message) => effect["message"] = json!(message),
            FaultBody::Redirect(location) => effect["location"] = json!(location),
            FaultBody::Text { text, content_type } => {
                effect["body"] = json!(text);
                effect["contentType"] = json!(content_type);
            }
        }
        effect
    }
}

impl MessageEffect {
    /// The effect in the form of the sandbox API.
    pub fn to_json(self) -> Value {
        match self {
            Self::Drop => json!({ "drop": true }),
            Self::Duplicate => json!({ "duplicate": true }),
            Self::Reorder => json!({ "reorder": true }),
            Self::Late(span) => json!({ "late": span_text(span) }),
            Self::Silence => json!({ "silence": true }),
            Self::Close(reason) => json!({ "close": reason.as_str() }),
            Self::Cut(moment) => json!({ "cut": moment }),
        }
    }
}

fn span_text(span: Duration) -> String {
    format!("{}ms", span.as_millis())
}

/// What a rule decides by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// The client id of the caller, or of the session.
    pub client_id: Option<&'a str>,
    /// The channel id of the caller, or of the session's user.
    pub user: Option<&'a str>,
    /// What may be affected.
    pub subject: Subject<'a>,
}

/// What may be affected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'a> {
    /// A request.
    Request {
        /// The method.
        method: &'a str,
        /// The path without the query.
        path: &'a str,
    },
    /// A message of a socket.
    Message {
        /// Its name: `CHAT`, or for SYSTEM with the type, as in `SYSTEM/connected`.
        event: &'a str,
        /// Its channel.
        channel_id: Option<&'a str>,
        /// The session holds back a message that follows this one, so this one keeps its place.
        is_awaited: bool,
    },
    /// An attempt at a webhook.
    Attempt {
        /// The id of the webhook.
        webhook_id: &'a str,
        /// The claim that its message reports.
        claim_id: Option<&'a str>,
    },
}

/// What a rule remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleState {
    seen: u64,
    /// Number of affected requests or messages.
    pub hits: u64,
    random: u64,
}

impl Rule {
    /// The state before the first decision.
    pub fn begin(&self) -> RuleState {
        RuleState { seen: 0, hits: 0, random: self.seed }
    }

    /// The latency of the rule's network. Changes the state.
    pub fn latency(&self, state: &mut RuleState) -> Option<Duration> {
        self.effect.network().map(|network| network.latency(&mut state.random))
    }

    /// Whether a request or a message is affected. Changes the state.
    pub fn decide(&self, state: &mut RuleState, facts: Facts<'_>) -> bool {
        if !self.effect.fits(facts.subject) || !self.matching.fits(facts) {
            return false;
        }
        state.seen += 1;
        // A rule with `nth` alone affects one request.
        let times = self.times.or(self.nth.map(|_| 1));
        if state.seen < self.nth.unwrap_or(1) || times.is_some_and(|times| state.hits >= times) {
            return false;
        }
        let affected = self.probability.is_none_or(|probability| draw(&mut state.random) < probability);
        state.hits += u64::from(affected);
        affected
    }
}

impl Effect {
    fn fits(&self, subject: Subject<'_>) -> bool {
        match (self, subject) {
            (Self::Request(_), Subject::Request { .. }) | (Self::Attempt(_), Subject::Attempt { .. }) => true,
            (Self::Message(effect), Subject::Message { is_awaited, .. }) => {
                !(is_awaited && *effect == MessageEffect::Reorder)
            }
            _ => false,
        }
    }
}

impl Matching {
    fn fits(&self, facts: Facts<'_>) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == value)
        };
        let of_subject = match facts.subject {
            Subject::Request { method, path } => {
                is(&self.method, Some(method))
                    && self.path.as_deref().is_none_or(|wanted| is_path(wanted, path))
            }
            Subject::Message { event, channel_id, .. } => {
                let wanted = self.event.as_deref();
                wanted.is_none_or(|wanted| is_event(wanted, event)) && is(&self.channel_id, channel_id)
            }
            Subject::Attempt { webhook_id, claim_id } => {
                is(&self.claim_id, claim_id)
                    && (is(&self.webhook, Some(webhook_id)) || is(&self.webhook, facts.client_id))
            }
        };
        of_subject && self.fits_caller(facts.client_id, facts.user)
    }

    /// Whether the caller of a request, or the owner of a session, is meant.
    pub fn fits_caller(&self, client_id: Option<&str>, user: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == value)
        };
        is(&self.client_id, client_id) && is(&self.user, user)
    }
}

fn is_path(wanted: &str, path: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning),
        None => path == wanted,
    }
}

fn is_event(wanted: &str, event: &str) -> bool {
    event.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        let (matching, effect) = (Matching::default(), Effect::Request(RequestEffect::Cut(Moment::Before)));
        Rule { matching, nth: None, probability: None, times: None, seed: DEFAULT_SEED, effect }
    }

    fn decisions(rule: &Rule, number: usize) -> Vec<bool> {
        let mut state = rule.begin();
        let subject = Subject::Request { method: "GET", path: "/open/v1/lives" };
        let facts = Facts { client_id: Some("demo"), user: None, subject };
        (0..number).map(|_| rule.decide(&mut state, facts)).collect()
    }

    #[test]
    fn a_rule_counts_the_requests_that_it_means() {
        assert_eq!(decisions(&rule(), 2), [true, true]);
        assert_eq!(decisions(&Rule { times: Some(1), ..rule() }, 3), [true, false, false]);
        assert_eq!(decisions(&Rule { nth: Some(2), ..rule() }, 4), [false, true, false, false]);
        let from_second = Rule { nth: Some(2), times: Some(2), ..rule() };
        assert_eq!(decisions(&from_second, 4), [false, true, true, false]);
    }

    #[test]
    fn the_same_seed_gives_the_same_decisions() {
        let with = |seed| Rule { probability: Some(0.5), seed, ..rule() };
        let first = decisions(&with(7), 100);
        assert_eq!(first, decisions(&with(7), 100));
        assert_ne!(first, decisions(&with(8), 100));
        let hits = first.iter().filter(|hit| **hit).count();
        assert!((30..=70).contains(&hits), "{hits}");
        let all = |probability| decisions(&Rule { probability: Some(probability), ..rule() }, 50);
        assert!(all(1.0).iter().all(|hit| *hit) && !all(0.0).iter().any(|hit| *hit));
    }

    #[test]
    fn every_given_part_of_a_request_has_to_fit() {
        let text = |text: &str| Some(text.to_owned());
        for (matching, fits) in [
            (Matching { path: text("/open/v1/lives"), ..Matching::default() }, true),
            (Matching { path: text("/open/v1/live"), ..Matching::default() }, false),
            (Matching { path: text("/open/*"), client_id: text("demo"), ..Matching::default() }, true),
            (Matching { path: text("/open/*"), client_id: text("other"), ..Matching::default() }, false),
            (Matching { method: text("POST"), ..Matching::default() }, false),
            (Matching { user: text("haneul"), ..Matching::default() }, false),
        ] {
            assert_eq!(decisions(&Rule { matching: matching.clone(), ..rule() }, 1), [fits], "{matching:?}");
        }
    }

    #[test]
    fn a_message_is_found_by_its_event_and_its_channel() {
        let text = |text: &str| Some(text.to_owned());
        let matching = |event: Option<&str>, channel: Option<&str>| Matching {
            event: event.and_then(text),
            channel_id: channel.and_then(text),
            ..Matching::default()
        };
        for (matching, event, fits) in [
            (matching(None, None), "CHAT", true),
            (matching(Some("CHAT"), Some("haneul")), "CHAT", true),
            (matching(Some("CHAT"), Some("bada")), "CHAT", false),
            (matching(Some("CHAT"), None), "DONATION", false),
            (matching(Some("SYSTEM"), None), "SYSTEM/connected", true),
            (matching(Some("SYSTEM/connected"), None), "SYSTEM/connected", true),
            (matching(Some("SYSTEM/subscribed"), None), "SYSTEM/connected", false),
        ] {
            let decide = |effect: Effect, is_awaited| {
                let rule = Rule { matching: matching.clone(), effect, ..rule() };
                let subject = Subject::Message { event, channel_id: Some("haneul"), is_awaited };
                rule.decide(&mut rule.begin(), Facts { client_id: None, user: None, subject })
            };
            assert_eq!(decide(Effect::Message(MessageEffect::Drop), true), fits, "{matching:?}");
            assert_eq!(decide(Effect::Message(MessageEffect::Reorder), false), fits, "{matching:?}");
            assert!(!decide(Effect::Message(MessageEffect::Reorder), true));
            assert!(!decide(Effect::Request(RequestEffect::Cut(Moment::Before)), false));
        }
    }

    #[test]
    fn a_rule_for_the_message_of_a_claim_fits_no_other_message() {
        let matching = Matching { claim_id: Some("c-1".to_owned()), ..Matching::default() };
        for (claim_id, expected) in [(Some("c-1"), true), (Some("c-2"), false), (None, false)] {
            let subject = Subject::Attempt { webhook_id: "w", claim_id };
            let fits = matching.fits(Facts { client_id: Some("drops"), user: None, subject });
            assert_eq!(fits, expected, "{claim_id:?}");
        }
    }
}
