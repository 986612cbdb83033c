//! Links with which people choose a new password. Each works once.

use domain::secret::SecretHash;
use domain::{ChannelId, Timestamp};

use crate::{StoreError, Tx, params};

const INSERT: &str = "
    INSERT INTO password_resets (token_hash, channel_id, expires_at, email) VALUES ($1, $2, $3, $4)";

const COUNT: &str = "SELECT COUNT(*) FROM password_resets WHERE channel_id = $1 AND expires_at > $2";

const FIND: &str = "SELECT channel_id FROM password_resets WHERE token_hash = $1 AND expires_at > $2";

/// Of two transactions with one link, one gets the row.
const TAKE: &str = "
    DELETE FROM password_resets WHERE token_hash = $1 AND expires_at > $2 RETURNING channel_id, email";

const DELETE_OF_CHANNEL: &str = "DELETE FROM password_resets WHERE channel_id = $1";

impl Tx {
    /// Issues a link, which is sent to this address, or given by the operator. The caller has locked the
    /// channel.
    pub async fn insert_password_reset(
        &mut self,
        token: &SecretHash,
        channel: &ChannelId,
        email: Option<&str>,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(INSERT, params![token, channel, expires_at, email]).await?;
        Ok(())
    }

    /// The number of valid links of a channel.
    pub async fn password_resets(&mut self, channel: &ChannelId, now: Timestamp) -> Result<i64, StoreError> {
        self.fetch_one(COUNT, params![channel, now]).await
    }

    /// The channel of a valid link.
    pub async fn password_reset(
        &mut self,
        token: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<ChannelId>, StoreError> {
        self.fetch_optional(FIND, params![token, now]).await
    }

    /// Uses a valid link up, and gives its channel and the address that it was sent to.
    pub async fn take_password_reset(
        &mut self,
        token: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<(ChannelId, Option<String>)>, StoreError> {
        self.fetch_optional(TAKE, params![token, now]).await
    }

    /// Makes every link of a channel invalid.
    pub async fn delete_password_resets(&mut self, channel: &ChannelId) -> Result<u64, StoreError> {
        self.execute(DELETE_OF_CHANNEL, params![channel]).await
    }
}
