//! The operator's calls on applications: list, disable, enable, delete.

use domain::audit::AuditAction;
use domain::quota::QuotaShare;
use domain::refusal::Resource;
use domain::{ClientId, OrganizationId, Refusal};
use serde_json::json;
use store::Tx;
use store::queries::application_life::ApplicationLife;
pub use store::queries::application_search::ApplicationSearch;
use store::queries::session_ends::AdmittedBy;

use crate::identity::application_life::irrecoverable_since;
use crate::work::Work;
use crate::{Error, Service};

/// Number of applications that one query reads.
const PAGE_ROWS: i64 = 100;
/// Maximum number of applications that are ordered by their age.
const BY_AGE_MAX: usize = 1_000;

/// One page of the list of applications.
#[derive(Clone, Debug)]
pub struct ApplicationPage {
    /// Ordered by id, without their notices.
    pub applications: Vec<ApplicationLife>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl Service {
    /// Applications, including deleted applications that can be restored, ordered by id.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list or filter.
    pub async fn applications(
        &self,
        organization: Option<OrganizationId>,
        size: i64,
        next: Option<&str>,
    ) -> Result<ApplicationPage, Error> {
        let context =
            serde_json::json!(["applications", organization.as_ref().map(|id| id.as_str())]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let (after, irrecoverable_since) = (after.unwrap_or_default(), irrecoverable_since(self.now()));
        let applications = self
            .read(async move |tx: &mut Tx| {
                let organization = organization;
                Ok(match &organization {
                    Some(id) => {
                        tx.applications_of_organization(id, &after, irrecoverable_since, size + 1).await?
                    }
                    None => tx.applications(&after, irrecoverable_since, size + 1).await?,
                })
            })
            .await?;
        let (applications, next) =
            self.page(&context, applications, size, |life| life.application.client_id.to_string());
        Ok(ApplicationPage { applications, next })
    }

    /// The applications of a sandbox, which has few: as [`applications`](Self::applications), the oldest
    /// first, and those of one age in the order of their ids. So those of its world come before those that a
    /// developer registers.
    pub async fn applications_by_age(&self) -> Result<Vec<ApplicationLife>, Error> {
        let (mut all, mut next) = (Vec::new(), None);
        loop {
            let page = self.applications(None, PAGE_ROWS, next.as_deref()).await?;
            all.extend(page.applications);
            next = page.next;
            if next.is_none() || all.len() >= BY_AGE_MAX {
                break;
            }
        }
        // The list comes in the order of the ids, and the order of equals stays.
        all.sort_by_key(|life| life.created_at);
        Ok(all)
    }

    /// All applications, or those in a state, in the order of their ids.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn search_applications(
        &self,
        search: ApplicationSearch,
        size: i64,
        next: Option<&str>,
    ) -> Result<ApplicationPage, Error> {
        let context = serde_json::json!(["application-search", format!("{search:?}")]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let after = after.map(ClientId::stored);
        let since = irrecoverable_since(self.now());
        let applications = self
            .read(async move |tx: &mut Tx| {
                Ok(tx.search_applications(search, after.as_ref(), since, size + 1).await?)
            })
            .await?;
        let (applications, next) =
            self.page(&context, applications, size, |life| life.application.client_id.to_string());
        Ok(ApplicationPage { applications, next })
    }

    /// Lets quotas hold for an application, or not.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist.
    pub async fn set_application_quota(&self, client_id: &ClientId, quota: bool) -> Result<(), Error> {
        let (id, irrecoverable_since) = (client_id.clone(), irrecoverable_since(self.now()));
        self.write(async move |work: &mut Work<'_>| {
            if !work.set_application_quota(&id, quota, irrecoverable_since).await? {
                return Err(Error::from(Refusal::NotFound(Resource::Application)));
            }
            Ok(work.audit_with(AuditAction::ApplicationQuota, &id, json!({ "quota": quota })).await?)
        })
        .await
    }

    /// Gives an application a part of the quotas, or turns them off.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist.
    pub async fn set_quota_share(&self, client_id: &ClientId, share: QuotaShare) -> Result<(), Error> {
        let QuotaShare::Percent(percent) = share else {
            return self.set_application_quota(client_id, false).await;
        };
        let (id, irrecoverable_since) = (client_id.clone(), irrecoverable_since(self.now()));
        self.write(async move |work: &mut Work<'_>| {
            if !work.set_application_quota_percent(&id, percent, irrecoverable_since).await? {
                return Err(Error::from(Refusal::NotFound(Resource::Application)));
            }
            let details = json!({ "quota": true, "percent": percent });
            Ok(work.audit_with(AuditAction::ApplicationQuota, &id, details).await?)
        })
        .await
    }

    /// Disables an application. Until it is enabled, every node refuses its secrets, tokens and session
    /// URLs. Its sessions end. A repeated call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist.
    pub async fn disable_application(&self, client_id: &ClientId) -> Result<(), Error> {
        let id = client_id.clone();
        let exists = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let exists = work.disable_application(&id, now, irrecoverable_since(now)).await?;
                if exists {
                    work.audit(AuditAction::ApplicationDisable, &id).await?;
                }
                Ok(exists)
            })
            .await?;
        if !exists {
            return Err(Refusal::NotFound(Resource::Application).into());
        }
        tracing::info!(%client_id, "application disabled");
        self.end_admitted(AdmittedBy::Application(client_id.clone())).await
    }

    /// Enables an application: its secrets and its unexpired tokens are valid again. A repeated call is no
    /// error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist.
    pub async fn enable_application(&self, client_id: &ClientId) -> Result<(), Error> {
        let (id, irrecoverable_since) = (client_id.clone(), irrecoverable_since(self.now()));
        let exists = self
            .write(async move |work: &mut Work<'_>| {
                let exists = work.enable_application(&id, irrecoverable_since).await?;
                if exists {
                    work.audit(AuditAction::ApplicationEnable, &id).await?;
                }
                Ok(exists)
            })
            .await?;
        if !exists {
            return Err(Refusal::NotFound(Resource::Application).into());
        }
        tracing::info!(%client_id, "application enabled");
        Ok(())
    }

    /// Deletes an application irrecoverably, with its secrets, consents, tokens, sessions and webhook. The
    /// first transaction makes all its credentials invalid; later ones delete the dependent rows in batches.
    /// A missing application is no error.
    pub async fn delete_application(&self, client_id: &ClientId) -> Result<(), Error> {
        let id = client_id.clone();
        let deleted = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let deleted = work.begin_purge_of_application(&id, now).await?;
                work.delete_webhook(&id, now).await?;
                if deleted {
                    work.audit(AuditAction::ApplicationDelete, &id).await?;
                }
                Ok::<_, Error>(deleted)
            })
            .await?;
        if deleted {
            tracing::info!(%client_id, "application deleted");
        }
        self.end_admitted(AdmittedBy::Application(client_id.clone())).await?;
        while self.purge_applications().await? > 0 {}
        Ok(())
    }

    /// Whether an application is being deleted. If it is, this function first deletes all rows of purged
    /// applications that can be deleted, which may complete the deletion.
    pub(crate) async fn is_being_deleted(&self, client_id: &ClientId) -> Result<bool, Error> {
        let id = client_id.clone();
        let is_purging = async |id: ClientId| {
            self.read(async move |tx: &mut Tx| Ok::<_, Error>(tx.is_application_purging(&id).await?)).await
        };
        if !is_purging(id.clone()).await? {
            return Ok(false);
        }
        while self.purge_applications().await? > 0 {}
        is_purging(id).await
    }
}
