//! Organizations and campaigns, listed, disabled, enabled and deleted by the operator.

use domain::application::Organization;
use domain::{CampaignId, OrganizationId, Timestamp};

use super::credential_changes::Dependency;
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// The most rows of viewers' minutes that one statement deletes.
pub const CAMPAIGN_ROWS_MAX: i64 = 500;

const ORGANIZATIONS: &str = sql!(
    "SELECT ",
    OrganizationDetails::COLUMNS,
    "
    FROM organizations o WHERE o.organization_id > $1 ORDER BY o.organization_id LIMIT $2"
);

const ORGANIZATION: &str =
    sql!("SELECT ", OrganizationDetails::COLUMNS, " FROM organizations o WHERE o.organization_id = $1");

const SET_VERIFIED: &str = "UPDATE organizations SET verified = $2 WHERE organization_id = $1";

const DISABLE_ORGANIZATION: &str =
    "UPDATE organizations SET disabled_at = COALESCE(disabled_at, $2) WHERE organization_id = $1";

const ENABLE_ORGANIZATION: &str = "UPDATE organizations SET disabled_at = NULL WHERE organization_id = $1";

const DELETE_ORGANIZATION: &str = "DELETE FROM organizations WHERE organization_id = $1";

const CAMPAIGNS: &str = sql!(
    "SELECT ",
    CampaignListing::COLUMNS,
    "
    FROM drops_campaigns
    WHERE campaign_id > $1 AND (CAST($2 AS TEXT) IS NULL OR organization_id = $2)
    ORDER BY campaign_id LIMIT $3"
);

const DISABLE_CAMPAIGN: &str =
    "UPDATE drops_campaigns SET disabled_at = COALESCE(disabled_at, $2) WHERE campaign_id = $1";

const ENABLE_CAMPAIGN: &str = "UPDATE drops_campaigns SET disabled_at = NULL WHERE campaign_id = $1";

const HAS_CLAIMS: &str = "SELECT 1 FROM reward_claims WHERE campaign_id = $1 LIMIT 1";

const DELETE_MINUTES: &str = "
    DELETE FROM watched_minutes WHERE campaign_id = $1 AND channel_id IN (
        SELECT channel_id FROM watched_minutes WHERE campaign_id = $1 LIMIT $2)";

/// The last rows of a campaign. A campaign with claims is not deleted.
const DELETE_CAMPAIGN: [&str; 3] = [
    "DELETE FROM drops_campaign_channels WHERE campaign_id = $1",
    "DELETE FROM drops_rewards WHERE campaign_id = $1",
    "DELETE FROM drops_campaigns WHERE campaign_id = $1",
];

/// An organization, and since when it is disabled.
#[derive(Clone, Debug)]
pub struct OrganizationDetails {
    /// The organization.
    pub organization: Organization,
    /// Since when it is disabled.
    pub disabled_at: Option<Timestamp>,
}

columns!(OrganizationDetails { organization: Organization::COLUMNS, disabled_at: "o.disabled_at" });

/// A campaign in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignListing {
    /// Its id.
    pub campaign_id: CampaignId,
    /// Its name.
    pub name: String,
    /// Its organization.
    pub organization_id: OrganizationId,
    /// The category that has to be watched.
    pub category_id: String,
    /// When it begins.
    pub starts_at: Option<Timestamp>,
    /// When it ends.
    pub ends_at: Option<Timestamp>,
    /// Since when it is disabled.
    pub disabled_at: Option<Timestamp>,
}

columns!(CampaignListing {
    campaign_id: "campaign_id",
    name: "campaign_name",
    organization_id: "organization_id",
    category_id: "category_id",
    starts_at: "starts_at",
    ends_at: "ends_at",
    disabled_at: "disabled_at",
});

impl Tx {
    /// Up to `size` organizations after `after`, in the order of their ids.
    pub async fn organizations(
        &mut self,
        after: &str,
        size: i64,
    ) -> Result<Vec<OrganizationDetails>, StoreError> {
        self.fetch_all(ORGANIZATIONS, params![after, size]).await
    }

    /// One organization.
    pub async fn organization_details(
        &mut self,
        id: &OrganizationId,
    ) -> Result<Option<OrganizationDetails>, StoreError> {
        self.fetch_optional(ORGANIZATION, params![id]).await
    }

    /// Sets whether an organization is verified: `false` if there is none.
    pub async fn set_organization_verified(
        &mut self,
        id: &OrganizationId,
        verified: bool,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Organization(id));
        Ok(self.execute(SET_VERIFIED, params![id, verified]).await? > 0)
    }

    /// Disables an organization, which suspends its verification: `false` if there is none.
    pub async fn disable_organization(
        &mut self,
        id: &OrganizationId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Organization(id));
        Ok(self.execute(DISABLE_ORGANIZATION, params![id, now]).await? > 0)
    }

    /// Enables an organization: `false` if there is none.
    pub async fn enable_organization(&mut self, id: &OrganizationId) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Organization(id));
        Ok(self.execute(ENABLE_ORGANIZATION, params![id]).await? > 0)
    }

    /// Deletes an organization: `false` if there is none. `StoreError::ForeignKey` while it has applications
    /// or campaigns.
    pub async fn delete_organization(&mut self, id: &OrganizationId) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Organization(id));
        Ok(self.execute(DELETE_ORGANIZATION, params![id]).await? > 0)
    }

    /// Up to `size` campaigns after `after`, in the order of their ids.
    pub async fn campaigns(
        &mut self,
        organization: Option<&OrganizationId>,
        after: &str,
        size: i64,
    ) -> Result<Vec<CampaignListing>, StoreError> {
        self.fetch_all(CAMPAIGNS, params![after, organization, size]).await
    }

    /// Disables a campaign: nothing can be claimed, and no minutes count: `false` if there is none.
    pub async fn disable_campaign(&mut self, id: &CampaignId, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.execute(DISABLE_CAMPAIGN, params![id, now]).await? > 0)
    }

    /// Enables a campaign: `false` if there is none.
    pub async fn enable_campaign(&mut self, id: &CampaignId) -> Result<bool, StoreError> {
        Ok(self.execute(ENABLE_CAMPAIGN, params![id]).await? > 0)
    }

    /// Whether a campaign has claims.
    pub async fn campaign_has_claims(&mut self, id: &CampaignId) -> Result<bool, StoreError> {
        Ok(self.query_opt(HAS_CLAIMS, params![id]).await?.is_some())
    }

    /// Deletes up to [`CAMPAIGN_ROWS_MAX`] rows of viewers' minutes of a campaign. Gives their number.
    pub async fn delete_campaign_minutes(&mut self, id: &CampaignId) -> Result<u64, StoreError> {
        self.execute(DELETE_MINUTES, params![id, CAMPAIGN_ROWS_MAX]).await
    }

    /// Deletes a campaign with its rewards and channels: `false` if there is none. `StoreError::ForeignKey`
    /// while it has claims or minutes.
    pub async fn delete_campaign(&mut self, id: &CampaignId) -> Result<bool, StoreError> {
        let mut rows = 0;
        for sql in DELETE_CAMPAIGN {
            rows = self.execute(sql, params![id]).await?;
        }
        Ok(rows > 0)
    }
}
