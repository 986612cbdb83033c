//! `stagedoor logs`: shows what happened in a sandbox.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::Value;

use crate::failure::CommandFailure;
use crate::target::{Target, TargetOptions};

/// `stagedoor logs`
#[derive(Debug, Args)]
pub struct LogsOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// Shows further records as they happen.
    #[arg(long, short)]
    follow: bool,

    /// Only records of this kind: request, event, frame, delivery, mail, due, clock, trigger or fault.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Only records with this field: FIELD=VALUE, FIELD~=REGEX or FIELD>=NUMBER, as in path~=^/open. A dot
    /// leads into an object, as in body.message.
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,

    /// Only records after this mark.
    #[arg(long, value_name = "MARK", default_value_t = 0)]
    after: u64,
}

/// How long the server may hold a call while nothing happens, in seconds.
const FOLLOW_WITHIN_S: u64 = 20;

/// Runs the command. Prints each record in a line.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &LogsOptions) -> Result<(), CommandFailure> {
    let target = options.target.find().await?;
    let mut fixed = options.kind.iter().map(|kind| ("kind".to_owned(), kind.clone())).collect::<Vec<_>>();
    for condition in &options.conditions {
        fixed.push(parse_condition(condition).map_err(CommandFailure::Usage)?);
    }
    let mut after = options.after;
    loop {
        let found = excerpt(&target, &fixed, after, options.follow).await?;
        let records = found["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut output = String::new();
        if let Some(dropped @ 1..) = found["dropped"].as_u64().filter(|_| after > 0) {
            crate::err_line!("{dropped} records are no longer kept");
        }
        for record in records {
            let line = if options.target.json { record.to_string() } else { line(record) };
            output.push_str(&line);
            output.push('\n');
        }
        // A closed pipe ends the command, as usual for programs that print many lines.
        if std::io::stdout().write_all(output.as_bytes()).is_err() {
            return Ok(());
        }
        let mark = found["mark"].as_u64().unwrap_or(after);
        if !options.follow && records.is_empty() {
            return Ok(());
        }
        after = mark;
    }
}

async fn excerpt(
    target: &Target,
    fixed: &[(String, String)],
    after: u64,
    waits: bool,
) -> Result<Value, CommandFailure> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("after", &after.to_string()).extend_pairs(fixed);
    if waits {
        query.append_pair("within", &format!("{FOLLOW_WITHIN_S}s"));
    }
    let path = format!("/sandbox/v1/log?{}", query.finish());
    target.call(Method::GET, &path, None, Duration::from_secs(FOLLOW_WITHIN_S)).await
}

/// Parses FIELD=VALUE, FIELD~=REGEX or FIELD>=NUMBER. Returns the field, and the value as the sandbox API
/// takes it.
pub(crate) fn parse_condition(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("--where {text}: it must be FIELD=VALUE, FIELD~=REGEX or FIELD>=NUMBER");
    let (field, value) = text.split_once('=').ok_or_else(wrong)?;
    let (field, value) = match (field.strip_suffix('~'), field.strip_suffix('>')) {
        (Some(field), _) => (field, format!("~{value}")),
        (_, Some(field)) => (field, format!(">={value}")),
        _ => (field, value.to_owned()),
    };
    if field.is_empty() { Err(wrong()) } else { Ok((field.to_owned(), value)) }
}

/// A record as a line of text.
pub(crate) fn line(record: &Value) -> String {
    let text = |name: &str| match &record[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let begin = format!("{:>6}  {}  {:<8}", text("mark"), text("at"), text("kind"));
    if record["kind"] == "request" {
        let caller = [text("clientId"), text("user")].join(" ");
        let mut line = format!(
            "{begin}  {} {} {} {}ms  {}",
            text("status"),
            text("method"),
            text("path"),
            text("durationMs"),
            caller.trim()
        );
        for part in ["reason", "body", "answer"].into_iter().filter(|part| !record[*part].is_null()) {
            line.push_str(&format!("  {part}={}", text(part)));
        }
        return line;
    }
    let rest = record.as_object().into_iter().flatten();
    let rest = rest.filter(|(name, _)| !matches!(name.as_str(), "mark" | "at" | "kind"));
    let rest: Vec<String> = rest.map(|(name, _)| format!("{name}={}", text(name))).collect();
    format!("{begin}  {}", rest.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_field_and_its_test() {
        for (text, expected) in [
            ("path=/a", Some(("path", "/a"))),
            ("message~=a=b", Some(("message", "~a=b"))),
            ("status>=500", Some(("status", ">=500"))),
            ("path", None),
            ("=x", None),
            ("~=x", None),
        ] {
            let expected = expected.map(|(field, value)| (field.to_owned(), value.to_owned()));
            assert_eq!(parse_condition(text).ok(), expected, "{text}");
        }
    }
}
