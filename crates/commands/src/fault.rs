//! `stagedoor fault`: adds, lists and removes the rules by which requests, socket messages and webhooks of a
//! sandbox fail.

use std::time::Duration;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use crate::failure::CommandFailure;
use crate::target::TargetOptions;

/// Examples, for the help of the command line.
pub const EXAMPLES: &str = "Examples:
  stagedoor fault add --path '/open/v1/*' --status 429 --retry-after 5 --times 1
  stagedoor fault add --path /open/v1/chats/send --cut after --nth 2
  stagedoor fault add --event SYSTEM/subscribed --late 5s
  stagedoor fault add --event CHAT --user haneul --drop --probability 0.3 --seed 7
  stagedoor fault add --event CHAT --close slow_consumer --times 1
  stagedoor fault add --webhook drops --tamper signature --times 1
  stagedoor fault add --net subway --client demo
  stagedoor fault list
  stagedoor fault remove fault-1
  stagedoor fault reset";

const FAULTS: &str = "/sandbox/v1/faults";

/// `stagedoor fault`
#[derive(Debug, Args)]
pub struct FaultOptions {
    #[command(flatten)]
    target: TargetOptions,

    #[command(subcommand)]
    action: Option<FaultAction>,
}

/// The actions of `stagedoor fault`. Without one the rules are listed.
#[derive(Debug, Subcommand)]
enum FaultAction {
    /// Adds a rule: which requests, socket messages or webhook attempts it means, which of these it affects,
    /// and what happens to them.
    #[command(after_help = EXAMPLES)]
    Add(Box<NewFault>),
    /// Lists the rules and the number of their hits.
    List,
    /// Removes rules.
    Remove {
        /// The ids of the rules, as in fault-1.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Removes all rules.
    Reset,
    /// Lists the network profiles.
    Profiles,
}

#[derive(Debug, Args)]
struct NewFault {
    #[command(flatten)]
    matching: MatchOptions,
    #[command(flatten)]
    choice: ChoiceOptions,
    #[command(flatten)]
    effect: EffectOptions,
    #[command(flatten)]
    details: DetailOptions,
}

/// What the rule means. Without any of these it means every request, or every message.
#[derive(Debug, Args)]
#[command(next_help_heading = "What the rule means")]
struct MatchOptions {
    /// The application of the caller or of the session, by id or name.
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// The user of the token or of the session, by id, login or name.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The method of the request.
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// The path of the request, or its beginning and `*`. The path of sockets is /socket.io/.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// The event of the socket message: CHAT, DONATION, SUBSCRIPTION, SYSTEM, SYSTEM/connected,
    /// SYSTEM/subscribed, SYSTEM/unsubscribed or SYSTEM/revoked.
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// The channel of the event, by id, login or name.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// The webhook, by its id or by the id or name of its application. It goes with --tamper, --cut,
    /// --duplicate and --late.
    #[arg(long, value_name = "WEBHOOK")]
    webhook: Option<String>,
}

/// Which of them are affected.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which of these it affects")]
struct ChoiceOptions {
    /// Begins with the N-th one. Without --times it affects only that one.
    #[arg(long, value_name = "N")]
    nth: Option<u64>,
    /// Affects at most N.
    #[arg(long, value_name = "N")]
    times: Option<u64>,
    /// Affects this share of them, from 0 to 1, at random.
    #[arg(long, value_name = "SHARE")]
    probability: Option<f64>,
    /// The seed of the random choice. The same seed chooses the same ones.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// What happens: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
#[command(next_help_heading = "What happens, one of")]
struct EffectOptions {
    /// The request is answered with this status, and nothing takes effect. A status below 300 needs --body.
    #[arg(long, value_name = "STATUS")]
    status: Option<u16>,
    /// The request waits for this long.
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// The connection ends, `before` or `after` the request or the message takes effect. With --webhook the
    /// message is not sent, or the receiver's answer is lost.
    #[arg(long, value_name = "MOMENT")]
    cut: Option<String>,
    /// Half of the answer arrives, or this many bytes.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = "true", value_parser = length)]
    truncate: Option<Value>,
    /// The message is not sent.
    #[arg(long, value_name = "FLAG", num_args = 0..=1, default_missing_value = "true")]
    drop: Option<bool>,
    /// The message is sent twice.
    #[arg(long, value_name = "FLAG", num_args = 0..=1, default_missing_value = "true")]
    duplicate: Option<bool>,
    /// The message is sent after the session's next one, or after 2 seconds if none comes.
    #[arg(long, value_name = "FLAG", num_args = 0..=1, default_missing_value = "true")]
    reorder: Option<bool>,
    /// The message is sent this much later. Others overtake it.
    #[arg(long, value_name = "DURATION")]
    late: Option<String>,
    /// From this message on nothing passes the connection, and it stays open.
    #[arg(long, value_name = "FLAG", num_args = 0..=1, default_missing_value = "true")]
    silence: Option<bool>,
    /// The session is closed instead, with this close reason.
    #[arg(long, value_name = "REASON")]
    close: Option<String>,
    /// The webhook message has a wrong `signature`, a `timestamp` of 10 minutes ago, or a `body` that was
    /// changed after it was signed.
    #[arg(long, value_name = "PART")]
    tamper: Option<String>,
    /// The calls and sockets of an application or a user pass this network: slow, subway, handover,
    /// tunnel or offline.
    #[arg(long, value_name = "PROFILE")]
    net: Option<String>,
}

/// More about what happens.
#[derive(Debug, Args)]
#[command(next_help_heading = "More about it")]
struct DetailOptions {
    /// The message of the answer with --status.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// The header Retry-After of the answer with --status, in seconds.
    #[arg(long, value_name = "SECONDS")]
    retry_after: Option<u64>,
    /// The header Location of the answer with --status 301, 302, 303, 307 or 308.
    #[arg(long, value_name = "URL")]
    location: Option<String>,
    /// The body of the answer with --status, instead of the envelope: a text, or @FILE.
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// The media type of --body. Default: text/html for a text that begins with `<`, else application/json.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Whether the request waits `before` or `after` it takes effect, with --delay.
    #[arg(long, value_name = "MOMENT")]
    when: Option<String>,
}

/// Runs the command, and returns its output.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &FaultOptions) -> Result<String, CommandFailure> {
    let (target, json) = (options.target.find().await?, options.target.json);
    let call = async |method, path: &str, body: Option<Value>| {
        target.call(method, path, body.as_ref(), Duration::ZERO).await
    };
    match &options.action {
        Some(FaultAction::Add(rule)) => {
            rule.check()?;
            let added = call(Method::POST, FAULTS, Some(rule.body()?)).await?;
            Ok(if json { format!("{added}\n") } else { line(&added) })
        }
        None | Some(FaultAction::List) => {
            let rules = call(Method::GET, FAULTS, None).await?;
            if json {
                return Ok(format!("{rules}\n"));
            }
            let lines: String = rules["data"].as_array().into_iter().flatten().map(line).collect();
            Ok(if lines.is_empty() { "no rules\n".to_owned() } else { lines })
        }
        Some(FaultAction::Profiles) => {
            let profiles = call(Method::GET, &format!("{FAULTS}/profiles"), None).await?;
            let profile = |profile: &Value| {
                let text = |name: &str| profile[name].as_str().unwrap_or_default().to_owned();
                format!("{:<10} {}\n", text("name"), text("about"))
            };
            let lines = profiles["data"].as_array().into_iter().flatten().map(profile);
            Ok(if json { format!("{profiles}\n") } else { lines.collect() })
        }
        Some(FaultAction::Remove { ids }) => {
            for id in ids {
                call(Method::DELETE, &removal(id)?, None).await?;
            }
            Ok(if json {
                format!("{}\n", json!({ "removed": ids }))
            } else {
                format!("removed {}\n", ids.join(", "))
            })
        }
        Some(FaultAction::Reset) => {
            call(Method::DELETE, FAULTS, None).await?;
            Ok(if json { "{}\n".to_owned() } else { "removed all rules\n".to_owned() })
        }
    }
}

fn removal(id: &str) -> Result<String, CommandFailure> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(CommandFailure::Usage(format!(
            "{id} is no id of a rule: `stagedoor fault list` shows them"
        )));
    }
    Ok(format!("{FAULTS}/{id}"))
}

