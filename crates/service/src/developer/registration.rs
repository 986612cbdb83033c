//! Applications that people register and change by themselves (`docs/developers.md`).

use domain::application::{Application, Organization, Presentation, RedirectUri};
use domain::audit::AuditAction;
use domain::limits::{NAME_CHARS_MAX, OWNED_APPLICATIONS_MAX, REVIEW_TEXT_CHARS_MAX};
use domain::member::MemberRole;
use domain::picture::Picture;
use domain::quota::QuotaShare;
use domain::refusal::Resource;
use domain::review::ReviewSubject;
use domain::secret::ClientSecret;
use domain::{
    ChannelId, ClientId, Invalid, OrganizationId, Profile, Refusal, ReviewRequestId, Rule, Scope, ScopeSet,
    invalid,
};
use serde_json::json;
use store::queries::application_secrets::NewSecret;
use store::queries::review_requests::NewReviewRequest;

use crate::developer::organization_members::lock;
use crate::developer::owned_applications::{PersonApplication, authorize};
use crate::developer::review_requests::submit;
use crate::identity::application_changes;
use crate::identity::applications::few_enough;
use crate::platform::idempotency::{self, IdempotencyKey, StoredAnswer};
use crate::realtime::subscriptions;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// An application that a person registers.
#[derive(Clone, Debug)]
pub struct NewApplication {
    /// Its name.
    pub name: String,
    /// Its home page, terms and privacy policy.
    pub presentation: Presentation,
    /// The addresses that a sign-in may redirect to.
    pub redirect_uris: Vec<RedirectUri>,
    /// The organization that owns it; `None` for the person.
    pub organization_id: Option<OrganizationId>,
}

/// The settings of an application that its people change.
#[derive(Clone, Debug)]
pub struct ApplicationSettings {
    /// Its name.
    pub name: String,
    /// Its home page, terms and privacy policy.
    pub presentation: Presentation,
    /// The addresses that a sign-in may redirect to.
    pub redirect_uris: Vec<RedirectUri>,
    /// Its profile; `None` for the service's profile.
    pub profile: Option<Profile>,
}

/// What became of a choice of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeChoice {
    /// It took effect.
    Done,
    /// The operator decides about the new ones. What was taken away is gone.
    Requested,
}

/// The answer to a registration under an idempotency key.
#[derive(Clone)]
struct Registered {
    client_id: ClientId,
    /// Sealed with the service key.
    sealed: String,
}

impl StoredAnswer for Registered {
    fn to_text(&self) -> String {
        format!("{} {}", self.client_id, self.sealed)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (client_id, sealed) = text.split_once(' ')?;
        Some(Self { client_id: ClientId::stored(client_id.to_owned()), sealed: sealed.to_owned() })
    }
}

impl Service {
    /// Registers an application for a person or for one of the person's organizations, without scopes. A
    /// repeated key has one effect and returns the same secret.
    ///
    /// # Errors
    /// `Invalid` naming `name`, `redirectUris`, or `organizationId` when the organization is not the person's
    /// or the owner has too many applications.
    pub async fn register_application(
        &self,
        person: &ChannelId,
        new: NewApplication,
        key: Option<IdempotencyKey>,
    ) -> Result<(ClientId, ClientSecret), Error> {
        invalid::text("name", &new.name, 1, NAME_CHARS_MAX)?;
        few_enough(&new.redirect_uris)?;
        let client_id = ClientId::generate(self.now(), self.random(Purpose::Developer));
        let secret = ClientSecret::generate(self.random(Purpose::ClientSecret));
        let sealed = self.key().seal(&subject(&client_id), secret.expose(), self.random(Purpose::Nonce));
        let registered = Registered { client_id: client_id.clone(), sealed };
        let (person, stored) = (person.clone(), self.new_secret(&secret));
        let earlier = self
            .write(async move |work: &mut Work<'_>| {
                let earlier = idempotency::claim(work, key.as_ref(), &registered).await?;
                if earlier.is_none() {
                    let id = registered.client_id.clone();
                    register(work, &person, registered.client_id, new, &stored).await?;
                    work.audit_with(AuditAction::ApplicationPut, &id, json!({ "registered": true })).await?;
                }
                Ok::<_, Error>(earlier)
            })
            .await?;
        let Some(Registered { client_id, sealed }) = earlier else {
            tracing::info!(%client_id, "application registered");
            return Ok((client_id, secret));
        };
        let opened = self.key().open(&subject(&client_id), &sealed);
        let opened = opened.as_deref().and_then(ClientSecret::presented);
        let wrong_key = Error::Internal("a client secret was sealed with another service key");
        Ok((client_id, opened.ok_or(wrong_key)?))
    }

    /// Changes the settings of an application, for one of its developers.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not the person's; `Invalid` naming `name` or `redirectUris`.
    pub async fn change_application(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        settings: ApplicationSettings,
    ) -> Result<(), Error> {
        invalid::text("name", &settings.name, 1, NAME_CHARS_MAX)?;
        few_enough(&settings.redirect_uris)?;
        let (person, client_id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let before = lock_owned(work, &person, &client_id, MemberRole::Developer).await?.life.application;
            let ApplicationSettings { name, presentation, redirect_uris, profile } = settings;
            work.change_application(&client_id, &name, profile, &presentation).await?;
            let former = work.redirect_uris(&client_id).await?;
            work.delete_redirect_uris(&client_id).await?;
            for uri in &redirect_uris {
                work.insert_redirect_uri(&client_id, uri).await?;
            }
            let after = Application { name, presentation, profile, ..before.clone() };
            let details = application_changes::details(Some((&before, &former)), &after, &redirect_uris);
            Ok(work.audit_with(AuditAction::ApplicationPut, &client_id, details.into()).await?)
        })
        .await
    }

    /// Replaces or removes the logo of an application, for one of its developers.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not the person's.
    pub async fn change_logo(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        logo: Option<Picture>,
    ) -> Result<(), Error> {
        let (person, client_id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            lock_owned(work, &person, &client_id, MemberRole::Developer).await?;
            work.put_application_logo(&client_id, logo.as_ref()).await?;
            let details = json!({ "logo": logo.is_some() });
            Ok(work.audit_with(AuditAction::ApplicationPut, &client_id, details).await?)
        })
        .await
    }

    /// Chooses the scopes of an application, for one of its developers. What is taken away ends at once. New
    /// ones take effect at once, unless the operator reviews them: then `message` says why. The scope of
    /// drops can only be taken away here.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not the person's; `Invalid` naming `message`.
    pub async fn choose_scopes(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        chosen: ScopeSet,
        message: &str,
    ) -> Result<ScopeChoice, Error> {
        let reviewed = self.developer_settings().reviews_scopes;
        let (person, client_id, message) = (person.clone(), client_id.clone(), message.to_owned());
        let request_id = ReviewRequestId::generate(self.now(), self.random(Purpose::Developer));
        self.write(async move |work: &mut Work<'_>| {
            let owned = lock_owned(work, &person, &client_id, MemberRole::Developer).await?;
            let granted = owned.life.application.scopes;
            let added = chosen.without(granted).without([Scope::Drops].into_iter().collect());
            let direct = if reviewed { ScopeSet::EMPTY } else { added };
            let kept: ScopeSet = granted.and(chosen).iter().chain(direct.iter()).collect();
            work.set_application_scopes(&client_id, kept).await?;
            subscriptions::revoke_outside(work, &client_id, kept).await?;
            let keys = |scopes: ScopeSet| scopes.iter().map(Scope::key).collect::<Vec<_>>();
            let details =
                json!({ "added": keys(kept.without(granted)), "removed": keys(granted.without(kept)) });
            work.audit_with(AuditAction::ApplicationScopes, &client_id, details).await?;
            if !reviewed || added.is_empty() {
                return Ok(ScopeChoice::Done);
            }
            invalid::text("message", &message, 1, REVIEW_TEXT_CHARS_MAX)?;
            let subject = ReviewSubject::Scopes(client_id, added);
            let request = NewReviewRequest { request_id, subject, requested_by: person, message };
            let request_id = submit(work, &request).await?;
            let details = json!({ "requestId": request_id, "kind": request.subject.kind().name() });
            if let Some(id) = request.subject.client_id() {
                work.audit_with(AuditAction::ReviewAdd, id, details).await?;
            }
            Ok(ScopeChoice::Requested)
        })
        .await
    }
}

