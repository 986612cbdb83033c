//! Campaigns of drops and claims of their rewards, as the platform reports them.

use std::collections::HashSet;

use axum::extract::State;
use domain::drops::{Campaign, Period, Reward};
use domain::limits::{CAMPAIGN_CHANNELS_MAX, CAMPAIGN_REWARDS_MAX, NAME_CHARS_MAX, REWARD_WATCH_MINUTES_MAX};
use domain::{CampaignId, ChannelId, ClaimId, Invalid, OrganizationId, RewardId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::drops::RewardRequest;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::contract::shape::{Shape, chars, date, id, integer, list, object, optional, required, text};
use crate::envelope::{Answer, NOTHING, Success};
use crate::input::{Body, Fields, Json, JsonText};
use crate::open::drops::Claim;
use crate::platform::{KeyHeader, PathId};

/// What a campaign is told to be.
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
    fn shape() -> Shape {
        let minutes = integer(0, REWARD_WATCH_MINUTES_MAX).default(0);
        let reward = Shape::of([
            required("rewardId", id()),
            required("rewardName", chars(1, NAME_CHARS_MAX)),
            optional("watchMinutes", minutes.about("Minutes to watch before it can be claimed.")),
        ]);
        let channels = list(id(), 1, CAMPAIGN_CHANNELS_MAX);
        Shape::of([
            required("campaignName", chars(1, NAME_CHARS_MAX)),
            required("organizationId", id()),
            required("categoryId", text()),
            optional("startDate", date().about("Left out: it has begun.")),
            optional("endDate", date().about("Later than `startDate`. Left out: it does not end.")),
            optional("channelIds", channels.about("Channels that take part. Left out: every one.")),
            required("rewards", list(object(&reward), 1, CAMPAIGN_REWARDS_MAX)),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        let reward = |reward: &Fields| {
            let reward_id = RewardId::parse("rewardId", &reward.text("rewardId")?)?;
            let name = reward.text("rewardName")?;
            let minutes = reward.optional_integer("watchMinutes", 0, REWARD_WATCH_MINUTES_MAX)?;
            Ok(Reward { reward_id, name, watch_minutes: minutes.unwrap_or(0) })
        };
        let channels = fields.optional_texts("channelIds")?;
        Ok(Self {
            name: fields.text("campaignName")?,
            organization_id: OrganizationId::parse("organizationId", &fields.text("organizationId")?)?,
            category_id: fields.text("categoryId")?,
            period: Period {
                start: fields.optional_date("startDate")?,
                end: fields.optional_date("endDate")?,
            },
            channels: channels.map(|ids| different("channelIds", ids)).transpose()?,
            rewards: fields.objects("rewards")?.iter().map(reward).collect::<Result<_, _>>()?,
        })
    }
}

/// A list of channels, each of them once.
pub(super) fn different(field: &'static str, ids: Vec<String>) -> Result<Vec<ChannelId>, Invalid> {
    let mut seen = HashSet::new();
    let ids = ids.into_iter().filter(|id| seen.insert(id.clone()));
    ids.map(|id| ChannelId::parse(field, &id)).collect()
}

pub(crate) const PUT_CAMPAIGN: Summary =
    Summary::new("putCampaign", "Make or replace a campaign", "드롭스 캠페인 등록");

/// `PUT /platform/v1/drops/campaigns/{campaignId}`: makes or replaces a campaign. A reward that is left out takes no more
/// claims.
pub async fn put_campaign(
    _: Operator,
    State(web): State<Web>,
    PathId(id): PathId,
    Json(body): Json<PutCampaign>,
) -> Answer<()> {
    let campaign_id = CampaignId::parse("campaignId", &id)?;
    let PutCampaign { name, organization_id, category_id, period, channels, rewards } = body;
    let campaign = Campaign { campaign_id, name, organization_id, category_id, period, channels, rewards };
    web.service().put_campaign(campaign).await?;
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

/// `GET /platform/v1/drops/campaigns/{campaignId}`: a campaign, with the rewards that take claims.
pub async fn show_campaign(_: Operator, State(web): State<Web>, PathId(id): PathId) -> Answer<ShownCampaign> {
    let campaign = web.service().campaign(CampaignId::parse("campaignId", &id)?).await?;
    Ok(Success(campaign.into()))
}

impl Body for RewardRequest {
    fn shape() -> Shape {
        Shape::of([
            required("campaignId", id()),
            required("rewardId", id()),
            required("channelId", id()),
            optional("claimId", id()),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        let claim_id = fields.optional_text("claimId")?;
        Ok(Self {
            campaign_id: CampaignId::parse("campaignId", &fields.text("campaignId")?)?,
            reward_id: RewardId::parse("rewardId", &fields.text("rewardId")?)?,
            channel_id: ChannelId::parse("channelId", &fields.text("channelId")?)?,
            claim_id: claim_id.map(|id| ClaimId::parse("claimId", &id)).transpose()?,
        })
    }
}

pub(crate) const CLAIM: Summary =
    Summary::new("claimReward", "A viewer claims a reward", "드롭스 리워드 획득").refuses(&[403]);

/// `POST /platform/v1/drops/claims`: a reward is claimed.
pub async fn claim(
    _: Operator,
    State(web): State<Web>,
    key: KeyHeader,
    JsonText(request, text): JsonText<RewardRequest>,
) -> Answer<Claim> {
    let claim = web.service().claim_reward(request, key.bind(&text)?).await?;
    Ok(Success(claim.into()))
}
