//! Registration of applications and organizations.

use domain::application::{Application, Organization, Presentation, RedirectUri};
use domain::audit::AuditAction;
use domain::limits::{NAME_CHARS_MAX, REDIRECT_URIS_MAX};
use domain::picture::Picture;
use domain::quota::QuotaShare;
use domain::secret::ClientSecret;
use domain::{ChannelId, ClientId, Invalid, OrganizationId, Profile, Rule, ScopeSet, invalid};
use serde_json::json;
use store::{StoreError, Tx};

use crate::identity::application_changes;
use crate::identity::application_life::irrecoverable_since;
use crate::realtime::subscriptions;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// The registration of an application.
#[derive(Clone, Debug)]
pub struct ApplicationRecord {
    /// Its id.
    pub client_id: ClientId,
    /// Its name.
    pub name: String,
    /// The organization that owns it.
    pub organization_id: Option<OrganizationId>,
    /// The person who owns it.
    pub owner: Option<ChannelId>,
    /// The addresses that a sign-in may redirect to.
    pub redirect_uris: Vec<RedirectUri>,
    /// The scopes that it asks for.
    pub scopes: ScopeSet,
    /// Its profile; `None` for the service's profile.
    pub profile: Option<Profile>,
    /// Whether quotas apply to it.
    pub quota: bool,
    /// What it says about itself. The logo is apart.
    pub presentation: Presentation,
    /// Its logo.
    pub logo: NewLogo,
}

/// What becomes of the logo of an application.
#[derive(Clone, Debug, Default)]
pub enum NewLogo {
    /// It stays as it is.
    #[default]
    Kept,
    /// It is removed.
    Removed,
    /// It is this one.
    Replaced(Picture),
}

