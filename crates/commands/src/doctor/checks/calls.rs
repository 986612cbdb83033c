//! The checks of calls: tokens, consents, limits and failures.

use std::time::Duration;

use serde_json::json;

use crate::doctor::exchange::{Exchange, SUBSCRIBE, TOKEN_PATH};
use crate::doctor::finding::{CheckOutcome, CheckResult, Finding, Misdeed};
use crate::doctor::rules;
use crate::doctor::stage::Stage;

/// Longer than an access token lives.
const ACCESS_TOKEN_ENDS: &str = "25h";
/// How long the calls are under way during which the access token expires.
const UNDER_WAY: &str = "2s";
/// A bot subscribes within this time after SYSTEM `connected`.
const HAS_CALLED: Duration = Duration::from_secs(1);
/// How long a bot is watched that should stop.
const WATCHED: Duration = Duration::from_secs(10);
/// Maximum number of refused calls of a bot that should stop.
const REFUSED_MAX_AT_END: usize = 5;
/// Maximum number of refused calls of a bot that should go on.
const REFUSED_MAX: usize = 10;
/// How often a refresh token may be sent when its answer was lost.
const LOST_REFRESH_USES_MAX: usize = 3;
/// `Retry-After` of the check.
const RETRY_AFTER: Duration = Duration::from_secs(3);
/// Number of failures of the check.
const FAILURES: usize = 3;
/// The events, and the scope of each.
const SCOPES: [(&str, &str); 3] =
    [("chat", "채팅 메시지 조회"), ("donation", "후원 조회"), ("subscription", "구독 조회")];

/// Nothing goes wrong.
pub async fn clean_run(stage: &mut Stage) -> CheckResult {
    let channel = stage.channel_id.clone();
    stage.trigger("chat", json!({ "channel": channel, "message": "안녕하세요" })).await?;
    stage.trigger("donation", json!({ "to": channel, "amount": 1000, "message": "후원" })).await?;
    stage.trigger("subscription", json!({ "to": channel, "month": 2 })).await?;
    stage.watch(Duration::from_secs(2)).await?;
    let calls = &stage.exchanges;
    let found =
        [rules::refused(calls), rules::reused_session_url(calls), rules::reused_refresh_token(calls, 1)];
    let events: Vec<String> = stage.events().into_iter().collect();
    let number = calls.iter().filter(|exchange| !exchange.is_transport()).count();
    let did = match events.is_empty() {
        true => format!("it made {number} calls"),
        false => format!("it made {number} calls, and subscribed to {}", events.join(", ")),
    };
    let end = stage.ended();
    Ok(CheckOutcome::of(found.into_iter().flatten().chain(end), did))
}

/// The access token expires.
pub async fn token_expiry(stage: &mut Stage) -> CheckResult {
    let since = stage.now();
    stage.post("/sandbox/v1/clock", json!({ "advance": ACCESS_TOKEN_ENDS })).await?;
    stage.provoke().await?;
    let refused = |exchange: &Exchange| exchange.status == Some(401);
    if !stage.until(stage.patience, |stage| stage.exchanges[since..].iter().any(refused)).await? {
        return Ok(not_called("its access token had expired"));
    }
    stage.until(stage.patience, |stage| rules::refreshed(&stage.exchanges[since..]).is_none()).await?;
    stage.watch(Duration::from_secs(1)).await?;
    let calls = &stage.exchanges[since..];
    let found =
        [rules::refreshed(calls), rules::reused_refresh_token(calls, 1), rules::hammered(calls, REFUSED_MAX)];
    Ok(CheckOutcome::of(
        found.into_iter().flatten(),
        "it refreshed its tokens, and went on with the new ones",
    ))
}

