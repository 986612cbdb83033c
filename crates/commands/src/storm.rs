//! The progress and the result of `stagedoor trigger storm`.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::failure::CommandFailure;
use crate::target::Target;

/// The longest storm, and the time that the server may take beyond it.
const PATIENCE: Duration = Duration::from_secs(630);
/// How long the server may hold a look at the progress.
const LOOK_WITHIN: Duration = Duration::from_secs(5);
/// The records of storms.
const RECORDS: &str = "/sandbox/v1/log?kind=trigger&trigger=storm";

/// Lets a storm happen, and writes its progress to stderr.
///
/// # Errors
/// [`CommandFailure`].
pub(crate) async fn run(target: &Target, path: &str, body: &Value) -> Result<Value, CommandFailure> {
    let before = target.call(Method::GET, RECORDS, None, Duration::ZERO).await?;
    let mark = before["mark"].as_u64().unwrap_or(0);
    tokio::select! {
        done = target.call(Method::POST, path, Some(body), PATIENCE) => done,
        failure = show_progress(target, mark) => Err(failure),
    }
}

/// Writes each record of progress, until it is dropped.
async fn show_progress(target: &Target, mut mark: u64) -> CommandFailure {
    loop {
        let path = format!("{RECORDS}&triggered=%3E%3D0&after={mark}&within={}s", LOOK_WITHIN.as_secs());
        let found = match target.call(Method::GET, &path, None, LOOK_WITHIN).await {
            Ok(found) => found,
            Err(failure) => return failure,
        };
        for record in found["data"].as_array().into_iter().flatten() {
            crate::err_line!(
                "{} of {} events, {} failed",
                record["triggered"],
                record["of"],
                record["errors"]
            );
        }
        mark = found["mark"].as_u64().unwrap_or(mark);
    }
}

/// The result as text.
pub(crate) fn text(storm: &Value) -> String {
    let counts = |counts: &Value| {
        let counts = counts.as_object().into_iter().flatten();
        counts.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    let latency = &storm["latencyMs"];
    let ms = |name: &str| latency[name].as_f64().map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    let seconds = storm["tookMs"].as_f64().unwrap_or_default() / 1_000.0;
    let mut text = format!(
        "storm: {} events in {seconds:.1} s ({}), {} failed, {} not triggered in time\n",
        storm["events"],
        counts(&storm["counts"]),
        storm["failed"],
        storm["unsent"],
    );
    text.push_str(&format!("subscribed sessions: {}\n", counts(&storm["sessions"])));
    text.push_str(&format!(
        "from trigger to publication: p50 {}, p95 {}, p99 {}, longest {}\n",
        ms("p50"),
        ms("p95"),
        ms("p99"),
        ms("max"),
    ));
    for (error, count) in storm["errors"].as_object().into_iter().flatten() {
        text.push_str(&format!("{count} times: {error}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_shows_counts_percentiles_and_errors() {
        let storm = json!({
            "events": 10, "counts": { "chat": 8, "donation": 2 }, "failed": 1, "unsent": 0, "tookMs": 2_040,
            "sessions": { "CHAT": 1 }, "errors": { "403 slow mode": 1 },
            "latencyMs": { "p50": 1.25, "p95": 2.0, "p99": 3.0, "max": null },
        });
        let expected = "storm: 10 events in 2.0 s (chat 8, donation 2), 1 failed, 0 not triggered in time\n\
                        subscribed sessions: CHAT 1\n\
                        from trigger to publication: p50 1.2 ms, p95 2.0 ms, p99 3.0 ms, longest -\n\
                        1 times: 403 slow mode\n";
        assert_eq!(text(&storm), expected);
    }
}
