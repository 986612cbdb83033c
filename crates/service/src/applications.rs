//! Applications: registering them.

use domain::application::{Application, Organization, RedirectUri};
use domain::limits::{NAME_CHARS_MAX, REDIRECT_URIS_MAX};
use domain::refusal::Resource;
use domain::secret::ClientSecret;
use domain::{ClientId, Invalid, OrganizationId, Profile, Rule, ScopeSet, invalid};
use store::StoreError;

use crate::application_life::gone_since;
use crate::channels::not_found;
use crate::idempotency::{self, IdempotencyKey};
use crate::{Error, Service, subscriptions};

/// What an application is told to be.
#[derive(Clone, Debug)]
pub struct ApplicationRecord {
    /// Its id.
    pub client_id: ClientId,
    /// Its name.
    pub name: String,
    /// Who owns it.
    pub organization_id: Option<OrganizationId>,
    /// Where its sign-ins may end.
    pub redirect_uris: Vec<RedirectUri>,
    /// What it asks for.
    pub scopes: ScopeSet,
    /// Its own profile, if it has one.
    pub profile: Option<Profile>,
    /// Whether quotas hold for it.
    pub quota: bool,
}

impl Service {
    /// The application of that id, for a page that shows its name.
    pub async fn application(&self, client_id: &ClientId) -> Result<Option<Application>, Error> {
        let client_id = client_id.clone();
        self.read(move |tx| Box::pin(async move { Ok(tx.application(&client_id).await?) })).await
    }

    /// Makes or replaces an organization.
    ///
    /// # Errors
    /// `Invalid` when the name is blank or too long.
    pub async fn put_organization(&self, organization: Organization) -> Result<(), Error> {
        invalid::text("organizationName", &organization.name, 1, NAME_CHARS_MAX)?;
        self.write(move |tx| Box::pin(async move { Ok(tx.put_organization(&organization).await?) })).await
    }

    /// Makes or replaces an application. A new one gets a secret, which is never shown again. Scopes that it loses end
    /// at once: they leave the consents, so that only a new consent brings them back, and the subscriptions that needed
    /// them are revoked. One that was deleted for want of use is restored.
    ///
    /// # Errors
    /// `Invalid` for a wrong name, too many redirect addresses, or an unknown organization.
    pub async fn put_application(&self, record: ApplicationRecord) -> Result<Option<ClientSecret>, Error> {
        invalid::text("name", &record.name, 1, NAME_CHARS_MAX)?;
        if record.redirect_uris.len() > REDIRECT_URIS_MAX {
            return Err(Invalid::new("redirectUris", Rule::Items { min: 0, max: REDIRECT_URIS_MAX }).into());
        }
        let (now, secret) = (self.now(), ClientSecret::generate(self.random()));
        let hash = secret.hash();
        let made = self
            .write_then_publish(move |tx| {
                Box::pin(async move {
                    let ApplicationRecord {
                        client_id,
                        name,
                        organization_id,
                        redirect_uris,
                        scopes,
                        profile,
                        quota,
                    } = record;
                    let organization = organization_id.map(|organization_id| Organization {
                        organization_id,
                        name: String::new(),
                        verified: false,
                    });
                    let application = Application { client_id, name, organization, scopes, profile, quota };
                    let client_id = &application.client_id;
                    tx.forget_gone_application(client_id, gone_since(now)).await?;
                    tx.put_application(&application, now).await.map_err(unknown_organization)?;
                    let changes = subscriptions::revoke_outside(tx, client_id, application.scopes).await?;
                    tx.delete_redirect_uris(client_id).await?;
                    for uri in &redirect_uris {
                        tx.insert_redirect_uri(client_id, uri).await?;
                    }
                    let new = tx.application_secrets(client_id).await?.is_empty();
                    if new {
                        tx.insert_application_secret(client_id, &hash, now).await?;
                    }
                    Ok((new, changes))
                })
            })
            .await?;
        Ok(made.then_some(secret))
    }

    /// Gives an application one more secret. Those it has stay good. A repeated key gets the same secret again, which is
    /// kept sealed for as long as the key is remembered.
    ///
    /// # Errors
    /// [`domain::Refusal::NotFound`] when there is no such application.
    pub async fn add_secret(
        &self,
        client_id: &ClientId,
        key: Option<IdempotencyKey>,
    ) -> Result<ClientSecret, Error> {
        let secret = ClientSecret::generate(self.random());
        let subject = format!("secret of {client_id}");
        let sealed = self.key().seal(&subject, secret.expose(), self.random());
        let (client_id, hash, now) = (client_id.clone(), secret.hash(), self.now());
        let earlier = self
            .write(move |tx| {
                Box::pin(async move {
                    let earlier = idempotency::claim(tx, key.as_ref(), &sealed, now).await?;
                    if earlier.is_none() {
                        tx.insert_application_secret(&client_id, &hash, now)
                            .await
                            .map_err(not_found(Resource::Application))?;
                    }
                    Ok::<_, Error>(earlier)
                })
            })
            .await?;
        let Some(sealed) = earlier else { return Ok(secret) };
        let opened = self.key().open(&subject, &sealed).as_deref().and_then(ClientSecret::presented);
        opened.ok_or(Error::Internal("a client secret was sealed with another service key"))
    }

    /// Makes sure that a secret that is known outside, as in the sandbox's notes, is one of the application's.
    ///
    /// # Errors
    /// [`domain::Refusal::NotFound`] when there is no such application.
    pub async fn keep_secret(&self, client_id: &ClientId, secret: &ClientSecret) -> Result<(), Error> {
        let (client_id, hash, now) = (client_id.clone(), secret.hash(), self.now());
        self.write(move |tx| {
            Box::pin(async move {
                tx.insert_application_secret(&client_id, &hash, now)
                    .await
                    .map_err(not_found(Resource::Application))
            })
        })
        .await
    }
}

fn unknown_organization(error: StoreError) -> Error {
    match error {
        StoreError::ForeignKey => Invalid::new("organizationId", Rule::KnownOrganization).into(),
        error => error.into(),
    }
}
