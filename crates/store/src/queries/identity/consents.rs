//! Consents of users to applications. A consent's row is the lock of its tokens and subscriptions
//! (`docs/adr/0001-consent-is-the-lock.md`).

use domain::{ChannelId, ClientId, ScopeSet, Timestamp};

use super::credential_changes::Dependency;
use crate::{StoreError, Tx, params};

const PUT: &str = "
    INSERT INTO consents (client_id, channel_id, scopes, version, created_at) VALUES ($1, $2, $3, 1, $4)
    ON CONFLICT (client_id, channel_id) DO UPDATE SET
        scopes = excluded.scopes, version = consents.version + 1";

const LOCK: &str = "
    UPDATE consents SET version = version + 1 WHERE client_id = $1 AND channel_id = $2 RETURNING scopes";

const LOCK_LIVE: &str = "
    UPDATE consents SET version = version + 1
    WHERE client_id = $1 AND channel_id IN (SELECT channel_id FROM access_tokens WHERE client_id = $1)";

const DELETE: &str = "DELETE FROM consents WHERE client_id = $1 AND channel_id = $2";

const NARROW: &str = "
    UPDATE consents SET scopes = scopes & $2, version = version + 1 WHERE client_id = $1 AND scopes & $2 <> scopes";

const COUNT: &str = "
    SELECT CAST(COALESCE(SUM(CASE WHEN scopes & $2 <> 0 THEN 1 ELSE 0 END), 0) AS BIGINT), COUNT(*)
    FROM (SELECT scopes FROM consents WHERE client_id = $1 LIMIT $3) counted";

impl Tx {
    /// How many of the first `max` consents to an application have one of these scopes, and how many there
    /// are.
    pub async fn count_consents(
        &mut self,
        client_id: &ClientId,
        scopes: ScopeSet,
        max: i64,
    ) -> Result<(i64, i64), StoreError> {
        self.fetch_one(COUNT, params![client_id, scopes.to_stored(), max]).await
    }

    /// Records a consent in place of an earlier one, and locks the row.
    pub async fn put_consent(
        &mut self,
        client_id: &ClientId,
        channel_id: &ChannelId,
        scopes: ScopeSet,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Consent(client_id, channel_id));
        self.execute(PUT, params![client_id, channel_id, scopes.to_stored(), now]).await?;
        Ok(())
    }

    /// Locks a consent for the rest of the transaction and gives its scopes; `None` if there is none. Every
    /// change of tokens and subscriptions locks the consent first, so that none misses a concurrent
    /// revocation.
    pub async fn lock_consent(
        &mut self,
        client_id: &ClientId,
        channel_id: &ChannelId,
    ) -> Result<Option<ScopeSet>, StoreError> {
        self.fetch_optional(LOCK, params![client_id, channel_id]).await
    }

    /// Locks the consents to an application that have tokens: without a token nothing can be subscribed to.
    /// Gives their number.
    pub async fn lock_live_consents(&mut self, client_id: &ClientId) -> Result<u64, StoreError> {
        self.execute(LOCK_LIVE, params![client_id]).await
    }

    /// Deletes a consent with its codes and tokens: `false` if there was none.
    pub async fn delete_consent(
        &mut self,
        client_id: &ClientId,
        channel_id: &ChannelId,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Consent(client_id, channel_id));
        Ok(self.execute(DELETE, params![client_id, channel_id]).await? > 0)
    }

    /// Removes the scopes outside of `scopes` from every consent to an application, and locks these consents
    /// for the rest of the transaction. Gives their number.
    pub async fn narrow_consents(
        &mut self,
        client_id: &ClientId,
        scopes: ScopeSet,
    ) -> Result<u64, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        self.execute(NARROW, params![client_id, scopes.to_stored()]).await
    }
}
