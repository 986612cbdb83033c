//! Idempotency keys and their answers.

use domain::secret::SecretHash;
use domain::{BatchId, Timestamp};

use crate::queries::event_outbox::EventBatchNotes;
use crate::{StoreError, Tx, params};

const CLAIM: &str = "
    INSERT INTO idempotency_keys (operation, idempotency_key, request_hash, answer, created_at, batch_id)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (operation, idempotency_key) DO NOTHING";

const RECORDED: &str = "
    SELECT request_hash, answer, batch_id FROM idempotency_keys WHERE operation = $1 AND idempotency_key = $2";

const ANSWER: &str = "
    UPDATE idempotency_keys SET answer = $3 WHERE operation = $1 AND idempotency_key = $2";

/// The result of claiming a key.
#[derive(Clone, Debug)]
pub enum KeyClaim {
    /// The key was free and belongs to this transaction, whose effect may happen.
    Ours,
    /// An earlier request has the key.
    Earlier {
        /// The hash of the first request's body.
        request: SecretHash,
        /// The first request's answer, as JSON.
        answer: String,
    },
}

impl Tx {
    /// Claims a key with the answer for repeated requests. Of concurrent requests one gets
    /// [`KeyClaim::Ours`]. The others wait for its transaction. If this transaction [has a batch of
    /// events](Self::begin_event_batch), the key refers to the batch. The batch of an earlier request is
    /// noted.
    pub async fn claim_idempotency_key(
        &mut self,
        operation: &str,
        key: &str,
        request: &SecretHash,
        answer: &str,
        now: Timestamp,
    ) -> Result<KeyClaim, StoreError> {
        let current = self.notes::<EventBatchNotes>().current.as_ref();
        let batch = current.map(|batch| batch.batch_id.clone());
        if self.execute(CLAIM, params![operation, key, request, answer, now, batch.as_ref()]).await? > 0 {
            return Ok(KeyClaim::Ours);
        }
        let (request, answer, earlier): (_, _, Option<BatchId>) =
            self.fetch_one(RECORDED, params![operation, key]).await?;
        // The key may stand twice in one transaction.
        let earlier = earlier.filter(|earlier| Some(earlier) != batch.as_ref());
        self.notes::<EventBatchNotes>().earlier.extend(earlier);
        Ok(KeyClaim::Earlier { request, answer })
    }

    /// Replaces the answer of a key that was claimed in this transaction.
    pub async fn answer_idempotency_key(
        &mut self,
        operation: &str,
        key: &str,
        answer: &str,
    ) -> Result<(), StoreError> {
        self.execute(ANSWER, params![operation, key, answer]).await?;
        Ok(())
    }
}