impl Service {
    /// The application with this id, for a page that shows its name.
    pub async fn application(&self, client_id: &ClientId) -> Result<Option<Application>, Error> {
        let client_id = client_id.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.application(&client_id).await?)).await
    }

    /// The logo of an application.
    pub async fn application_logo(&self, client_id: &ClientId) -> Result<Option<Picture>, Error> {
        let client_id = client_id.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.application_logo(&client_id).await?)).await
    }

    /// Creates or replaces an organization.
    ///
    /// # Errors
    /// `Invalid` when the name is blank or too long.
    pub async fn put_organization(&self, organization: Organization) -> Result<(), Error> {
        invalid::text("organizationName", &organization.name, 1, NAME_CHARS_MAX)?;
        self.write(async move |work: &mut Work<'_>| {
            work.put_organization(&organization).await?;
            let Organization { organization_id, name, verified } = &organization;
            let details = json!({ "name": name, "verified": verified });
            Ok(work.audit_with(AuditAction::OrganizationPut, organization_id, details).await?)
        })
        .await
    }

    /// Creates or replaces an application. A new application gets a secret, which is never shown again. A
    /// scope that the application loses is removed from its consents, so only a new consent returns it,
    /// and the subscriptions that needed the scope are revoked. An application that was deleted because it
    /// was unused is restored.
    ///
    /// # Errors
    /// `Invalid` for a wrong name, too many redirect addresses, an unknown owner, two owners, or the id of an
    /// application that is being deleted.
    pub async fn put_application(&self, record: ApplicationRecord) -> Result<Option<ClientSecret>, Error> {
        invalid::text("name", &record.name, 1, NAME_CHARS_MAX)?;
        few_enough(&record.redirect_uris)?;
        if record.owner.is_some() && record.organization_id.is_some() {
            return Err(Invalid::new("ownerChannelId", Rule::NotTogether("organizationId")).into());
        }
        if self.is_being_deleted(&record.client_id).await? {
            return Err(Invalid::new("clientId", Rule::BeingDeleted).into());
        }
        let secret = ClientSecret::generate(self.random(Purpose::ClientSecret));
        let new_secret = self.new_secret(&secret);
        let created = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let ApplicationRecord {
                    client_id,
                    name,
                    organization_id,
                    owner,
                    redirect_uris,
                    scopes,
                    profile,
                    quota,
                    presentation,
                    logo,
                } = record;
                let organization = organization_id.map(|organization_id| Organization {
                    organization_id,
                    name: String::new(),
                    verified: false,
                });
                let application = Application {
                    client_id,
                    name,
                    organization,
                    owner,
                    scopes,
                    profile,
                    quota: if quota { QuotaShare::FULL } else { QuotaShare::Unlimited },
                    presentation,
                };
                let client_id = &application.client_id;
                if let Some(owner) = &application.owner {
                    require_owner(work, owner).await?;
                }
                work.delete_unrestorable_application(client_id, irrecoverable_since(now)).await?;
                work.lock_application(client_id).await?;
                let before = work.application(client_id).await?;
                let former = work.redirect_uris(client_id).await?;
                work.put_application(&application, now).await.map_err(unknown_organization)?;
                match logo {
                    NewLogo::Kept => {}
                    NewLogo::Removed => work.put_application_logo(client_id, None).await?,
                    NewLogo::Replaced(logo) => work.put_application_logo(client_id, Some(&logo)).await?,
                }
                subscriptions::revoke_outside(work, client_id, application.scopes).await?;
                work.delete_redirect_uris(client_id).await?;
                for uri in &redirect_uris {
                    work.insert_redirect_uri(client_id, uri).await?;
                }
                let before = before.as_ref().map(|before| (before, &*former));
                let mut details = application_changes::details(before, &application, &redirect_uris);
                details.insert("isNew".to_owned(), json!(before.is_none()));
                details.insert("scopes".to_owned(), json!(application_changes::scope_keys(&application)));
                details.insert("quota".to_owned(), json!(quota));
                let organization = application.organization.as_ref().map(|owner| &owner.organization_id);
                details.insert("organizationId".to_owned(), json!(organization));
                let makes_secret = work.application_secrets(client_id, now).await?.is_empty();
                if makes_secret {
                    work.insert_application_secret(client_id, &new_secret, now).await?;
                    details.insert("lastCharacters".to_owned(), json!(new_secret.last_characters));
                }
                work.audit_with(AuditAction::ApplicationPut, client_id, details.into()).await?;
                Ok(makes_secret)
            })
            .await?;
        Ok(created.then_some(secret))
    }

    /// Replaces the redirect addresses of an application.
    ///
    /// # Errors
    /// `Invalid` for too many addresses; the store's when there is no such application.
    pub async fn put_redirect_uris(
        &self,
        client_id: ClientId,
        redirect_uris: Vec<RedirectUri>,
    ) -> Result<(), Error> {
        few_enough(&redirect_uris)?;
        self.write(async move |work: &mut Work<'_>| {
            work.delete_redirect_uris(&client_id).await?;
            for uri in &redirect_uris {
                work.insert_redirect_uri(&client_id, uri).await?;
            }
            Ok(())
        })
        .await
    }
}

/// Locks the channel of an owner.
///
/// # Errors
/// `Invalid` naming `ownerChannelId` when there is no such channel.
async fn require_owner(work: &mut Work<'_>, owner: &ChannelId) -> Result<(), Error> {
    let is_there = work.lock_channel(owner).await?
        && !work.channels_by_id(std::slice::from_ref(owner)).await?.is_empty();
    match is_there {
        true => Ok(()),
        false => Err(Invalid::new("ownerChannelId", Rule::KnownChannel).into()),
    }
}

pub(crate) fn few_enough(redirect_uris: &[RedirectUri]) -> Result<(), Invalid> {
    match redirect_uris.len() {
        0..=REDIRECT_URIS_MAX => Ok(()),
        _ => Err(Invalid::new("redirectUris", Rule::Items { min: 0, max: REDIRECT_URIS_MAX })),
    }
}

fn unknown_organization(error: StoreError) -> Error {
    match error {
        StoreError::ForeignKey => Invalid::new("organizationId", Rule::KnownOrganization).into(),
        error => error.into(),
    }
}