impl NewFault {
    /// Checks that each detail stands beside what it belongs to.
    fn check(&self) -> Result<(), CommandFailure> {
        let (effect, details) = (&self.effect, &self.details);
        for (detail, is_given, owner, has_owner) in [
            ("--message", details.message.is_some(), "--status", effect.status.is_some()),
            ("--retry-after", details.retry_after.is_some(), "--status", effect.status.is_some()),
            ("--location", details.location.is_some(), "--status", effect.status.is_some()),
            ("--body", details.body.is_some(), "--status", effect.status.is_some()),
            ("--content-type", details.content_type.is_some(), "--body", details.body.is_some()),
            ("--when", details.when.is_some(), "--delay", effect.delay.is_some()),
        ] {
            if is_given && !has_owner {
                return Err(CommandFailure::Usage(format!("{detail} goes only with {owner}")));
            }
        }
        Ok(())
    }

    /// The rule, as the sandbox API takes it.
    fn body(&self) -> Result<Value, CommandFailure> {
        let Self { matching, choice, effect, details } = self;
        let ChoiceOptions { nth, times, probability, seed } = choice;
        let mut body = given(json!({ "nth": nth, "times": times, "probability": probability, "seed": seed }));
        body.insert("match".to_owned(), matching.body().into());
        match &effect.net {
            Some(profile) => body.insert("profile".to_owned(), profile.as_str().into()),
            None => body.insert("do".to_owned(), effect.body(details)?.into()),
        };
        Ok(body.into())
    }
}

