//! `GET` and `POST /sandbox/v1/clock`.

use axum::extract::State;
use domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service::{ClockMode, RATE_MAX, RATE_MIN};

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use crate::clock::Happened;
use crate::sandbox::Sandbox;
use crate::time_text;

/// The clock of the sandbox.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClockState {
    /// The time.
    #[serde(serialize_with = "time_text::rfc3339")]
    #[schemars(with = "String")]
    now: Timestamp,
    /// How it runs.
    mode: Mode,
    /// Seconds of the clock in a second of real time.
    rate: f64,
}

/// The clock after a move.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Steered {
    #[serde(flatten)]
    clock: ClockState,
    /// What became due, in the order of the due times.
    happened: Vec<Happened>,
}

/// How the clock runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// As fast as real time.
    Real,
    /// It stands still.
    Frozen,
    /// Faster or slower than real time, by `rate`.
    Scaled,
}

/// A change of the clock: exactly one of `advance`, `to` and `mode`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Change {
    /// Moves the clock forward by this duration, as in `90s`, `15m`, `36h`, `31d`.
    advance: Option<String>,
    /// Moves the clock forward to this time (RFC 3339).
    to: Option<String>,
    /// Lets the clock run in this mode.
    mode: Option<Mode>,
    /// With the mode `scaled`: how many times as fast as real time.
    rate: Option<f64>,
}

/// `GET /sandbox/v1/clock`: the time, and how the clock runs.
pub(super) async fn show(State(sandbox): State<Sandbox>) -> Content<ClockState> {
    Content(state(&sandbox))
}

/// `POST /sandbox/v1/clock`: moves the clock forward, or lets it run in another mode.
pub(super) async fn steer(
    State(sandbox): State<Sandbox>,
    JsonBody(change): JsonBody<Change>,
) -> Answer<Steered> {
    let Change { advance, to, mode, rate } = change;
    if rate.is_some() && !matches!(mode, Some(Mode::Scaled)) {
        return Err(Problem::invalid("rate", "goes only with the mode scaled"));
    }
    let happened = match (advance, to, mode) {
        (Some(span), None, None) => {
            let span = time_text::parse_span(&span)
                .ok_or_else(|| Problem::invalid("advance", time_text::SPAN_RULE))?;
            let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
            sandbox.advance_to(sandbox.clock().now().plus_ms(span_ms)).await
        }
        (None, Some(time), None) => {
            let rule = "must be an RFC 3339 time like 2027-01-01T00:00:00Z";
            let time = Timestamp::parse_rfc3339(&time).ok_or_else(|| Problem::invalid("to", rule))?;
            let now = sandbox.clock().now();
            if time < now {
                let rule = format!("must not be earlier than the clock's time, {}", now.rfc3339());
                return Err(Problem::invalid("to", rule));
            }
            sandbox.advance_to(time).await
        }
        (None, None, Some(mode)) => {
            sandbox.set_clock_mode(clock_mode(mode, rate)?);
            Vec::new()
        }
        _ => return Err(Problem::invalid("body", "must have exactly one of advance, to and mode")),
    };
    Ok(Content(Steered { clock: state(&sandbox), happened }))
}

fn clock_mode(mode: Mode, rate: Option<f64>) -> Result<ClockMode, Problem> {
    match mode {
        Mode::Real => Ok(ClockMode::Real),
        Mode::Frozen => Ok(ClockMode::Frozen),
        Mode::Scaled => match rate {
            Some(rate) if (RATE_MIN..=RATE_MAX).contains(&rate) => Ok(ClockMode::Scaled(rate)),
            _ => Err(Problem::invalid("rate", format!("must be a number from {RATE_MIN} to {RATE_MAX}"))),
        },
    }
}

fn state(sandbox: &Sandbox) -> ClockState {
    let clock = sandbox.clock();
    let mode = match clock.mode() {
        ClockMode::Real => Mode::Real,
        ClockMode::Frozen => Mode::Frozen,
        ClockMode::Scaled(_) => Mode::Scaled,
    };
    ClockState { now: clock.now(), mode, rate: clock.mode().rate() }
}
