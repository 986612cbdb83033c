//! Sign-in and consent on the consent pages, up to the code that the application receives
//! (`docs/spec/authorization.md#sign-in`).

use domain::application::Application;
use domain::audit::AuditAction;
use domain::limits::{
    BROWSER_SESSION_LIFETIME_MS, CODE_LIFETIME_MS, CREDENTIAL_BYTES_MAX, PENDING_SIGN_IN_LIFETIME_MS,
};
use domain::mail::MailKind;
use domain::password::Password;
use domain::refusal::{Resource, TokenFault};
use domain::secret::{AuthCode, BrowserToken, SecretHash};
use domain::token::TokenFamily;
use domain::{ChannelId, ClientId, Refusal, Scope};
use store::Tx;
use store::queries::browser_sessions::SignedIn;
use store::queries::channels::Person;
use store::queries::tokens::NewCode;

use crate::identity::mail::write_notice;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// A sign-in that an application asked for. Its client id and redirect address are registered.
#[derive(Clone, Debug)]
pub struct SignInRequest {
    /// The application that asks.
    pub application: Application,
    /// The address that receives the answer: equal to a registered address of the application, byte for
    /// byte.
    pub redirect_uri: String,
    /// The `state` that the application gets back with the answer.
    pub state: String,
}

/// The reason why a sign-in cannot begin. The answer is never a redirect, because the address is not
/// trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSignIn {
    /// The application does not exist.
    UnknownClient,
    /// The application did not register the address.
    UnregisteredRedirect,
}

impl Service {
    /// Checks the parameters of the authorization address.
    ///
    /// # Errors
    /// The outer error when the store fails, the inner error when the sign-in cannot begin.
    pub async fn sign_in_request(
        &self,
        client_id: &str,
        redirect_uri: &str,
        state: &str,
    ) -> Result<Result<SignInRequest, BadSignIn>, Error> {
        let Ok(client_id) = ClientId::parse("clientId", client_id) else {
            return Ok(Err(BadSignIn::UnknownClient));
        };
        let (uri, state) = (redirect_uri.to_owned(), state.to_owned());
        self.read(async move |tx: &mut Tx| {
            let Some(application) = tx.application(&client_id).await? else {
                return Ok(Err(BadSignIn::UnknownClient));
            };
            // PostgreSQL refuses a parameter with NUL. No registered address has one.
            if uri.contains('\0') || !tx.has_redirect_uri(&client_id, &uri).await? {
                return Ok(Err(BadSignIn::UnregisteredRedirect));
            }
            Ok(Ok(SignInRequest { application, redirect_uri: uri, state }))
        })
        .await
    }

    /// The person that is signed in with the cookie of a browser.
    pub async fn signed_in(&self, token: &BrowserToken) -> Result<Option<SignedIn>, Error> {
        let (hash, now) = (token.hash(), self.now());
        self.read(async move |tx: &mut Tx| Ok(tx.browser_session(&hash, now).await?)).await
    }

    /// Signs a browser in with login and password; `None` when they do not match. If the person's sign-in has
    /// a second step, the token [waits for a code](Self::awaits_code). An unknown login takes as long. With
    /// `known` the account was signed in to from the same place before. Then checks from unknown places do
    /// not take its place in the queue.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`] when the account or the address has no check left, [`Refusal::Busy`] when
    /// too many checks wait. Then this password was not checked.
    pub async fn sign_in(
        &self,
        login: &str,
        password: &str,
        known: bool,
    ) -> Result<Option<BrowserToken>, Error> {
        let Some(password) = Password::typed(password) else { return Ok(None) };
        let person = self.person(login).await?;
        let person = person.map(|person| (person.channel_id, person.password_hash));
        // An account without a password takes as long as an unknown login.
        let stored = person.as_ref().map(|(_, hash)| hash.clone());
        let stored = stored.filter(|hash| self.account_settings().accepts(hash));
        let matches = self.verify_password((login, known), password, stored).await?;
        match (matches, person) {
            (true, Some((channel, hash))) => self.open_browser_session(channel, hash, true).await,
            _ => Ok(None),
        }
    }

    /// Signs a browser in as a person without a password, for the sandbox's list of people only.
    pub async fn sign_in_as(&self, login: &str) -> Result<Option<BrowserToken>, Error> {
        match self.person(login).await? {
            Some(person) => self.open_browser_session(person.channel_id, person.password_hash, false).await,
            None => Ok(None),
        }
    }

