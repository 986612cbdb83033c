//! `/sandbox/v1/faults`: the rules by which requests and socket messages fail.

mod effect;
mod rule;

use axum::extract::{OriginalUri, State};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::answer::{Answer, Content, Problem};
use super::body::{self, JsonBody};
use crate::fault::Effect;
use crate::fault_rules::RULES_MAX;
use crate::network::NetworkProfile;
use crate::network_breaks::add_rule;
use crate::sandbox::Sandbox;
use effect::{Meant, NewEffect};
pub(super) use rule::NewRule;
use rule::{checked, shown};

/// `GET /sandbox/v1/faults`: the rules, oldest first.
pub(super) async fn list(State(sandbox): State<Sandbox>) -> Content<Value> {
    let rules: Vec<Value> = sandbox.faults().list().iter().map(shown).collect();
    Content(json!({ "data": rules }))
}

/// `GET /sandbox/v1/faults/profiles`: the network profiles.
pub(super) async fn profiles() -> Content<Value> {
    Content(json!({ "data": NetworkProfile::all() }))
}

/// Checks a rule, but for the names in it.
pub(super) fn check(rule: NewRule) -> Result<(), Problem> {
    checked(rule).map(drop)
}

/// What happens to attempts at webhooks, by one field of `do`. The refusal names the field.
pub(super) fn attempt_effect(name: &str, value: Value) -> Result<Effect, Problem> {
    let effect: NewEffect = body::of(Map::from_iter([(name.to_owned(), value)]))?;
    effect
        .checked(Meant::Attempts)
        .map_err(|problem| Problem::new(problem.status(), problem.message().trim_start_matches("do.")))
}

/// `POST /sandbox/v1/faults`: adds a rule.
pub(super) async fn add(State(sandbox): State<Sandbox>, JsonBody(rule): JsonBody<NewRule>) -> Answer<Value> {
    let rule = match sandbox.parts() {
        Some(node) => checked(rule)?.with_ids(&node.service).await?,
        None => checked(rule)?,
    };
    let added = add_rule(&sandbox, rule);
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
