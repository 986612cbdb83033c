//! `stagedoor expect`: waits until something has happened in a sandbox, or fails.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use http::Method;
use serde_json::{Map, Value, json};
use service::Clock;

use crate::client::Failure;
use crate::failure::CommandFailure;
use crate::junit::{CaseOutcome, TestCase, TestSuite, report_file};
use crate::logs::{line, parse_condition};
use crate::target::TargetOptions;

/// `stagedoor expect`
#[derive(Debug, Args)]
pub struct ExpectOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// The request, as in 'POST /open/v1/chats/send', or its path alone. A `*` at the end stands for any
    /// rest.
    #[arg(value_name = "REQUEST")]
    request: Option<String>,

    /// A field of the record: FIELD=VALUE, FIELD~=REGEX or FIELD>=NUMBER, as in message~=^hel. A name is
    /// looked up in the record, then in the body, then in the answer.
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,

    /// How long to wait, in real time, as in 250ms or 5s. Default: not at all.
    #[arg(long, value_name = "DURATION")]
    within: Option<String>,

    /// Minimum number of records. Default: 1.
    #[arg(long, value_name = "N")]
    times: Option<u64>,

    /// Maximum number of records, from 0. The command then waits for all of --within.
    #[arg(long, value_name = "N")]
    at_most: Option<u64>,

    /// The number of records: --times and --at-most in one.
    #[arg(long, value_name = "N", conflicts_with_all = ["times", "at_most"])]
    exactly: Option<u64>,

    /// Only records after this mark. Default: all that are kept.
    #[arg(long, value_name = "MARK", default_value_t = 0)]
    after: u64,

    /// The kind of record: request, event, frame, delivery, due, clock, trigger or fault. Default: request
    /// where REQUEST is given, else any.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Writes the outcome into this file, in the form of JUnit.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(report_file))]
    junit: Option<PathBuf>,
}

/// The end of the command's help.
pub const HELP: &str = "\
Examples:
  stagedoor expect 'POST /open/v1/chats/send' --where message~=^hel --within 5s
  stagedoor expect 'POST /open/v1/chats/send' --after \"$MARK\" --at-most 0 --within 5s
  stagedoor expect --kind delivery --where status=200 --times 2 --within 30s --junit report.xml

Exit codes: 0 it happened, 1 it did not, 2 wrong use, 3 no sandbox was reached.";

/// The longest wait that the sandbox allows.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the command, and returns its output: the records.
///
/// # Errors
/// [`CommandFailure`]; what was expected did not happen.
pub async fn run(options: &ExpectOptions) -> Result<String, CommandFailure> {
    if options.request.is_none() && options.kind.is_none() && options.conditions.is_empty() {
        let text = "any record would do: give a REQUEST, --kind or --where";
        return Err(CommandFailure::Usage(text.to_owned()));
    }
    let body = body(options).map_err(CommandFailure::Usage)?;
    let target = options.target.find().await?;
    let clock = Clock::system();
    let began = clock.monotonic();
    let answer = target.attempt(Method::POST, "/sandbox/v1/expect", Some(&body), PATIENCE).await;
    let took = clock.monotonic().saturating_sub(began);
    let outcome = match answer {
        Ok(found) => Ok(found),
        Err(Failure::Refused { status: 400, message, content, .. }) if content["nearest"].is_array() => {
            Err((message, content))
        }
        Err(Failure::Refused { status: 400, message, .. }) => return Err(CommandFailure::Usage(message)),
        Err(failure) => return Err(target.explained(failure)),
    };
    if let Some(file) = &options.junit {
        let outcome = match &outcome {
            Ok(_) => CaseOutcome::Passed,
            Err((message, content)) => {
                CaseOutcome::Failed { message: message.clone(), detail: misses(content) }
            }
        };
        let cases = vec![TestCase { name: title(options), took, outcome }];
        TestSuite { name: "stagedoor expect".to_owned(), cases }.save(file)?;
    }
    match outcome {
        Ok(found) if options.target.json => Ok(format!("{found}\n")),
        Ok(found) => Ok(lines(&found["data"])),
        Err((_, content)) if options.target.json => {
            crate::out_line!("{content}");
            Err(CommandFailure::Failed(format!("{} did not happen", title(options))))
        }
        Err((message, content)) => {
            Err(CommandFailure::Failed(format!("{}: {message}\n{}", title(options), misses(&content))))
        }
    }
}

