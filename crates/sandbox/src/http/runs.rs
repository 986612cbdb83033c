//! `/sandbox/v1/runs`: the runs of scenarios. Scenarios run in the command; it reports what came of them.

use axum::extract::State;
use serde_json::{Value, json};

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use crate::sandbox::Sandbox;
use crate::scenario_runs::ScenarioRun;

/// Maximum length of a text of a run, in characters.
const TEXT_CHARS_MAX: usize = 2_000;

/// `GET /sandbox/v1/runs`: the latest runs, the newest first.
pub(super) async fn list(State(sandbox): State<Sandbox>) -> Content<Value> {
    Content(json!({ "data": sandbox.runs().list() }))
}

/// `POST /sandbox/v1/runs`: reports a run.
pub(super) async fn report(
    State(sandbox): State<Sandbox>,
    JsonBody(run): JsonBody<ScenarioRun>,
) -> Answer<ScenarioRun> {
    for (field, text) in [("name", Some(&run.name)), ("failure", run.failure.as_ref())] {
        if text.is_some_and(|text| text.chars().count() > TEXT_CHARS_MAX) {
            return Err(Problem::invalid(field, format!("must be at most {TEXT_CHARS_MAX} characters")));
        }
    }
    sandbox.runs().add(run.clone());
    Ok(Content(run))
}
