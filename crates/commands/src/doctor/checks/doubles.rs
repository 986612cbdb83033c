//! The checks of messages that come twice.

use std::time::Duration;

use serde_json::json;

use super::webhook::{self, Delivered};
use crate::doctor::exchange::Exchange;
use crate::doctor::finding::{CheckOutcome, CheckResult};
use crate::doctor::rules;
use crate::doctor::stage::Stage;
use crate::failure::CommandFailure;

/// A chat message that many bots answer.
const GREETING: &str = "!hello";
/// How long a bot may take for its calls after a message.
const HANDLED_WITHIN: Duration = Duration::from_secs(4);
/// The path of the updates of claims.
const CLAIMS: &str = "/open/v1/drops/reward-claims";

/// A chat message comes twice. The bot makes as many calls as after one.
pub async fn event(stage: &mut Stage) -> CheckResult {
    let once = calls_after_greeting(stage).await?;
    if once == 0 {
        return Ok(CheckOutcome::NotApplicable(format!(
            "it makes no call after the chat message {GREETING}"
        )));
    }
    let rule = json!({ "match": { "clientId": stage.client_id, "event": "CHAT" }, "times": 1, "do": { "duplicate": true } });
    stage.fault(rule).await?;
    let since = stage.now();
    let twice = calls_after_greeting(stage).await?;
    let end = stage.ended();
    let is_call = |call: &Exchange| !call.is_transport();
    let found = rules::handled_twice(&stage.exchanges[since..], "a chat message", [once, twice], is_call);
    Ok(CheckOutcome::of(found.into_iter().chain(end), "it answered a message that came twice once"))
}

/// Number of calls after a chat message that many bots answer.
async fn calls_after_greeting(stage: &mut Stage) -> Result<usize, CommandFailure> {
    stage.look().await?;
    let since = stage.now();
    let fields = json!({ "channel": stage.channel_id, "message": GREETING });
    stage.trigger("chat", fields).await?;
    stage.watch(HANDLED_WITHIN).await?;
    Ok(stage.exchanges[since..].iter().filter(|call| !call.is_transport()).count())
}

/// A webhook message comes twice, with one id. The bot accepts both, and handles the claim once.
pub async fn claim(stage: &mut Stage) -> CheckResult {
    let Some(receiver) = stage.receiver.clone() else {
        return Ok(CheckOutcome::NotApplicable("it has no webhook receiver".to_owned()));
    };
    let (once, delivered) = updates_after_claim(stage, webhook::VIEWER).await?;
    if let Some(outcome) = webhook::not_delivered(stage, &receiver, delivered) {
        return Ok(outcome);
    }
    let rule = json!({ "match": { "webhook": stage.client_id }, "times": 1, "do": { "duplicate": true } });
    stage.fault(rule).await?;
    let since = stage.now();
    let (twice, delivered) = updates_after_claim(stage, webhook::OTHER_VIEWER).await?;
    if let Some(outcome) = webhook::not_delivered(stage, &receiver, delivered) {
        return Ok(outcome);
    }
    if once == 0 {
        let did = "it accepted both copies of a message; it updates no claim, so nothing else shows";
        return Ok(CheckOutcome::Passed(did.to_owned()));
    }
    let found =
        rules::handled_twice(&stage.exchanges[since..], "a webhook message", [once, twice], is_update);
    Ok(CheckOutcome::of(found, "it accepted both copies of a message, and updated the claim once"))
}

/// Number of updates of claims after a viewer's claim, and what became of its message.
async fn updates_after_claim(stage: &mut Stage, viewer: &str) -> Result<(usize, Delivered), CommandFailure> {
    stage.look().await?;
    let since = stage.now();
    webhook::claim(stage, viewer).await?;
    let delivered = webhook::delivered(stage).await?;
    stage.watch(HANDLED_WITHIN).await?;
    Ok((stage.exchanges[since..].iter().filter(|call| is_update(call)).count(), delivered))
}

fn is_update(call: &Exchange) -> bool {
    call.path == CLAIMS && call.call.starts_with("PUT ")
}