/// The access token expires while the bot subscribes, so several calls are refused at the same time.
pub async fn parallel_expiry(stage: &mut Stage) -> CheckResult {
    stage.look().await?;
    let (since, events) = (stage.now(), stage.events());
    let rule = json!({
        "match": { "clientId": stage.client_id, "path": format!("{SUBSCRIBE}*") },
        "times": events.len(),
        "do": { "delay": UNDER_WAY },
    });
    stage.fault(rule).await?;
    let frames = stage.frames.len();
    stage.close_sessions().await?;
    let connected =
        |stage: &mut Stage| stage.frames[frames..].iter().any(|frame| frame.event == "SYSTEM/connected");
    if !stage.until(stage.patience * 2, connected).await? {
        let saw = "the socket closed, and it did not connect again";
        return Ok(CheckOutcome::failed(Misdeed::DidNotReconnect, saw));
    }
    // The calls are under way, and see the token expired when they go on.
    stage.pause(HAS_CALLED).await;
    let fields = json!({ "what": "access-token", "client": stage.client_id, "user": stage.channel_id });
    stage.trigger("expire", fields).await?;
    let back = |stage: &mut Stage| stage.is_back(since, &events) || stage.bot.ended().is_some();
    stage.until(stage.patience * 2, back).await?;
    stage.watch(Duration::from_secs(1)).await?;
    let end = stage.ended();
    let calls = &stage.exchanges[since..];
    let refused = calls.iter().filter(|call| call.status == Some(401) && call.subscribes().is_some()).count();
    if refused < 2 && end.is_none() {
        return Ok(CheckOutcome::NotApplicable("it makes one call at a time".to_owned()));
    }
    let found = [
        rules::refreshed(calls),
        rules::reused_refresh_token(calls, 1),
        rules::hammered(calls, REFUSED_MAX),
        rules::did_not_resubscribe(&events, calls),
        end,
    ];
    let did = format!("{refused} calls were refused at the same time, and it refreshed its tokens once");
    Ok(CheckOutcome::of(found.into_iter().flatten(), did))
}

/// The answer with the new tokens is lost.
pub async fn refresh_lost(stage: &mut Stage) -> CheckResult {
    let since = stage.now();
    stage.fault(json!({ "match": { "path": TOKEN_PATH }, "times": 1, "do": { "cut": "after" } })).await?;
    stage.post("/sandbox/v1/clock", json!({ "advance": ACCESS_TOKEN_ENDS })).await?;
    stage.provoke().await?;
    let refreshes = |stage: &Stage| {
        stage.exchanges[since..].iter().filter(|exchange| exchange.refresh_token().is_some()).count()
    };
    if !stage.until(stage.patience, |stage| refreshes(stage) > 0).await? {
        return Ok(CheckOutcome::NotApplicable("it did not refresh its tokens".to_owned()));
    }
    stage.watch(WATCHED).await?;
    let calls = &stage.exchanges[since..];
    let found = [
        rules::reused_refresh_token(calls, LOST_REFRESH_USES_MAX),
        rules::hammered(calls, REFUSED_MAX_AT_END),
    ];
    let did = format!("it sent the refresh token {} times, and stopped", refreshes(stage));
    Ok(CheckOutcome::of(found.into_iter().flatten(), did))
}

/// The user withdraws the consent.
pub async fn consent_withdrawn(stage: &mut Stage) -> CheckResult {
    stage.look().await?;
    let (since, printed) = (stage.now(), stage.bot.printed());
    let fields = json!({ "client": stage.client_id, "user": stage.channel_id });
    stage.trigger("revoke-consent", fields).await?;
    stage.provoke().await?;
    stage.watch(WATCHED).await?;
    let calls = &stage.exchanges[since..];
    let is_silent = calls.iter().all(Exchange::is_transport);
    let has_told = stage.bot.ended().is_some() || stage.bot.printed() > printed;
    match (is_silent && !has_told, stage.events().is_empty()) {
        (false, _) => Ok(stopped(calls)),
        // Without a session a bot notices the end by its next call.
        (true, true) => Ok(not_called("the consent was withdrawn")),
        (true, false) => {
            let saw = "its session had ended, and it made no call, did not end, and printed nothing";
            Ok(CheckOutcome::failed(Misdeed::DidNotNotice, saw))
        }
    }
}

