//! `stagedoor trigger`: lets something happen in a sandbox.

use clap::Args;
use domain::span::parse_span;
use http::Method;
use serde_json::{Map, Value};

use crate::client::Failure;
use crate::failure::CommandFailure;
use crate::storm;
use crate::target::{Target, TargetOptions};

/// `stagedoor trigger`
#[derive(Debug, Args)]
pub struct TriggerOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// What happens.
    kind: String,

    /// The fields, as in `--to haneul --amount 1000`. Options of the command may stand among them.
    #[arg(value_name = "--FIELD VALUE", trailing_var_arg = true, allow_hyphen_values = true)]
    fields: Vec<String>,
}

/// Runs the command, and returns its output.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &TriggerOptions) -> Result<String, CommandFailure> {
    let mut target = options.target.clone();
    let fields = fields(&options.fields, &mut target)?;
    let kind = &options.kind;
    if !kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        return Err(CommandFailure::Usage(format!(
            "{kind} is no kind: `stagedoor trigger --help` lists them"
        )));
    }
    let path = format!("/sandbox/v1/trigger/{kind}");
    let body = Value::Object(fields);
    let server = target.find().await?;
    let happened = match kind.as_str() {
        "storm" => storm::run(&server, &path, &body).await?,
        _ => happened(&server, &path, &body).await?,
    };
    Ok(match kind.as_str() {
        _ if target.json => format!("{happened}\n"),
        "storm" => storm::text(&happened),
        _ => format!("{kind}: {}\n", text(&happened)),
    })
}

/// Lets it happen. An unknown kind is a wrong command line.
async fn happened(server: &Target, path: &str, body: &Value) -> Result<Value, CommandFailure> {
    let wait = body["wait"].as_str().and_then(parse_span).unwrap_or_default();
    match server.attempt(Method::POST, path, Some(body), wait).await {
        Err(Failure::Refused { status: 404, message, .. }) if message.starts_with("kind: ") => {
            Err(CommandFailure::Usage(message))
        }
        answered => answered.map_err(|failure| server.explained(failure)),
    }
}

/// The fields of the call. Options of the command are taken out.
fn fields(words: &[String], target: &mut TargetOptions) -> Result<Map<String, Value>, CommandFailure> {
    let mut fields = Map::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let wrong = || CommandFailure::Usage(format!("{word}: fields are given as --field value"));
        let option = word.strip_prefix("--").filter(|option| !option.is_empty()).ok_or_else(wrong)?;
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None if option == "json" => (option, None),
            None => (option, words.next_if(|next| !next.starts_with("--")).cloned()),
        };
        match (name, value) {
            ("json", value) => target.json = value.as_deref() != Some("false"),
            ("server", value) => target.server = value,
            ("sandbox", value) => target.sandbox = value,
            ("world", value) => target.world = value,
            ("operator-key", value) => target.operator_key = value,
            (name, value) => _ = fields.insert(camel_case(name), value.map_or(Value::Bool(true), json)),
        }
    }
    Ok(fields)
}

/// A number that is written as JSON writes it is a number. Everything else is a text.
fn json(text: String) -> Value {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => Value::from(number),
        _ => Value::String(text),
    }
}

/// `viewerId` of `viewer-id`.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('-');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

/// The values on one line.
fn text(happened: &Value) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = happened.as_object().into_iter().flatten();
    values.map(|(name, of)| format!("{name} {}", value(of))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_numbers_texts_and_flags_and_options_are_taken_out() {
        let words = "--to haneul --amount=1000 --message 007 --json --anonymous --sandbox two --some-id -5";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let mut target = TargetOptions::default();
        let expected =
            json!({ "to": "haneul", "amount": 1000, "message": "007", "anonymous": true, "someId": -5 });
        assert_eq!(Value::Object(fields(&words, &mut target).expect("fields")), expected);
        assert_eq!((target.json, target.sandbox.as_deref()), (true, Some("two")));
        assert!(fields(&["haneul".to_owned()], &mut target).is_err());
    }
}
