//! Stream keys, sealed.

use domain::{ChannelId, Timestamp};

use crate::{StoreError, Tx, params};

const OF_CHANNEL: &str = "SELECT sealed_key FROM stream_keys WHERE channel_id = $1";

const MAKE: &str = "
    INSERT INTO stream_keys (channel_id, sealed_key, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id) DO NOTHING";

const REPLACE: &str = "
    INSERT INTO stream_keys (channel_id, sealed_key, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id) DO UPDATE SET sealed_key = excluded.sealed_key, created_at = excluded.created_at";

impl Tx {
    /// The sealed key of a channel that has one.
    pub async fn stream_key(&mut self, channel: &ChannelId) -> Result<Option<String>, StoreError> {
        self.fetch_optional(OF_CHANNEL, params![channel]).await
    }

    /// Gives a channel its first key. An existing key stays.
    pub async fn make_stream_key(
        &mut self,
        channel: &ChannelId,
        sealed: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(MAKE, params![channel, sealed, now]).await?;
        Ok(())
    }

    /// Gives a channel another key.
    pub async fn replace_stream_key(
        &mut self,
        channel: &ChannelId,
        sealed: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(REPLACE, params![channel, sealed, now]).await?;
        Ok(())
    }
}
