//! The checks of sockets.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::doctor::exchange::Exchange;
use crate::doctor::finding::{CheckOutcome, CheckResult, Finding, Misdeed};
use crate::doctor::rules;
use crate::doctor::stage::Stage;
use crate::failure::CommandFailure;

/// The close reasons after which a client goes on (`docs/close-reasons.md`).
const GO_ON: [&str; 8] = [
    "transport_closed",
    "ping_timeout",
    "slow_consumer",
    "write_timeout",
    "server_shutdown",
    "node_dead",
    "gap",
    "internal_error",
];
/// Those after which it does not go on by itself. A bot whose library hides the reason comes back once.
const STAY_AWAY: [&str; 3] = ["evicted", "revoked", "over_limit"];
/// Those that a mistake of the client causes.
const OWN_MISTAKES: [&str; 8] = [
    "connect_timeout",
    "protocol_error",
    "invalid_utf8",
    "message_too_big",
    "packet_flood",
    "namespace_flood",
    "upgrade_failed",
    "poll_conflict",
];
/// How long a bot may take to come back, where it need not.
const RETURN_WITHIN: Duration = Duration::from_secs(4);
/// How long the service is away when it starts again.
const AWAY: Duration = Duration::from_secs(2);
/// Longer than interval and timeout of the pings together: 25 and 60 seconds.
const PINGS_END: Duration = Duration::from_secs(95);
/// The same for fast pings.
const FAST_PINGS_END: Duration = Duration::from_secs(10);
/// How late SYSTEM `connected` is.
const LATE: &str = "3s";
/// How long a bot is watched that is back.
const WATCHED: Duration = Duration::from_secs(2);
/// The storm: events a second, and how long it lasts.
const STORM: (u32, &str) = (100, "5s");
const CAME_BACK: &str = "it connected with a new session URL, and subscribed again";

type Found = Result<Vec<Finding>, CommandFailure>;

/// The socket closes, with one reason after the other.
pub async fn closed(stage: &mut Stage) -> CheckResult {
    for reason in GO_ON {
        let (since, events) = begin(stage).await?;
        let frames = stage.frames.len();
        stage.close_sessions_as(reason).await?;
        let why = format!("the socket closed with the reason {reason}");
        let mut found = comes_back(stage, since, &events, stage.patience * 2, &why).await?;
        found.extend(rules::came_back_at_once(&stage.exchanges[since..], &stage.frames[frames..]));
        if !found.is_empty() {
            return Ok(CheckOutcome::Failed(found));
        }
    }
    Ok(CheckOutcome::Passed(format!("after each of {} reasons {CAME_BACK}", GO_ON.len())))
}

/// The socket closes, with one reason after the other after which a bot does not go on by itself.
pub async fn evicted(stage: &mut Stage) -> CheckResult {
    need_not_go_on(stage, &STAY_AWAY).await
}

/// The socket closes, with one reason after the other that a mistake of the client causes.
pub async fn own_mistake(stage: &mut Stage) -> CheckResult {
    need_not_go_on(stage, &OWN_MISTAKES).await
}

/// A bot may stay away, end, or come back: once for each reason, after a pause, and with every event.
async fn need_not_go_on(stage: &mut Stage, reasons: &[&str]) -> CheckResult {
    for reason in reasons {
        let (since, events) = begin(stage).await?;
        let frames = stage.frames.len();
        stage.close_sessions_as(reason).await?;
        let has_begun = |stage: &mut Stage| stage.exchanges[since..].iter().any(Exchange::is_return);
        if !stage.until(RETURN_WITHIN, has_begun).await? {
            return Ok(CheckOutcome::Passed(format!("after {reason} it stayed away")));
        }
        let why = format!("the socket closed with the reason {reason}");
        let mut found = comes_back(stage, since, &events, stage.patience * 2, &why).await?;
        let (calls, frames) = (&stage.exchanges[since..], &stage.frames[frames..]);
        found.extend(rules::came_back_at_once(calls, frames));
        found.extend(rules::connected_twice(calls));
        if !found.is_empty() {
            return Ok(CheckOutcome::Failed(found));
        }
    }
    Ok(CheckOutcome::Passed(format!(
        "after each of {} reasons it came back once, after a pause",
        reasons.len()
    )))
}

/// The connection is lost without a close frame.
pub async fn lost(stage: &mut Stage) -> CheckResult {
    let (since, events) = begin(stage).await?;
    stage.cut_connections(false).await?;
    let found = comes_back(stage, since, &events, stage.patience * 2, "the connection was lost").await?;
    Ok(CheckOutcome::of(found, CAME_BACK))
}

/// Nothing passes the connection any more.
pub async fn silent(stage: &mut Stage) -> CheckResult {
    let (since, events) = begin(stage).await?;
    stage.cut_connections(true).await?;
    let limit = pings_end(stage) + stage.patience;
    let found = comes_back(stage, since, &events, limit, "no ping was answered any more").await?;
    Ok(CheckOutcome::of(found, CAME_BACK))
}

