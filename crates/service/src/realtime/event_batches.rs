//! The batches of events that this node commits, publishes and deletes (`event_outbox.rs`).

use std::collections::{BTreeSet, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bus::Message;
use domain::{BatchId, ChannelId, NodeId, Timestamp};
use store::queries::event_outbox::{EventBatch, OpenBatch};
use store::{StoreError, Tx};
use tokio::sync::Notify;

/// Maximum number of batches that one transaction deletes.
const SETTLE_MAX: usize = 512;
/// Maximum number of batches that wait to be deleted. Further batches are found when they are overdue.
const SETTLED_MAX: usize = 65_536;
/// Maximum number of batches of unknown outcome that are checked as soon as the store answers again.
/// Further batches are found when they are overdue.
const IN_DOUBT_MAX: usize = 4_096;

/// The batches of this node.
#[derive(Debug, Default)]
pub(crate) struct EventOutbox {
    own: Mutex<OwnBatches>,
    /// Signals that there is a batch to delete or to check.
    has_work: Notify,
    /// Signals that a batch has ended.
    has_ended: Notify,
    taken_over: AtomicU64,
}

#[derive(Debug, Default)]
struct OwnBatches {
    /// Batches that are being committed or published.
    under_way: HashSet<BatchId>,
    /// Published batches whose rows are not deleted yet.
    settled: BTreeSet<BatchId>,
    /// Batches that may be committed and were not published.
    in_doubt: BTreeSet<BatchId>,
}

/// A batch of this node, from the start of its transaction to the end of its publication.
pub(crate) struct OwnBatch {
    outbox: Arc<EventOutbox>,
    row: BatchRow,
    end: BatchEnd,
}

/// How a batch ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchEnd {
    /// This node has nothing left to do for the batch.
    Nothing,
    Settled,
    InDoubt,
}

/// The row that a transaction writes for its batch.
#[derive(Clone)]
pub(crate) struct BatchRow(OpenBatch);

/// What a transaction wrote to the outbox.
#[derive(Debug, Default)]
pub(crate) struct OutboxWrite {
    /// Whether the transaction has a row.
    pub has_row: bool,
    /// The batches of earlier requests with the same idempotency keys.
    pub earlier: Vec<BatchId>,
}

impl BatchRow {
    /// Called before the work of the transaction.
    pub fn begin(&self, tx: &mut Tx) {
        tx.begin_event_batch(self.0.clone());
    }

    /// Called after the work. Writes the row if there are events.
    pub async fn record(self, tx: &mut Tx, messages: &[Message]) -> Result<OutboxWrite, StoreError> {
        let earlier = tx.take_earlier_event_batches();
        let channels = channels_of(messages);
        let has_row = !channels.is_empty();
        if has_row {
            let Self(OpenBatch { batch_id, node_id, created_at }) = self;
            let batch = EventBatch { batch_id, node_id, channels, is_taken_over: false };
            tx.record_event_batch(&batch, created_at).await?;
        }
        Ok(OutboxWrite { has_row, earlier })
    }
}

/// The distinct channels of the events among messages.
fn channels_of(messages: &[Message]) -> Vec<ChannelId> {
    let mut channels: Vec<_> = messages.iter().filter_map(Message::channel).cloned().collect();
    channels.sort_unstable();
    channels.dedup();
    channels
}

impl OwnBatch {
    pub fn row(&self) -> BatchRow {
        self.row.clone()
    }

    /// Ends a batch whose events were published. The row is deleted later.
    pub fn settle(mut self) {
        self.end = BatchEnd::Settled;
    }

    /// Ends a batch whose events may be committed without publication. The row is checked as soon as the
    /// store answers.
    pub fn doubt(mut self) {
        self.end = BatchEnd::InDoubt;
    }
}

impl Drop for OwnBatch {
    fn drop(&mut self) {
        self.outbox.end(&self.row.0.batch_id, self.end);
    }
}

impl EventOutbox {
    fn own(&self) -> MutexGuard<'_, OwnBatches> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the batch of a transaction.
    pub fn begin(self: &Arc<Self>, batch_id: BatchId, node_id: NodeId, created_at: Timestamp) -> OwnBatch {
        self.own().under_way.insert(batch_id.clone());
        let row = BatchRow(OpenBatch { batch_id, node_id, created_at });
        OwnBatch { outbox: self.clone(), row, end: BatchEnd::Nothing }
    }

    fn end(&self, batch: &BatchId, end: BatchEnd) {
        let has_work = {
            let mut own = self.own();
            own.under_way.remove(batch);
            let (to, max) = match end {
                BatchEnd::Nothing => (None, 0),
                BatchEnd::Settled => (Some(&mut own.settled), SETTLED_MAX),
                BatchEnd::InDoubt => (Some(&mut own.in_doubt), IN_DOUBT_MAX),
            };
            to.is_some_and(|to| {
                to.insert(batch.clone());
                if to.len() > max {
                    to.pop_first();
                }
                to.len() == 1
            })
        };
        self.has_ended.notify_waiters();
        if has_work {
            self.has_work.notify_one();
        }
    }

    /// Whether this node is committing, publishing or deleting the batch.
    pub fn is_at_work_on(&self, batch: &BatchId) -> bool {
        let own = self.own();
        own.under_way.contains(batch) || own.settled.contains(batch)
    }

    /// Waits until this node no longer works on a batch. Returns whether it published the events.
    pub async fn is_settled(&self, batch: &BatchId) -> bool {
        loop {
            let mut ended = pin!(self.has_ended.notified());
            ended.as_mut().enable();
            {
                let own = self.own();
                if !own.under_way.contains(batch) {
                    return own.settled.contains(batch);
                }
            }
            ended.await;
        }
    }

    /// Waits until there is a batch to delete or to check.
    pub async fn wait_for_work(&self) {
        loop {
            let mut has_work = pin!(self.has_work.notified());
            has_work.as_mut().enable();
            {
                let own = self.own();
                if !own.settled.is_empty() || !own.in_doubt.is_empty() {
                    return;
                }
            }
            has_work.await;
        }
    }

    /// Batches whose rows one transaction may delete.
    pub fn first_settled(&self) -> Vec<BatchId> {
        self.own().settled.iter().take(SETTLE_MAX).cloned().collect()
    }

    pub fn first_in_doubt(&self, max: usize) -> Vec<BatchId> {
        self.own().in_doubt.iter().take(max).cloned().collect()
    }

    pub fn drop_settled(&self, batches: &[BatchId]) {
        let mut own = self.own();
        batches.iter().for_each(|batch| _ = own.settled.remove(batch));
    }

    pub fn drop_in_doubt(&self, batches: &[BatchId]) {
        let mut own = self.own();
        batches.iter().for_each(|batch| _ = own.in_doubt.remove(batch));
    }

    /// The number of batches that this node took over since it started.
    pub fn taken_over(&self) -> u64 {
        self.taken_over.load(Relaxed)
    }

    pub fn add_taken_over(&self, count: u64) {
        self.taken_over.fetch_add(count, Relaxed);
    }
}
