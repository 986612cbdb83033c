//! `/sandbox/v1/faults`: the rules by which requests fail.

use std::time::Duration;

use axum::extract::{OriginalUri, State};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use crate::fault::{DEFAULT_SEED, Effect, Matching, Moment, Rule};
use crate::fault_rules::{KeptRule, RULES_MAX};
use crate::sandbox::Sandbox;
use crate::time_text;

/// Maximum length of a text of a rule, in characters.
const TEXT_CHARS_MAX: usize = 512;
/// Maximum delay of a request.
const DELAY_MAX: Duration = Duration::from_secs(600);
/// Maximum of `retryAfter`, in seconds.
const RETRY_AFTER_S_MAX: u64 = 86_400;

/// A rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewRule {
    /// The requests that it means. Default: all.
    #[serde(default, rename = "match")]
    matching: NewMatching,
    /// Begins with the `nth` of these requests. Without `times` it affects only that one.
    nth: Option<u64>,
    /// The share of these requests that is affected, from 0 to 1.
    probability: Option<f64>,
    /// Maximum number of affected requests.
    times: Option<u64>,
    /// The seed of the decisions by probability.
    seed: Option<u64>,
    /// What happens.
    #[serde(rename = "do")]
    effect: NewEffect,
}

/// The requests that a rule means.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewMatching {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

/// What happens: exactly one of `status`, `delay`, `cut` and `truncate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewEffect {
    status: Option<u16>,
    message: Option<String>,
    retry_after: Option<u64>,
    delay: Option<String>,
    when: Option<Moment>,
    cut: Option<Moment>,
    truncate: Option<Length>,
}

/// Number of bytes, or `true` for half of the answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Length {
    Bytes(u64),
    Half(bool),
}

/// `GET /sandbox/v1/faults`: the rules, oldest first.
pub(super) async fn list(State(sandbox): State<Sandbox>) -> Content<Value> {
    let rules: Vec<Value> = sandbox.faults().list().iter().map(shown).collect();
    Content(json!({ "data": rules }))
}

/// `POST /sandbox/v1/faults`: adds a rule.
pub(super) async fn add(State(sandbox): State<Sandbox>, JsonBody(rule): JsonBody<NewRule>) -> Answer<Value> {
    let added = sandbox.faults().add(checked(rule)?);
    let full = || Problem::invalid("body", format!("must not be more than {RULES_MAX} rules: remove some"));
    added.map(|added| Content(shown(&added))).ok_or_else(full)
}

/// `DELETE /sandbox/v1/faults/{id}`: removes a rule.
pub(super) async fn remove(
    State(sandbox): State<Sandbox>,
    OriginalUri(uri): OriginalUri,
) -> Answer<Option<()>> {
    let id = uri.path().rsplit('/').next().unwrap_or_default();
    let unknown = || Problem::new(StatusCode::NOT_FOUND, format!("no fault rule has the id {id}"));
    sandbox.faults().remove(id).then_some(Content(None)).ok_or_else(unknown)
}

/// `DELETE /sandbox/v1/faults`: removes all rules.
pub(super) async fn clear(State(sandbox): State<Sandbox>) -> Content<Option<()>> {
    sandbox.faults().clear();
    Content(None)
}

fn checked(rule: NewRule) -> Result<Rule, Problem> {
    let NewRule { matching, nth, probability, times, seed, effect } = rule;
    for (field, number) in [("nth", nth), ("times", times)] {
        if number == Some(0) {
            return Err(Problem::invalid(field, "must be at least 1"));
        }
    }
    if probability.is_some_and(|probability| !(0.0..=1.0).contains(&probability)) {
        return Err(Problem::invalid("probability", "must be a number from 0 to 1"));
    }
    let seed = seed.unwrap_or(DEFAULT_SEED);
    Ok(Rule { matching: matching_of(matching)?, nth, probability, times, seed, effect: effect_of(effect)? })
}

fn matching_of(matching: NewMatching) -> Result<Matching, Problem> {
    let NewMatching { client_id, user, method, path } = matching;
    let texts = [("clientId", &client_id), ("user", &user), ("method", &method), ("path", &path)];
    for (field, text) in texts {
        if text.as_ref().is_some_and(|text| text.is_empty() || text.chars().count() > TEXT_CHARS_MAX) {
            let rule = format!("must be 1 to {TEXT_CHARS_MAX} characters");
            return Err(Problem::invalid(&format!("match.{field}"), rule));
        }
    }
    if let Some(path) = &path {
        let exact = path.strip_suffix('*').unwrap_or(path);
        if !path.starts_with('/') || exact.contains('*') {
            let rule = "must be a path like /open/v1/lives, or its beginning and *, like /open/v1/*";
            return Err(Problem::invalid("match.path", rule));
        }
    }
    Ok(Matching { client_id, user, method: method.map(|method| method.to_ascii_uppercase()), path })
}

fn effect_of(effect: NewEffect) -> Result<Effect, Problem> {
    let NewEffect { status, message, retry_after, delay, when, cut, truncate } = effect;
    if status.is_none() && (message.is_some() || retry_after.is_some()) {
        let field = if message.is_some() { "do.message" } else { "do.retryAfter" };
        return Err(Problem::invalid(field, "goes only with status"));
    }
    if delay.is_none() && when.is_some() {
        return Err(Problem::invalid("do.when", "goes only with delay"));
    }
    match (status, delay, cut, truncate) {
        (Some(status), None, None, None) => {
            if !(400..=599).contains(&status) {
                return Err(Problem::invalid("do.status", "must be a number from 400 to 599"));
            }
            if message.as_ref().is_some_and(|message| message.chars().count() > TEXT_CHARS_MAX) {
                let rule = format!("must be at most {TEXT_CHARS_MAX} characters");
                return Err(Problem::invalid("do.message", rule));
            }
            if retry_after.is_some_and(|seconds| seconds > RETRY_AFTER_S_MAX) {
                let rule = format!("must be seconds, at most {RETRY_AFTER_S_MAX}");
                return Err(Problem::invalid("do.retryAfter", rule));
            }
            Ok(Effect::Status { status, message, retry_after_s: retry_after })
        }
        (None, Some(delay), None, None) => {
            let span = time_text::parse_span(&delay).filter(|span| *span <= DELAY_MAX);
            let rule = "must be a duration like 250ms or 2s, of at most 10m";
            let span = span.ok_or_else(|| Problem::invalid("do.delay", rule))?;
            Ok(Effect::Delay(span, when.unwrap_or(Moment::Before)))
        }
        (None, None, Some(moment), None) => Ok(Effect::Cut(moment)),
        (None, None, None, Some(Length::Bytes(bytes))) => Ok(Effect::Truncate(Some(bytes))),
        (None, None, None, Some(Length::Half(true))) => Ok(Effect::Truncate(None)),
        (None, None, None, Some(Length::Half(false))) => {
            Err(Problem::invalid("do.truncate", "must be a number of bytes or true"))
        }
        _ => Err(Problem::invalid("do", "must have exactly one of status, delay, cut and truncate")),
    }
}

fn shown(KeptRule { id, rule, state }: &KeptRule) -> Value {
    let Rule { matching, nth, probability, times, seed, effect } = rule;
    let Matching { client_id, user, method, path } = matching.clone();
    json!({
        "id": id,
        "hits": state.hits,
        "match": NewMatching { client_id, user, method, path },
        "nth": nth,
        "probability": probability,
        "times": times,
        "seed": seed,
        "do": effect.to_json(),
    })
}
