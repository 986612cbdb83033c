//! Sign-in at the operator's providers: sign-ins under way, and the accounts of those who come back
//! (`docs/upstream.md`). Another crate talks to the providers.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::account::Email;
use domain::chat::check_web_address;
use domain::limits::{NAME_CHARS_MAX, UPSTREAM_FLOW_LIFETIME_MS};
use domain::mail::MailKind;
use domain::refusal::{Resource, TokenFault};
use domain::secret::{BrowserToken, SecretHash};
use domain::upstream::{UpstreamIdentity, generated_login, may_unlink};
use domain::{ChannelId, Language, Refusal, invalid};
use serde::{Deserialize, Serialize};
use store::queries::upstreams::{NewUpstreamFlow, NewUpstreamIdentity};
use store::{StoreError, Tx};

pub use store::queries::upstreams::LinkedProvider;

use crate::identity::account_settings::NO_PASSWORD;
use crate::identity::mail::write_notice;
use crate::identity::sign_in::sign_browser_in;
use crate::work::Work;
use crate::{ChannelRecord, Error, Purpose, Service};

/// A sign-in whose browser is at a provider. It does not print.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamFlow {
    /// Comes back in the ID token.
    pub nonce: String,
    /// Proves that the code was asked for here.
    pub verifier: String,
    /// The page after the sign-in.
    pub next: String,
    /// Whether the provider is linked to the account of the person who is signed in.
    pub links: bool,
    /// The form that waits for the proof of the person who is signed in, if the sign-in is one.
    #[serde(default)]
    pub pending: Option<PendingForm>,
}

/// A form that waits until its person has proved to own the account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingForm {
    /// Where it is posted.
    pub action: String,
    /// What was typed.
    pub fields: Vec<(String, String)>,
}

impl fmt::Debug for UpstreamFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamFlow")
    }
}

/// A person who came back from a provider and has no account yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamArrival {
    /// The person.
    pub identity: UpstreamIdentity,
    /// The page after the sign-in.
    pub next: String,
}

/// The result of a sign-in at a provider.
#[derive(Clone, Debug)]
pub enum UpstreamSignIn {
    /// The browser is signed in with this token, or waits for a code.
    SignedIn(BrowserToken),
    /// No account is linked.
    Unknown,
    /// The account is barred.
    Barred,
}

/// The result of linking a provider to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    /// It is linked.
    Done,
    /// The person of the provider has another account.
    OtherAccount,
    /// The account is linked to another person of the provider.
    OtherPerson,
}

/// The result of unlinking a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlinkOutcome {
    /// It is not linked any more.
    Done,
    /// The person could not sign in without it.
    LastWayIn,
}

