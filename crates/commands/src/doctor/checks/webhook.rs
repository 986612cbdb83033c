//! The check of webhook receivers.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::doctor::finding::{Finding, Judged, Judgement, Misdeed};
use crate::doctor::forged::{Forger, Forgery};
use crate::doctor::stage::Stage;
use crate::failure::CommandFailure;

/// A campaign of the seeded world, and a reward that can be claimed at once.
const CLAIM: (&str, &str, &str) = ("first-voyage", "sail", "nuri");
/// How long the first message and its first repetition take, which comes after five seconds.
const DELIVERED_MAX: Duration = Duration::from_secs(15);
/// The pause between two looks at the message.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A good message is accepted, and forged ones are refused.
pub async fn forged(stage: &mut Stage) -> Judged {
    let Some(receiver) = stage.receiver.clone() else {
        return Ok(Judgement::NotApplicable("it has no webhook receiver".to_owned()));
    };
    let (campaign, reward, viewer) = CLAIM;
    let fields = json!({ "campaign": campaign, "reward": reward, "viewer": viewer });
    let claim = stage.trigger("claim", fields).await?;
    match delivered(stage).await? {
        Delivered::Yes => {}
        Delivered::NotReached(why) => {
            let saw = format!("its receiver at {} gave no answer: {why}", receiver.url);
            return Ok(Judgement::failed(Misdeed::NotListening, saw));
        }
        Delivered::Refused(status) => {
            let saw = format!("it answered a good message with {status}");
            return Ok(Judgement::failed(Misdeed::RefusedGoodMessage, saw));
        }
    }
    let forger = Forger::new(&receiver.url, &receiver.secret)?;
    let mut found = Vec::new();
    for (forgery, misdeed, what) in [
        (Forgery::Signature, Misdeed::AcceptedBadSignature, "signed with another secret"),
        (Forgery::Body, Misdeed::AcceptedBadSignature, "with another body than the signed one"),
        (Forgery::Timestamp, Misdeed::AcceptedOldTimestamp, "signed ten minutes ago"),
    ] {
        if let Some(status @ 200..=299) = forger.send(forgery, &claim_data(&claim)).await {
            let saw = format!("it answered with {status} to a message {what}");
            found.push(Finding { misdeed, saw, records: Vec::new() });
        }
    }
    Ok(Judgement::of(found, "it accepted a good message, and refused three forged ones"))
}

/// What became of the good message.
enum Delivered {
    /// It was answered with a success.
    Yes,
    /// There was no answer, for this reason.
    NotReached(String),
    /// It was answered with this status.
    Refused(u64),
}

/// Waits until the message is delivered.
async fn delivered(stage: &Stage) -> Result<Delivered, CommandFailure> {
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

/// The data of a message about another claim.
fn claim_data(claim: &Value) -> Value {
    let (campaign, reward, _) = CLAIM;
    json!({
        "claimId": "forged", "campaignId": campaign, "rewardId": reward, "channelId": claim["channelId"],
        "fulfillmentState": "CLAIMED",
    })
}
