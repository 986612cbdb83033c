//! Batches of events whose publication is not confirmed yet (the transactional outbox of events).

use std::sync::LazyLock;

use domain::{BatchId, ChannelId, NodeId, Timestamp};

use crate::queries::batched::{BatchedStatement, ColumnType};
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, Value, params};

const RECORD: &str = "
    INSERT INTO event_outbox (batch_id, node_id, created_at, channels) VALUES ($1, $2, $3, $4)";

const FIND: &str = sql!("SELECT ", EventBatch::COLUMNS, " FROM event_outbox WHERE batch_id = $1");

/// A range of the primary key, whose ids grow with time.
const OVERDUE: &str = sql!(
    "SELECT ",
    EventBatch::COLUMNS,
    " FROM event_outbox
    WHERE batch_id < $1 AND taken_over_at IS NULL AND ($2 OR node_id = $3)
    ORDER BY batch_id LIMIT $4"
);

const TAKE_OVER: &str = "
    UPDATE event_outbox SET taken_over_at = $2 WHERE batch_id = $1 AND taken_over_at IS NULL";

static SETTLE: LazyLock<BatchedStatement<1>> = LazyLock::new(|| {
    BatchedStatement::new([ColumnType::Text], |ids| {
        format!("DELETE FROM event_outbox WHERE batch_id IN ({ids})")
    })
});

/// The separator of channel ids. No id contains a space.
const SEPARATOR: char = ' ';

/// The events of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventBatch {
    /// Its id.
    pub batch_id: BatchId,
    /// The node that publishes it.
    pub node_id: NodeId,
    /// The channels of its events, each once.
    pub channels: Vec<ChannelId>,
    /// Its channels were recorded as lost.
    pub is_taken_over: bool,
}

columns!(EventBatch {
    batch_id: "batch_id",
    node_id: "node_id",
    channels: "channels" => stored_channels,
    is_taken_over: "taken_over_at IS NOT NULL",
});

/// The nodes whose batches are read.
#[derive(Clone, Copy, Debug)]
pub enum BatchesOf<'a> {
    /// Every node.
    All,
    /// One node.
    Node(&'a NodeId),
}

/// The batch of a transaction's events, before its channels are known.
#[derive(Clone, Debug)]
pub struct OpenBatch {
    /// Its id.
    pub batch_id: BatchId,
    /// The node that publishes it.
    pub node_id: NodeId,
    /// When it began.
    pub created_at: Timestamp,
}

/// What a transaction notes about batches of events.
#[derive(Default)]
pub(crate) struct EventBatchNotes {
    /// The batch of its own events.
    pub current: Option<OpenBatch>,
    /// The batch has its row.
    pub is_recorded: bool,
    /// The batches of earlier requests with the same idempotency keys.
    pub earlier: Vec<BatchId>,
}

impl Tx {
    /// Sets the batch of this transaction's events. Idempotency keys that are claimed afterwards refer to the
    /// batch.
    pub fn begin_event_batch(&mut self, batch: OpenBatch) {
        self.notes::<EventBatchNotes>().current = Some(batch);
    }

    /// The batches of earlier requests with the idempotency keys of this transaction.
    pub fn take_earlier_event_batches(&mut self) -> Vec<BatchId> {
        let mut earlier = std::mem::take(&mut self.notes::<EventBatchNotes>().earlier);
        earlier.sort_unstable();
        earlier.dedup();
        earlier
    }

    /// Records the events of this transaction, together with its commit, unless a statement of the
    /// transaction has recorded them.
    pub async fn record_event_batch(
        &mut self,
        batch: &EventBatch,
        created_at: Timestamp,
    ) -> Result<(), StoreError> {
        if self.notes::<EventBatchNotes>().is_recorded {
            return Ok(());
        }
        let EventBatch { batch_id, node_id, channels, .. } = batch;
        let joined = joined_channels(channels);
        let text = |text: &str| Value::from(text.to_owned());
        let params = vec![text(batch_id.as_str()), text(node_id.as_str()), created_at.into(), joined.into()];
        self.execute_with_commit(RECORD, params).await
    }

    /// Deletes batches whose events are published.
    pub async fn settle_event_batches(&mut self, batches: &[BatchId]) -> Result<(), StoreError> {
        self.execute_batched(&SETTLE, batches.iter().map(|batch| [Value::from(batch)]).collect()).await
    }

    /// The batch of this id, unless it is settled.
    pub async fn unsettled_event_batch(&mut self, batch: &BatchId) -> Result<Option<EventBatch>, StoreError> {
        self.fetch_optional(FIND, params![batch]).await
    }

    /// The oldest batches from before a time that are neither settled nor taken over.
    pub async fn overdue_event_batches(
        &mut self,
        before: Timestamp,
        of: BatchesOf<'_>,
        limit: i64,
    ) -> Result<Vec<EventBatch>, StoreError> {
        let (all, node) = match of {
            BatchesOf::All => (true, ""),
            BatchesOf::Node(node) => (false, node.as_str()),
        };
        let bound = BatchId::bound_at(before);
        self.fetch_all(OVERDUE, params![&bound, all, node, limit]).await
    }

    /// Marks a batch as taken over. The same transaction records its channels as lost. `false` if the batch
    /// was settled or taken over meanwhile.
    pub async fn take_over_event_batch(
        &mut self,
        batch: &BatchId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(TAKE_OVER, params![batch, now]).await? > 0)
    }
}

/// Channels as the outbox stores them.
pub(crate) fn joined_channels<'c>(channels: impl IntoIterator<Item = &'c ChannelId>) -> String {
    let mut joined = String::new();
    for channel in channels {
        if !joined.is_empty() {
            joined.push(SEPARATOR);
        }
        joined.push_str(channel.as_str());
    }
    joined
}

fn stored_channels(joined: &str) -> Vec<ChannelId> {
    joined.split(SEPARATOR).map(|id| ChannelId::stored(id.to_owned())).collect()
}
