//! The secrets that are sealed with the service key for as long as their owner exists.

use crate::{StoreError, Tx, params};

const STREAM_KEYS: &str = "
    SELECT channel_id, channel_id, sealed_key FROM stream_keys
    WHERE channel_id > $1 ORDER BY channel_id LIMIT $2";

const WEBHOOK_SECRETS: &str = "
    SELECT secret_id, webhook_id, sealed_secret FROM webhook_secrets
    WHERE secret_id > $1 ORDER BY secret_id LIMIT $2";

const TWO_FACTORS: &str = "
    SELECT channel_id, channel_id, sealed_secret FROM two_factors
    WHERE channel_id > $1 ORDER BY channel_id LIMIT $2";

const RENEW_STREAM_KEY: &str =
    "UPDATE stream_keys SET sealed_key = $3 WHERE channel_id = $1 AND sealed_key = $2";

const RENEW_WEBHOOK_SECRET: &str =
    "UPDATE webhook_secrets SET sealed_secret = $3 WHERE secret_id = $1 AND sealed_secret = $2";

const RENEW_TWO_FACTOR: &str =
    "UPDATE two_factors SET sealed_secret = $3 WHERE channel_id = $1 AND sealed_secret = $2";

/// A kind of sealed secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedKind {
    /// Of channels.
    StreamKey,
    /// Of webhooks.
    WebhookSecret,
    /// Of people with a second step.
    TwoFactor,
}

impl SealedKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::StreamKey, Self::WebhookSecret, Self::TwoFactor];
}

/// A sealed secret. `Debug` shows it sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// The key of its row.
    pub id: String,
    /// The channel or webhook that it is sealed for.
    pub owner: String,
    /// The secret, sealed.
    pub sealed: String,
}

impl Tx {
    /// The first `limit` secrets of a kind after one.
    pub async fn sealed_secrets(
        &mut self,
        kind: SealedKind,
        after: &str,
        limit: i64,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let sql = match kind {
            SealedKind::StreamKey => STREAM_KEYS,
            SealedKind::WebhookSecret => WEBHOOK_SECRETS,
            SealedKind::TwoFactor => TWO_FACTORS,
        };
        let rows: Vec<(String, String, String)> = self.fetch_all(sql, params![after, limit]).await?;
        Ok(rows.into_iter().map(|(id, owner, sealed)| SealedSecret { id, owner, sealed }).collect())
    }

    /// Replaces the seal of a secret: `false` if the secret was changed or deleted meanwhile.
    pub async fn renew_seal(
        &mut self,
        kind: SealedKind,
        secret: &SealedSecret,
        renewed: &str,
    ) -> Result<bool, StoreError> {
        let sql = match kind {
            SealedKind::StreamKey => RENEW_STREAM_KEY,
            SealedKind::WebhookSecret => RENEW_WEBHOOK_SECRET,
            SealedKind::TwoFactor => RENEW_TWO_FACTOR,
        };
        Ok(self.execute(sql, params![secret.id.as_str(), secret.sealed.as_str(), renewed]).await? > 0)
    }
}
