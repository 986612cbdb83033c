//! Campaigns of drops and claims of their rewards, as the platform reports them.

use axum::extract::State;
use domain::drops::{Campaign, Reward};
use domain::limits::{CAMPAIGN_REWARDS_MAX, NAME_CHARS_MAX};
use domain::{CampaignId, ChannelId, ClaimId, Invalid, OrganizationId, RewardId};
use service::drops::RewardRequest;

use crate::Web;
use crate::caller::Operator;
use crate::contract::shape::{Shape, chars, id, list, object, optional, required, text};
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
    rewards: Vec<Reward>,
}

impl Body for PutCampaign {
    fn shape() -> Shape {
        let reward =
            Shape::of([required("rewardId", id()), required("rewardName", chars(1, NAME_CHARS_MAX))]);
        Shape::of([
            required("campaignName", chars(1, NAME_CHARS_MAX)),
            required("organizationId", id()),
            required("categoryId", text()),
            required("rewards", list(object(&reward), 1, CAMPAIGN_REWARDS_MAX)),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        let reward = |reward: &Fields| {
            let reward_id = RewardId::parse("rewardId", &reward.text("rewardId")?)?;
            Ok(Reward { reward_id, name: reward.text("rewardName")? })
        };
        Ok(Self {
            name: fields.text("campaignName")?,
            organization_id: OrganizationId::parse("organizationId", &fields.text("organizationId")?)?,
            category_id: fields.text("categoryId")?,
            rewards: fields.objects("rewards")?.iter().map(reward).collect::<Result<_, _>>()?,
        })
    }
}

/// `PUT /platform/v1/drops/campaigns/{campaignId}`: makes or replaces a campaign. A reward that is left out takes no more
/// claims.
pub async fn put_campaign(
    _: Operator,
    State(web): State<Web>,
    PathId(id): PathId,
    Json(body): Json<PutCampaign>,
) -> Answer<()> {
    let campaign_id = CampaignId::parse("campaignId", &id)?;
    let PutCampaign { name, organization_id, category_id, rewards } = body;
    let campaign = Campaign { campaign_id, name, organization_id, category_id, rewards };
    web.service().put_campaign(campaign).await?;
    Ok(NOTHING)
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
