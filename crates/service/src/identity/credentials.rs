//! Checks access tokens and client secrets, with a cache (`docs/adr/0007-credentials-are-cached.md`).
//!
//! This node drops a credential from the cache before it answers the call that changed the credential.
//! [`Service::watch_credentials`] finds the changes of other nodes. If its last poll is older than
//! [`TRUST`], the cache is not used.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::application::Application;
use domain::refusal::{Credential, TokenFault};
use domain::secret::{AccessToken, ClientSecret, SecretHash};
use domain::{ApplicationSecretId, ClientId, Refusal, Timestamp};
use store::Tx;
use store::queries::application_secrets::StoredSecret;
use store::queries::credential_changes::{ChangeSlot, Dependency, SLOTS};
use store::queries::tokens::{Holder, Trace};

use crate::identity::credential_cache::{Cache, CredentialChanges};
use crate::{Error, Service};

/// Maximum number of cached access tokens. Each takes about half a KiB.
const HOLDERS_MAX: usize = 100_000;
/// Maximum number of cached client secrets.
const APPLICATIONS_MAX: usize = 10_000;
/// How often the changes of other nodes are polled.
pub const WATCH_EVERY: Duration = Duration::from_millis(500);
/// How long the result of a poll is trusted, from the start of the poll. Every node must refuse a revoked
/// token within two seconds. This leaves half a second.
pub const TRUST: Duration = Duration::from_millis(1_500);

const MALFORMED: Refusal = Refusal::InvalidToken(TokenFault::Malformed(Credential::AccessToken));

/// The cached credentials of this node.
pub(crate) struct CachedCredentials {
    pub changes: Arc<CredentialChanges>,
    holders: Cache<Holder>,
    applications: Cache<ProvenApplication>,
    token_lookups: Lookups,
    client_lookups: Lookups,
    /// For each slot, the version that the last poll found.
    versions: Mutex<Vec<i64>>,
    /// Until when the cache is trusted, in microseconds of the monotonic clock.
    trusted_until: AtomicU64,
}

/// An application whose client secret was checked. Dereferences to the application.
#[derive(Clone, Debug)]
pub struct ProvenApplication {
    /// The application.
    pub application: Application,
    /// The secret.
    pub secret_id: ApplicationSecretId,
    /// When the secret expires.
    pub expires_at: Option<Timestamp>,
}

impl Deref for ProvenApplication {
    type Target = Application;

    fn deref(&self) -> &Application {
        &self.application
    }
}

/// The number of lookups that the cache answered, and of those that queried the store.
#[derive(Debug, Default)]
struct Lookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Lookups {
    fn figures<V>(&self, name: &'static str, cache: &Cache<V>) -> CacheFigures {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        CacheFigures { cache: name, hits, misses, entries: cache.len() }
    }
}

/// The current figures of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheFigures {
    /// `tokens` or `clients`.
    pub cache: &'static str,
    /// Checks that the cache answered.
    pub hits: u64,
    /// Checks that queried the store.
    pub misses: u64,
    /// Answers in the cache.
    pub entries: usize,
}

impl Default for CachedCredentials {
    fn default() -> Self {
        Self {
            changes: Arc::default(),
            holders: Cache::new(HOLDERS_MAX),
            applications: Cache::new(APPLICATIONS_MAX),
            token_lookups: Lookups::default(),
            client_lookups: Lookups::default(),
            versions: Mutex::new(vec![0; SLOTS]),
            trusted_until: AtomicU64::new(0),
        }
    }
}

impl CachedCredentials {
    /// Applies the result of a poll that began at `began`.
    fn found(&self, began: Duration, versions: &[(ChangeSlot, i64)]) {
        let mut known = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        for (slot, version) in versions {
            if std::mem::replace(&mut known[slot.index()], *version) != *version {
                self.changes.changed(*slot);
            }
        }
        self.trusted_until.fetch_max(micros(began + TRUST), Ordering::SeqCst);
    }

