//! Applications switched off and on, deleted and listed by the operator.

use domain::refusal::Resource;
use domain::{ClientId, OrganizationId, Refusal};
use store::Tx;
use store::queries::application_life::ApplicationLife;
use store::queries::session_ends::AdmittedBy;

use crate::identity::application_life::gone_since;
use crate::work::Work;
use crate::{Error, Service};

/// One page of the list of applications.
#[derive(Clone, Debug)]
pub struct ApplicationPage {
    /// By their ids, without their notices.
    pub applications: Vec<ApplicationLife>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl Service {
    /// Applications, also those that can be restored, by their ids.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor that is not of this list and filter.
    pub async fn applications(
        &self,
        organization: Option<OrganizationId>,
        size: i64,
        next: Option<&str>,
    ) -> Result<ApplicationPage, Error> {
        let context =
            serde_json::json!(["applications", organization.as_ref().map(|id| id.as_str())]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let (after, gone) = (after.unwrap_or_default(), gone_since(self.now()));
        let mut applications = self
            .read(async move |tx: &mut Tx| {
                // One more than the page shows whether there is a next one.
                let organization = organization;
                Ok(tx.applications(organization.as_ref(), &after, gone, size + 1).await?)
            })
            .await?;
        let more = applications.len() > usize::try_from(size).unwrap_or(usize::MAX);
        if more {
            applications.pop();
        }
        let last = applications.last().filter(|_| more);
        let next = last.map(|last| self.cursors().seal(&context, last.application.client_id.as_str()));
        Ok(ApplicationPage { applications, next })
    }

    /// Switches an application off: its secrets and tokens prove nothing on any node until it is enabled, its
    /// session URLs open nothing, its sessions end. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn disable_application(&self, client_id: &ClientId) -> Result<(), Error> {
        let id = client_id.clone();
        let there = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                Ok(work.disable_application(&id, now, gone_since(now)).await?)
            })
            .await?;
        if !there {
            return Err(Refusal::NotFound(Resource::Application).into());
        }
        tracing::info!(%client_id, "application disabled");
        self.end_admitted(AdmittedBy::Application(client_id.clone())).await
    }

    /// Switches an application on again: its secrets, and those of its tokens that have not expired, are good
    /// again. Repeating it is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is none.
    pub async fn enable_application(&self, client_id: &ClientId) -> Result<(), Error> {
        let (id, gone) = (client_id.clone(), gone_since(self.now()));
        let there = self
            .write(async move |work: &mut Work<'_>| Ok(work.enable_application(&id, gone).await?))
            .await?;
        if !there {
            return Err(Refusal::NotFound(Resource::Application).into());
        }
        tracing::info!(%client_id, "application enabled");
        Ok(())
    }

    /// Deletes an application for good, with its secrets, consents, tokens, sessions and webhook. From the
    /// first step on none of its credentials is good; what hangs on it goes load by load. One that is not
    /// there is no error.
    pub async fn delete_application(&self, client_id: &ClientId) -> Result<(), Error> {
        let id = client_id.clone();
        let deleted = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let deleted = work.begin_purge_of_application(&id, now).await?;
                work.delete_webhook(&id, now).await?;
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

    /// Whether an application is being deleted, after everything was deleted that can be.
    pub(crate) async fn is_being_deleted(&self, client_id: &ClientId) -> Result<bool, Error> {
        let id = client_id.clone();
        let condemned = async |id: ClientId| {
            self.read(async move |tx: &mut Tx| Ok::<_, Error>(tx.is_application_purging(&id).await?)).await
        };
        if !condemned(id.clone()).await? {
            return Ok(false);
        }
        while self.purge_applications().await? > 0 {}
        condemned(id).await
    }
}
