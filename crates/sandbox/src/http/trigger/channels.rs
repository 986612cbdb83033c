//! What happens to channels: followers, restrictions, lives, watched minutes and claims.

use domain::chat::chat_channel_id;
use domain::chat_settings::{ChatSettingsChange, Condition, Group};
use domain::live::CategoryChoice;
use domain::{CampaignId, ChannelId, ClaimId, Invalid, RewardId};
use serde_json::{Value, json};
use service::drops::RewardRequest;
use service::lives::LiveReport;
use service::restrictions::ChatTarget;
use service::watching::{Viewers, WatchingReport};

use super::input::{Input, Outcome, outcome, spelled};
use crate::http::answer::Problem;

const NOTHING_CLAIMABLE: &str =
    "the viewer can claim no reward now: let the viewer watch with the trigger watch, or name another viewer";

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
    let temporary = input.flag("temporary");
    let happened = json!({
        "channelId": channel, "targetChannelId": target, "temporary": temporary, "delivered": 0,
    });
    if temporary {
        let target = ChatTarget { target, chat_channel_id: chat_channel_id(&channel) };
        input.service.restrict_temporarily(&channel, target).await?;
    } else {
        input.service.restrict(&channel, target).await?;
    }
    Ok(outcome(happened))
}

/// A channel changes the settings of its chat.
pub(super) async fn chat_settings(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let names = [
        ("chatAvailableCondition", "condition"),
        ("chatAvailableGroup", "group"),
        ("minFollowerMinute", "followerMinutes"),
        ("chatSlowModeSec", "slowMode"),
    ];
    let wrong = |error: Invalid| spelled(error.into(), &names);
    let change = ChatSettingsChange {
        condition: input.text("condition").map(|name| Condition::parse(&name)).transpose().map_err(wrong)?,
        group: input.text("group").map(|name| Group::parse(&name)).transpose().map_err(wrong)?,
        min_follower_minute: input.integer("followerMinutes"),
        allow_subscriber_in_follower_mode: input.given_flag("subscribersExempt"),
        slow_mode_sec: input.integer("slowMode"),
        emoji_mode: input.given_flag("emojiMode"),
    };
    input.service.change_chat_settings(&channel, change).await.map_err(|error| spelled(error, &names))?;
    let settings = input.service.chat_settings(&channel).await?;
    Ok(outcome(json!({
        "channelId": channel,
        "condition": settings.condition.name(),
        "group": settings.group.name(),
        "followerMinutes": settings.min_follower_minute,
        "subscribersExempt": settings.allow_subscriber_in_follower_mode,
        "slowMode": settings.slow_mode_sec,
        "emojiMode": settings.emoji_mode,
    })))
}

/// A channel goes on air, or changes its live.
pub(super) async fn live(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let names = [
        ("liveTitle", "title"),
        ("liveThumbnailImageUrl", "thumbnail"),
        ("concurrentUserCount", "viewers"),
        ("categoryId", "category"),
    ];
    let category = input.text("category");
    let category =
        CategoryChoice::parse(category.as_deref()).map_err(|error| spelled(error.into(), &names))?;
    let report = LiveReport {
        title: input.text("title"),
        thumbnail_image_url: input.text("thumbnail"),
        concurrent_user_count: input.integer("viewers").unwrap_or_default(),
        adult: input.flag("adult"),
        category,
        tags: input.list("tags"),
    };
    let viewers = report.concurrent_user_count;
    input.service.put_live(&channel, report).await.map_err(|error| spelled(error, &names))?;
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
    let minutes = input.integer("minutes").unwrap_or(1);
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
pub(super) async fn claim(input: &Input) -> Result<Outcome, Problem> {
    let viewer = input.viewer("viewer", &input.streamer("channel").await?).await?;
    let (campaign_id, reward_id) = reward(input, &viewer).await?;
    let claim_id = input.text("claim").map(|id| ClaimId::parse("claim", &id)).transpose();
    let claim_id = claim_id.map_err(|error| spelled(error.into(), &[]))?;
    let request = RewardRequest { campaign_id, reward_id, channel_id: viewer, claim_id };
    let names =
        [("campaignId", "campaign"), ("rewardId", "reward"), ("channelId", "viewer"), ("claimId", "claim")];
    let claimed = input.service.claim_reward(request, None).await;
    let claim = claimed.map_err(|error| spelled(error, &names))?;
    Ok(outcome(json!({
        "eventId": claim.claim_id,
        "claimId": claim.claim_id,
        "campaignId": claim.campaign_id,
        "rewardId": claim.reward_id,
        "channelId": claim.channel_id,
        "delivered": 0,
    })))
}

/// The campaign and the reward that a viewer claims; without the fields the first that the viewer can claim.
async fn reward(input: &Input, viewer: &ChannelId) -> Result<(CampaignId, RewardId), Problem> {
    let invalid = |error: domain::Invalid| spelled(error.into(), &[]);
    let campaign = input.text("campaign").map(|id| CampaignId::parse("campaign", &id)).transpose();
    let reward = input.text("reward").map(|id| RewardId::parse("reward", &id)).transpose();
    match (campaign.map_err(invalid)?, reward.map_err(invalid)?) {
        (Some(campaign), Some(reward)) => Ok((campaign, reward)),
        (None, Some(_)) => Err(Problem::invalid("campaign", "must be given with a reward")),
        (Some(campaign), None) => {
            let progress = input.service.drops_progress(campaign.clone(), viewer.clone()).await?;
            let (minutes, mut rewards) = (progress.minutes, progress.rewards.into_iter());
            let claimable =
                rewards.find(|reward| reward.claim_id.is_none() && reward.reward.watch_minutes <= minutes);
            let claimable = claimable.ok_or_else(|| Problem::unmet("reward", NOTHING_CLAIMABLE))?;
            Ok((campaign, claimable.reward.reward_id))
        }
        (None, None) => {
            let claimable = input.service.first_claimable(viewer).await?;
            claimable.ok_or_else(|| Problem::unmet("campaign", NOTHING_CLAIMABLE))
        }
    }
}
