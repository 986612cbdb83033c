//! The applications of people, and the role that a person needs for what is done with one.

use domain::member::{MemberRole, role_over};
use domain::refusal::Resource;
use domain::{ChannelId, ClientId, Refusal, Timestamp};
use store::Tx;
use store::queries::application_life::ApplicationLife;

use crate::developer::developer_settings::DeveloperSettings;
use crate::developer::organization_members::MEMBERSHIPS_LISTED;
use crate::identity::application_life::{ApplicationDetails, irrecoverable_since};
use crate::identity::organizations::ListPage;
use crate::{Error, Service};

/// An application as one of its people sees it.
#[derive(Clone, Debug)]
pub struct PersonApplication {
    /// The application with its times. In a list without its notices.
    pub life: ApplicationLife,
    /// The person's role.
    pub role: MemberRole,
}

/// An application as one of its people sees it, with its redirect addresses.
#[derive(Clone, Debug)]
pub struct DeveloperApplication {
    /// The application.
    pub details: ApplicationDetails,
    /// The person's role.
    pub role: MemberRole,
}

impl Service {
    /// The settings of the developer center.
    pub fn developer_settings(&self) -> &DeveloperSettings {
        &self.0.developers
    }

    /// The applications of a person and of the person's organizations, ordered by id, also those that can be
    /// restored.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn applications_of_person(
        &self,
        person: &ChannelId,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<PersonApplication>, Error> {
        let context = serde_json::json!(["applications-of-person", person.as_str()]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let (after, person) = (after.unwrap_or_default(), person.clone());
        let since = irrecoverable_since(self.now());
        let mut applications = self
            .read(async move |tx: &mut Tx| {
                let owned = tx.applications_of_owner(&person, &after, since, size + 1).await?;
                let of_owner = |life| PersonApplication { life, role: MemberRole::Admin };
                let mut found: Vec<_> = owned.into_iter().map(of_owner).collect();
                // Each list is one range of an index. One statement for all of them would sort them all.
                for membership in tx.memberships(&person, "", MEMBERSHIPS_LISTED).await? {
                    let id = &membership.organization.organization_id;
                    let shared = tx.applications_of_organization(id, &after, since, size + 1).await?;
                    let role = membership.role;
                    found.extend(shared.into_iter().map(|life| PersonApplication { life, role }));
                }
                Ok::<_, Error>(found)
            })
            .await?;
        applications.sort_by(|a, b| a.life.application.client_id.cmp(&b.life.application.client_id));
        let fits = usize::try_from(size + 1).unwrap_or(usize::MAX);
        applications.truncate(fits);
        let (items, next) =
            self.page(&context, applications, size, |item| item.life.application.client_id.to_string());
        Ok(ListPage { items, next })
    }

    /// An application for one of its people, also while it can be restored.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such application, or the person has a lesser role.
    pub async fn application_of_person(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        at_least: MemberRole,
    ) -> Result<DeveloperApplication, Error> {
        let (person, client_id, now) = (person.clone(), client_id.clone(), self.now());
        self.read(async move |tx: &mut Tx| {
            // The notices come with the second look-up.
            let role = authorize(tx, &person, &client_id, at_least, now).await?.role;
            let life = tx.application_life(&client_id, irrecoverable_since(now)).await?;
            let life = life.ok_or(Refusal::NotFound(Resource::Application))?;
            let redirect_uris = tx.redirect_uris(&client_id).await?;
            Ok(DeveloperApplication { details: ApplicationDetails { life, redirect_uris }, role })
        })
        .await
    }
}

/// The application and the role of a person who has this role at least.
///
/// # Errors
/// [`Refusal::NotFound`] when there is no such application, or the person has a lesser role.
pub(crate) async fn authorize(
    tx: &mut Tx,
    person: &ChannelId,
    client_id: &ClientId,
    at_least: MemberRole,
    now: Timestamp,
) -> Result<PersonApplication, Error> {
    let not_found = || Error::from(Refusal::NotFound(Resource::Application));
    let found = tx.application_access(client_id, person, irrecoverable_since(now)).await?;
    let (life, member) = found.ok_or_else(not_found)?;
    match role_over(&life.application, member, person) {
        Some(role) if role >= at_least => Ok(PersonApplication { life, role }),
        Some(_) | None => Err(not_found()),
    }
}