    async fn person(&self, login: &str) -> Result<Option<Person>, Error> {
        // The store cannot hold such a login, so no person has it.
        if login.len() > CREDENTIAL_BYTES_MAX || login.contains('\0') {
            return Ok(None);
        }
        let login = login.to_owned();
        self.read(async move |tx: &mut Tx| Ok(tx.person_by_login(&login).await?)).await
    }

    /// `None` when the person was barred or the password changed after the password was checked. With
    /// `is_first_step` the token waits for a code if the person's sign-in has a second step.
    async fn open_browser_session(
        &self,
        channel: ChannelId,
        password_hash: String,
        is_first_step: bool,
    ) -> Result<Option<BrowserToken>, Error> {
        let token = BrowserToken::generate(self.random(Purpose::Browser));
        let hash = token.hash();
        let opened = self
            .write(async move |work: &mut Work<'_>| {
                if !work.lock_unbarred_channel(&channel).await?
                    || work.password_hash(&channel).await?.as_ref() != Some(&password_hash)
                {
                    return Ok(false);
                }
                sign_browser_in(work, &channel, &hash, is_first_step).await?;
                Ok::<_, Error>(true)
            })
            .await?;
        Ok(opened.then_some(token))
    }

    /// Signs every browser of a person out.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn end_browser_sessions(&self, channel: &ChannelId) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            work.lock_account_of_lower_rank(&channel).await?;
            work.delete_browser_sessions(&channel).await?;
            Ok::<_, Error>(work.audit(AuditAction::BrowserSessionsEnd, &channel).await?)
        })
        .await
    }

    /// Signs a browser out.
    pub async fn sign_out(&self, token: &BrowserToken) -> Result<(), Error> {
        let hash = token.hash();
        self.write(async move |work: &mut Work<'_>| Ok(work.delete_browser_session(&hash).await?)).await
    }

    /// Records the user's consent and issues a code for it. The consent has the scopes that the request
    /// asked for and the application still asks for. The user gets a notice of a new right to the stream key.
    ///
    /// # Errors
    /// [`Refusal::InvalidToken`] when the user was barred after the request was checked,
    /// [`Refusal::NotFound`] when the application was deleted after it.
    pub async fn consent(&self, request: &SignInRequest, user: &ChannelId) -> Result<AuthCode, Error> {
        let code = AuthCode::generate(self.random(Purpose::Code));
        let family = TokenFamily(AuthCode::generate(self.random(Purpose::Code)).hash().as_str().to_owned());
        let (hash, state) = (code.hash(), SecretHash::of(&request.state));
        let (service, request, user) = (self.clone(), request.clone(), user.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let client_id = &request.application.client_id;
            if !work.lock_unbarred_channel(&user).await? {
                return Err(Error::from(Refusal::InvalidToken(TokenFault::Revoked)));
            }
            let chosen = work.lock_application_scopes(client_id).await?;
            let chosen = chosen.ok_or(Refusal::NotFound(Resource::Application))?;
            let scopes = request.application.user_scopes().and(chosen);
            let before = work.lock_consent(client_id, &user).await?.unwrap_or_default();
            if scopes.contains(Scope::StreamKeyRead) && !before.contains(Scope::StreamKeyRead) {
                let language = service.account_settings().language;
                write_notice(work, &service, &user, MailKind::StreamKeyAllowed, language).await?;
            }
            work.put_consent(client_id, &user, scopes, now).await?;
            let expires_at = now.plus_ms(CODE_LIFETIME_MS);
            let redirect_uri = &request.redirect_uri;
            let code = NewCode {
                hash: &hash,
                family: &family,
                client_id,
                channel_id: &user,
                state: &state,
                redirect_uri,
                began_at: now,
                expires_at,
            };
            Ok(work.insert_code(code).await?)
        })
        .await?;
        Ok(code)
    }
}

/// Signs a browser in as the person of a locked channel. With `is_first_step` the token waits for a code if
/// the person's sign-in has a second step.
pub(crate) async fn sign_browser_in(
    work: &mut Work<'_>,
    channel: &ChannelId,
    token: &SecretHash,
    is_first_step: bool,
) -> Result<(), Error> {
    let now = work.now();
    let second_step = work.two_factor(channel).await?;
    if is_first_step && second_step.is_some_and(|found| found.confirmed_at.is_some()) {
        work.insert_pending_sign_in(token, channel, now.plus_ms(PENDING_SIGN_IN_LIFETIME_MS)).await?;
    } else {
        work.insert_browser_session(token, channel, now.plus_ms(BROWSER_SESSION_LIFETIME_MS)).await?;
    }
    Ok(())
}
