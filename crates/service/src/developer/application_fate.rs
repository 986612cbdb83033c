//! What people do with their applications as a whole: disable, enable, delete, restore, hand over.

use domain::application::Application;
use domain::audit::AuditAction;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::{ChannelId, ClientId, Invalid, OrganizationId, Refusal, Rule, Scope, Timestamp};
use serde_json::json;
use store::queries::session_ends::AdmittedBy;

use crate::developer::owned_applications::authorize;
use crate::developer::registration::{check_owner, lock_owned};
use crate::identity::application_life::irrecoverable_since;
use crate::realtime::subscriptions;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Disables an application for one of its developers, as the operator can: credentials are refused, and
    /// sessions end. A repeated call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not the person's.
    pub async fn disable_application_of_owner(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
    ) -> Result<(), Error> {
        let (person, id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            lock_owned(work, &person, &id, MemberRole::Developer).await?;
            work.disable_application_of_owner(&id, now).await?;
            Ok::<_, Error>(work.audit(AuditAction::ApplicationDisable, &id).await?)
        })
        .await?;
        tracing::info!(%client_id, "application disabled by its owner");
        self.end_admitted(AdmittedBy::Application(client_id.clone())).await
    }

    /// Enables an application for one of its developers. What the operator disabled stays disabled. A
    /// repeated call is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not the person's.
    pub async fn enable_application_of_owner(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
    ) -> Result<(), Error> {
        let (person, id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            lock_owned(work, &person, &id, MemberRole::Developer).await?;
            work.enable_application_of_owner(&id).await?;
            Ok::<_, Error>(work.audit(AuditAction::ApplicationEnable, &id).await?)
        })
        .await
    }

    /// Deletes an application for an admin of it. Everything ends at once. The application can be restored
    /// for 30 days. `name` is typed by the person, as a
    /// confirmation; the client id will do.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not the person's; `Invalid` naming `name` when it is another one.
    pub async fn delete_application_of_owner(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        name: &str,
    ) -> Result<(), Error> {
        let (person, id, name) = (person.clone(), client_id.clone(), name.to_owned());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let owned = lock_owned(work, &person, &id, MemberRole::Admin).await?;
            let application = &owned.life.application;
            // A name may hold characters that cannot be typed.
            if application.name != name && application.client_id.as_str() != name {
                return Err(Error::from(Invalid::new("name", Rule::SameName)));
            }
            work.delete_application_of_owner(&id, now).await?;
            work.withdraw_requests_of_application(&id, now).await?;
            work.delete_application_offer(&id).await?;
            work.audit(AuditAction::ApplicationDelete, &id).await?;
            subscriptions::revoke_all(work, &id).await
        })
        .await?;
        tracing::info!(%client_id, "application deleted by its owner");
        self.end_admitted(AdmittedBy::Application(client_id.clone())).await
    }

    /// Restores a deleted application for an admin of it, as
    /// [`restore_application`](Self::restore_application) does.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not the person's, or irrecoverable.
    pub async fn restore_application_of_owner(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
    ) -> Result<(), Error> {
        let (person, client_id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            authorize(work, &person, &client_id, MemberRole::Admin, now).await?;
            match work.restore_application(&client_id, now, irrecoverable_since(now)).await? {
                true => Ok(work.audit(AuditAction::ApplicationRestore, &client_id).await?),
                false => Err(Refusal::NotFound(Resource::Application).into()),
            }
        })
        .await
    }

    /// Hands an application over to an organization in which the person is a developer, or to the person
    /// (`None`). The scope of drops and pending requests end, because the operator granted them to another
    /// owner.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is no admin of the application; `Invalid` naming
    /// `organizationId` when the new owner cannot have it.
    pub async fn hand_over_application(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        to: Option<OrganizationId>,
    ) -> Result<(), Error> {
        let (person, client_id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // The owner is locked first, as by a registration.
            check_owner(work, &person, to.as_ref()).await?;
            let owned = lock_owned(work, &person, &client_id, MemberRole::Admin).await?;
            let application = owned.life.application;
            let is_same = match (&application.organization, &to) {
                (Some(from), Some(to)) => from.organization_id == *to,
                (None, None) => true,
                _ => false,
            };
            if is_same {
                return Ok(());
            }
            give_away(work, &application, &person, to.as_ref(), now).await
        })
        .await
    }
}

/// Gives an application to an organization, or to the person (`None`). The scope of drops, pending requests
/// and an offer end.
pub(crate) async fn give_away(
    work: &mut Work<'_>,
    application: &Application,
    person: &ChannelId,
    to: Option<&OrganizationId>,
    now: Timestamp,
) -> Result<(), Error> {
    let client_id = &application.client_id;
    work.set_application_owner(client_id, to.is_none().then_some(person), to).await?;
    let scopes = application.scopes.without([Scope::Drops].into_iter().collect());
    work.set_application_scopes(client_id, scopes).await?;
    work.delete_application_offer(client_id).await?;
    work.withdraw_requests_of_application(client_id, now).await?;
    let from = application.organization.as_ref().map(|organization| &organization.organization_id);
    let details = json!({ "fromOrganizationId": from, "toOrganizationId": to });
    Ok(work.audit_with(AuditAction::ApplicationHandOver, client_id, details).await?)
}
