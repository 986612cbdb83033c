//! `GET /sandbox/v1/log`: what happened, at once or live.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{Content, Problem};
use crate::filter::{Filter, WrongFilter};
use crate::log::{Log, Record};
use crate::sandbox::Sandbox;
use crate::time_text;

/// Default and maximum number of records of one answer. With the largest bodies these are less than 4 MiB.
const RECORDS_MAX: usize = 200;
/// Maximum wait for a record.
const WITHIN_MAX: Duration = Duration::from_secs(600);

const EVENT_STREAM: &str = "text/event-stream";
const JSON_LINES: &str = "application/x-ndjson";

/// Which records a call asks for.
#[derive(Debug)]
struct Wanted {
    after: u64,
    limit: usize,
    within: Duration,
    filter: Filter,
}

/// A part of the log.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Excerpt {
    /// The records, oldest first.
    data: Vec<Arc<Record>>,
    /// Where the log goes on: the value of `after` for the next call.
    mark: u64,
    /// Number of records after the given mark that are no longer kept.
    dropped: u64,
}

/// `GET /sandbox/v1/log`.
pub(super) async fn show(
    State(sandbox): State<Sandbox>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut wanted = wanted(query.as_deref().unwrap_or_default())?;
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let is_wanted = |kind: &&str| accepted.is_some_and(|accepted| accepted.contains(kind));
    if let Some(kind) = [EVENT_STREAM, JSON_LINES].into_iter().find(is_wanted) {
        return Ok(live(sandbox, wanted, kind));
    }
    let Some(node) = sandbox.parts() else {
        return Ok(Content(excerpt(sandbox.log(), &wanted)).into_response());
    };
    let late = node.service.clock().sleep(wanted.within);
    let found = tokio::select! {
        found = next(sandbox.log(), &mut wanted) => found,
        () = late => None,
    };
    Ok(Content(found.unwrap_or_else(|| excerpt(sandbox.log(), &wanted))).into_response())
}

fn wanted(query: &str) -> Result<Wanted, Problem> {
    let (mut after, mut limit, mut within, mut kind) = (0, RECORDS_MAX, Duration::ZERO, None);
    let mut conditions = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "after" => {
                after = value.parse().map_err(|_| Problem::invalid("after", "must be a mark of the log"))?;
            }
            "limit" => {
                let given = value.parse().ok().filter(|limit| (1..=RECORDS_MAX).contains(limit));
                let rule = format!("must be a number from 1 to {RECORDS_MAX}");
                limit = given.ok_or_else(|| Problem::invalid("limit", rule))?;
            }
            "within" => within = parse_within(&value)?,
            "kind" => kind = Some(value.into_owned()),
            _ => conditions.push((name.into_owned(), value.into_owned())),
        }
    }
    let filter = Filter::parse(kind.as_deref(), &conditions)?;
    Ok(Wanted { after, limit, within, filter })
}

/// Parses the wait for a record.
pub(super) fn parse_within(text: &str) -> Result<Duration, Problem> {
    let within = time_text::parse_span(text).filter(|within| *within <= WITHIN_MAX);
    within.ok_or_else(|| Problem::invalid("within", "must be a duration like 250ms or 5s, of at most 10m"))
}

impl From<WrongFilter> for Problem {
    fn from(wrong: WrongFilter) -> Self {
        Self::invalid(&wrong.field, wrong.rule)
    }
}

fn excerpt(log: &Log, wanted: &Wanted) -> Excerpt {
    let records = log.after(wanted.after);
    let dropped = records.first().map_or(0, |first| first.mark - wanted.after - 1);
    let latest = records.last().map_or(wanted.after, |last| last.mark);
    let found = records.into_iter().filter(|record| wanted.filter.finds(record));
    let data: Vec<_> = found.take(wanted.limit).collect();
    let is_cut = data.len() == wanted.limit;
    let mark = data.last().filter(|_| is_cut).map_or(latest, |last| last.mark);
    Excerpt { data, mark, dropped }
}

/// Waits for records; `None` when the node stops.
async fn next(log: &Log, wanted: &mut Wanted) -> Option<Excerpt> {
    let mut changes = log.changes();
    loop {
        changes.mark_unchanged();
        let found = excerpt(log, wanted);
        if !found.data.is_empty() || found.dropped > 0 {
            return Some(found);
        }
        wanted.after = found.mark;
        tokio::select! {
            changed = changes.changed() => changed.ok()?,
            () = log.ended() => return None,
        }
    }
}

/// The records of now and later, each in a line or an event. Only one excerpt is in memory. A reader that
/// falls behind the kept records is told how many it missed.
fn live(sandbox: Sandbox, wanted: Wanted, kind: &'static str) -> Response {
    let chunks = stream::unfold((sandbox, wanted), move |(sandbox, mut wanted)| async move {
        let found = next(sandbox.log(), &mut wanted).await?;
        wanted.after = found.mark;
        let mut text = String::new();
        if found.dropped > 0 {
            let at = sandbox.clock().now().rfc3339();
            line(&mut text, kind, &json!({ "kind": "dropped", "at": at, "dropped": found.dropped }));
        }
        found.data.iter().for_each(|record| line(&mut text, kind, record));
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), (sandbox, wanted)))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(chunks)).into_response()
}

fn line(text: &mut String, kind: &str, record: &impl Serialize) {
    let json = serde_json::to_string(record).unwrap_or_default();
    match kind {
        EVENT_STREAM => text.push_str(&format!("data: {json}\n\n")),
        _ => text.push_str(&format!("{json}\n")),
    }
}