/// The body of the call.
fn body(options: &ExpectOptions) -> Result<Value, String> {
    let ExpectOptions { request, conditions, within, times, at_most, exactly, after, kind, .. } = options;
    let mut expected = Map::new();
    if let Some(request) = request {
        expected.extend(of_request(request)?);
    }
    for condition in conditions {
        let (field, value) = parse_condition(condition)?;
        expected.insert(field, value.into());
    }
    let kind = kind.clone().or_else(|| request.as_ref().map(|_| "request".to_owned()));
    let mut body = json!({ "where": expected, "after": after });
    let (times, at_most) = (times.or(exactly.filter(|exactly| *exactly > 0)), at_most.or(*exactly));
    for (name, value) in [("times", times), ("atMost", at_most)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    for (name, value) in [("kind", &kind), ("within", within)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    Ok(body)
}

/// The conditions of METHOD and PATH, or of PATH.
fn of_request(request: &str) -> Result<Map<String, Value>, String> {
    let wrong = || format!("{request}: a request is given as 'METHOD /path' or /path");
    let (method, path) = match request.trim().split_once(' ') {
        Some((method, path)) => (Some(method), path.trim()),
        None => (None, request.trim()),
    };
    if !path.starts_with('/') || path.contains([' ', '?']) {
        return Err(wrong());
    }
    let path = match path.strip_suffix('*') {
        Some(begin) => format!("~^{}", literal(begin)),
        None => path.to_owned(),
    };
    let mut conditions = Map::from_iter([("path".to_owned(), Value::from(path))]);
    if let Some(method) = method {
        if !method.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(wrong());
        }
        conditions.insert("method".to_owned(), method.to_ascii_uppercase().into());
    }
    Ok(conditions)
}

/// A regular expression for this text.
fn literal(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What is expected, on one line.
fn title(options: &ExpectOptions) -> String {
    let kind = options.kind.as_deref().unwrap_or("a record");
    let mut title = options.request.clone().unwrap_or_else(|| kind.to_owned());
    for condition in &options.conditions {
        title.push_str(&format!(" {condition}"));
    }
    title
}

fn lines(records: &Value) -> String {
    records.as_array().into_iter().flatten().map(|record| format!("{}\n", line(record))).collect()
}

/// The nearest misses, each with the conditions that it does not fulfil.
fn misses(content: &Value) -> String {
    let nearest = content["nearest"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = lines(&content["data"]);
    let found = if found.is_empty() { found } else { format!("Found:\n{found}") };
    let unknown = content["unknown"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let unknown: String = unknown
        .map(|field| format!("No kept record has a field {field}: a name may be misspelt\n"))
        .collect();
    if nearest.is_empty() {
        let nothing =
            if found.is_empty() { "Nothing comes near: `stagedoor logs` shows what happened" } else { "" };
        return format!("{unknown}{found}{nothing}").trim_end().to_owned();
    }
    let miss = |miss: &Value| {
        let failed = miss["failed"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let failed = failed.collect::<Vec<_>>().join(", ");
        format!("\n  differs in {failed}:\n    {}", line(&miss["record"]))
    };
    format!("{unknown}{found}The nearest misses:{}", nearest.iter().map(miss).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_method_and_a_path() {
        for (text, expected) in [
            ("POST /open/v1/chats/send", json!({ "method": "POST", "path": "/open/v1/chats/send" })),
            ("get  /a", json!({ "method": "GET", "path": "/a" })),
            ("/a.b/*", json!({ "path": r"~^/a\.b/" })),
        ] {
            assert_eq!(of_request(text).map(Value::Object), Ok(expected), "{text}");
        }
        for text in ["", "POST", "open/v1", "GET /a?b=c", "P0ST /a", "GET /a b"] {
            assert!(of_request(text).is_err(), "{text}");
        }
    }
}
