//! The second step of a sign-in: the secret of one-time codes, the steps that were used, and recovery codes.

use domain::secret::SecretHash;
use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// A confirmed secret stays.
const PUT: &str = "
    INSERT INTO two_factors (channel_id, sealed_secret) VALUES ($1, $2)
    ON CONFLICT (channel_id) DO UPDATE SET sealed_secret = excluded.sealed_secret, last_step = 0
    WHERE two_factors.confirmed_at IS NULL";

const FIND: &str = sql!("SELECT ", TwoFactor::COLUMNS, " FROM two_factors WHERE channel_id = $1");

/// Counts the attempt before its code is checked. Begins a new count when the last one began before `$2`.
const CHARGE: &str = "
    UPDATE two_factors SET
        failures = CASE WHEN failing_since <= $2 THEN 1 ELSE failures + 1 END,
        failing_since = CASE WHEN failing_since <= $2 THEN $3 ELSE failing_since END
    WHERE channel_id = $1 AND (failures < $4 OR failing_since <= $2)";

/// Each step is used once, whatever comes at the same time.
const USE_STEP: &str = "
    UPDATE two_factors SET last_step = $2, failures = 0
    WHERE channel_id = $1 AND confirmed_at IS NOT NULL AND last_step < $2";

const CONFIRM: &str = "
    UPDATE two_factors SET last_step = $2, failures = 0, confirmed_at = $3
    WHERE channel_id = $1 AND confirmed_at IS NULL AND last_step < $2";

const DELETE: &str = "DELETE FROM two_factors WHERE channel_id = $1";

const INSERT_CODE: &str = "INSERT INTO recovery_codes (channel_id, code_hash) VALUES ($1, $2)";

/// Of two transactions with one code, one deletes the row.
const TAKE_CODE: &str = "DELETE FROM recovery_codes WHERE channel_id = $1 AND code_hash = $2";

const COUNT_CODES: &str = "SELECT COUNT(*) FROM recovery_codes WHERE channel_id = $1";

const DELETE_CODES: &str = "DELETE FROM recovery_codes WHERE channel_id = $1";

/// The second step of a person's sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoFactor {
    /// Sealed with the service key.
    pub sealed_secret: String,
    /// When the person entered the first code; `None` before.
    pub confirmed_at: Option<Timestamp>,
}

columns!(TwoFactor { sealed_secret: "sealed_secret", confirmed_at: "confirmed_at" });

impl Tx {
    /// Begins with a secret, or replaces one that was never confirmed: `false` if there is a confirmed one.
    pub async fn put_two_factor(
        &mut self,
        channel: &ChannelId,
        sealed_secret: &str,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(PUT, params![channel, sealed_secret]).await? > 0)
    }

    /// The second step of a person's sign-in, confirmed or not.
    pub async fn two_factor(&mut self, channel: &ChannelId) -> Result<Option<TwoFactor>, StoreError> {
        self.fetch_optional(FIND, params![channel]).await
    }

    /// Counts an attempt to enter a code at `now`: `false` if there were `max` wrong ones since the count
    /// began, and it did not begin at `since` or before.
    pub async fn charge_code(
        &mut self,
        channel: &ChannelId,
        since: Timestamp,
        now: Timestamp,
        max: i64,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(CHARGE, params![channel, since, now, max]).await? > 0)
    }

    /// Uses a step of codes up, and forgets the wrong codes: `false` if this step or a later one was used.
    pub async fn use_code_step(&mut self, channel: &ChannelId, step: i64) -> Result<bool, StoreError> {
        Ok(self.execute(USE_STEP, params![channel, step]).await? > 0)
    }

    /// Confirms the secret with the step of its first code: `false` if it is confirmed already.
    pub async fn confirm_two_factor(
        &mut self,
        channel: &ChannelId,
        step: i64,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(CONFIRM, params![channel, step, now]).await? > 0)
    }

    /// Removes the second step, with its recovery codes: `false` if there is none.
    pub async fn delete_two_factor(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE, params![channel]).await? > 0)
    }

    /// Adds a recovery code.
    pub async fn insert_recovery_code(
        &mut self,
        channel: &ChannelId,
        code: &SecretHash,
    ) -> Result<(), StoreError> {
        self.execute(INSERT_CODE, params![channel, code]).await?;
        Ok(())
    }

    /// Uses a recovery code up: `false` if it is unknown or was used.
    pub async fn take_recovery_code(
        &mut self,
        channel: &ChannelId,
        code: &SecretHash,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(TAKE_CODE, params![channel, code]).await? > 0)
    }

    /// The number of unused recovery codes.
    pub async fn recovery_codes(&mut self, channel: &ChannelId) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_CODES, params![channel]).await
    }

    /// Deletes every recovery code of a person.
    pub async fn delete_recovery_codes(&mut self, channel: &ChannelId) -> Result<u64, StoreError> {
        self.execute(DELETE_CODES, params![channel]).await
    }
}
