//! A provider: where a sign-in begins, and who came back.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use domain::upstream::UpstreamIdentity;
use domain::{LogInterval, Timestamp};
use http::{HeaderValue, Request, StatusCode, header};
use http_client::{Tls, system_roots};
use openidconnect::core::{CoreAuthenticationFlow, CoreClient, CoreIdToken, CoreJsonWebKeySet};
use openidconnect::{
    AccessToken, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet, EndpointNotSet,
    EndpointSet, Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    RequestTokenError, Scope, TokenResponse,
};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::calls::HttpClient;
use crate::failure::Failure;
use crate::id_token::{CheckedToken, Expected, TokenRefusal, bounded, check};
use crate::metadata::{self, Metadata};
use crate::outcome::Outcomes;
use crate::{Outcome, ProviderSettings};

/// How long a discovery document and keys are used, in milliseconds: an hour.
const FRESH_MS: i64 = 60 * 60 * 1_000;
/// How long they are used when the provider cannot be reached, in milliseconds: a day.
const STALE_MS: i64 = 24 * FRESH_MS;
/// The pause after a failed read of the discovery document or the keys, in milliseconds. So those who wait
/// for a dead provider fail together.
const PAUSE_MS: i64 = 5_000;
/// The pause between two reads of the keys because of an unknown key, in milliseconds.
const KEYS_PAUSE_MS: i64 = 30_000;
/// Maximum number of sign-ins that talk to one provider at the same time. So a slow provider holds a bounded
/// number of requests.
const TALKS_MAX: usize = 32;
/// Maximum length of the code of a callback, in bytes.
const CODE_BYTES_MAX: usize = 4_096;
/// Maximum length of a claim that is kept, in bytes.
const CLAIM_BYTES_MAX: usize = 2_048;
/// The claims that give a name when the configured one is missing.
const FURTHER_NAMES: [&str; 2] = ["preferred_username", "nickname"];

/// The random values of one sign-in. They do not print.
#[derive(Clone)]
pub struct FlowSecrets {
    /// Comes back with the browser.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: String,
    /// Proves that the code was asked for here: 43 to 128 characters.
    pub verifier: String,
    /// Whether the provider must ask the person again, although the person is signed in there.
    pub asks_again: bool,
}

impl fmt::Debug for FlowSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowSecrets")
    }
}

/// What a browser brings back.
#[derive(Clone, Copy)]
pub struct Callback<'a> {
    /// The code.
    pub code: &'a str,
    /// The issuer that the provider names (RFC 9207).
    pub iss: Option<&'a str>,
}

/// All providers. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Upstreams(Arc<[Provider]>);

/// A provider. Cheap to clone.
#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    settings: ProviderSettings,
    http: HttpClient,
    known: Mutex<Known>,
    talks: Semaphore,
    outcomes: Outcomes,
    log: StdMutex<LogInterval>,
}

/// What is known of a provider, with the times at which it was read.
#[derive(Default)]
struct Known {
    metadata: Option<(Timestamp, Arc<Metadata>)>,
    keys: Option<(Timestamp, Arc<CoreJsonWebKeySet>)>,
    failure: Option<(Timestamp, Failure)>,
    keys_failure: Option<(Timestamp, Failure)>,
}

impl Upstreams {
    /// The providers with these settings.
    ///
    /// # Errors
    /// A sentence for the operator: TLS is not available.
    pub fn new(settings: Vec<ProviderSettings>) -> Result<Self, String> {
        settings.into_iter().map(Provider::new).collect::<Result<Vec<_>, _>>().map(|all| Self(all.into()))
    }

    /// The provider with this name.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.0.iter().find(|provider| provider.settings().name == name)
    }

    /// Every provider, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.0.iter()
    }
}

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

impl Provider {
    /// A provider.
    ///
    /// # Errors
    /// A sentence for the operator: TLS is not available.
    pub fn new(settings: ProviderSettings) -> Result<Self, String> {
        let tls = Tls::new(system_roots()).map_err(|error| format!("TLS is not available: {error}"))?;
        let http = HttpClient { reach: settings.reach, timeout: settings.timeout, tls };
        let talks = Semaphore::new(TALKS_MAX);
        let (known, outcomes, log) = (Mutex::default(), Outcomes::default(), StdMutex::default());
        Ok(Self(Arc::new(Inner { settings, http, known, talks, outcomes, log })))
    }

