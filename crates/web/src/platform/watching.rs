//! Minutes watched for drops, reported by the platform, and the progress of viewers.

use axum::extract::{FromRequestParts, RawPathParams, State};
use domain::drops::RewardProgress;
use domain::limits::{WATCHING_MINUTES_MAX, WATCHING_VIEWERS_MAX};
use domain::refusal::Resource;
use domain::{CampaignId, CategoryId, ChannelId, ClaimId, Refusal, RewardId};
use http::request::Parts;
use schemars::JsonSchema;
use serde::Serialize;
use service::watching::{Viewers, Watched, Watching, WatchingReport};

use crate::Web;
use crate::caller::Operator;
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::envelope::{Answer, Failure, Success};
use crate::input::union::either;
use crate::input::values::{distinct, id, integer, list};
use crate::input::{Body, Form, JsonForm, JsonText, record, required};
use crate::path::PathId;
use crate::platform::KeyHeader;

impl Body for WatchingReport {
    fn form() -> impl JsonForm<Out = Self> {
        let one = id(ChannelId::parse).about("Who watched.");
        let many = list(id(ChannelId::parse), 1, WATCHING_VIEWERS_MAX).about("All who watched.");
        let channel = id(ChannelId::parse).about("Whose live is watched.");
        record!(Self {
            channel_id: required("channelId", channel),
            viewers: either(
                required("viewerChannelId", one).map(Viewers::One),
                required("viewerChannelIds", many).map(|ids| Viewers::Many(distinct(ids))),
            ),
            minutes: required("minutes", integer(1, WATCHING_MINUTES_MAX)),
        })
    }
}

/// What came of a report.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// Whether the channel is on air. Otherwise the minutes count for nothing.
    on_air: bool,
    /// The category of its live. Only campaigns of this category count them.
    category_id: Option<CategoryId>,
    /// One item for each viewer and campaign that counted them.
    data: Vec<CountedMinutes>,
}

/// Minutes that counted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedMinutes {
    /// The campaign.
    campaign_id: CampaignId,
    /// The viewer.
    viewer_channel_id: ChannelId,
    /// Minutes that the viewer has watched for the campaign, in all.
    minutes: i64,
}

impl From<Watching> for Reported {
    fn from(Watching { on_air, category_id, watched }: Watching) -> Self {
        let counted = |Watched { campaign_id, viewer, minutes }| CountedMinutes {
            campaign_id,
            viewer_channel_id: viewer,
            minutes,
        };
        Self { on_air, category_id, data: watched.into_iter().map(counted).collect() }
    }
}

pub(crate) const REPORT: Summary =
    Summary::new("reportWatching", "Viewers watched a live", "드롭스 시청 등록");

/// `POST /platform/v1/drops/watching`: viewers watched a live. Adds the minutes to every matching campaign.
pub async fn report(
    _: Operator,
    State(web): State<Web>,
    key: KeyHeader,
    JsonText(report, text): JsonText<WatchingReport>,
) -> Answer<Reported> {
    let watching = web.service().report_watching(report, key.bind(&text)?).await?;
    Ok(Success(watching.into()))
}

/// `{campaignId}` and the viewer's `{channelId}` of the path.
#[derive(Debug)]
pub struct ProgressPath(CampaignId, ChannelId);

impl FromRequestParts<Web> for ProgressPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let raw = RawPathParams::from_request_parts(parts, &())
            .await
            .map_err(|_| Refusal::NotFound(Resource::Path))?;
        let mut ids = raw.iter().map(|(_, id)| id);
        match (ids.next(), ids.next()) {
            (Some(campaign), Some(channel)) => {
                Ok(Self(CampaignId::parse("campaignId", campaign)?, ChannelId::parse("channelId", channel)?))
            }
            _ => Err(Refusal::NotFound(Resource::Path).into()),
        }
    }
}

impl DescribeInput for ProgressPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}

/// How far a viewer has come in a campaign.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The campaign.
    campaign_id: CampaignId,
    /// The viewer.
    channel_id: ChannelId,
    /// Minutes watched, in all.
    minutes: i64,
    /// What the campaign offers, the fewest minutes first.
    rewards: Vec<ProgressOfReward>,
}

/// How far a viewer has come with a reward.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressOfReward {
    /// The reward, within the campaign.
    reward_id: RewardId,
    /// Its name.
    reward_name: String,
    /// Minutes to watch before it can be claimed.
    watch_minutes: i64,
    /// Minutes of them that are left.
    minutes_left: i64,
    /// Whether none is left.
    reached: bool,
    /// Whether the viewer has claimed it.
    claimed: bool,
    /// The viewer's claim of it.
    claim_id: Option<ClaimId>,
}

impl ProgressOfReward {
    fn of(RewardProgress { reward, claim_id }: RewardProgress, minutes: i64) -> Self {
        let minutes_left = (reward.watch_minutes - minutes).max(0);
        Self {
            reward_id: reward.reward_id,
            reward_name: reward.name,
            watch_minutes: reward.watch_minutes,
            minutes_left,
            reached: minutes_left == 0,
            claimed: claim_id.is_some(),
            claim_id,
        }
    }
}

pub(crate) const PROGRESS: Summary = Summary::new(
    "showDropsProgress",
    "What a viewer has watched and claimed of a campaign",
    "드롭스 진행 상황 조회",
)
.refuses(&[404]);

/// `GET /platform/v1/drops/campaigns/{campaignId}/progress/{channelId}`: the minutes and claims of a viewer.
pub async fn progress(
    _: Operator,
    State(web): State<Web>,
    ProgressPath(campaign_id, channel_id): ProgressPath,
) -> Answer<Progress> {
    let found = web.service().drops_progress(campaign_id.clone(), channel_id.clone()).await?;
    let minutes = found.minutes;
    let rewards = found.rewards.into_iter().map(|reward| ProgressOfReward::of(reward, minutes)).collect();
    Ok(Success(Progress { campaign_id, channel_id, minutes, rewards }))
}
