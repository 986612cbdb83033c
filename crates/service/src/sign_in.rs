//! Signing in on the consent pages, and the code that comes out of it (spec 3, 4.1; decisions 3).

use domain::application::Application;
use domain::limits::{BROWSER_SESSION_LIFETIME_MS, CODE_LIFETIME_MS, CREDENTIAL_BYTES_MAX};
use domain::secret::{AuthCode, BrowserToken, SecretHash};
use domain::token::TokenFamily;
use domain::{ChannelId, ClientId, Refusal};
use store::queries::browser_sessions::SignedIn;
use store::queries::channels::Person;
use store::queries::tokens::NewCode;

use crate::password::Busy;
use crate::{Error, Service};

/// A sign-in that an application asked for, after its client id and redirect address were found to be registered.
#[derive(Clone, Debug)]
pub struct SignInRequest {
    /// Who asks.
    pub application: Application,
    /// Where the answer goes: one of the application's own addresses, byte for byte.
    pub redirect_uri: String,
    /// What the application wants back with the answer.
    pub state: String,
}

/// Why a sign-in cannot begin. Never answered with a redirect, for the address is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSignIn {
    /// There is no such application.
    UnknownClient,
    /// The address is not one that the application registered.
    UnregisteredRedirect,
}

impl Service {
    /// Checks the parameters of the authorization address.
    ///
    /// # Errors
    /// The outer one when the store fails, the inner one when the sign-in cannot begin.
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
        self.read(move |tx| {
            Box::pin(async move {
                let Some(application) = tx.application(&client_id).await? else {
                    return Ok(Err(BadSignIn::UnknownClient));
                };
                // No parameter may hold a NUL, and no registered address does.
                if uri.contains('\0') || !tx.has_redirect_uri(&client_id, &uri).await? {
                    return Ok(Err(BadSignIn::UnregisteredRedirect));
                }
                Ok(Ok(SignInRequest { application, redirect_uri: uri, state }))
            })
        })
        .await
    }

    /// Who is signed in with a browser's cookie.
    pub async fn signed_in(&self, token: &BrowserToken) -> Result<Option<SignedIn>, Error> {
        let (hash, now) = (token.hash(), self.now());
        self.read(move |tx| Box::pin(async move { Ok(tx.browser_session(&hash, now).await?) })).await
    }

    /// Signs a browser in with login and password; `None` when they do not match. An unknown login takes as long.
    /// `known` says that the account was signed in to from the same place before: then strangers' tries do not take its turn.
    ///
    /// # Errors
    /// [`Refusal::Busy`] when too many passwords wait to be looked at: this one was not.
    pub async fn sign_in(
        &self,
        login: &str,
        password: &str,
        known: bool,
    ) -> Result<Option<BrowserToken>, Error> {
        if password.len() > CREDENTIAL_BYTES_MAX {
            return Ok(None);
        }
        let person = self.person(login).await?;
        let (channel, stored) = person.map(|p| (p.channel_id, p.password_hash)).unzip();
        let right = self.0.passwords.verify(password.to_owned(), stored, known).await;
        let right = right.map_err(|Busy| Refusal::Busy { retry_after_s: Busy::RETRY_AFTER_S })?;
        match (right, channel) {
            (true, Some(channel)) => Ok(Some(self.open_browser_session(channel).await?)),
            _ => Ok(None),
        }
    }

    /// Signs a browser in as a seeded person, without a password: for the sandbox's list of people only.
    pub async fn sign_in_as(&self, login: &str) -> Result<Option<BrowserToken>, Error> {
        match self.person(login).await? {
            Some(person) => Ok(Some(self.open_browser_session(person.channel_id).await?)),
            None => Ok(None),
        }
    }

    async fn person(&self, login: &str) -> Result<Option<Person>, Error> {
        // Nobody has a login that the store cannot hold.
        if login.len() > CREDENTIAL_BYTES_MAX || login.contains('\0') {
            return Ok(None);
        }
        let login = login.to_owned();
        self.read(move |tx| Box::pin(async move { Ok(tx.person_by_login(&login).await?) })).await
    }

    async fn open_browser_session(&self, channel: ChannelId) -> Result<BrowserToken, Error> {
        let token = BrowserToken::generate(self.random());
        let (hash, expires_at) = (token.hash(), self.now().plus_ms(BROWSER_SESSION_LIFETIME_MS));
        self.write(move |tx| {
            Box::pin(async move { Ok(tx.insert_browser_session(&hash, &channel, expires_at).await?) })
        })
        .await?;
        Ok(token)
    }

    /// Signs a browser out.
    pub async fn sign_out(&self, token: &BrowserToken) -> Result<(), Error> {
        let hash = token.hash();
        self.write(move |tx| Box::pin(async move { Ok(tx.delete_browser_session(&hash).await?) })).await
    }

    /// Records the user's consent to everything that the application asks for now, and issues a code for it.
    pub async fn consent(&self, request: &SignInRequest, user: &ChannelId) -> Result<AuthCode, Error> {
        let code = AuthCode::generate(self.random());
        let family = TokenFamily(AuthCode::generate(self.random()).hash().as_str().to_owned());
        let (hash, state) = (code.hash(), SecretHash::of(&request.state));
        let (request, user, now) = (request.clone(), user.clone(), self.now());
        self.write(move |tx| {
            Box::pin(async move {
                let client_id = &request.application.client_id;
                tx.put_consent(client_id, &user, request.application.user_scopes(), now).await?;
                let expires_at = now.plus_ms(CODE_LIFETIME_MS);
                let redirect_uri = &request.redirect_uri;
                let code = NewCode {
                    hash: &hash,
                    family: &family,
                    client_id,
                    channel_id: &user,
                    state: &state,
                    redirect_uri,
                    expires_at,
                };
                Ok(tx.insert_code(code).await?)
            })
        })
        .await?;
        Ok(code)
    }
}
