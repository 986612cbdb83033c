//! `GET /sandbox/console/live`: the parts of the page that changed, and new records, as server-sent events.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::json;
use tokio::sync::watch;

use super::handle::Console;
use super::record::{ROWS_MAX, RecordRow, Rows};
use super::regions::Regions;
use super::texts::Texts;
use super::view::View;
use crate::filter::Filter;
use crate::http::answer::Problem;

/// How long changes are collected before they are sent.
const COLLECT: Duration = Duration::from_millis(200);
/// How often the page is compared without a change in the log.
const COMPARE_EVERY: Duration = Duration::from_secs(5);

/// A browser that watches.
struct Watcher {
    console: Console,
    view: View,
    filter: Filter,
    /// The mark of the last record that was looked at.
    mark: u64,
    /// The parts of the page that the browser has.
    sent: HashMap<&'static str, String>,
    /// Changes with every form. It belongs to the watcher, so that no change is missed while it writes.
    acted: watch::Receiver<u64>,
    is_first: bool,
}

/// Sends what changes, until the browser leaves or the node stops.
pub(super) async fn live(
    State(console): State<Console>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    console.check(&Method::GET, &headers)?;
    let view = View::of(&query.unwrap_or_default(), &headers);
    let filter = view.filter()?;
    let newest = console.sandbox().log().mark();
    // A world that went back to its beginning has a new log. A page that was open before gets all of it.
    let mark = view.after.map_or(newest, |after| if after > newest { 0 } else { after });
    let acted = console.forms();
    let watcher = Watcher { console, view, filter, mark, sent: HashMap::new(), acted, is_first: true };
    let chunks = stream::unfold(watcher, |mut watcher| async move {
        let chunk = watcher.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), watcher))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

impl Watcher {
    /// Waits for a change, and returns the events of it; `None` when the node stops.
    async fn next(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.is_first) {
            self.changed().await?;
        }
        let mut events = self.new_rows();
        if let Ok(regions) = Regions::of(&self.console, &self.view).await {
            for (id, html) in regions.into_parts() {
                if self.sent.get(id) != Some(&html) {
                    event(&mut events, "region", None, &json!({ "id": id, "html": html }));
                    self.sent.insert(id, html);
                }
            }
        }
        if events.is_empty() {
            // A comment, so that the server notices a browser that left.
            events.push_str(":\n\n");
        }
        Some(events)
    }

    async fn changed(&mut self) -> Option<()> {
        let sandbox = self.console.sandbox();
        let clock = sandbox.parts()?.service.clock();
        let mut log = sandbox.log().changes();
        log.mark_unchanged();
        if *log.borrow() <= self.mark {
            tokio::select! {
                changed = log.changed() => changed.ok()?,
                changed = self.acted.changed() => changed.ok()?,
                () = clock.sleep(COMPARE_EVERY) => {}
                () = sandbox.log().ended() => return None,
            }
        }
        tokio::select! {
            () = clock.sleep(COLLECT) => Some(()),
            () = sandbox.log().ended() => None,
        }
    }

    fn new_rows(&mut self) -> String {
        let mut events = String::new();
        let records = self.console.sandbox().log().after(self.mark);
        let Some(last) = records.last() else { return events };
        self.mark = last.mark;
        let found: Vec<_> = records.iter().filter(|record| self.filter.finds(record)).collect();
        if found.is_empty() {
            return events;
        }
        let rows = found
            .iter()
            .rev()
            .take(ROWS_MAX)
            .map(|record| RecordRow::of(record, self.view.language))
            .collect();
        let skipped = found.len().saturating_sub(ROWS_MAX);
        let rows = Rows { t: Texts::of(self.view.language), rows, skipped };
        let html = rows.render().unwrap_or_default();
        event(&mut events, "rows", Some(self.mark), &json!({ "html": html, "mark": self.mark }));
        events
    }
}

/// Writes a server-sent event. JSON has no line end.
fn event(text: &mut String, name: &str, id: Option<u64>, data: &serde_json::Value) {
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    text.push_str(&format!("event: {name}\ndata: {data}\n\n"));
}