/// A tunnel: nothing passes the network, in no direction, for longer than a ping and its answer may take.
/// Then both sides know that the connection is dead, so a bot that is not back afterwards has not noticed.
/// Its calls wait as well, so a bot that gives up within the tunnel does not come back either.
pub async fn subway(stage: &mut Stage) -> CheckResult {
    let (since, events) = begin(stage).await?;
    let rule = stage.fault(json!({ "profile": "tunnel" })).await?["id"].take();
    let pings = pings_end(stage);
    stage.watch(pings).await?;
    stage.remove_fault(rule.as_str().unwrap_or_default()).await?;
    let why = format!("nothing passed the network for {} seconds", pings.as_secs());
    let mut found = comes_back(stage, since, &events, pings + stage.patience * 2, &why).await?;
    if found.is_empty() {
        found.extend(missed(stage, &events).await?);
    }
    Ok(CheckOutcome::of(found, format!("after the tunnel {CAME_BACK}, and missed no event from then on")))
}

/// An event that does not reach a session of the bot.
async fn missed(stage: &Stage, events: &BTreeSet<String>) -> Result<Option<Finding>, CommandFailure> {
    let channel = &stage.channel_id;
    for (event, fields) in [
        ("chat", json!({ "channel": channel, "message": "after the tunnel" })),
        ("donation", json!({ "to": channel, "amount": 1000 })),
        ("subscription", json!({ "to": channel, "month": 2 })),
    ] {
        if !events.contains(event) {
            continue;
        }
        let delivered = stage.trigger(event, fields).await?["delivered"].as_u64();
        if delivered == Some(0) {
            let saw = format!("after it had come back, a {event} reached no session of it");
            return Ok(Some(Finding { misdeed: Misdeed::DidNotResubscribe, saw, records: Vec::new() }));
        }
    }
    Ok(None)
}

/// How long it takes until both sides know that a connection is dead.
fn pings_end(stage: &Stage) -> Duration {
    if stage.equipment.fast_pings { FAST_PINGS_END } else { PINGS_END }
}

/// The service stops, and starts again.
pub async fn restart(stage: &mut Stage) -> CheckResult {
    let (since, events) = begin(stage).await?;
    stage.restart(AWAY).await?;
    let found =
        comes_back(stage, since, &events, stage.patience * 2, "the service was started again").await?;
    Ok(CheckOutcome::of(found, CAME_BACK))
}

/// SYSTEM `connected` is late.
pub async fn late_connected(stage: &mut Stage) -> CheckResult {
    let (since, events) = begin(stage).await?;
    system_fault(stage, "SYSTEM/connected", json!({ "late": LATE })).await?;
    stage.close_sessions().await?;
    let why = "SYSTEM `connected` came late";
    let mut found = comes_back(stage, since, &events, stage.patience * 2, why).await?;
    found.extend(rules::subscribed_early(&stage.exchanges[since..], &stage.frames));
    Ok(CheckOutcome::of(found, "it waited for SYSTEM `connected` before it subscribed"))
}

/// Every SYSTEM message comes twice.
pub async fn doubled_system(stage: &mut Stage) -> CheckResult {
    let (since, events) = begin(stage).await?;
    system_fault(stage, "SYSTEM", json!({ "duplicate": true })).await?;
    stage.close_sessions().await?;
    let why = "SYSTEM `connected` came twice";
    let mut found = comes_back(stage, since, &events, stage.patience * 2, why).await?;
    stage.watch(WATCHED).await?;
    let calls = &stage.exchanges[since..];
    found.extend([rules::subscribed_twice(calls), rules::connected_twice(calls)].into_iter().flatten());
    Ok(CheckOutcome::of(found, "it handled a doubled message once"))
}

/// Many events come at once.
pub async fn storm(stage: &mut Stage) -> CheckResult {
    begin(stage).await?;
    let frames = stage.frames.len();
    let (rate, duration) = STORM;
    let fields = json!({ "channel": stage.channel_id, "rate": rate, "duration": duration });
    stage.trigger("storm", fields).await?;
    stage.watch(WATCHED).await?;
    let found = [rules::fell_behind(&stage.frames[frames..]), stage.ended()];
    Ok(CheckOutcome::of(found.into_iter().flatten(), "its session stayed open"))
}

async fn system_fault(stage: &Stage, event: &str, effect: Value) -> Result<(), CommandFailure> {
    let rule = json!({ "match": { "event": event, "clientId": stage.client_id }, "do": effect });
    stage.fault(rule).await.map(drop)
}

/// Where the calls of a check begin, and the events that the bot has subscribed to.
async fn begin(stage: &mut Stage) -> Result<(usize, BTreeSet<String>), CommandFailure> {
    stage.look().await?;
    Ok((stage.now(), stage.events()))
}

/// Waits for the bot, and finds what is wrong with how it came back.
async fn comes_back(
    stage: &mut Stage,
    since: usize,
    events: &BTreeSet<String>,
    limit: Duration,
    why: &str,
) -> Found {
    stage.until(limit, |stage| stage.is_back(since, events)).await?;
    stage.watch(Duration::from_millis(500)).await?;
    let again = rules::reconnected(events, &stage.exchanges[since..], why);
    let reused = rules::reused_session_url(&stage.exchanges);
    Ok([reused, again, stage.ended()].into_iter().flatten().collect())
}
