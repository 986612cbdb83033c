//! Sessions: session URLs, handshakes, ends and lists (`docs/spec/realtime.md`).

use domain::limits::{DISCONNECTED_SESSION_VISIBLE_MS, SESSION_URL_LIFETIME_MS};
use domain::refusal::{Credential, CredentialFault};
use domain::secret::{SecretHash, SessionUrlToken};
use domain::session::{SessionChange, SessionListing, SessionOwner};
use domain::{ApplicationSecretId, ClientId, Profile, Refusal, SessionKey, Timestamp};
use store::Tx;
use store::queries::sessions::TakenUrl;

pub use crate::realtime::undelivered_changes::SessionChanges;
use crate::run_to_completion::run_to_completion;
use crate::work::Work;
use crate::{Error, Page, Purpose, Service};

/// The close reason of a session whose peer disconnected during the handshake.
const ABANDONED: &str = "transport_closed";
/// The close reason of sessions whose application is deleted.
pub(crate) const REVOKED: &str = "revoked";
/// Maximum number of changes and ends of sessions that a node reads at once.
const READ_AT_ONCE: i64 = 500;

/// A session whose socket may open.
#[derive(Clone, Debug)]
pub struct ConnectedSession {
    /// The session's key.
    pub session_key: SessionKey,
    /// The session's owner.
    pub owner: SessionOwner,
    /// The profile that determines the spelling of events.
    pub profile: Profile,
}

/// One page of a session list.
#[derive(Clone, Debug)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionListing>,
    /// The number of sessions on all pages, if the caller requested it.
    pub total: Option<i64>,
}

/// A registered session whose caller may have stopped waiting. Dropping it ends the session.
struct Unclaimed {
    service: Service,
    session: Option<ConnectedSession>,
}

impl Unclaimed {
    fn claim(mut self) -> Option<ConnectedSession> {
        self.session.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        let service = self.service.clone();
        // Without a runtime the process is about to end. The node's sessions end with the process.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = service.disconnect_session(&session.session_key, ABANDONED).await {
                    service.log_failure(
                        "failed to end an abandoned session: it is listed as connected until its node stops",
                        &error,
                    );
                }
            });
        }
    }
}

impl Service {
    /// Issues a session URL, which opens one session within 30 seconds.
    ///
    /// # Errors
    /// [`Refusal::Cap`] when the owner has the maximum number of connected sessions.
    pub async fn issue_session_url(&self, owner: SessionOwner) -> Result<SessionUrlToken, Error> {
        self.issue_url(owner, None).await
    }

    /// Issues a session URL for an application in client mode. The URL and its session end with the client
    /// secret of the call.
    ///
    /// # Errors
    /// As [`issue_session_url`](Self::issue_session_url).
    pub async fn issue_client_session_url(
        &self,
        client_id: ClientId,
        secret: ApplicationSecretId,
    ) -> Result<SessionUrlToken, Error> {
        self.issue_url(SessionOwner::Client { client_id }, Some(secret)).await
    }