impl Service {
    /// Begins a sign-in at a provider, in this browser. Gives the state and what else goes to the provider.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn begin_upstream_flow(
        &self,
        provider: &str,
        browser: &BrowserToken,
        next: &str,
        links: bool,
        pending: Option<PendingForm>,
    ) -> Result<(String, UpstreamFlow), Error> {
        let random = || URL_SAFE_NO_PAD.encode(self.random::<32>(Purpose::Upstream));
        let flow =
            UpstreamFlow { nonce: random(), verifier: random(), next: next.to_owned(), links, pending };
        let state = self.put_flow(provider, browser, &flow).await?;
        Ok((state, flow))
    }

    /// Takes the sign-in of a browser that came back: `None` when it is too late, was taken, or began in
    /// another browser or at another provider.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn take_upstream_flow(
        &self,
        provider: &str,
        browser: &BrowserToken,
        state: &str,
    ) -> Result<Option<UpstreamFlow>, Error> {
        self.take_flow(provider, browser, state).await
    }

    /// Keeps a person who came back until the person has named the new account. Gives the proof for the form.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keep_upstream_arrival(
        &self,
        browser: &BrowserToken,
        arrival: &UpstreamArrival,
    ) -> Result<String, Error> {
        self.put_flow(&arrival_of(&arrival.identity.provider), browser, arrival).await
    }

    /// Takes a person who came back and named the new account.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn take_upstream_arrival(
        &self,
        provider: &str,
        browser: &BrowserToken,
        proof: &str,
    ) -> Result<Option<UpstreamArrival>, Error> {
        self.take_flow(&arrival_of(provider), browser, proof).await
    }

    async fn put_flow(
        &self,
        provider: &str,
        browser: &BrowserToken,
        content: &impl Serialize,
    ) -> Result<String, Error> {
        let state = URL_SAFE_NO_PAD.encode(self.random::<32>(Purpose::Upstream));
        let (hash, browser, provider) = (SecretHash::of(&state), browser.hash(), provider.to_owned());
        let content = serde_json::to_string(content)
            .map_err(|_| Error::Internal("a sign-in at a provider cannot be written"))?;
        let sealed = self.key().seal(&subject(&hash), &content, self.random(Purpose::Nonce));
        self.write(async move |work: &mut Work<'_>| {
            let expires_at = work.now().plus_ms(UPSTREAM_FLOW_LIFETIME_MS);
            let (state, browser, provider, sealed) = (&hash, &browser, provider.as_str(), sealed.as_str());
            let flow = NewUpstreamFlow { state, browser, provider, sealed, expires_at };
            Ok(work.insert_upstream_flow(flow).await?)
        })
        .await?;
        Ok(state)
    }

    async fn take_flow<T: for<'de> Deserialize<'de>>(
        &self,
        provider: &str,
        browser: &BrowserToken,
        state: &str,
    ) -> Result<Option<T>, Error> {
        let (hash, browser, provider) = (SecretHash::of(state), browser.hash(), provider.to_owned());
        let subject = subject(&hash);
        let sealed = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                Ok(work.take_upstream_flow(&hash, &browser, &provider, now).await?)
            })
            .await?;
        let opened = sealed.and_then(|sealed| self.key().open(&subject, &sealed));
        Ok(opened.and_then(|content| serde_json::from_str(&content).ok()))
    }

    /// Signs a browser in as a person of a provider. An account with a second step asks for its code.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sign_in_upstream(&self, identity: &UpstreamIdentity) -> Result<UpstreamSignIn, Error> {
        let token = BrowserToken::generate(self.random(Purpose::Browser));
        let (hash, identity) = (token.hash(), identity.clone());
        let found = self
            .write(async move |work: &mut Work<'_>| {
                let UpstreamIdentity { issuer, subject, .. } = &identity;
                let Some(channel) = work.upstream_identity(issuer, subject).await? else { return Ok(None) };
                if !work.lock_unbarred_channel(&channel).await? {
                    return Ok(Some(false));
                }
                let now = work.now();
                if !work.use_upstream_identity(issuer, subject, &channel, now).await? {
                    return Ok(None);
                }
                sign_browser_in(work, &channel, &hash, true).await?;
                Ok::<_, Error>(Some(true))
            })
            .await?;
        Ok(match found {
            Some(true) => UpstreamSignIn::SignedIn(token),
            Some(false) => UpstreamSignIn::Barred,
            None => UpstreamSignIn::Unknown,
        })
    }

    /// Makes an account for a person of a provider, and signs the browser in. If another request has made it
    /// meanwhile, the browser is signed in to that.
    ///
    /// # Errors
    /// `Invalid` naming `channelName`.
    pub async fn register_upstream(
        &self,
        identity: &UpstreamIdentity,
        channel_name: &str,
    ) -> Result<UpstreamSignIn, Error> {
        invalid::name("channelName", channel_name, NAME_CHARS_MAX)?;
        let channel_id = ChannelId::generate(self.now(), self.random(Purpose::Channel));
        let token = BrowserToken::generate(self.random(Purpose::Browser));
        let login = generated_login(&identity.provider, self.random(Purpose::Upstream));
        let picture = identity.picture.clone().filter(|url| check_web_address("picture", url).is_ok());
        let record = ChannelRecord {
            channel_id: channel_id.clone(),
            name: channel_name.to_owned(),
            image_url: picture,
            verified_mark: false,
            real_name_verified: false,
        };
        let email = identity.email.as_deref().and_then(|email| Email::parse(email).ok());
        let (hash, person) = (token.hash(), identity.clone());
        let made = self
            .write(async move |work: &mut Work<'_>| {
                let (now, id) = (work.now(), &record.channel_id);
                work.put_channel(&record, now).await?;
                work.insert_person(id, &login, NO_PASSWORD, email.as_ref()).await?;
                if let Some(email) = &email {
                    work.verify_email(id, email.as_str(), now).await?;
                }
                work.insert_upstream_identity(link(&person, id), now).await?;
                sign_browser_in(work, id, &hash, true).await
            })
            .await;
        match made {
            Ok(()) => {
                tracing::info!(%channel_id, provider = identity.provider, "account registered by a provider");
                Ok(UpstreamSignIn::SignedIn(token))
            }
            Err(Error::Store(StoreError::Unique { .. })) => self.sign_in_upstream(identity).await,
            Err(error) => Err(error),
        }
    }

    /// Links a person of a provider to the account of a signed-in person.
    ///
    /// # Errors
    /// [`Refusal::InvalidToken`] when the account was barred meanwhile.
    pub async fn link_upstream(
        &self,
        channel: &ChannelId,
        identity: &UpstreamIdentity,
        language: Language,
    ) -> Result<LinkOutcome, Error> {
        let (service, id, person) = (self.clone(), channel.clone(), identity.clone());
        let linked = self
            .write(async move |work: &mut Work<'_>| {
                lock(work, &id).await?;
                let now = work.now();
                let owner = work.upstream_identity(&person.issuer, &person.subject).await?;
                match owner {
                    Some(owner) if owner == id => return Ok(LinkOutcome::Done),
                    Some(_) => return Ok(LinkOutcome::OtherAccount),
                    None => {}
                }
                let linked = work.linked_providers(&id).await?;
                if linked.iter().any(|linked| linked.provider == person.provider) {
                    return Ok(LinkOutcome::OtherPerson);
                }
                work.insert_upstream_identity(link(&person, &id), now).await?;
                write_notice(work, &service, &id, MailKind::ProviderLinked, language).await?;
                Ok::<_, Error>(LinkOutcome::Done)
            })
            .await;
        match linked {
            Ok(LinkOutcome::Done) => {
                tracing::info!(channel_id = %channel, provider = identity.provider, "provider linked");
                Ok(LinkOutcome::Done)
            }
            // Another request has linked the person meanwhile.
            Err(Error::Store(StoreError::Unique { .. })) => Ok(LinkOutcome::OtherAccount),
            linked => linked,
        }
    }

    /// The providers that are linked to an account.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn linked_providers(&self, channel: &ChannelId) -> Result<Vec<LinkedProvider>, Error> {
        let id = channel.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.linked_providers(&id).await?)).await
    }

    /// Unlinks a provider, unless it is the only way in. `usable` are the providers of the configuration. Of
    /// two requests for the last two providers of an account, one is refused.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it is not linked; [`Refusal::InvalidToken`] when the account was barred
    /// meanwhile.
    pub async fn unlink_upstream(
        &self,
        channel: &ChannelId,
        provider: &str,
        usable: &[&str],
        language: Language,
    ) -> Result<UnlinkOutcome, Error> {
        let (service, id, provider) = (self.clone(), channel.clone(), provider.to_owned());
        let usable: Vec<String> = usable.iter().map(|&name| name.to_owned()).collect();
        let settings = *self.account_settings();
        self.write(async move |work: &mut Work<'_>| {
            lock(work, &id).await?;
            let password = work.password_hash(&id).await?;
            let has_password = password.is_some_and(|hash| settings.accepts(&hash));
            let linked = work.linked_providers(&id).await?;
            let others = linked.iter().filter(|linked| linked.provider != provider);
            let others = others.filter(|linked| usable.contains(&linked.provider)).count();
            if linked.iter().all(|linked| linked.provider != provider) {
                return Err(Error::from(Refusal::NotFound(Resource::Path)));
            }
            if !may_unlink(has_password, others) {
                return Ok(UnlinkOutcome::LastWayIn);
            }
            work.delete_upstream_identity(&id, &provider).await?;
            write_notice(work, &service, &id, MailKind::ProviderUnlinked, language).await?;
            Ok(UnlinkOutcome::Done)
        })
        .await
    }
}

async fn lock(work: &mut Work<'_>, channel: &ChannelId) -> Result<(), Error> {
    match work.lock_unbarred_channel(channel).await? {
        true => Ok(()),
        false => Err(Refusal::InvalidToken(TokenFault::Revoked).into()),
    }
}

fn link<'a>(identity: &'a UpstreamIdentity, channel_id: &'a ChannelId) -> NewUpstreamIdentity<'a> {
    let UpstreamIdentity { provider, issuer, subject, name, email, .. } = identity;
    let shown_as = email.as_deref().or(name.as_deref());
    NewUpstreamIdentity { issuer, subject, provider, channel_id, shown_as }
}

/// The provider of a stored arrival. No provider has such a name, so that an arrival is never taken for a
/// sign-in whose browser is at the provider.
fn arrival_of(provider: &str) -> String {
    format!("{provider}/arrival")
}

/// What a sealed sign-in is bound to.
fn subject(state: &SecretHash) -> String {
    format!("sign-in at a provider {}", state.as_str())
}
