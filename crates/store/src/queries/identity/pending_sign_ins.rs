//! Sign-ins whose password was right and whose code is missing.

use domain::secret::SecretHash;
use domain::{ChannelId, Timestamp};

use crate::{StoreError, Tx, params};

const INSERT: &str = "INSERT INTO pending_sign_ins (token_hash, channel_id, expires_at) VALUES ($1, $2, $3)";

const FIND: &str = "SELECT channel_id FROM pending_sign_ins WHERE token_hash = $1 AND expires_at > $2";

/// Of two transactions with one token, one gets the row.
const TAKE: &str = "
    DELETE FROM pending_sign_ins WHERE token_hash = $1 AND expires_at > $2 RETURNING channel_id";

const DELETE_OF_CHANNEL: &str = "DELETE FROM pending_sign_ins WHERE channel_id = $1";

impl Tx {
    /// Begins a sign-in that waits for a code.
    pub async fn insert_pending_sign_in(
        &mut self,
        token: &SecretHash,
        channel: &ChannelId,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(INSERT, params![token, channel, expires_at]).await?;
        Ok(())
    }

    /// The channel whose sign-in waits for a code.
    pub async fn pending_sign_in(
        &mut self,
        token: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<ChannelId>, StoreError> {
        self.fetch_optional(FIND, params![token, now]).await
    }

    /// Ends a sign-in that waits for a code, and gives its channel.
    pub async fn take_pending_sign_in(
        &mut self,
        token: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<ChannelId>, StoreError> {
        self.fetch_optional(TAKE, params![token, now]).await
    }

    /// Ends every sign-in of a channel that waits for a code.
    pub async fn delete_pending_sign_ins(&mut self, channel: &ChannelId) -> Result<u64, StoreError> {
        self.execute(DELETE_OF_CHANNEL, params![channel]).await
    }
}