    /// Its settings.
    pub fn settings(&self) -> &ProviderSettings {
        &self.0.settings
    }

    pub(crate) fn http(&self) -> &HttpClient {
        &self.0.http
    }

    /// Counts the end of a sign-in.
    pub fn count(&self, outcome: Outcome) {
        self.0.outcomes.count(outcome);
    }

    /// Logs a failure at the monotonic time `now`. A caller may cause any number of them, so there is a line
    /// a minute.
    pub fn log(&self, failure: &Failure, now: Duration) {
        let due = self.0.log.lock().unwrap_or_else(PoisonError::into_inner).due(now);
        if let Some(times) = due {
            let (provider, outcome) = (&self.settings().name, failure.outcome().name());
            tracing::warn!(provider, outcome, reason = %failure, times, "a sign-in at a provider failed");
        }
    }

    /// The number of each outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.outcomes.all()
    }

    /// The address at the provider where a sign-in begins.
    ///
    /// # Errors
    /// [`Failure`] when the provider cannot be discovered.
    pub async fn begin(
        &self,
        secrets: &FlowSecrets,
        redirect: &str,
        now: Timestamp,
    ) -> Result<String, Failure> {
        let _talk = self.talk()?;
        let metadata = self.metadata(now).await?;
        let client = self.client(&metadata, redirect)?;
        let verifier = PkceCodeVerifier::new(secrets.verifier.clone());
        let (state, nonce) = (secrets.state.clone(), secrets.nonce.clone());
        let scopes = self.settings().scopes.iter().cloned().map(Scope::new);
        let mut asked = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                move || CsrfToken::new(state),
                move || Nonce::new(nonce),
            )
            .add_scopes(scopes)
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        if secrets.asks_again {
            asked = asked.set_max_age(Duration::ZERO);
        }
        Ok(asked.url().0.to_string())
    }

    /// Who came back.
    ///
    /// # Errors
    /// [`Failure`] when the provider does not prove who it is.
    pub async fn identify(
        &self,
        callback: Callback<'_>,
        secrets: &FlowSecrets,
        redirect: &str,
        now: Timestamp,
    ) -> Result<UpstreamIdentity, Failure> {
        let _talk = self.talk()?;
        let metadata = self.metadata(now).await?;
        self.check_issuer(callback.iss, &metadata)?;
        if callback.code.is_empty() || callback.code.len() > CODE_BYTES_MAX {
            return Err(Failure::Provider("the callback has no code".into()));
        }
        let (token, access_token) =
            self.exchange(&metadata, callback.code, &secrets.verifier, redirect).await?;
        let checked = self.checked(&token, &access_token, &metadata, &secrets.nonce, now).await?;
        if secrets.asks_again && !checked.is_recent(now) {
            return Err(Failure::Provider("the person was not asked again".into()));
        }
        let further = match self.needs_more(&checked) {
            true => self.user_info(&metadata, &access_token, &checked.subject).await,
            false => Map::new(),
        };
        Ok(self.identity(checked, &further))
    }

    /// The issuer of the callback must be this provider, and may be missing only if the provider does not
    /// name itself. So an answer of another provider is never taken for one of this.
    fn check_issuer(&self, iss: Option<&str>, metadata: &Metadata) -> Result<(), Failure> {
        match iss {
            Some(iss) if iss == self.settings().issuer => Ok(()),
            None if !metadata::names_itself(metadata) => Ok(()),
            _ => Err(Failure::MixedUp),
        }
    }

    fn talk(&self) -> Result<SemaphorePermit<'_>, Failure> {
        self.0.talks.try_acquire().map_err(|_| Failure::Busy)
    }

    fn client(&self, metadata: &Metadata, redirect: &str) -> Result<Client, Failure> {
        let ProviderSettings { client_id, client_secret, .. } = self.settings();
        let secret = client_secret.as_ref().map(|secret| ClientSecret::new(secret.0.clone()));
        let redirect = RedirectUrl::new(redirect.to_owned())
            .map_err(|_| Failure::Provider("the redirect address is no address".into()))?;
        let client =
            CoreClient::from_provider_metadata(metadata.clone(), ClientId::new(client_id.clone()), secret);
        Ok(client.set_redirect_uri(redirect).set_auth_type(metadata::auth_type(metadata)))
    }

    /// The discovery document, which is read once an hour. While a provider cannot be reached, the last one
    /// is used.
    async fn metadata(&self, now: Timestamp) -> Result<Arc<Metadata>, Failure> {
        let mut known = self.0.known.lock().await;
        let last = known.metadata.clone().map(|(at, metadata)| (age_ms(at, now), metadata));
        if let Some((age, metadata)) = &last
            && *age < FRESH_MS
        {
            return Ok(metadata.clone());
        }
        let failure = match &known.failure {
            Some((at, failure)) if age_ms(*at, now) < PAUSE_MS => failure.clone(),
            _ => match metadata::discover(&self.0.http, self.settings()).await {
                Ok(metadata) => {
                    let metadata = Arc::new(metadata);
                    known.metadata = Some((now, metadata.clone()));
                    known.failure = None;
                    return Ok(metadata);
                }
                Err(failure) => {
                    known.failure = Some((now, failure.clone()));
                    failure
                }
            },
        };
        match last {
            Some((age, metadata)) if age < STALE_MS => Ok(metadata),
            _ => Err(failure),
        }
    }

    /// The keys, which are read once an hour, and when a token names an unknown one.
    async fn keys(
        &self,
        metadata: &Metadata,
        now: Timestamp,
        is_unknown: bool,
    ) -> Result<Arc<CoreJsonWebKeySet>, Failure> {
        let mut known = self.0.known.lock().await;
        let last = known.keys.clone().map(|(at, keys)| (age_ms(at, now), keys));
        let used_for_ms = if is_unknown { KEYS_PAUSE_MS } else { FRESH_MS };
        if let Some((age, keys)) = &last
            && *age < used_for_ms
        {
            return Ok(keys.clone());
        }
        let failure = match &known.keys_failure {
            Some((at, failure)) if age_ms(*at, now) < PAUSE_MS => failure.clone(),
            _ => match metadata::fetch_keys(&self.0.http, metadata).await {
                Ok(keys) => {
                    let keys = Arc::new(keys);
                    known.keys = Some((now, keys.clone()));
                    known.keys_failure = None;
                    return Ok(keys);
                }
                Err(failure) => {
                    known.keys_failure = Some((now, failure.clone()));
                    failure
                }
            },
        };
        match last {
            Some((age, keys)) if age < STALE_MS => Ok(keys),
            _ => Err(failure),
        }
    }

    /// Presents a code, and tells only whether it was taken.
    ///
    /// # Errors
    /// [`Failure`] when it was not.
    pub(crate) async fn try_code(
        &self,
        code: &str,
        secrets: &FlowSecrets,
        redirect: &str,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let metadata = self.metadata(now).await?;
        self.exchange(&metadata, code, &secrets.verifier, redirect).await.map(drop)
    }

    async fn exchange(
        &self,
        metadata: &Metadata,
        code: &str,
        verifier: &str,
        redirect: &str,
    ) -> Result<(CoreIdToken, AccessToken), Failure> {
        let http = self.0.http.clone();
        let send = move |request| {
            let http = http.clone();
            async move { http.send_well(request).await }
        };
        let client = self.client(metadata, redirect)?;
        let request = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .map_err(|_| Failure::Provider("it has no token_endpoint".into()))?;
        let answer = request
            .set_pkce_verifier(PkceCodeVerifier::new(verifier.to_owned()))
            .request_async(&send)
            .await
            .map_err(|error| match error {
                RequestTokenError::Request(failure) => failure.into(),
                RequestTokenError::ServerResponse(answer) => Failure::Refused(bounded(answer.error())),
                // The text of the error could repeat a token.
                RequestTokenError::Parse(error, _) => {
                    Failure::Provider(format!("the token answer cannot be read at {}", error.path()))
                }
                RequestTokenError::Other(_) => Failure::Provider("the token answer is not JSON".into()),
            })?;
        let token = answer.id_token().cloned();
        let token = token.ok_or_else(|| Failure::Provider("the token answer has no ID token".into()))?;
        Ok((token, answer.access_token().clone()))
    }

    async fn checked(
        &self,
        token: &CoreIdToken,
        access_token: &AccessToken,
        metadata: &Metadata,
        nonce: &str,
        now: Timestamp,
    ) -> Result<CheckedToken, Failure> {
        let ProviderSettings { issuer, client_id, .. } = self.settings();
        let expected = Expected { issuer, client_id, nonce, now };
        for is_unknown in [false, true] {
            let keys = self.keys(metadata, now, is_unknown).await?;
            match check(token, access_token, metadata, &keys, &expected) {
                Ok(checked) => return Ok(checked),
                Err(TokenRefusal::Wrong(reason)) => return Err(Failure::IdToken(reason)),
                Err(TokenRefusal::UnknownKey) => {}
            }
        }
        Err(Failure::IdToken("no key of the provider has signed it".into()))
    }

    /// Whether the ID token has no name.
    fn needs_more(&self, checked: &CheckedToken) -> bool {
        text(&checked.claims, &self.settings().claims.name).is_none()
    }

    /// Further claims. A person without them can sign in, too.
    async fn user_info(&self, metadata: &Metadata, token: &AccessToken, subject: &str) -> Map<String, Value> {
        match self.ask_user_info(metadata, token).await {
            Ok(claims) if text(&claims, "sub").as_deref() == Some(subject) => claims,
            Ok(_) => {
                tracing::warn!(
                    provider = self.settings().name,
                    "the claims of a provider are about another person"
                );
                Map::new()
            }
            Err(failure) => {
                tracing::debug!(provider = self.settings().name, %failure, "a provider gave no further claims");
                Map::new()
            }
        }
    }

    async fn ask_user_info(
        &self,
        metadata: &Metadata,
        token: &AccessToken,
    ) -> Result<Map<String, Value>, Failure> {
        let Some(address) = metadata.userinfo_endpoint() else {
            return Err(Failure::Provider("it has no userinfo_endpoint".into()));
        };
        let wrong = |_| Failure::Provider("the access token does not fit into a header".into());
        let bearer = HeaderValue::from_str(&format!("Bearer {}", token.secret())).map_err(wrong)?;
        let request = Request::get(address.as_str())
            .header(header::ACCEPT, HeaderValue::from_static("application/json"))
            .header(header::AUTHORIZATION, bearer)
            .body(Vec::new())
            .map_err(|_| Failure::Provider("userinfo_endpoint is no address".into()))?;
        let answer = self.0.http.send(request).await?;
        match answer.status() {
            StatusCode::OK => metadata::parse("the answer with the claims", answer.body()),
            status => Err(Failure::Unavailable(format!("userinfo_endpoint answers {}", status.as_u16()))),
        }
    }

    fn identity(&self, checked: CheckedToken, further: &Map<String, Value>) -> UpstreamIdentity {
        let ProviderSettings { name, issuer, claims, .. } = self.settings();
        let claim = |name: &str| text(&checked.claims, name).or_else(|| text(further, name));
        let is_verified = [&checked.claims, further]
            .into_iter()
            .find_map(|claims| claims.get("email_verified"))
            .is_some_and(|value| *value == Value::Bool(true));
        UpstreamIdentity {
            provider: name.clone(),
            issuer: issuer.clone(),
            name: claim(&claims.name).or_else(|| FURTHER_NAMES.into_iter().find_map(claim)),
            picture: claim(&claims.picture),
            email: claim(&claims.email).filter(|_| is_verified),
            subject: checked.subject,
        }
    }
}

/// The time since then. A clock that was set back makes nothing older.
fn age_ms(at: Timestamp, now: Timestamp) -> i64 {
    now.as_millis() - at.as_millis()
}

/// A claim that is a text, without control characters.
fn text(claims: &Map<String, Value>, name: &str) -> Option<String> {
    let text: String = claims.get(name)?.as_str()?.trim().chars().filter(|c| !c.is_control()).collect();
    (!text.is_empty() && text.len() <= CLAIM_BYTES_MAX).then_some(text)
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Provider").field(&self.0.settings.name).finish()
    }
}