    fn trusted(&self, now: Duration) -> bool {
        micros(now) < self.trusted_until.load(Ordering::SeqCst)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Service {
    /// The holder of an access token (mode user of `docs/spec/rest.md#modes`).
    ///
    /// # Errors
    /// [`Refusal::InvalidToken`] when the token is unknown, expired or revoked.
    pub async fn authenticate_user(&self, token: &str) -> Result<Arc<Holder>, Error> {
        let token = AccessToken::presented(token).ok_or(MALFORMED)?.hash();
        let (now, kept) = (self.now(), &self.0.credentials);
        if kept.trusted(self.0.clock.monotonic())
            && let Some(holder) = kept.holders.get(&token, &kept.changes)
        {
            kept.token_lookups.hits.fetch_add(1, Ordering::Relaxed);
            return if now < holder.expires_at {
                Ok(holder)
            } else {
                Err(Refusal::InvalidToken(TokenFault::Expired).into())
            };
        }
        kept.token_lookups.misses.fetch_add(1, Ordering::Relaxed);
        let (asked, hash) = (kept.changes.epoch(), token.clone());
        let holder = self
            .read(async move |tx: &mut Tx| match tx.holder(&hash, now).await? {
                Some(holder) => Ok(holder),
                None => Err(Refusal::InvalidToken(fault(tx, &hash, now).await?).into()),
            })
            .await?;
        let holder = Arc::new(holder);
        kept.holders.put(token, holder.clone(), asked, holder.slots());
        Ok(holder)
    }

    /// The application of a client id and its secret (mode client of `docs/spec/rest.md#modes`).
    ///
    /// # Errors
    /// [`Refusal::InvalidClient`]. The answer and its duration are the same for a wrong id and a wrong
    /// secret.
    pub async fn authenticate_client(
        &self,
        client_id: &str,
        secret: &str,
    ) -> Result<Arc<ProvenApplication>, Error> {
        let proven = self.proven_application(client_id, secret).await?;
        let now = self.now();
        if proven.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(Refusal::InvalidClient.into());
        }
        self.0.secrets_last_used.note(&proven.secret_id, now);
        Ok(proven)
    }

    async fn proven_application(
        &self,
        client_id: &str,
        secret: &str,
    ) -> Result<Arc<ProvenApplication>, Error> {
        let client_id = ClientId::parse("clientId", client_id).map_err(|_| Refusal::InvalidClient)?;
        let presented = ClientSecret::presented(secret).ok_or(Refusal::InvalidClient)?.hash();
        let pair = SecretHash::of(&format!("{} {}", client_id.as_str(), presented.as_str()));
        let kept = &self.0.credentials;
        if kept.trusted(self.0.clock.monotonic())
            && let Some(application) = kept.applications.get(&pair, &kept.changes)
        {
            kept.client_lookups.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(application);
        }
        kept.client_lookups.misses.fetch_add(1, Ordering::Relaxed);
        let (asked, now) = (kept.changes.epoch(), self.now());
        let (application, secrets) = self
            .read(async move |tx: &mut Tx| {
                Ok((tx.application(&client_id).await?, tx.application_secrets(&client_id, now).await?))
            })
            .await?;
        let (application, secret) =
            application.zip(matching(&presented, secrets)).ok_or(Refusal::InvalidClient)?;
        let StoredSecret { secret_id, expires_at, .. } = secret;
        let proven = Arc::new(ProvenApplication { application, secret_id, expires_at });
        kept.applications.put(pair, proven.clone(), asked, slots(&proven));
        Ok(proven)
    }

    /// The figures of both caches.
    pub fn credential_figures(&self) -> [CacheFigures; 2] {
        let kept = &self.0.credentials;
        [
            kept.token_lookups.figures("tokens", &kept.holders),
            kept.client_lookups.figures("clients", &kept.applications),
        ]
    }

    /// Polls the changes of credentials by any node, every [`WATCH_EVERY`]. While the poll fails, every
    /// check queries the store.
    pub async fn watch_credentials(&self) -> Result<(), Error> {
        let began = self.0.clock.monotonic();
        let versions = self.read(async move |tx: &mut Tx| Ok(tx.credential_versions().await?)).await?;
        self.0.credentials.found(began, &versions);
        self.0.node_state.store_answered(began);
        self.refresh_warned_applications().await
    }
}

/// The reason why an access token has no holder. The presenter of a token may see its state.
async fn fault(tx: &mut Tx, hash: &SecretHash, now: Timestamp) -> Result<TokenFault, Error> {
    Ok(match tx.token_trace(hash).await? {
        None => TokenFault::Unknown,
        Some((_, Trace::Access, expires_at)) if expires_at <= now => TokenFault::Expired,
        // The application or the consent was deleted.
        Some((_, Trace::Access, _)) => TokenFault::Revoked,
        Some((_, Trace::Refresh, _)) => TokenFault::WrongKind(Credential::AccessToken),
        Some((_, Trace::Revoked, _)) => TokenFault::Revoked,
    })
}

/// The secret that matches. All secrets are compared, so the duration does not show which one matched.
fn matching(presented: &SecretHash, secrets: Vec<StoredSecret>) -> Option<StoredSecret> {
    secrets.into_iter().fold(
        None,
        |matching, secret| {
            if presented.matches(&secret.hash) { Some(secret) } else { matching }
        },
    )
}

fn slots(application: &Application) -> Vec<ChangeSlot> {
    let organization = application.organization.as_ref().map(|owner| &owner.organization_id);
    let dependencies =
        [Some(Dependency::Application(&application.client_id)), organization.map(Dependency::Organization)];
    dependencies.into_iter().flatten().map(ChangeSlot::from).collect()
}
