//! Campaigns of drops and claims of their rewards, as the platform reports them.

use axum::extract::State;
use domain::drops::{Campaign, Period, Reward};
use domain::limits::{CAMPAIGN_CHANNELS_MAX, CAMPAIGN_REWARDS_MAX, NAME_CHARS_MAX, REWARD_WATCH_MINUTES_MAX};
use domain::{CampaignId, ChannelId, ClaimId, OrganizationId, RewardId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::drops::RewardRequest;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, Success};
use crate::input::objects::objects;
use crate::input::values::{chars, date, distinct, id, integer, list, text};
use crate::input::{Body, Form, Json, JsonForm, JsonText, optional, record, required, with_default};
use crate::open::drops::Claim;
use crate::path::PathId;
use crate::platform::KeyHeader;

/// The properties of a campaign.
#[derive(Debug)]
pub struct PutCampaign {
    name: String,
    organization_id: OrganizationId,
    category_id: String,
    period: Period,
    channels: Option<Vec<ChannelId>>,
    rewards: Vec<Reward>,
}

impl Body for PutCampaign {
    fn form() -> impl JsonForm<Out = Self> {
        let organization = id(OrganizationId::parse);
        let channels = list(id(ChannelId::parse), 1, CAMPAIGN_CHANNELS_MAX)
            .about("Channels that take part. Left out: every one.");
        let start = date().about("Left out: it has begun.");
        let end = date().about("Later than `startDate`. Left out: it does not end.");
        record!(Self {
            name: required("campaignName", chars(1, NAME_CHARS_MAX)),
            organization_id: required("organizationId", organization),
            category_id: required("categoryId", text()),
            period: record!(Period { start: optional("startDate", start), end: optional("endDate", end) }),
            channels: optional("channelIds", channels).map(|ids| ids.map(distinct)),
            rewards: required("rewards", objects(reward, 1, CAMPAIGN_REWARDS_MAX)),
        })
    }
}

/// A reward of a campaign.
fn reward() -> impl JsonForm<Out = Reward> {
    let minutes = integer(0, REWARD_WATCH_MINUTES_MAX).about("Minutes to watch before it can be claimed.");
    record!(Reward {
        reward_id: required("rewardId", id(RewardId::parse)),
        name: required("rewardName", chars(1, NAME_CHARS_MAX)),
        watch_minutes: with_default("watchMinutes", minutes, 0),
    })
}

pub(crate) const PUT_CAMPAIGN: Summary =
    Summary::new("putCampaign", "Make or replace a campaign", "드롭스 캠페인 등록");

/// `PUT /platform/v1/drops/campaigns/{campaignId}`: creates or replaces a campaign. A reward that is omitted
/// can no longer be claimed.
pub async fn put_campaign(
    operator: Operator,
    PathId(id): PathId,
    Json(body): Json<PutCampaign>,
) -> Answer<()> {
    let campaign_id = CampaignId::parse("campaignId", &id)?;
    let PutCampaign { name, organization_id, category_id, period, channels, rewards } = body;
    let campaign = Campaign { campaign_id, name, organization_id, category_id, period, channels, rewards };
    operator.service().put_campaign(campaign).await?;
    Ok(NOTHING)
}

/// A campaign as it is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownCampaign {
    /// The campaign.
    campaign_id: CampaignId,
    /// Its name.
    campaign_name: String,
    /// Whose claims these are.
    organization_id: OrganizationId,
    /// The category that has to be watched.
    category_id: String,
    /// From when on minutes count and rewards can be claimed: RFC 3339, UTC. `null`: it has begun.
    start_date: Option<String>,
    /// Until just before when: RFC 3339, UTC. `null`: it does not end.
    end_date: Option<String>,
    /// Channels that take part. `null`: every one.
    channel_ids: Option<Vec<ChannelId>>,
    /// What can be claimed, the fewest minutes first.
    rewards: Vec<ShownReward>,
}

/// A reward as it is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownReward {
    /// The reward, within the campaign.
    reward_id: RewardId,
    /// Its name.
    reward_name: String,
    /// Minutes to watch before it can be claimed.
    watch_minutes: i64,
}

impl From<Campaign> for ShownCampaign {
    fn from(campaign: Campaign) -> Self {
        let reward = |Reward { reward_id, name, watch_minutes }| ShownReward {
            reward_id,
            reward_name: name,
            watch_minutes,
        };
        Self {
            campaign_id: campaign.campaign_id,
            campaign_name: campaign.name,
            organization_id: campaign.organization_id,
            category_id: campaign.category_id,
            start_date: campaign.period.start.map(Timestamp::rfc3339),
            end_date: campaign.period.end.map(Timestamp::rfc3339),
            channel_ids: campaign.channels,
            rewards: campaign.rewards.into_iter().map(reward).collect(),
        }
    }
}

pub(crate) const SHOW_CAMPAIGN: Summary =
    Summary::new("showCampaign", "A campaign and its rewards", "드롭스 캠페인 조회").refuses(&[404]);

/// `GET /platform/v1/drops/campaigns/{campaignId}`: a campaign, with the rewards that can be claimed.
pub async fn show_campaign(_: Operator, State(web): State<Web>, PathId(id): PathId) -> Answer<ShownCampaign> {
    let campaign = web.service().campaign(CampaignId::parse("campaignId", &id)?).await?;
    Ok(Success(campaign.into()))
}

impl Body for RewardRequest {
    fn form() -> impl JsonForm<Out = Self> {
        record!(Self {
            campaign_id: required("campaignId", id(CampaignId::parse)),
            reward_id: required("rewardId", id(RewardId::parse)),
            channel_id: required("channelId", id(ChannelId::parse)),
            claim_id: optional("claimId", id(ClaimId::parse)),
        })
    }
}

pub(crate) const CLAIM: Summary =
    Summary::new("claimReward", "A viewer claims a reward", "드롭스 리워드 획득").refuses(&[403]);

/// `POST /platform/v1/drops/claims`: a viewer claimed a reward.
pub async fn claim(
    _: Operator,
    State(web): State<Web>,
    key: KeyHeader,
    JsonText(request, text): JsonText<RewardRequest>,
) -> Answer<Claim> {
    let claim = web.service().claim_reward(request, key.bind(&text)?).await?;
    Ok(Success(claim.into()))
}
