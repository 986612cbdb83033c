//! Sessions: their addresses, their handshake, their end, their lists (spec 4.5, 8; decisions 4).

use domain::limits::{DISCONNECTED_SESSION_VISIBLE_MS, SESSION_URL_LIFETIME_MS};
use domain::secret::SessionUrlToken;
use domain::session::{SessionChange, SessionListing, SessionOwner};
use domain::{Profile, Refusal, SessionKey};

use crate::{Error, Page, Service};

/// A session whose socket may open.
#[derive(Clone, Debug)]
pub struct ConnectedSession {
    /// Its key.
    pub session_key: SessionKey,
    /// Whose it is.
    pub owner: SessionOwner,
    /// How its events are spelled.
    pub profile: Profile,
}

impl Service {
    /// Issues an address that opens one session within 30 seconds.
    ///
    /// # Errors
    /// [`Refusal::TooManySessions`] when as many are connected as the owner may have.
    pub async fn issue_session_url(&self, owner: SessionOwner) -> Result<SessionUrlToken, Error> {
        let token = SessionUrlToken::generate(self.random());
        let (hash, expires_at) = (token.hash(), self.now().plus_ms(SESSION_URL_LIFETIME_MS));
        self.write(move |tx| {
            Box::pin(async move {
                // Only a courtesy: the handshake decides, under the owner's lock.
                if tx.count_connected(&owner).await? >= owner.sessions_max() {
                    return Err(Error::from(Refusal::TooManySessions));
                }
                Ok(tx.insert_session_url(&hash, &owner, expires_at).await?)
            })
        })
        .await?;
        Ok(token)
    }

    /// Uses a session URL up and registers its session as connected to this node, now.
    ///
    /// # Errors
    /// [`Refusal::Unauthorized`] when the URL is unknown, used or expired; [`Refusal::TooManySessions`] when as many
    /// sessions are connected as the owner may have, in which case the URL stays good for another try.
    pub async fn connect_session(&self, token: &str) -> Result<ConnectedSession, Error> {
        let hash = SessionUrlToken::presented(token).ok_or(Refusal::Unauthorized)?.hash();
        let (now, node) = (self.now(), self.node().clone());
        let session_key = SessionKey::generate(now, self.random());
        let key = session_key.clone();
        let (owner, profile) = self
            .write(move |tx| {
                Box::pin(async move {
                    let owner = tx.take_session_url(&hash, now).await?.ok_or(Refusal::Unauthorized)?;
                    tx.lock_session_owner(&owner).await?;
                    if tx.count_connected(&owner).await? >= owner.sessions_max() {
                        return Err(Error::from(Refusal::TooManySessions));
                    }
                    tx.insert_session(&key, &owner, &node, now).await?;
                    let profile = tx.profile_of(owner.client_id()).await?;
                    Ok((owner, profile))
                })
            })
            .await?;
        Ok(ConnectedSession { session_key, owner, profile: self.profile(profile) })
    }

    /// Ends a session, for a reason that the lists and metrics show. Ending it again does nothing.
    pub async fn disconnect_session(&self, key: &SessionKey, reason: &'static str) -> Result<(), Error> {
        let (key, now) = (key.clone(), self.now());
        self.write(move |tx| {
            Box::pin(async move {
                tx.disconnect_session(&key, now, reason).await?;
                Ok(())
            })
        })
        .await
    }

    /// The changes of a session's subscriptions after a version, in order: what its owner node has yet to apply.
    pub async fn session_changes(&self, key: &SessionKey, after: i64) -> Result<Vec<SessionChange>, Error> {
        let key = key.clone();
        self.read(move |tx| Box::pin(async move { Ok(tx.session_changes_after(&key, after).await?) })).await
    }

    /// One page of the caller's own sessions, newest first; disconnected ones for 90 days (spec 2, "Session").
    pub async fn sessions(&self, owner: SessionOwner, page: Page) -> Result<Vec<SessionListing>, Error> {
        let ended_after = self.now().plus_ms(-DISCONNECTED_SESSION_VISIBLE_MS);
        self.read(move |tx| Box::pin(async move { Ok(tx.sessions_of(&owner, ended_after, page).await?) }))
            .await
    }
}
