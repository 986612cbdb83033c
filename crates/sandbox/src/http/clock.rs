//! `GET` and `POST /sandbox/v1/clock`.

use axum::extract::State;
use domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service::due::DueKind;
use service::{ClockMode, RATE_MAX, RATE_MIN};

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use crate::clock::{Destination, MoveError};
use crate::sandbox::Sandbox;
use crate::time_text;
use crate::timeline::{Happened, Passed};

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
    /// The number of further happenings that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    omitted: u64,
}

/// What becomes due next.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Next {
    #[serde(flatten)]
    clock: ClockState,
    /// What becomes due if nothing else happens before, in the order of the due times.
    next: Vec<Happened>,
}

/// Maximum number of entries of [`Next`].
const NEXT_MAX: usize = 10;

/// What attempts at webhooks may lead to.
const CONSEQUENCES: [&str; 3] = ["webhook.delivered", "webhook.dead", "webhook.disabled"];
/// Maximum number of attempts until such a consequence.
const ATTEMPTS_MAX: usize = 200;

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

/// A change of the clock: exactly one of `advance`, `to`, `until` and `mode`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Change {
    /// Moves the clock forward by this duration, as in `90s`, `1h30m`, `31d`, `2w`.
    advance: Option<String>,
    /// Moves the clock forward to this time (RFC 3339), or to the beginning of this date in UTC.
    to: Option<String>,
    /// Moves the clock forward to the next time at which this becomes due, as in `access-token.expired`.
    until: Option<String>,
    /// Lets the clock run in this mode.
    mode: Option<Mode>,
    /// With the mode `scaled`: how many times as fast as real time.
    rate: Option<f64>,
}

/// `GET /sandbox/v1/clock`: the time, and how the clock runs.
pub(super) async fn show(State(sandbox): State<Sandbox>) -> Content<ClockState> {
    Content(state(&sandbox))
}

/// `GET /sandbox/v1/clock/next`: what becomes due next, and when.
pub(super) async fn next(State(sandbox): State<Sandbox>) -> Answer<Next> {
    let due = sandbox.next_due(NEXT_MAX as i64).await?;
    let next = due.iter().take(NEXT_MAX).map(Happened::from).collect();
    Ok(Content(Next { clock: state(&sandbox), next }))
}

/// `POST /sandbox/v1/clock`: moves the clock forward, or lets it run in another mode.
pub(super) async fn steer(
    State(sandbox): State<Sandbox>,
    JsonBody(change): JsonBody<Change>,
) -> Answer<Steered> {
    check(&change)?;
    let Change { advance, to, until, mode, rate } = change;
    let passed = match (advance, to, until, mode) {
        (Some(span), None, None, None) => {
            let span = time_text::parse_span(&span)
                .ok_or_else(|| Problem::invalid("advance", time_text::SPAN_RULE))?;
            let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
            sandbox.advance(Destination::By(span_ms)).await?
        }
        (None, Some(time), None, None) => sandbox.advance(Destination::At(time_of(&sandbox, &time)?)).await?,
        (None, None, Some(word), None) => match consequence(&word) {
            Some(word) => until_happened(&sandbox, |one| one.what == word).await?.0,
            None => {
                let kind = DueKind::all().find(|kind| kind.name() == word);
                sandbox.advance(Destination::Next(kind.ok_or(MoveError::NothingAhead)?)).await?
            }
        },
        (None, None, None, Some(mode)) => {
            sandbox.set_clock_mode(clock_mode(mode, rate)?);
            Passed::default()
        }
        _ => return Err(Problem::invalid("body", ONE_RULE)),
    };
    let Passed { happened, omitted } = passed;
    Ok(Content(Steered { clock: state(&sandbox), happened, omitted }))
}

/// Checks a change, but for what depends on the time of the clock.
pub(super) fn check(change: &Change) -> Result<(), Problem> {
    let Change { advance, to, until, mode, rate } = change;
    let given = [advance.is_some(), to.is_some(), until.is_some(), mode.is_some()];
    if given.into_iter().filter(|given| *given).count() != 1 {
        return Err(Problem::invalid("body", ONE_RULE));
    }
    if rate.is_some() && !matches!(mode, Some(Mode::Scaled)) {
        return Err(Problem::invalid("rate", "goes only with the mode scaled"));
    }
    if advance.as_ref().is_some_and(|span| time_text::parse_span(span).is_none()) {
        return Err(Problem::invalid("advance", time_text::SPAN_RULE));
    }
    if to.as_ref().is_some_and(|time| parse_time(time).is_none()) {
        return Err(Problem::invalid("to", TIME_RULE));
    }
    if let Some(word) = until {
        check_happening("until", word)?;
    }
    mode.map_or(Ok(()), |mode| clock_mode(mode, *rate).map(drop))
}

const ONE_RULE: &str = "must have exactly one of advance, to, until and mode";
const TIME_RULE: &str = "must be an RFC 3339 time like 2027-01-01T00:00:00Z, or a date like 2027-01-01, which begins at 00:00 UTC";

/// A time, or the beginning of a date in UTC.
fn parse_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(text).or_else(|| Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")))
}

/// The time to which the clock is moved.
fn time_of(sandbox: &Sandbox, text: &str) -> Result<Timestamp, Problem> {
    let time = parse_time(text).ok_or_else(|| Problem::invalid("to", TIME_RULE))?;
    let now = sandbox.clock().now();
    if time < now {
        let rule = format!("must not be earlier than the clock's time, {}", now.rfc3339());
        return Err(Problem::invalid("to", rule));
    }
    Ok(time)
}

/// The consequence of attempts of that name.
fn consequence(word: &str) -> Option<&'static str> {
    CONSEQUENCES.into_iter().find(|name| *name == word)
}

/// Moves the clock from attempt to attempt until something happens that is awaited. Returns what happened,
/// and whether this was among it.
pub(super) async fn until_happened(
    sandbox: &Sandbox,
    is_awaited: impl Fn(&Happened) -> bool,
) -> Result<(Passed, bool), MoveError> {
    let mut all = Passed::default();
    for _ in 0..ATTEMPTS_MAX {
        let passed = sandbox.advance(Destination::Next(DueKind::WebhookAttempt)).await?;
        let found = passed.happened.iter().any(&is_awaited);
        all.happened.extend(passed.happened);
        all.omitted += passed.omitted;
        if found {
            return Ok((all, true));
        }
    }
    Ok((all, false))
}

/// Checks the name of something that a move of the clock reports.
pub(super) fn check_happening(field: &str, name: &str) -> Result<(), Problem> {
    if consequence(name).is_some() || DueKind::all().any(|kind| kind.name() == name) {
        return Ok(());
    }
    let names: Vec<&str> = DueKind::all().map(DueKind::name).chain(CONSEQUENCES).collect();
    Err(Problem::invalid(field, format!("must be one of {}", names.join(", "))))
}

impl From<MoveError> for Problem {
    fn from(error: MoveError) -> Self {
        match error {
            MoveError::NothingAhead => {
                Self::unmet("until", "nothing of that kind is ahead: see GET /sandbox/v1/clock/next")
            }
            MoveError::Service(error) => error.into(),
        }
    }
}

// The signature is that of `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
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
