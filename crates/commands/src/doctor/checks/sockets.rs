//! The checks of sockets.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::doctor::finding::{Finding, Judged, Judgement};
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
/// How long the service is away when it starts again.
const AWAY: Duration = Duration::from_secs(2);
/// Longer than interval and timeout of the pings together: 25 and 60 seconds.
const PINGS_END: Duration = Duration::from_secs(95);
/// How late SYSTEM `connected` is.
const LATE: &str = "3s";
/// How long a bot is watched that is back.
const WATCHED: Duration = Duration::from_secs(2);
/// The storm: events a second, and how long it lasts.
const STORM: (u32, &str) = (100, "5s");
const CAME_BACK: &str = "it connected with a new session URL, and subscribed again";

type Found = Result<Vec<Finding>, CommandFailure>;

/// The socket closes, with one reason after the other.
pub async fn closed(stage: &mut Stage) -> Judged {
    for reason in GO_ON {
        let (since, events) = begin(stage).await?;
        stage.close_sessions_as(reason).await?;
        let why = format!("the socket closed with the reason {reason}");
        let found = comes_back(stage, since, &events, stage.patience * 2, &why).await?;
        if !found.is_empty() {
            return Ok(Judgement::Failed(found));
        }
    }
    Ok(Judgement::Passed(format!("after each of {} reasons {CAME_BACK}", GO_ON.len())))
}

/// The connection is lost without a goodbye.
pub async fn lost(stage: &mut Stage) -> Judged {
    let (since, events) = begin(stage).await?;
    stage.cut_connections(false).await?;
    let found = comes_back(stage, since, &events, stage.patience * 2, "the connection was lost").await?;
    Ok(Judgement::of(found, CAME_BACK))
}

/// Nothing passes the connection any more.
pub async fn silent(stage: &mut Stage) -> Judged {
    let (since, events) = begin(stage).await?;
    stage.cut_connections(true).await?;
    let limit = PINGS_END + stage.patience;
    let found = comes_back(stage, since, &events, limit, "no ping was answered any more").await?;
    Ok(Judgement::of(found, CAME_BACK))
}

/// The service stops, and starts again.
pub async fn restart(stage: &mut Stage) -> Judged {
    let (since, events) = begin(stage).await?;
    stage.restart(AWAY).await?;
    let found =
        comes_back(stage, since, &events, stage.patience * 2, "the service was started again").await?;
    Ok(Judgement::of(found, CAME_BACK))
}

/// SYSTEM `connected` is late.
pub async fn late_connected(stage: &mut Stage) -> Judged {
    let (since, events) = begin(stage).await?;
    system_fault(stage, "SYSTEM/connected", json!({ "late": LATE })).await?;
    stage.close_sessions().await?;
    let why = "SYSTEM `connected` came late";
    let mut found = comes_back(stage, since, &events, stage.patience * 2, why).await?;
    found.extend(rules::subscribed_early(&stage.exchanges[since..], &stage.frames));
    Ok(Judgement::of(found, "it waited for SYSTEM `connected` before it subscribed"))
}

/// Every SYSTEM message comes twice.
pub async fn doubled_system(stage: &mut Stage) -> Judged {
    let (since, events) = begin(stage).await?;
    system_fault(stage, "SYSTEM", json!({ "duplicate": true })).await?;
    stage.close_sessions().await?;
    let why = "SYSTEM `connected` came twice";
    let mut found = comes_back(stage, since, &events, stage.patience * 2, why).await?;
    stage.watch(WATCHED).await?;
    let calls = &stage.exchanges[since..];
    found.extend([rules::subscribed_twice(calls), rules::connected_twice(calls)].into_iter().flatten());
    Ok(Judgement::of(found, "it handled a doubled message once"))
}

/// Many events come at once.
pub async fn storm(stage: &mut Stage) -> Judged {
    begin(stage).await?;
    let frames = stage.frames.len();
    let (rate, duration) = STORM;
    let fields = json!({ "channel": stage.channel_id, "rate": rate, "duration": duration });
    stage.trigger("storm", fields).await?;
    stage.watch(WATCHED).await?;
    let found = [rules::fell_behind(&stage.frames[frames..]), stage.ended()];
    Ok(Judgement::of(found.into_iter().flatten(), "its session stayed open"))
}

async fn system_fault(stage: &Stage, event: &str, effect: Value) -> Result<(), CommandFailure> {
    stage.fault(json!({ "match": { "event": event, "clientId": stage.client_id }, "do": effect })).await
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
