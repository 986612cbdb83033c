//! What happens to channels: followers, restrictions, lives, watched minutes and claims.

use domain::live::CategoryChoice;
use domain::{CampaignId, RewardId};
use serde_json::{Value, json};
use service::drops::RewardRequest;
use service::lives::LiveReport;
use service::watching::{Viewers, WatchingReport};

use super::input::{Input, Outcome, outcome};
use crate::http::answer::Problem;

/// Somebody follows a channel.
pub(super) async fn follow(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let follower = input.viewer("from", &channel).await?;
    let happened = json!({ "channelId": channel, "followerChannelId": follower, "delivered": 0 });
    input.service.follow(channel, follower, None).await?;
    Ok(outcome(happened))
}

/// Somebody stops to follow a channel.
pub(super) async fn unfollow(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let follower = input.viewer("from", &channel).await?;
    let happened = json!({ "channelId": channel, "followerChannelId": follower, "delivered": 0 });
    input.service.unfollow(channel, follower).await?;
    Ok(outcome(happened))
}

/// A channel restricts another one in its chat.
pub(super) async fn restrict(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let target = input.viewer("target", &channel).await?;
    let happened = json!({ "channelId": channel, "targetChannelId": target, "delivered": 0 });
    input.service.restrict(&channel, target).await?;
    Ok(outcome(happened))
}

/// A channel goes on air, or changes its live.
pub(super) async fn live(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let category = input.text("category")?;
    let report = LiveReport {
        title: input.text("title")?,
        thumbnail_image_url: None,
        concurrent_user_count: input.integer("viewers")?.unwrap_or_default(),
        adult: false,
        category: CategoryChoice::parse(category.as_deref()).map_err(service::Error::from)?,
        tags: None,
    };
    let viewers = report.concurrent_user_count;
    input.service.put_live(&channel, report).await?;
    Ok(outcome(json!({ "channelId": channel, "concurrentUserCount": viewers, "delivered": 0 })))
}

/// A channel goes off air.
pub(super) async fn live_end(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    input.service.end_live(&channel).await?;
    Ok(outcome(json!({ "channelId": channel, "delivered": 0 })))
}

/// A viewer watches a live.
pub(super) async fn watch(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let viewer = input.viewer("viewer", &channel).await?;
    let minutes = input.integer("minutes")?.unwrap_or(1);
    let viewers = Viewers::One(viewer.clone());
    let report = WatchingReport { channel_id: channel.clone(), viewers, minutes };
    let watching = input.service.report_watching(report, None).await?;
    let counted = watching
        .watched
        .iter()
        .map(|watched| json!({ "campaignId": watched.campaign_id, "minutes": watched.minutes }));
    Ok(outcome(json!({
        "channelId": channel,
        "viewerChannelId": viewer,
        "onAir": watching.on_air,
        "campaigns": counted.collect::<Vec<Value>>(),
        "delivered": 0,
    })))
}

/// A viewer claims a reward.
pub(super) async fn claim(input: Input) -> Result<Outcome, Problem> {
    let viewer = input.viewer("viewer", &input.streamer("channel").await?).await?;
    let campaign = input.required("campaign")?;
    let campaign_id = CampaignId::parse("campaign", &campaign).map_err(service::Error::from)?;
    let reward_id = match input.text("reward")? {
        Some(reward) => RewardId::parse("reward", &reward).map_err(service::Error::from)?,
        None => {
            let progress = input.service.drops_progress(campaign_id.clone(), viewer.clone()).await?;
            let (minutes, mut rewards) = (progress.minutes, progress.rewards.into_iter());
            let claimable =
                rewards.find(|reward| reward.claim_id.is_none() && reward.reward.watch_minutes <= minutes);
            let rule = "the viewer can claim no reward now: let the viewer watch with the trigger watch";
            claimable.ok_or_else(|| Problem::invalid("reward", rule))?.reward.reward_id
        }
    };
    let request = RewardRequest { campaign_id, reward_id, channel_id: viewer, claim_id: None };
    let claim = input.service.claim_reward(request, None).await?;
    Ok(outcome(json!({
        "claimId": claim.claim_id,
        "campaignId": claim.campaign_id,
        "rewardId": claim.reward_id,
        "channelId": claim.channel_id,
        "delivered": 0,
    })))
}