impl MatchOptions {
    fn body(&self) -> Map<String, Value> {
        let Self { client, user, method, path, event, channel, webhook } = self;
        given(json!({
            "clientId": client,
            "user": user,
            "method": method,
            "path": path,
            "event": event,
            "channelId": channel,
            "webhook": webhook,
        }))
    }
}

impl EffectOptions {
    fn body(&self, details: &DetailOptions) -> Result<Map<String, Value>, CommandFailure> {
        let Self {
            status,
            delay,
            cut,
            truncate,
            drop,
            duplicate,
            reorder,
            late,
            silence,
            close,
            tamper,
            net: _,
        } = self;
        let DetailOptions { message, retry_after, location, body, content_type, when } = details;
        let flag = |flag: &Option<bool>| flag.filter(|flag| *flag);
        Ok(given(json!({
            "status": status,
            "message": message,
            "retryAfter": retry_after,
            "location": location,
            "body": body.as_deref().map(text_or_file).transpose()?,
            "contentType": content_type,
            "delay": delay,
            "when": when,
            "cut": cut,
            "truncate": truncate,
            "drop": flag(drop),
            "duplicate": flag(duplicate),
            "reorder": flag(reorder),
            "late": late,
            "silence": flag(silence),
            "close": close,
            "tamper": tamper,
        })))
    }
}

/// The length of `--truncate`: a flag, or a number of bytes.
fn length(text: &str) -> Result<Value, String> {
    let flag = || text.parse::<bool>().map(Value::from);
    text.parse::<u64>()
        .map(Value::from)
        .or_else(|_| flag())
        .map_err(|_| "it must be a number of bytes, or true for half of the answer".to_owned())
}

/// The text, or the content of the file after `@`.
fn text_or_file(text: &str) -> Result<String, CommandFailure> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    std::fs::read_to_string(path).map_err(|error| CommandFailure::Usage(format!("--body {path}: {error}")))
}

/// The fields that have a value.
fn given(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

/// A rule as a line of text.
fn line(rule: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs = |fields: &Value| {
        let fields = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        fields.map(|(name, value)| format!("{name}={}", plain(value))).collect::<Vec<_>>().join(" ")
    };
    let done =
        if rule["do"].is_null() { format!("net={}", plain(&rule["profile"])) } else { pairs(&rule["do"]) };
    let mut line = format!("{}  hits {}  {done}", plain(&rule["id"]), rule["hits"]);
    let matching = pairs(&rule["match"]);
    if !matching.is_empty() {
        line.push_str(&format!("  when {matching}"));
    }
    for name in ["nth", "times", "probability"].into_iter().filter(|name| !rule[*name].is_null()) {
        line.push_str(&format!("  {name} {}", rule[name]));
    }
    if !rule["probability"].is_null() {
        line.push_str(&format!("  seed {}", rule["seed"]));
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_line_of_what_is_given() {
        let rule = json!({
            "id": "fault-1", "hits": 3, "match": { "event": "CHAT" }, "nth": null, "probability": 0.5,
            "times": null, "seed": 1, "do": { "late": "5000ms" },
        });
        assert_eq!(line(&rule), "fault-1  hits 3  late=5000ms  when event=CHAT  probability 0.5  seed 1\n");
        let rule = json!({ "id": "fault-2", "hits": 0, "match": {}, "seed": 1,
                           "do": { "status": 429, "message": null, "retryAfter": 5 } });
        assert_eq!(line(&rule), "fault-2  hits 0  retryAfter=5 status=429\n");
    }

    #[test]
    fn an_id_leads_to_no_other_path() {
        assert_eq!(removal("fault-1").as_deref(), Ok("/sandbox/v1/faults/fault-1"));
        assert!(removal("../log").is_err() && removal("").is_err());
    }
}
