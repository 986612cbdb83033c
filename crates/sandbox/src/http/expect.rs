//! `POST /sandbox/v1/expect`: waits until enough records match.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use super::log::parse_within;
use crate::filter::Filter;
use crate::log::{Log, Record};
use crate::sandbox::Sandbox;

/// Maximum number of awaited records. With the largest bodies these are less than 4 MiB.
const TIMES_MAX: usize = 200;
/// Maximum number of nearest misses.
const NEAREST_MAX: usize = 3;

/// What is expected.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Expectation {
    /// Only records of this kind.
    kind: Option<String>,
    /// For each field its value, `~regex` or `>=number`.
    #[serde(default, rename = "where")]
    conditions: Map<String, Value>,
    /// Only records after this mark. Default: all kept records.
    #[serde(default)]
    after: u64,
    /// How long to wait, in real time. Default: not at all.
    within: Option<String>,
    /// Minimum number of records. Default: 1, or 0 with `atMost`.
    times: Option<usize>,
    /// Maximum number of records. The call then waits for all of `within`.
    at_most: Option<usize>,
}

/// How many records are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    least: usize,
    most: Option<usize>,
}

/// The records that fulfil an expectation.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Fulfilled {
    /// The records, oldest first.
    data: Vec<Arc<Record>>,
    /// The mark of the last one.
    mark: u64,
}

/// `POST /sandbox/v1/expect`.
pub(super) async fn expect(
    State(sandbox): State<Sandbox>,
    JsonBody(expectation): JsonBody<Expectation>,
) -> Answer<Fulfilled> {
    let after = expectation.after;
    let (filter, within, Bounds { least, most }) = checked(expectation)?;
    // One more than the maximum settles that there are too many.
    let awaited = most.map_or(least, |most| most + 1);
    let late = async {
        match sandbox.parts() {
            Some(node) => node.service.clock().sleep(within).await,
            None => tokio::time::sleep(within).await,
        }
    };
    tokio::select! {
        biased;
        found = enough(sandbox.log(), &filter, after, awaited) => match (found, most) {
            (Some(data), None) => Ok(fulfilled(data, after)),
            (Some(data), Some(most)) => Err(too_many(&data, most)),
            (None, _) => Err(missed(sandbox.log(), &filter, after, least)),
        },
        () = late => {
            let data: Vec<_> = sandbox.log().after(after).into_iter().filter(|record| filter.finds(record)).collect();
            match most {
                Some(most) if data.len() > most => Err(too_many(&data, most)),
                Some(_) if data.len() >= least => Ok(fulfilled(data, after)),
                _ => Err(missed(sandbox.log(), &filter, after, least)),
            }
        }
    }
}

fn fulfilled(data: Vec<Arc<Record>>, after: u64) -> Content<Fulfilled> {
    let mark = data.last().map_or(after, |last| last.mark);
    Content(Fulfilled { data, mark })
}

/// The refusal with the records of which there are too many.
fn too_many(found: &[Arc<Record>], most: usize) -> Problem {
    let message = format!("expected at most {most} matching records, found {} or more", found.len());
    let problem = Problem::new(StatusCode::BAD_REQUEST, message);
    problem.with_content(json!({ "found": found.len(), "data": found, "nearest": [], "unknown": [] }))
}

/// What is waited for, for how long, and how many of it.
pub(super) fn checked(expectation: Expectation) -> Result<(Filter, Duration, Bounds), Problem> {
    let Expectation { kind, conditions, within, times, at_most, .. } = expectation;
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let conditions: Vec<_> = conditions.into_iter().map(|(field, value)| (field, text(value))).collect();
    let filter = Filter::parse(kind.as_deref(), &conditions)?;
    let within = within.map_or(Ok(Duration::ZERO), |within| parse_within(&within))?;
    if times.is_some_and(|times| !(1..=TIMES_MAX).contains(&times)) {
        return Err(Problem::invalid("times", format!("must be a number from 1 to {TIMES_MAX}")));
    }
    let least = times.unwrap_or(usize::from(at_most.is_none()));
    if at_most.is_some_and(|most| !(least..=TIMES_MAX).contains(&most)) {
        return Err(Problem::invalid("atMost", format!("must be a number from {least} to {TIMES_MAX}")));
    }
    if filter.finds_all() {
        return Err(Problem::invalid(
            "where",
            "must have a condition, or kind must be given: any record would do",
        ));
    }
    Ok((filter, within, Bounds { least, most: at_most }))
}

/// Waits for enough records; `None` when the node stops.
async fn enough(log: &Log, filter: &Filter, mut after: u64, times: usize) -> Option<Vec<Arc<Record>>> {
    let (mut changes, mut found) = (log.changes(), Vec::new());
    loop {
        changes.mark_unchanged();
        let records = log.after(after);
        after = records.last().map_or(after, |last| last.mark);
        found.extend(records.into_iter().filter(|record| filter.finds(record)).take(times - found.len()));
        if found.len() >= times {
            return Some(found);
        }
        tokio::select! {
            changed = changes.changed() => changed.ok()?,
            () = log.ended() => return None,
        }
    }
}

/// The refusal with the records that fulfil the most conditions.
fn missed(log: &Log, filter: &Filter, after: u64, times: usize) -> Problem {
    let records = log.after(after);
    let found: Vec<_> = records.iter().filter(|record| filter.finds(record)).collect();
    let near = |record: &Arc<Record>| {
        let (fulfilled, failed) = filter.nearness(record).filter(|(_, failed)| !failed.is_empty())?;
        (fulfilled > 0).then(|| (fulfilled, json!({ "failed": failed, "record": record })))
    };
    // The latest ones come first among equals.
    let mut nearest: Vec<(usize, Value)> = records.iter().rev().filter_map(near).collect();
    nearest.sort_by_key(|(fulfilled, _)| std::cmp::Reverse(*fulfilled));
    let nearest: Vec<Value> = nearest.into_iter().take(NEAREST_MAX).map(|(_, miss)| miss).collect();
    let unknown = filter.unknown_fields(&records);
    let message = format!("expected {times} matching records, found {}", found.len());
    let problem = Problem::new(StatusCode::BAD_REQUEST, message);
    problem
        .with_content(json!({ "found": found.len(), "data": found, "nearest": nearest, "unknown": unknown }))
}
