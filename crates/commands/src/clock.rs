//! `stagedoor clock`: shows and moves the clock of a sandbox.

use std::time::Duration;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use crate::failure::CommandFailure;
use crate::target::TargetOptions;

/// `stagedoor clock`
#[derive(Debug, Args)]
pub struct ClockOptions {
    #[command(flatten)]
    target: TargetOptions,

    #[command(subcommand)]
    action: Option<ClockAction>,
}

/// The actions of `stagedoor clock`. Without one the clock is shown.
#[derive(Debug, Subcommand)]
enum ClockAction {
    /// Moves the clock forward by a duration, as in 90s, 1h30m, 31d, 2w, and lists what happened.
    Advance {
        /// The duration.
        #[arg(required_unless_present = "until")]
        duration: Option<String>,
        /// Moves to the next time at which this becomes due, as in access-token.expired.
        #[arg(long, value_name = "WHAT", conflicts_with = "duration")]
        until: Option<String>,
    },
    /// Lists what becomes due next.
    Next,
    /// Moves the clock forward to a time, as in 2027-01-01T00:00:00Z, or to a date, as in 2027-01-01.
    To {
        /// The time.
        time: String,
    },
    /// Stops the clock.
    Freeze,
    /// Lets the clock run: as fast as real time, or faster.
    Run {
        /// How many times as fast as real time.
        #[arg(long, value_name = "N")]
        rate: Option<f64>,
    },
}

/// How long a move may take besides the usual deadline. It runs everything that becomes due.
const MOVE_PATIENCE: Duration = Duration::from_secs(600);

/// Runs the command, and returns its output.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &ClockOptions) -> Result<String, CommandFailure> {
    let target = options.target.find().await?;
    let body = match &options.action {
        None | Some(ClockAction::Next) => None,
        Some(ClockAction::Advance { until: Some(what), .. }) => Some(json!({ "until": what })),
        Some(ClockAction::Advance { duration, .. }) => Some(json!({ "advance": duration })),
        Some(ClockAction::To { time }) => Some(json!({ "to": time })),
        Some(ClockAction::Freeze) => Some(json!({ "mode": "frozen" })),
        Some(ClockAction::Run { rate: None }) => Some(json!({ "mode": "real" })),
        Some(ClockAction::Run { rate: Some(rate) }) => Some(json!({ "mode": "scaled", "rate": rate })),
    };
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let path = match options.action {
        Some(ClockAction::Next) => "/sandbox/v1/clock/next",
        _ => "/sandbox/v1/clock",
    };
    let clock = target.call(method, path, body.as_ref(), MOVE_PATIENCE).await?;
    Ok(if options.target.json { format!("{clock}\n") } else { text(&clock) })
}

fn text(clock: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pace = match clock["mode"].as_str() {
        Some("frozen") => "it stands still".to_owned(),
        Some("scaled") => format!("it runs {} times as fast as real time", clock["rate"]),
        _ => "it runs as fast as real time".to_owned(),
    };
    let mut text = format!("{}  {pace}\n", word(&clock["now"]));
    let lists = ["happened", "next"].into_iter().filter_map(|name| clock[name].as_array());
    lists.flatten().for_each(|one| text.push_str(&line(one)));
    if let Some(omitted) = clock["omitted"].as_u64() {
        text.push_str(&format!("and {omitted} more\n"));
    }
    text
}

/// One line for something that happened: its time, its word, and its ids.
fn line(one: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut line = format!("{}  {}", plain(&one["at"]), plain(&one["what"]));
    for (name, value) in one.as_object().into_iter().flatten() {
        if name != "at" && name != "what" {
            line.push_str(&format!("  {name}={}", plain(value)));
        }
    }
    line + "\n"
}
