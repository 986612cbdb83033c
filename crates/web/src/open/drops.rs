//! Reward claims of drops (`docs/spec/drops.md`).

use axum::extract::State;
use domain::drops::{FulfillmentState, RewardClaim};
use domain::limits::{
    CLAIM_ID_FILTER_MAX, CLAIM_PAGE_SIZE_DEFAULT, CLAIM_PAGE_SIZE_MAX, CLAIM_UPDATE_IDS_MAX,
};
use domain::{CampaignId, ChannelId, ClaimId, Invalid, RewardId, Rule};
use schemars::JsonSchema;
use serde::Serialize;
use service::drops::{ClaimFilter, ClaimQuery, ClaimScope};

use crate::Web;
use crate::caller::DropsClient;
use crate::contract::Summary;
use crate::envelope::{Answer, Data, Success};
use crate::input::form::list_parameter;
use crate::input::values::{cursor_or_empty, distinct, integer, item, list, text, texts};
use crate::input::{
    Body, Form, Json, JsonForm, Params, Query, QueryForm, optional, record, required, with_default,
};

impl Params for ClaimQuery {
    fn form() -> impl QueryForm<Out = Self> {
        // The last page returns an empty cursor, which stands for no cursor.
        let cursor = |from: Option<String>| from.filter(|cursor| !cursor.is_empty());
        let size = integer(1, CLAIM_PAGE_SIZE_MAX);
        let ids = list(item(), 0, CLAIM_ID_FILTER_MAX);
        record!(Self {
            from: optional("page.from", cursor_or_empty()).or_spelled("page[from]").map(cursor),
            size: with_default("page.size", size, CLAIM_PAGE_SIZE_DEFAULT).or_spelled("page[size]"),
            claim_ids: list_parameter("claimId", ids, CLAIM_ID_FILTER_MAX),
            filter: filter(),
        })
    }
}

/// The filter of the claim query.
fn filter() -> impl QueryForm<Out = ClaimFilter> {
    const NOT_BOTH: &str = "Not both `campaignId` and `categoryId`.";
    let scope = |given| match given {
        (Some(_), Some(_)) => Err(Invalid::new("campaignId", Rule::NotTogether("categoryId"))),
        (Some(id), None) => Ok(Some(ClaimScope::Campaign(id))),
        (None, Some(id)) => Ok(Some(ClaimScope::Category(id))),
        (None, None) => Ok(None),
    };
    let state = text().one_of(FulfillmentState::NAMES).parsed(FulfillmentState::parse);
    record!(ClaimFilter {
        channel_id: optional("channelId", text()),
        scope: (
            optional("campaignId", text().about(NOT_BOTH)),
            optional("categoryId", text().about(NOT_BOTH)),
        )
            .try_map(scope),
        state: optional("fulfillmentState", state),
    })
}

/// Reward claim. Its dates are RFC 3339, UTC, in both profiles.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The claim.
    claim_id: ClaimId,
    /// Its campaign.
    campaign_id: CampaignId,
    /// The reward of the campaign.
    reward_id: RewardId,
    /// The campaign's category.
    category_id: String,
    /// The category's name.
    category_name: String,
    /// Who claimed.
    channel_id: ChannelId,
    /// Where it stands.
    #[schemars(extend("enum" = FulfillmentState::NAMES))]
    fulfillment_state: &'static str,
    /// RFC 3339, UTC.
    claimed_date: String,
    /// RFC 3339, UTC.
    updated_date: String,
}

impl From<RewardClaim> for Claim {
    fn from(claim: RewardClaim) -> Self {
        Self {
            claim_id: claim.claim_id,
            campaign_id: claim.campaign_id,
            reward_id: claim.reward_id,
            category_id: claim.category_id,
            category_name: claim.category_name,
            channel_id: claim.channel_id,
            fulfillment_state: claim.state.name(),
            claimed_date: claim.claimed_at.rfc3339(),
            updated_date: claim.updated_at.rfc3339(),
        }
    }
}

/// The content of the claim query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Claims {
    /// The claims, newest first.
    data: Vec<Claim>,
    /// Where the next page begins.
    page: ClaimsPage,
}

/// Where the next page begins: always a text, so that a typed client need not tell three kinds of nothing
/// apart.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClaimsPage {
    /// Empty at the end of the list, and where `claimId` was given.
    cursor: String,
}

pub(crate) const QUERY: Summary = Summary::new(
    "getRewardClaims",
    "Reward claims of the organization, newest first",
    "드롭스 리워드 지급 요청 조회",
);

/// `GET /open/v1/drops/reward-claims`, client mode with the drops scope: the claims of the application's
/// organization, newest first.
pub async fn query(
    DropsClient(publisher): DropsClient,
    State(web): State<Web>,
    Query(query): Query<ClaimQuery>,
) -> Answer<Claims> {
    let found = web.service().reward_claims(&publisher, query).await?;
    let data = found.claims.into_iter().map(Claim::from).collect();
    Ok(Success(Claims { data, page: ClaimsPage { cursor: found.cursor.unwrap_or_default() } }))
}

/// An update of claims.
#[derive(Debug)]
pub struct UpdateClaims {
    claim_ids: Vec<String>,
    state: FulfillmentState,
}

impl Body for UpdateClaims {
    fn form() -> impl JsonForm<Out = Self> {
        let ids =
            texts(text(), 1).with(|kind| kind.about(&format!("1 to {CLAIM_UPDATE_IDS_MAX} different ones.")));
        let state = text().one_of(FulfillmentState::NAMES).parsed(FulfillmentState::parse);
        record!(Self {
            claim_ids: required("claimIds", ids).map(distinct),
            state: required("fulfillmentState", state),
        })
    }
}

/// What became of some of an update's ids.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Updated {
    /// What became of them.
    #[schemars(extend("enum" = ["SUCCESS", "INVALID_ID", "NOT_FOUND", "UNAUTHORIZED", "UPDATE_FAILED"]))]
    status: &'static str,
    /// The ids that it is about.
    ids: Vec<String>,
}

pub(crate) const UPDATE: Summary =
    Summary::new("updateRewardClaims", "Say which rewards were given", "드롭스 리워드 지급 상태 변경");

/// `PUT /open/v1/drops/reward-claims`, client mode with the drops scope: changes the state of up to 100
/// claims.
pub async fn update(
    DropsClient(publisher): DropsClient,
    State(web): State<Web>,
    Json(body): Json<UpdateClaims>,
) -> Answer<Data<Updated>> {
    let groups = web.service().update_claims(&publisher, body.claim_ids, body.state).await?;
    let data = groups.into_iter().map(|(status, ids)| Updated { status: status.name(), ids }).collect();
    Ok(Success(Data { data }))
}