    async fn issue_url(
        &self,
        owner: SessionOwner,
        secret: Option<ApplicationSecretId>,
    ) -> Result<SessionUrlToken, Error> {
        let token = SessionUrlToken::generate(self.random(Purpose::SessionUrl));
        let (hash, expires_at) = (token.hash(), self.now().plus_ms(SESSION_URL_LIFETIME_MS));
        self.write(async move |work: &mut Work<'_>| {
            // This check only gives an early answer. The handshake checks again, under the owner's lock.
            if work.count_connected(&owner).await? >= owner.sessions_max() {
                return Err(Error::from(Refusal::Cap(owner.cap())));
            }
            Ok(work.insert_session_url(&hash, &owner, secret.as_ref(), expires_at).await?)
        })
        .await?;
        Ok(token)
    }

    /// Returns the owner of a session URL that was not used yet; `None` for every other token.
    pub async fn session_url_owner(&self, token: &str) -> Result<Option<SessionOwner>, Error> {
        let Ok(token) = presented(token) else { return Ok(None) };
        let hash = token.hash();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.session_url(&hash).await?)).await?;
        Ok(found.map(|(owner, _)| owner))
    }

    /// Uses a session URL and registers its session as connected to this node.
    ///
    /// # Errors
    /// [`Refusal::Unauthorized`] when the URL is unknown, used or expired; [`Refusal::Cap`] when the
    /// owner has the maximum number of connected sessions. The URL then stays valid for another try.
    ///
    /// If the caller stops waiting, the session is ended. A caller that has the session must end it.
    pub async fn connect_session(&self, token: &str) -> Result<ConnectedSession, Error> {
        let (service, token) = (self.clone(), token.to_owned());
        let unclaimed = run_to_completion(async move {
            let session = Some(service.register_session(&token).await?);
            Ok(Unclaimed { service, session })
        });
        unclaimed.await?.claim().ok_or(Error::Internal("a session that was registered is gone"))
    }

    async fn register_session(&self, token: &str) -> Result<ConnectedSession, Error> {
        let hash = presented(token)?.hash();
        let (now, node) = (self.now(), self.node().clone());
        let session_key = SessionKey::generate(now, self.random(Purpose::Session));
        let key = session_key.clone();
        if self.0.used_urls.contains(&hash) {
            return Err(Refusal::Unauthorized(CredentialFault::SessionUrlUsed).into());
        }
        let url = hash.clone();
        let (owner, profile) = self
            .write(async move |work: &mut Work<'_>| {
                let Some(taken) = work.take_session_url(&hash, now).await? else {
                    return Err(Refusal::Unauthorized(url_fault(work, &hash, now).await?).into());
                };
                let TakenUrl { owner, secret_id, profile } = taken;
                work.lock_session_owner(&owner).await?;
                if work.count_connected(&owner).await? >= owner.sessions_max() {
                    tracing::info!(client_id = %owner.client_id(), channel_id = ?owner.channel_id(),
                            "a handshake is refused: its owner has the maximum number of sessions");
                    return Err(Error::from(Refusal::Cap(owner.cap())));
                }
                work.insert_session(&key, &owner, secret_id.as_ref(), &node, now).await?;
                Ok((owner, profile))
            })
            .await?;
        self.0.used_urls.remember(url);
        Ok(ConnectedSession { session_key, owner, profile: self.profile(profile) })
    }

    /// Ends a session with a close reason. Ending an ended session does nothing.
    pub async fn disconnect_session(&self, key: &SessionKey, reason: &'static str) -> Result<(), Error> {
        self.disconnect_sessions(vec![(key.clone(), reason)]).await
    }

    /// Ends many sessions in one transaction, like [`disconnect_session`](Self::disconnect_session).
    pub async fn disconnect_sessions(&self, ended: Vec<(SessionKey, &'static str)>) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let ends: Vec<_> = ended.iter().map(|(key, reason)| (key, *reason)).collect();
            work.disconnect_sessions(&ends, now).await?;
            Ok(())
        })
        .await
    }

    /// Returns the changes of a session's subscriptions after a version, in order.
    pub async fn session_changes(&self, key: &SessionKey, after: i64) -> Result<Vec<SessionChange>, Error> {
        let key = key.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.session_changes_after(&key, after).await?)).await
    }

    /// Takes the changes of this node's sessions that were not taken before. The changes of one session
    /// are in order. The bus may have delivered some of them. The gateway calls this about once a second,
    /// and again at once after a call that returned changes. Changes that are returned with an error must
    /// be delivered too, and may be returned again.
    pub async fn take_undelivered_changes(&self) -> (SessionChanges, Result<(), Error>) {
        let result = self.read_undelivered_changes().await;
        (self.0.undelivered_changes.take(), result)
    }

    async fn read_undelivered_changes(&self) -> Result<(), Error> {
        let node = self.node().clone();
        let asked = node.clone();
        let any = self.read(async move |tx: &mut Tx| Ok(tx.has_unread_changes(&asked).await?)).await?;
        if !any {
            return Ok(());
        }
        let taken = self.0.undelivered_changes.clone();
        self.write(async move |work: &mut Work<'_>| {
            let changes = work.take_unread_changes(&node, READ_AT_ONCE).await?;
            taken.add(changes);
            Ok(())
        })
        .await
    }

    /// Returns a page of this node's sessions that were ended in the store, with their close reasons,
    /// after a key. The page after the last session is empty. A session is listed until
    /// [`disconnect_session`](Self::disconnect_session) records its end.
    pub async fn sessions_closing(&self, after: &SessionKey) -> Result<Vec<(SessionKey, String)>, Error> {
        let (node, after) = (self.node().clone(), after.clone());
        self.read(async move |tx: &mut Tx| Ok(tx.sessions_closing(&node, &after, READ_AT_ONCE).await?)).await
    }

    /// Returns one page of the caller's own sessions, newest first
    /// (`docs/spec/realtime.md#session-lists`). Disconnected sessions are listed for 90 days. `counted`
    /// requests the number of sessions on all pages too.
    pub async fn sessions(
        &self,
        owner: SessionOwner,
        page: Page,
        counted: bool,
    ) -> Result<SessionPage, Error> {
        let ended_after = self.now().plus_ms(-DISCONNECTED_SESSION_VISIBLE_MS);
        self.read(async move |tx: &mut Tx| {
            let sessions = tx.sessions_of(&owner, ended_after, page).await?;
            let total = if counted { Some(tx.count_sessions_of(&owner, ended_after).await?) } else { None };
            Ok(SessionPage { sessions, total })
        })
        .await
    }
}

/// Returns the reason why a session URL does not open a session.
async fn url_fault(tx: &mut Tx, url: &SecretHash, now: Timestamp) -> Result<CredentialFault, Error> {
    let expired = tx.session_url(url).await?.filter(|(_, expires_at)| *expires_at <= now);
    let Some((owner, expires_at)) = expired else { return Ok(CredentialFault::SessionUrlUnknown) };
    tracing::info!(client_id = %owner.client_id(), channel_id = ?owner.channel_id(),
        expired_at = %expires_at.rfc3339(), "session URL refused: it expired unused");
    Ok(CredentialFault::SessionUrlExpired)
}

fn presented(token: &str) -> Result<SessionUrlToken, Refusal> {
    if token.is_empty() {
        return Err(Refusal::Unauthorized(CredentialFault::Missing(Credential::SessionUrl)));
    }
    let malformed = CredentialFault::Malformed(Credential::SessionUrl);
    SessionUrlToken::presented(token).ok_or(Refusal::Unauthorized(malformed))
}
