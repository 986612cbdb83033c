//! Checks access tokens and client secrets, with a cache (`docs/adr/0007-credentials-are-cached.md`).
//!
//! This node drops a credential from the cache before it answers the call that changed the credential.
//! [`Service::watch_credentials`] finds the changes of other nodes. If its last poll is older than
//! [`TRUST`], the cache is not used.

use std::sync::Arc;
use std::time::Duration;

use domain::application::Application;
use domain::refusal::{Credential, TokenFault};
use domain::secret::{AccessToken, ClientSecret, SecretHash};
use domain::{ClientId, Refusal, Timestamp};
use store::Tx;
use store::queries::application_secrets::StoredSecret;
use store::queries::credential_changes::{ChangeSlot, Dependency};
use store::queries::tokens::Trace;

pub use crate::identity::credential_cache::{CacheFigures, Holder, ProvenApplication, TRUST};
use crate::{Error, Service};

/// How often the changes of other nodes are polled.
pub const WATCH_EVERY: Duration = Duration::from_millis(500);
const MALFORMED: Refusal = Refusal::InvalidToken(TokenFault::Malformed(Credential::AccessToken));

impl Service {
    /// The holder of an access token (mode user of `docs/spec/rest.md#modes`).
    ///
    /// # Errors
    /// [`Refusal::InvalidToken`] when the token is unknown, expired or revoked.
    pub async fn authenticate_user(&self, token: &str) -> Result<Arc<Holder>, Error> {
        self.authenticate_or_trace(token, &mut None).await
    }

    /// As [`authenticate_user`](Self::authenticate_user). A token that was the application's and is not valid
    /// any more is traced to its application.
    ///
    /// # Errors
    /// As [`authenticate_user`](Self::authenticate_user).
    pub async fn authenticate_or_trace(
        &self,
        token: &str,
        traced: &mut Option<ClientId>,
    ) -> Result<Arc<Holder>, Error> {
        let token = AccessToken::presented(token).ok_or(MALFORMED)?.hash();
        let (now, kept) = (self.now(), &self.0.credentials);
        let cached = kept.holder(&token, self.0.clock.monotonic());
        match cached {
            Some(holder) if now < holder.expires_at => return Ok(holder),
            // The store says why: the row of the token may be deleted already.
            Some(_) => {
                let (fault, client_id) =
                    self.read(async move |tx: &mut Tx| fault(tx, &token, now).await).await?;
                *traced = client_id;
                return Err(Refusal::InvalidToken(fault).into());
            }
            None => {}
        }
        let (asked, hash) = (kept.changes.epoch(), token.clone());
        let found = self
            .read(async move |tx: &mut Tx| match tx.holder(&hash, now).await? {
                Some(holder) => Ok(Ok(holder)),
                None => Ok(Err(fault(tx, &hash, now).await?)),
            })
            .await?;
        let stored = found.map_err(|(fault, client_id)| {
            *traced = client_id;
            Refusal::InvalidToken(fault)
        })?;
        let usage = self.usage_counters(&stored.caller.client_id);
        let holder = Arc::new(Holder { stored, usage });
        kept.put_holder(token, holder.clone(), asked);
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
        if let Some(application) = kept.application(&pair, self.0.clock.monotonic()) {
            return Ok(application);
        }
        let (asked, now) = (kept.changes.epoch(), self.now());
        let (application, secrets) = self
            .read(async move |tx: &mut Tx| {
                Ok((tx.application(&client_id).await?, tx.application_secrets(&client_id, now).await?))
            })
            .await?;
        let (application, secret) =
            application.zip(matching(&presented, secrets)).ok_or(Refusal::InvalidClient)?;
        let StoredSecret { secret_id, expires_at, .. } = secret;
        let usage = self.usage_counters(&application.client_id);
        let proven = Arc::new(ProvenApplication { application, secret_id, expires_at, usage });
        kept.put_application(pair, proven.clone(), asked, slots(&proven));
        Ok(proven)
    }

    /// The figures of both caches.
    pub fn credential_figures(&self) -> [CacheFigures; 2] {
        self.0.credentials.figures()
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

/// The reason why an access token has no holder, and the application that it was for. The presenter of a
/// token may see its state.
async fn fault(
    tx: &mut Tx,
    hash: &SecretHash,
    now: Timestamp,
) -> Result<(TokenFault, Option<ClientId>), Error> {
    let Some((client_id, trace, expires_at)) = tx.token_trace(hash).await? else {
        return Ok((TokenFault::Unknown, None));
    };
    let fault = match trace {
        Trace::Access if expires_at <= now => TokenFault::Expired,
        // The application or the consent was deleted.
        Trace::Access => TokenFault::Revoked,
        Trace::Refresh => TokenFault::WrongKind(Credential::AccessToken),
        Trace::Revoked => TokenFault::Revoked,
    };
    Ok((fault, Some(client_id)))
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
