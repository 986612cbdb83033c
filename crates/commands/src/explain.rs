//! `stagedoor explain`: what an id or a word is, what the record says of it, and what to do next.

use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::Value;

use crate::failure::CommandFailure;
use crate::logs::line;
use crate::target::TargetOptions;

/// `stagedoor explain`
#[derive(Debug, Args)]
pub struct ExplainOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// An id (of a request, a session, a chat message, a claim, a message to a webhook, an application, a
    /// channel), a status, the message or the reason of a refusal, or a close reason.
    what: String,
}

/// The end of the command's help.
pub const HELP: &str = "\
Examples:
  stagedoor explain INVALID_TOKEN
  stagedoor explain session-url-used
  stagedoor explain slow_consumer
  stagedoor explain 4f1c2a7d9be03c5a6d10    the X-Request-Id of an answer";

/// Runs the command, and returns its output.
///
/// # Errors
/// [`CommandFailure`]; nothing is known of it.
pub async fn run(options: &ExplainOptions) -> Result<String, CommandFailure> {
    let target = options.target.find().await?;
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("what", &options.what).finish();
    let path = format!("/sandbox/v1/explain?{query}");
    let explanation = target.call(Method::GET, &path, None, Duration::ZERO).await?;
    Ok(if options.target.json { format!("{explanation}\n") } else { text(&explanation) })
}

fn text(explanation: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let list = |name: &str| explanation[name].as_array().cloned().unwrap_or_default();
    let mut out = format!(
        "{} ({})\n  {}\n",
        word(&explanation["what"]),
        word(&explanation["kind"]),
        word(&explanation["summary"])
    );
    for (name, value) in explanation["facts"].as_object().into_iter().flatten() {
        if !value.is_null() {
            out.push_str(&format!("  {name:<17} {}\n", word(value)));
        }
    }
    let sessions = list("sessions");
    if !sessions.is_empty() {
        out.push_str("\nThe newest sessions, and whether the event was sent to them:\n");
    }
    for session in &sessions {
        let verdict = if session["received"] == true { "yes" } else { "no " };
        let (key, client) = (word(&session["sessionKey"]), word(&session["clientId"]));
        out.push_str(&format!("  {verdict}  {key} ({client}): {}\n", word(&session["why"])));
    }
    let next = list("next");
    if !next.is_empty() {
        out.push_str("\nWhat to do:\n");
        next.iter().for_each(|next| out.push_str(&format!("  {}\n", word(next))));
    }
    let records = list("records");
    if !records.is_empty() {
        out.push_str("\nThe latest records:\n");
        records.iter().for_each(|record| out.push_str(&format!("{}\n", line(record))));
    }
    out
}