/// What the secret of a registration is sealed for.
fn subject(client_id: &ClientId) -> String {
    format!("secret of the registered {client_id}")
}

async fn register(
    work: &mut Work<'_>,
    person: &ChannelId,
    client_id: ClientId,
    new: NewApplication,
    secret: &NewSecret,
) -> Result<(), Error> {
    let now = work.now();
    let NewApplication { name, presentation, redirect_uris, organization_id } = new;
    check_owner(work, person, organization_id.as_ref()).await?;
    let owner = organization_id.is_none().then(|| person.clone());
    let organization = organization_id.map(|organization_id| Organization {
        organization_id,
        name: String::new(),
        verified: false,
    });
    let scopes = ScopeSet::EMPTY;
    let application = Application {
        client_id,
        name,
        organization,
        owner,
        scopes,
        profile: None,
        quota: QuotaShare::FULL,
        presentation,
    };
    work.put_application(&application, now).await?;
    for uri in &redirect_uris {
        work.insert_redirect_uri(&application.client_id, uri).await?;
    }
    Ok(work.insert_application_secret(&application.client_id, secret, now).await?)
}

/// Locks the owner of a further application, and checks that the person may give it one: the organization, or
/// the person.
///
/// # Errors
/// `Invalid` naming `organizationId`.
pub(crate) async fn check_owner(
    work: &mut Work<'_>,
    person: &ChannelId,
    organization_id: Option<&OrganizationId>,
) -> Result<(), Error> {
    let wrong = |rule| Error::from(Invalid::new("organizationId", rule));
    // The lock decides between applications that are made at the same time.
    let count = match organization_id {
        Some(id) => {
            lock(work, id).await.map_err(|_| wrong(Rule::KnownOrganization))?;
            match work.organization_role(id, person).await? {
                Some(role) if role >= MemberRole::Developer => {
                    work.organization_application_count(id, OWNED_APPLICATIONS_MAX).await?
                }
                Some(_) | None => return Err(wrong(Rule::KnownOrganization)),
            }
        }
        None => {
            if !work.lock_unbarred_channel(person).await? {
                return Err(Refusal::NotFound(Resource::Channel).into());
            }
            work.owned_application_count(person, OWNED_APPLICATIONS_MAX).await?
        }
    };
    match count < OWNED_APPLICATIONS_MAX {
        true => Ok(()),
        false => Err(wrong(Rule::Fewer { max: OWNED_APPLICATIONS_MAX })),
    }
}

/// Locks an application that is not deleted for a person who has this role at least.
///
/// # Errors
/// [`Refusal::NotFound`] otherwise.
pub(crate) async fn lock_owned(
    work: &mut Work<'_>,
    person: &ChannelId,
    client_id: &ClientId,
    at_least: MemberRole,
) -> Result<PersonApplication, Error> {
    let now = work.now();
    if !work.lock_application(client_id).await? {
        return Err(Refusal::NotFound(Resource::Application).into());
    }
    authorize(work, person, client_id, at_least, now).await
}
