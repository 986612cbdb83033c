//! Messages to the mail hook. A lease moves `due_at` of a message to the end of the lease and raises
//! `attempts`. A result counts only for the latest lease. So one node at a time sends a message.

use domain::{ChannelId, DeliveryId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const INSERT: &str = "
    INSERT INTO mail_outbox (mail_id, channel_id, sealed, due_at, expires_at) VALUES ($1, $2, $3, $4, $5)";

const DUE: &str = "
    SELECT mail_id FROM mail_outbox WHERE due_at <= $1 AND channel_id IS NOT NULL
    ORDER BY due_at, mail_id LIMIT $2";

const LEASE: &str = sql!(
    "UPDATE mail_outbox SET due_at = $3, attempts = attempts + 1
    WHERE mail_id = $1 AND due_at <= $2 RETURNING ",
    LeasedMail::COLUMNS
);

const RETRY: &str = "UPDATE mail_outbox SET due_at = $3 WHERE mail_id = $1 AND attempts = $2";

const DELETE: &str = "DELETE FROM mail_outbox WHERE mail_id = $1 AND attempts = $2";

/// Of concurrent messages those are counted that the limit allows.
const COUNT: &str = "
    INSERT INTO mail_counts (subject, began_at, sent) VALUES ($1, $2, 1)
    ON CONFLICT (subject) DO UPDATE SET
        sent = CASE WHEN mail_counts.began_at <= $3 THEN 1 ELSE mail_counts.sent + 1 END,
        began_at = CASE WHEN mail_counts.began_at <= $3 THEN excluded.began_at ELSE mail_counts.began_at END
    WHERE mail_counts.began_at <= $3 OR mail_counts.sent < $4";

/// A message that a node may send until the lease ends.
#[derive(Clone, Debug)]
pub struct LeasedMail {
    /// Its id.
    pub mail_id: DeliveryId,
    /// The message, sealed with the service key.
    pub sealed: String,
    /// The number of the attempt, from 1 on.
    pub attempts: i64,
    /// When it is of no use any more.
    pub expires_at: Timestamp,
}

columns!(LeasedMail { mail_id: "mail_id", sealed: "sealed", attempts: "attempts", expires_at: "expires_at" });

impl Tx {
    /// Writes a message. Without a channel it is never sent.
    pub async fn insert_mail(
        &mut self,
        id: &DeliveryId,
        channel: Option<&ChannelId>,
        sealed: &str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(INSERT, params![id, channel, sealed, now, expires_at]).await?;
        Ok(())
    }

    /// Counts a message of a subject, an address or an account: `false` when there were `max` since the count
    /// began. One that began at `over_since` or before begins again.
    pub async fn count_mail(
        &mut self,
        subject: &str,
        now: Timestamp,
        over_since: Timestamp,
        max: i64,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(COUNT, params![subject, now, over_since, max]).await? > 0)
    }

    /// The first `limit` messages that are due.
    pub async fn mails_due(&mut self, now: Timestamp, limit: i64) -> Result<Vec<DeliveryId>, StoreError> {
        self.fetch_all(DUE, params![now, limit]).await
    }

    /// Takes a message that is due; `None` if another node took it.
    pub async fn lease_mail(
        &mut self,
        id: &DeliveryId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<LeasedMail>, StoreError> {
        self.fetch_optional(LEASE, params![id, now, until]).await
    }

    /// Lets a message be sent again at `due_at`, if its latest attempt has this number.
    pub async fn retry_mail(
        &mut self,
        id: &DeliveryId,
        attempts: i64,
        due_at: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(RETRY, params![id, attempts, due_at]).await? > 0)
    }

    /// Deletes a message that was sent or given up, if its latest attempt has this number.
    pub async fn delete_mail(&mut self, id: &DeliveryId, attempts: i64) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE, params![id, attempts]).await? > 0)
    }
}
