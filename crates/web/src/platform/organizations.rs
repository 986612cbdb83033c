//! Organizations and campaigns: listed, disabled, enabled and deleted by the operator.

use axum::extract::State;
use domain::{CampaignId, OrganizationId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::organizations::{CampaignListing, OrganizationDetails};

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::Query;
use crate::path::PathId;
use crate::platform::{ListQuery, OrganizationListQuery};

/// An organization in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationAnswer {
    /// The organization.
    organization_id: OrganizationId,
    /// Its name.
    organization_name: String,
    /// Whether it is a verified company. It counts as none while it is disabled.
    verified: bool,
    /// Since when it is disabled, if it is.
    disabled_date: Option<String>,
}

impl From<OrganizationDetails> for OrganizationAnswer {
    fn from(OrganizationDetails { organization, disabled_at }: OrganizationDetails) -> Self {
        Self {
            organization_id: organization.organization_id,
            organization_name: organization.name,
            verified: organization.verified,
            disabled_date: disabled_at.map(Timestamp::rfc3339),
        }
    }
}

pub(crate) const LIST: Summary =
    Summary::new("listOrganizations", "Organizations by their ids", "조직 목록 조회");

/// `GET /platform/v1/organizations`: organizations by their ids.
pub async fn list(
    _: Operator,
    State(web): State<Web>,
    Query(ListQuery { size, next }): Query<ListQuery>,
) -> Answer<NextData<OrganizationAnswer>> {
    let page = web.service().organizations(size, next.as_deref()).await?;
    Ok(Success(NextData::new(page.items.into_iter().map(OrganizationAnswer::from).collect(), page.next)))
}

pub(crate) const DISABLE: Summary =
    Summary::new("disableOrganization", "Let an organization count as unverified", "조직 사용 중지")
        .refuses(&[404]);

/// `PUT /platform/v1/organizations/{organizationId}/disabled`: counts as unverified until it is enabled.
pub async fn disable(operator: Operator, PathId(id): PathId) -> Answer<()> {
    operator.service().disable_organization(&OrganizationId::parse("organizationId", &id)?).await?;
    Ok(NOTHING)
}

pub(crate) const ENABLE: Summary =
    Summary::new("enableOrganization", "Let an organization count as what it was put as", "조직 사용 재개")
        .refuses(&[404]);

/// `DELETE /platform/v1/organizations/{organizationId}/disabled`: counts as verified again, if it was before.
pub async fn enable(operator: Operator, PathId(id): PathId) -> Answer<()> {
    operator.service().enable_organization(&OrganizationId::parse("organizationId", &id)?).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE: Summary = Summary::new(
    "deleteOrganization",
    "Delete an organization without applications and campaigns",
    "조직 삭제",
);

/// `DELETE /platform/v1/organizations/{organizationId}`: deletes one without applications and campaigns.
pub async fn delete(operator: Operator, PathId(id): PathId) -> Answer<()> {
    operator.service().delete_organization(&OrganizationId::parse("organizationId", &id)?).await?;
    Ok(NOTHING)
}

/// A campaign in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignItem {
    /// The campaign.
    campaign_id: CampaignId,
    /// Its name.
    campaign_name: String,
    /// Whose it is.
    organization_id: OrganizationId,
    /// What has to be watched.
    category_id: String,
    /// When it begins; `null` where that is open.
    start_date: Option<String>,
    /// When it ends; `null` where that is open.
    end_date: Option<String>,
    /// Since when it is disabled, if it is.
    disabled_date: Option<String>,
}

impl From<CampaignListing> for CampaignItem {
    fn from(listing: CampaignListing) -> Self {
        Self {
            campaign_id: listing.campaign_id,
            campaign_name: listing.name,
            organization_id: listing.organization_id,
            category_id: listing.category_id,
            start_date: listing.starts_at.map(Timestamp::rfc3339),
            end_date: listing.ends_at.map(Timestamp::rfc3339),
            disabled_date: listing.disabled_at.map(Timestamp::rfc3339),
        }
    }
}

pub(crate) const LIST_CAMPAIGNS: Summary =
    Summary::new("listCampaigns", "Campaigns by their ids", "캠페인 목록 조회");

/// `GET /platform/v1/drops/campaigns`: campaigns by their ids.
pub async fn list_campaigns(
    _: Operator,
    State(web): State<Web>,
    Query(query): Query<OrganizationListQuery>,
) -> Answer<NextData<CampaignItem>> {
    let OrganizationListQuery { organization_id, list: ListQuery { size, next } } = query;
    let page = web.service().campaigns(organization_id, size, next.as_deref()).await?;
    Ok(Success(NextData::new(page.items.into_iter().map(CampaignItem::from).collect(), page.next)))
}

pub(crate) const DISABLE_CAMPAIGN: Summary =
    Summary::new("disableCampaign", "Let nothing be claimed of a campaign", "캠페인 사용 중지")
        .refuses(&[404]);

/// `PUT /platform/v1/drops/campaigns/{campaignId}/disabled`: no rewards can be claimed and no minutes count
/// until it is enabled.
pub async fn disable_campaign(operator: Operator, PathId(id): PathId) -> Answer<()> {
    operator.service().disable_campaign(&CampaignId::parse("campaignId", &id)?).await?;
    Ok(NOTHING)
}

pub(crate) const ENABLE_CAMPAIGN: Summary =
    Summary::new("enableCampaign", "Let a campaign go on", "캠페인 사용 재개").refuses(&[404]);

/// `DELETE /platform/v1/drops/campaigns/{campaignId}/disabled`: continues the campaign.
pub async fn enable_campaign(operator: Operator, PathId(id): PathId) -> Answer<()> {
    operator.service().enable_campaign(&CampaignId::parse("campaignId", &id)?).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE_CAMPAIGN: Summary =
    Summary::new("deleteCampaign", "Delete a campaign of which nothing was claimed", "캠페인 삭제");

/// `DELETE /platform/v1/drops/campaigns/{campaignId}`: deletes a campaign without claims.
pub async fn delete_campaign(operator: Operator, PathId(id): PathId) -> Answer<()> {
    operator.service().delete_campaign(&CampaignId::parse("campaignId", &id)?).await?;
    Ok(NOTHING)
}
