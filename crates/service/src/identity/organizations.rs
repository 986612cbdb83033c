//! The operator's calls on organizations and campaigns: list, disable, enable, delete.

use domain::audit::AuditAction;
use domain::refusal::Resource;
use domain::{CampaignId, Invalid, OrganizationId, Refusal, Rule};
use serde_json::json;
pub use store::queries::organizations::{CampaignListing, OrganizationDetails};
use store::{StoreError, Tx};

use crate::work::Work;
use crate::{Error, Service};

/// One page of a list ordered by id.
#[derive(Clone, Debug)]
pub struct ListPage<T> {
    /// Ordered by id.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl Service {
    /// Organizations, ordered by id.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn organizations(
        &self,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<OrganizationDetails>, Error> {
        const CONTEXT: &str = "organizations";
        let after = next.map(|cursor| self.cursors().open("next", CONTEXT, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let items = self.read(async move |tx: &mut Tx| Ok(tx.organizations(&after, size + 1).await?)).await?;
        let (items, next) =
            self.page(CONTEXT, items, size, |item| item.organization.organization_id.to_string());
        Ok(ListPage { items, next })
    }

    /// One organization.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it does not exist.
    pub async fn organization_details(&self, id: &OrganizationId) -> Result<OrganizationDetails, Error> {
        let id = id.clone();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.organization_details(&id).await?)).await?;
        Ok(found.ok_or(Refusal::NotFound(Resource::Organization))?)
    }

    /// Verifies an organization, or takes that back.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it does not exist.
    pub async fn verify_organization(&self, id: &OrganizationId, verified: bool) -> Result<(), Error> {
        let id = id.clone();
        let exists = self
            .write(async move |work: &mut Work<'_>| {
                let exists = work.set_organization_verified(&id, verified).await?;
                if exists {
                    let details = json!({ "verified": verified });
                    work.audit_with(AuditAction::OrganizationVerify, &id, details).await?;
                }
                Ok(exists)
            })
            .await?;
        require(exists, Resource::Organization)
    }

    /// Campaigns of one organization or of all, ordered by id.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list or filter.
    pub async fn campaigns(
        &self,
        organization: Option<OrganizationId>,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<CampaignListing>, Error> {
        let context =
            serde_json::json!(["campaigns", organization.as_ref().map(|id| id.as_str())]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let items = self
            .read(async move |tx: &mut Tx| Ok(tx.campaigns(organization.as_ref(), &after, size + 1).await?))
            .await?;
        let (items, next) = self.page(&context, items, size, |item| item.campaign_id.to_string());
        Ok(ListPage { items, next })
    }

    /// Disables an organization: its applications lose the drops scope and their webhooks. A repeated call
    /// is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it does not exist.
    pub async fn disable_organization(&self, id: &OrganizationId) -> Result<(), Error> {
        let organization = id.clone();
        let exists = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let exists = work.disable_organization(&organization, now).await?;
                if exists {
                    work.audit(AuditAction::OrganizationDisable, &organization).await?;
                }
                Ok(exists)
            })
            .await?;
        require(exists, Resource::Organization)
    }

    /// Enables an organization: its applications have the drops scope and their webhooks again. A repeated
    /// call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it does not exist.
    pub async fn enable_organization(&self, id: &OrganizationId) -> Result<(), Error> {
        let id = id.clone();
        let exists = self
            .write(async move |work: &mut Work<'_>| {
                let exists = work.enable_organization(&id).await?;
                if exists {
                    work.audit(AuditAction::OrganizationEnable, &id).await?;
                }
                Ok(exists)
            })
            .await?;
        require(exists, Resource::Organization)
    }

    /// Deletes an organization. A missing organization is no error.
    ///
    /// # Errors
    /// `Invalid` while it has applications or campaigns.
    pub async fn delete_organization(&self, id: &OrganizationId) -> Result<(), Error> {
        let id = id.clone();
        let in_use = |error| match error {
            StoreError::ForeignKey => {
                Invalid::new("organizationId", Rule::InUse("applications, campaigns")).into()
            }
            error => Error::from(error),
        };
        self.write(async move |work: &mut Work<'_>| {
            if work.delete_organization(&id).await.map_err(in_use)? {
                work.audit(AuditAction::OrganizationDelete, &id).await?;
            }
            Ok(())
        })
        .await
    }

    /// Disables a campaign: its rewards cannot be claimed, and no watched minutes count for it. A repeated
    /// call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it does not exist.
    pub async fn disable_campaign(&self, id: &CampaignId) -> Result<(), Error> {
        let id = id.clone();
        let exists = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let exists = work.disable_campaign(&id, now).await?;
                if exists {
                    work.audit(AuditAction::CampaignDisable, &id).await?;
                }
                Ok(exists)
            })
            .await?;
        require(exists, Resource::Campaign)
    }

    /// Enables a campaign. A repeated call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it does not exist.
    pub async fn enable_campaign(&self, id: &CampaignId) -> Result<(), Error> {
        let id = id.clone();
        let exists = self
            .write(async move |work: &mut Work<'_>| {
                let exists = work.enable_campaign(&id).await?;
                if exists {
                    work.audit(AuditAction::CampaignEnable, &id).await?;
                }
                Ok(exists)
            })
            .await?;
        require(exists, Resource::Campaign)
    }

    /// Deletes a campaign without claims, with its rewards and its watched minutes. A missing campaign is no
    /// error.
    ///
    /// # Errors
    /// `Invalid` when a reward was claimed. Such a campaign can only be disabled.
    pub async fn delete_campaign(&self, id: &CampaignId) -> Result<(), Error> {
        let in_use = || Error::from(Invalid::new("campaignId", Rule::InUse("reward claims")));
        let campaign = id.clone();
        let has_claims = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                if work.campaign_has_claims(&campaign).await? {
                    return Ok(true);
                }
                // A disabled campaign gets no further minutes, so the deletion below comes to an end.
                work.disable_campaign(&campaign, now).await?;
                Ok::<_, Error>(false)
            })
            .await?;
        if has_claims {
            return Err(in_use());
        }
        loop {
            let campaign = id.clone();
            let deleted = self
                .write(async move |work: &mut Work<'_>| Ok(work.delete_campaign_minutes(&campaign).await?))
                .await?;
            if deleted == 0 {
                break;
            }
        }
        let id = id.clone();
        // If a reward was claimed concurrently, the campaign stays, disabled.
        let in_use = move |error| match error {
            StoreError::ForeignKey => in_use(),
            error => error.into(),
        };
        self.write(async move |work: &mut Work<'_>| {
            if work.delete_campaign(&id).await.map_err(in_use)? {
                work.audit(AuditAction::CampaignDelete, &id).await?;
            }
            Ok(())
        })
        .await
    }
}

fn require(exists: bool, resource: Resource) -> Result<(), Error> {
    if exists { Ok(()) } else { Err(Refusal::NotFound(resource).into()) }
}
