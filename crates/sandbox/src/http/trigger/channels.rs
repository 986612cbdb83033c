//! What happens to channels: followers, restrictions, lives, watched minutes and claims.

use domain::chat::chat_channel_id;
use domain::chat_settings::{ChatSettingsChange, Condition, Group};
use domain::limits::WATCHING_MINUTES_MAX;
use domain::live::CategoryChoice;
use domain::{CampaignId, ClaimId, RewardId};
use serde_json::{Value, json};
use service::drops::RewardRequest;
use service::lives::LiveReport;
use service::restrictions::ChatTarget;
use service::watching::{Viewers, WatchingReport};

use super::fields::{GivenFields, wrong};
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

/// A change of the settings of a chat.
pub(super) fn read_chat_settings(fields: &GivenFields) -> Result<ChatSettingsChange, Problem> {
    let change = ChatSettingsChange {
        condition: fields.parsed("condition", Condition::parse)?,
        group: fields.parsed("group", Group::parse)?,
        min_follower_minute: fields.integer("followerMinutes"),
        allow_subscriber_in_follower_mode: fields.given_flag("subscribersExempt"),
        slow_mode_sec: fields.integer("slowMode"),
        emoji_mode: fields.given_flag("emojiMode"),
    };
    let names = [("minFollowerMinute", "followerMinutes"), ("chatSlowModeSec", "slowMode")];
    change.check().map_err(|invalid| wrong(&invalid, &names))?;
    Ok(change)
}

/// A channel changes the settings of its chat.
pub(super) async fn chat_settings(input: Input) -> Result<Outcome, Problem> {
    let change = read_chat_settings(&input)?;
    let channel = input.streamer("channel").await?;
    input.service.change_chat_settings(&channel, change).await?;
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

/// The names of the fields of a live.
const LIVE_NAMES: [(&str, &str); 4] = [
    ("liveTitle", "title"),
    ("liveThumbnailImageUrl", "thumbnail"),
    ("concurrentUserCount", "viewers"),
    ("categoryId", "category"),
];

/// The live of a channel.
pub(super) fn read_live(fields: &GivenFields) -> Result<LiveReport, Problem> {
    let category = fields.parsed("category", |id| CategoryChoice::parse(Some(id)))?;
    let report = LiveReport {
        title: fields.text("title"),
        thumbnail_image_url: fields.text("thumbnail"),
        concurrent_user_count: fields.integer("viewers").unwrap_or_default(),
        adult: fields.flag("adult"),
        category: category.unwrap_or(CategoryChoice::Unsaid),
        tags: fields.list("tags"),
    };
    report.checked().map_err(|invalid| wrong(&invalid, &LIVE_NAMES))
}

/// A channel goes on air, or changes its live.
pub(super) async fn live(input: Input) -> Result<Outcome, Problem> {
    let report = read_live(&input)?;
    let channel = input.streamer("channel").await?;
    let viewers = report.concurrent_user_count;
    input.service.put_live(&channel, report).await.map_err(|error| spelled(error, &LIVE_NAMES))?;
    Ok(outcome(json!({ "channelId": channel, "concurrentUserCount": viewers, "delivered": 0 })))
}

/// A channel goes off air.
pub(super) async fn live_end(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    input.service.end_live(&channel).await?;
    Ok(outcome(json!({ "channelId": channel, "delivered": 0 })))
}

/// The watched minutes.
pub(super) fn read_watch(fields: &GivenFields) -> Result<i64, Problem> {
    let minutes = fields.integer("minutes").unwrap_or(1);
    let rule = format!("must be a whole number from 1 to {WATCHING_MINUTES_MAX}");
    let fits = (1..=WATCHING_MINUTES_MAX).contains(&minutes);
    if fits { Ok(minutes) } else { Err(Problem::invalid("minutes", rule)) }
}

/// A viewer watches a live.
pub(super) async fn watch(input: Input) -> Result<Outcome, Problem> {
    let minutes = read_watch(&input)?;
    let channel = input.streamer("channel").await?;
    let viewer = input.viewer("viewer", &channel).await?;
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

/// The ids of a claim, each if it is given.
type GivenClaim = (Option<CampaignId>, Option<RewardId>, Option<ClaimId>);

pub(super) fn read_claim(fields: &GivenFields) -> Result<GivenClaim, Problem> {
    let campaign = fields.parsed("campaign", |id| CampaignId::parse("campaign", id))?;
    let reward = fields.parsed("reward", |id| RewardId::parse("reward", id))?;
    if reward.is_some() && campaign.is_none() {
        return Err(Problem::invalid("campaign", "must be given with a reward"));
    }
    Ok((campaign, reward, fields.parsed("claim", |id| ClaimId::parse("claim", id))?))
}

/// What a viewer claims: without the fields the first reward that the viewer can claim.
pub(super) async fn wanted(input: &Input) -> Result<RewardRequest, Problem> {
    let (campaign, reward, claim_id) = read_claim(input)?;
    let channel_id = input.viewer("viewer", &input.streamer("channel").await?).await?;
    let (campaign_id, reward_id) = match (campaign, reward) {
        (Some(campaign), Some(reward)) => (campaign, reward),
        (Some(campaign), None) => {
            let progress = input.service.drops_progress(campaign.clone(), channel_id.clone()).await?;
            let (minutes, mut rewards) = (progress.minutes, progress.rewards.into_iter());
            let claimable =
                rewards.find(|reward| reward.claim_id.is_none() && reward.reward.watch_minutes <= minutes);
            let claimable = claimable.ok_or_else(|| Problem::unmet("reward", NOTHING_CLAIMABLE))?;
            (campaign, claimable.reward.reward_id)
        }
        (None, _) => {
            let claimable = input.service.first_claimable(&channel_id).await?;
            claimable.ok_or_else(|| Problem::unmet("campaign", NOTHING_CLAIMABLE))?
        }
    };
    Ok(RewardRequest { campaign_id, reward_id, channel_id, claim_id })
}

/// A viewer claims a reward.
pub(super) async fn claim(input: &Input, request: RewardRequest) -> Result<Outcome, Problem> {
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
