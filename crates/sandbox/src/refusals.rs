//! A line of the log for each refused request, for the developer whose request it was.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use service::LogLimit;

/// Maximum number of lines in [`PERIOD`]. `stagedoor logs` shows all refusals.
const LINES_MAX: u32 = 100;
/// The period of [`LINES_MAX`].
const PERIOD: Duration = Duration::from_secs(60);
/// Maximum length of a text in a line, in characters.
const TEXT_CHARS_MAX: usize = 200;
/// The first status of a refusal.
const REFUSED: u64 = 400;

/// Logs refused requests, within a limit.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    period: Mutex<Period>,
    omitted: LogLimit,
}

#[derive(Debug, Default)]
struct Period {
    began: Option<Duration>,
    lines: u32,
}

impl Period {
    /// Whether one more line may be written at `now`, a time of a monotonic clock.
    fn admits(&mut self, now: Duration) -> bool {
        if self.began.is_none_or(|began| now >= began + PERIOD) {
            *self = Self { began: Some(now), lines: 0 };
        }
        self.lines += 1;
        self.lines <= LINES_MAX
    }
}

impl RefusalLog {
    /// Logs the record of a request, if the request was refused.
    pub fn note(&self, request: &Map<String, Value>, now: Duration) {
        let Some(line) = line(request) else { return };
        if self.period.lock().unwrap_or_else(PoisonError::into_inner).admits(now) {
            // The line says what the span of the request says.
            tracing::info!(parent: None, "{line}");
        } else if let Some(times) = self.omitted.due(now) {
            tracing::info!(parent: None, times, "refused more requests: `stagedoor logs` shows them");
        }
    }
}

/// The line of a refused request; `None` for another one. The query is left out, because it may contain a
/// secret.
fn line(request: &Map<String, Value>) -> Option<String> {
    let status = request.get("status")?.as_u64().filter(|status| *status >= REFUSED)?;
    let text = |name: &str| request.get(name).and_then(Value::as_str).map(plain);
    let [method, path] = ["method", "path"].map(|name| text(name).unwrap_or_default());
    let mut line = format!("refused {method} {path}: {status}");
    let message = request.get("answer").and_then(|answer| answer["message"].as_str()).map(plain);
    if let Some(message) = message {
        line.push_str(&format!(" {message}"));
    }
    if let Some(reason) = text("reason") {
        line.push_str(&format!(", reason {reason}"));
    }
    // An application that did not prove itself names itself in the body or in the query.
    let named = |part: &str| request.get(part).and_then(|part| part["clientId"].as_str()).map(plain);
    let application = text("clientId").or_else(|| named("body")).or_else(|| named("query"));
    if let Some(application) = application {
        line.push_str(&format!(", application {application}"));
    }
    for (name, label) in [("user", "user"), ("fault", "fault"), ("requestId", "request")] {
        if let Some(value) = text(name) {
            line.push_str(&format!(", {label} {value}"));
        }
    }
    Some(line)
}

/// A short text on one line.
fn plain(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn a_refusal_is_one_line_with_its_reason() {
        let refused = fields(json!({
            "requestId": "4f1c", "method": "GET", "path": "/open/v1/users/me", "query": { "secret": "hidden" },
            "clientId": "demo", "status": 401, "reason": "token-expired",
            "answer": { "code": 401, "message": "INVALID\nTOKEN" }, "body": { "secret": "hidden" },
        }));
        let expected = "refused GET /open/v1/users/me: 401 INVALID TOKEN, reason token-expired, application demo, \
                        request 4f1c";
        assert_eq!(line(&refused).as_deref(), Some(expected));
        let query = json!({ "clientId": "other", "state": "hidden" });
        let page =
            fields(json!({ "method": "GET", "path": "/account-interlock", "status": 400, "query": query }));
        let expected = "refused GET /account-interlock: 400, application other";
        assert_eq!(line(&page).as_deref(), Some(expected));
        assert_eq!(line(&fields(json!({ "method": "GET", "path": "/", "status": 200 }))), None);
        let long = "x".repeat(TEXT_CHARS_MAX + 1);
        let long = line(&fields(json!({ "method": "GET", "path": long, "status": 404 }))).expect("a line");
        assert!(long.len() < TEXT_CHARS_MAX + 30, "{long}");
    }

    #[test]
    fn a_period_has_a_limited_number_of_lines() {
        let (mut period, at) = (Period::default(), Duration::from_secs);
        let lines = |period: &mut Period, now| (0..500).filter(|_| period.admits(at(now))).count();
        assert_eq!([lines(&mut period, 5), lines(&mut period, 64)], [100, 0]);
        assert_eq!(lines(&mut period, 65), 100);
    }
}
