//! The check of webhook receivers.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::doctor::finding::{CheckOutcome, CheckResult, Finding, Misdeed};
use crate::doctor::stage::{Receiver, Stage, shown};
use crate::failure::CommandFailure;

/// A campaign of the seeded world, and a reward that can be claimed at once.
const CLAIM: (&str, &str) = ("first-voyage", "sail");
/// The viewer of the good message.
pub(super) const VIEWER: &str = "nuri";
/// Another viewer.
pub(super) const OTHER_VIEWER: &str = "mina";
/// What is tampered with in the other messages, and their viewers.
const TAMPERED: [(&str, &str, Misdeed, &str); 3] = [
    ("signature", "mina", Misdeed::AcceptedBadSignature, "with a wrong signature"),
    ("body", "dal", Misdeed::AcceptedBadSignature, "with another body than the signed one"),
    ("timestamp", "gureum", Misdeed::AcceptedOldTimestamp, "signed ten minutes ago"),
];
/// How long the first message and its first repetition take, which comes after five seconds.
const DELIVERED_MAX: Duration = Duration::from_secs(15);
/// How long an attempt and its record take.
const ATTEMPT_MAX: Duration = Duration::from_secs(15);
/// The pause between two looks at the message.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A good message is accepted. Those that rules have tampered with are refused.
pub async fn tampered(stage: &mut Stage) -> CheckResult {
    let Some(receiver) = stage.receiver.clone() else {
        return Ok(CheckOutcome::NotApplicable("it has no webhook receiver".to_owned()));
    };
    claim(stage, VIEWER).await?;
    let delivered = delivered(stage).await?;
    if let Some(outcome) = not_delivered(stage, &receiver, delivered) {
        return Ok(outcome);
    }
    let mut found = Vec::new();
    for (part, viewer, misdeed, what) in TAMPERED {
        let rule = json!({ "match": { "webhook": stage.client_id }, "times": 1, "do": { "tamper": part } });
        let rule = stage.fault(rule).await?["id"].take();
        claim(stage, viewer).await?;
        let record = stage.expect("delivery", json!({ "fault": rule }), ATTEMPT_MAX).await?;
        if let Some(status @ 200..=299) = record["status"].as_u64() {
            let saw = format!("it answered with {status} to a message {what} (--tamper {part})");
            found.push(Finding { misdeed, saw, records: vec![line(&record, status)] });
        }
    }
    Ok(CheckOutcome::of(found, "it accepted a good message, and refused three that were tampered with"))
}

/// The outcome of a good message that was not delivered.
pub(super) fn not_delivered(
    stage: &mut Stage,
    receiver: &Receiver,
    delivered: Delivered,
) -> Option<CheckOutcome> {
    match delivered {
        Delivered::Yes => None,
        Delivered::NotReached(why) => {
            let saw = format!("its receiver at {} gave no answer: {why}{}", receiver.url, end_of_bot(stage));
            Some(CheckOutcome::failed(Misdeed::NotListening, saw))
        }
        Delivered::Refused(status) => {
            let saw = format!("{} answered a good message with {status}{}", receiver.url, end_of_bot(stage));
            Some(CheckOutcome::failed(Misdeed::RefusedGoodMessage, saw))
        }
    }
}

/// The end of a bot that should listen, in words. Another program may have its port.
fn end_of_bot(stage: &mut Stage) -> String {
    stage.bot.ended().map(|status| format!("; the bot has ended with {}", shown(status))).unwrap_or_default()
}

/// A viewer claims the reward, so that the receiver gets a message.
pub(super) async fn claim(stage: &Stage, viewer: &str) -> Result<(), CommandFailure> {
    let (campaign, reward) = CLAIM;
    let fields = json!({ "campaign": campaign, "reward": reward, "viewer": viewer });
    stage.trigger("claim", fields).await.map(drop)
}

/// A line for a report.
fn line(record: &Value, status: u64) -> String {
    let text = |name: &str| record[name].as_str().unwrap_or_default();
    format!("record {}  {}  delivery {} {status}", record["mark"], text("at"), text("messageId"))
}

/// What became of the good message.
pub(super) enum Delivered {
    /// It was answered with a success.
    Yes,
    /// There was no answer, for this reason.
    NotReached(String),
    /// It was answered with this status.
    Refused(u64),
}

/// Waits until the message is delivered.
pub(super) async fn delivered(stage: &Stage) -> Result<Delivered, CommandFailure> {
    let list = format!("/platform/v1/applications/{}/webhook/deliveries", stage.client_id);
    let get = async |path: &str| stage.target.call(Method::GET, path, None, Duration::ZERO).await;
    for _ in 0..DELIVERED_MAX.as_millis() / LOOK_EVERY.as_millis() {
        let newest = get(&format!("{list}?size=1")).await?["data"][0].clone();
        if newest["state"] == "DELIVERED" {
            return Ok(Delivered::Yes);
        }
        stage.pause(LOOK_EVERY).await;
    }
    let id = get(&format!("{list}?size=1")).await?["data"][0]["messageId"].clone();
    let details = get(&format!("{list}/{}", id.as_str().unwrap_or_default())).await?;
    let attempt = &details["attempts"][0];
    Ok(match attempt["status"].as_u64() {
        Some(status) => Delivered::Refused(status),
        None => {
            Delivered::NotReached(attempt["failure"].as_str().unwrap_or("no attempt was made").to_owned())
        }
    })
}