/// The application loses the scope of an event.
pub async fn scope_lost(stage: &mut Stage) -> CheckResult {
    stage.look().await?;
    let (since, mut events) = (stage.now(), stage.events());
    let Some((event, scope)) = SCOPES.iter().find(|(event, _)| events.contains(*event)) else {
        return Ok(CheckOutcome::NotApplicable("it is subscribed to no event that has a scope".to_owned()));
    };
    stage.trigger("remove-scope", json!({ "client": stage.client_id, "scope": scope })).await?;
    stage.close_sessions().await?;
    stage.watch(WATCHED).await?;
    events.remove(*event);
    let back = |stage: &mut Stage| stage.is_back(since, &events) || stage.bot.ended().is_some();
    stage.until(stage.patience, back).await?;
    let CheckOutcome::Passed(did) = stopped(&stage.exchanges[since..]) else {
        return Ok(stopped(&stage.exchanges[since..]));
    };
    let end = stage.ended();
    let calls = &stage.exchanges[since..];
    let is_refused = calls.iter().any(|exchange| exchange.status == Some(403));
    let why = format!("the scope of {event} was lost, and the socket closed");
    // Without the scope a bot may go on or end. It has to find out first.
    let found = match end {
        Some(_) if is_refused => None,
        Some(end) => Some(end),
        None => rules::reconnected(&events, calls, &why),
    };
    Ok(CheckOutcome::of(found, format!("without the scope of {event} {did}")))
}

/// The outcome of a bot that should stop.
fn stopped(calls: &[Exchange]) -> CheckOutcome {
    let found = [
        rules::hammered(calls, REFUSED_MAX_AT_END),
        rules::reused_refresh_token(calls, LOST_REFRESH_USES_MAX),
    ];
    let refused = calls.iter().filter(|exchange| !exchange.is_success() && !exchange.is_transport()).count();
    CheckOutcome::of(
        found.into_iter().flatten(),
        format!("it made {refused} refused calls within 10 seconds"),
    )
}

/// A call is answered with 429 and `Retry-After`.
pub async fn rate_limit(stage: &mut Stage) -> CheckResult {
    let since = stage.now();
    let effect = json!({ "status": 429, "retryAfter": RETRY_AFTER.as_secs() });
    stage.fault(json!({ "match": { "path": "/open/v1/*" }, "times": 1, "do": effect })).await?;
    stage.provoke().await?;
    let refused = |exchange: &Exchange| exchange.status == Some(429);
    if !stage.until(stage.patience, |stage| stage.exchanges[since..].iter().any(refused)).await? {
        return Ok(not_called("its session had ended"));
    }
    let went_on = |stage: &Stage| went_on(&stage.exchanges[since..], 429);
    stage.until(stage.patience + RETRY_AFTER, |stage| went_on(stage)).await?;
    let gave_up = gave_up(went_on(stage), "it made no further call after an answer with 429");
    let early = rules::ignored_retry_after(&stage.exchanges[since..], 429, RETRY_AFTER);
    let end = stage.ended();
    Ok(CheckOutcome::of([early, gave_up, end].into_iter().flatten(), "it waited, and went on"))
}

/// Calls are answered with 500.
pub async fn server_errors(stage: &mut Stage) -> CheckResult {
    let since = stage.now();
    let rule = json!({ "match": { "path": "/open/v1/*" }, "times": FAILURES, "do": { "status": 500 } });
    stage.fault(rule).await?;
    stage.provoke().await?;
    let failed = |exchange: &Exchange| exchange.status == Some(500);
    if !stage.until(stage.patience, |stage| stage.exchanges[since..].iter().any(failed)).await? {
        return Ok(not_called("its session had ended"));
    }
    let went_on = |stage: &Stage| went_on(&stage.exchanges[since..], 500);
    stage.until(stage.patience * 2, |stage| went_on(stage)).await?;
    let gave_up = gave_up(went_on(stage), "it made no further call after an answer with 500");
    let eager = rules::did_not_back_off(&stage.exchanges[since..]);
    let end = stage.ended();
    Ok(CheckOutcome::of([eager, gave_up, end].into_iter().flatten(), "it repeated the call after pauses"))
}

/// Whether a call succeeded after the last one with this status.
fn went_on(calls: &[Exchange], status: u16) -> bool {
    let last = calls.iter().rposition(|exchange| exchange.status == Some(status));
    let after = last.map_or(&[][..], |last| &calls[last..]);
    after.iter().any(|exchange| exchange.path.starts_with("/open/") && exchange.is_success())
}

fn gave_up(went_on: bool, saw: &str) -> Option<Finding> {
    let finding = || Finding { misdeed: Misdeed::GaveUp, saw: saw.to_owned(), records: Vec::new() };
    (!went_on).then(finding)
}

fn not_called(after: &str) -> CheckOutcome {
    CheckOutcome::NotApplicable(format!("it made no call after {after}"))
}
