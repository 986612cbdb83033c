//! Organizations and campaigns as the operator sees them: listed, switched off and on, deleted.

use domain::refusal::Resource;
use domain::{CampaignId, Invalid, OrganizationId, Refusal, Rule};
pub use store::queries::organizations::{CampaignListing, OrganizationDetails};
use store::{StoreError, Tx};

use crate::work::Work;
use crate::{Error, Service};

/// One page of a list by ids.
#[derive(Clone, Debug)]
pub struct ListPage<T> {
    /// By their ids.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl Service {
    /// Organizations, by their ids.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor that is not of this list.
    pub async fn organizations(
        &self,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<OrganizationDetails>, Error> {
        const CONTEXT: &str = "organizations";
        let after = next.map(|cursor| self.cursors().open("next", CONTEXT, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let items = self.read(async move |tx: &mut Tx| Ok(tx.organizations(&after, size + 1).await?)).await?;
        Ok(self.page(CONTEXT, items, size, |item| item.organization.organization_id.as_str()))
    }

    /// Campaigns of an organization, or of all, by their ids.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor that is not of this list and filter.
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
        Ok(self.page(&context, items, size, |item| item.campaign_id.as_str()))
    }

    /// The page, and the cursor behind it if one item more than the page came.
    fn page<T>(
        &self,
        context: &str,
        mut items: Vec<T>,
        size: i64,
        id: impl for<'i> Fn(&'i T) -> &'i str,
    ) -> ListPage<T> {
        let more = items.len() > usize::try_from(size).unwrap_or(usize::MAX);
        if more {
            items.pop();
        }
        let next = items.last().filter(|_| more).map(|last| self.cursors().seal(context, id(last)));
        ListPage { items, next }
    }

    /// Takes from an organization what its verification gives: the drops scope of its applications, and their
    /// webhooks. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn disable_organization(&self, id: &OrganizationId) -> Result<(), Error> {
        let organization = id.clone();
        let there = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                Ok(work.disable_organization(&organization, now).await?)
            })
            .await?;
        found(there, Resource::Organization)
    }

    /// Gives it back. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn enable_organization(&self, id: &OrganizationId) -> Result<(), Error> {
        let id = id.clone();
        let there =
            self.write(async move |work: &mut Work<'_>| Ok(work.enable_organization(&id).await?)).await?;
        found(there, Resource::Organization)
    }

    /// Deletes an organization. One that is not there is no error.
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
        self.write(async move |work: &mut Work<'_>| work.delete_organization(&id).await.map_err(in_use)).await
    }

    /// Lets nothing be claimed of a campaign, and no minutes count for it. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn disable_campaign(&self, id: &CampaignId) -> Result<(), Error> {
        let id = id.clone();
        let there = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                Ok(work.disable_campaign(&id, now).await?)
            })
            .await?;
        found(there, Resource::Campaign)
    }

    /// Lets a campaign go on. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn enable_campaign(&self, id: &CampaignId) -> Result<(), Error> {
        let id = id.clone();
        let there = self.write(async move |work: &mut Work<'_>| Ok(work.enable_campaign(&id).await?)).await?;
        found(there, Resource::Campaign)
    }

    /// Deletes a campaign of which nothing was claimed, with its rewards and what was watched for them. One
    /// that is not there is no error.
    ///
    /// # Errors
    /// `Invalid` when something was claimed: such a one can only be disabled.
    pub async fn delete_campaign(&self, id: &CampaignId) -> Result<(), Error> {
        let in_use = || Error::from(Invalid::new("campaignId", Rule::InUse("reward claims")));
        let campaign = id.clone();
        let has_claims = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                if work.campaign_has_claims(&campaign).await? {
                    return Ok(true);
                }
                // Nothing is added from here on, so that it comes to an end.
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
        // One that was claimed at the same moment keeps the campaign, disabled.
        let in_use = move |error| match error {
            StoreError::ForeignKey => in_use(),
            error => error.into(),
        };
        self.write(async move |work: &mut Work<'_>| work.delete_campaign(&id).await.map_err(in_use)).await
    }
}

fn found(there: bool, what: Resource) -> Result<(), Error> {
    if there { Ok(()) } else { Err(Refusal::NotFound(what).into()) }
}
