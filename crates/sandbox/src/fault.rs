//! The faults of requests: which request is answered wrongly, late or not at all. The rules are pure: the
//! same requests and the same seed give the same decisions.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The seed of a rule without one.
pub(crate) const DEFAULT_SEED: u64 = 1;

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// The requests that it means.
    pub matching: Matching,
    /// Begins with the `nth` of these requests, counted from 1.
    pub nth: Option<u64>,
    /// The share of these requests that is affected, from 0 to 1.
    pub probability: Option<f64>,
    /// Maximum number of affected requests.
    pub times: Option<u64>,
    /// The seed of the decisions by probability.
    pub seed: u64,
    /// What happens.
    pub effect: Effect,
}

/// The requests that a rule means. What is `None` fits every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matching {
    /// The client id of the caller.
    pub client_id: Option<String>,
    /// The channel id of the caller.
    pub user: Option<String>,
    /// The method, in capitals.
    pub method: Option<String>,
    /// The path, or its beginning and `*`.
    pub path: Option<String>,
}

/// Before or after the request is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Moment {
    /// The request is not handled yet.
    Before,
    /// The request was handled. Its effects stay.
    After,
}

/// What happens to an affected request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The request is not handled. The answer has this status.
    Status {
        /// The status.
        status: u16,
        /// The message; `None` for the usual one.
        message: Option<String>,
        /// `Retry-After`, in seconds.
        retry_after_s: Option<u64>,
    },
    /// The request waits.
    Delay(Duration, Moment),
    /// The connection ends without an answer.
    Cut(Moment),
    /// The connection ends within the answer, after this number of bytes of its body; `None` for half of it.
    Truncate(Option<u64>),
}

impl Effect {
    /// The effect in the form of the sandbox API.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Status { status, message, retry_after_s } => {
                json!({ "status": status, "message": message, "retryAfter": retry_after_s })
            }
            Self::Delay(span, when) => json!({ "delay": format!("{}ms", span.as_millis()), "when": when }),
            Self::Cut(moment) => json!({ "cut": moment }),
            Self::Truncate(bytes) => json!({ "truncate": bytes.map_or(Value::Bool(true), Value::from) }),
        }
    }
}

/// What a rule decides by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestFacts<'a> {
    /// The client id of the caller.
    pub client_id: Option<&'a str>,
    /// The channel id of the caller.
    pub user: Option<&'a str>,
    /// The method.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
}

/// What a rule remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleState {
    seen: u64,
    /// Number of affected requests.
    pub hits: u64,
    random: u64,
}

impl Rule {
    /// The state before the first request.
    pub fn begin(&self) -> RuleState {
        RuleState { seen: 0, hits: 0, random: self.seed }
    }

    /// Whether a request is affected. Changes the state.
    pub fn decide(&self, state: &mut RuleState, request: RequestFacts<'_>) -> bool {
        if !self.matching.fits(request) {
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

impl Matching {
    fn fits(&self, request: RequestFacts<'_>) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == value)
        };
        let path = self.path.as_deref().is_none_or(|path| match path.strip_suffix('*') {
            Some(beginning) => request.path.starts_with(beginning),
            None => request.path == path,
        });
        path && is(&self.client_id, request.client_id)
            && is(&self.user, request.user)
            && is(&self.method, Some(request.method))
    }
}

/// A number from 0 to below 1, by SplitMix64.
pub(crate) fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // The 53 bits that a double holds.
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        let (matching, effect) = (Matching::default(), Effect::Cut(Moment::Before));
        Rule { matching, nth: None, probability: None, times: None, seed: DEFAULT_SEED, effect }
    }

    fn decisions(rule: &Rule, number: usize) -> Vec<bool> {
        let mut state = rule.begin();
        let request =
            RequestFacts { client_id: Some("demo"), user: None, method: "GET", path: "/open/v1/lives" };
        (0..number).map(|_| rule.decide(&mut state, request)).collect()
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
}
