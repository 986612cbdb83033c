//! What the tests of a sandbox's webhooks share.

use serde_json::json;
use testkit::{Receiver, Request};

use crate::cli::process::Sandbox;

/// Registers a receiver as the webhook of `drops`. Returns its secret.
pub async fn register(sandbox: &Sandbox, receiver: &Receiver) -> String {
    let webhook = Request::put("/platform/v1/applications/drops/webhook");
    let url = receiver.url("/hook?key=of-the-receiver");
    let webhook = sandbox.api.operator(webhook.json(&json!({ "url": url }))).await.content();
    webhook["secret"].as_str().expect("a secret").to_owned()
}

/// Puts a campaign with these numbers of rewards, without watching.
pub async fn put_campaign(sandbox: &Sandbox, campaign: &str, rewards: usize) {
    let drops = sandbox.api.operator(Request::get("/platform/v1/applications/drops")).await.content();
    let reward = |number| json!({ "rewardId": format!("reward-{number}"), "rewardName": "lamp" });
    let new = json!({
        "campaignName": campaign, "organizationId": drops["organizationId"], "categoryId": "star-voyage",
        "rewards": (0..rewards).map(reward).collect::<Vec<_>>(),
    });
    sandbox.api.put_campaign(campaign, &new).await.content();
}

/// Claims a reward of a campaign of its own. Returns the id of the claim.
pub async fn claim(sandbox: &Sandbox, campaign: &str) -> String {
    put_campaign(sandbox, campaign, 1).await;
    claim_of(sandbox, campaign, 0, 0).await
}

/// The viewer of this number claims the reward of this number.
pub async fn claim_of(sandbox: &Sandbox, campaign: &str, reward: usize, viewer: usize) -> String {
    let (person, _) = sandbox.user(viewer, "demo");
    let reward = format!("reward-{reward}");
    let claim = json!({ "campaignId": campaign, "rewardId": reward, "channelId": person.channel_id });
    let claimed = sandbox.api.claim(&claim).await.content();
    claimed["claimId"].as_str().expect("an id").to_owned()
}
