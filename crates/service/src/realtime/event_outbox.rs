//! The transactional outbox of events on PostgreSQL. Every committed event is published, or the sessions that
//! may have missed it are closed, also when a node dies between the commit and the publication
//! (`docs/adr/0024-events-have-an-outbox.md`).
//!
//! A transaction with events writes one row for all of them, its batch, together with its COMMIT. The row
//! is deleted after the bus has confirmed the events. A row that stays belongs to a commit without an
//! answer, or to a dead node. The node that finds such a row records the row's channels as lost. On
//! SQLite there is no batch, because the process that commits also publishes, and every commit has an
//! answer.

use std::collections::{BTreeSet, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bus::Message;
use domain::{BatchId, ChannelId, NodeId, Timestamp};
use store::queries::event_outbox::{BatchesOf, EventBatch};
use store::queries::lost_events::LostEvents;
use store::{StoreError, Tx};
use tokio::sync::Notify;

use crate::realtime::lost_events::{LOST_EVENTS_KNOWN_WITHIN, STAMPED_BEFORE_MS};
use crate::{Error, Service};

/// How long a node collects settled batches before it deletes them together.
pub const SETTLE_EVERY: Duration = Duration::from_millis(100);
/// How often a node queries overdue batches.
pub const TAKE_OVER_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of overdue batches that one query reads.
pub const OVERDUE_MAX: usize = 500;
/// Maximum number of batches that one transaction takes over.
const TAKE_OVER_MAX: usize = 64;
/// Maximum number of batches that one transaction deletes.
const SETTLE_MAX: usize = 512;
/// Maximum number of batches that wait to be deleted. Further batches are found when they are overdue.
const SETTLED_MAX: usize = 65_536;
/// Maximum number of batches of unknown outcome that are checked as soon as the store answers again.
/// Further batches are found when they are overdue.
const IN_DOUBT_MAX: usize = 4_096;
/// How long a repeated request waits for the node that publishes the events of the first one.
const PUBLISHED_BY_OTHERS_WITHIN: Duration = Duration::from_millis(2_500);
/// How often a waiting repeated request queries the store.
const POLL_EVERY: Duration = Duration::from_millis(100);

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
    service: Service,
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
pub(crate) struct BatchRow {
    batch_id: BatchId,
    node_id: NodeId,
    created_at: Timestamp,
}

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
        tx.begin_event_batch(self.batch_id.clone());
    }

    /// Called after the work. Writes the row if there are events.
    pub async fn record(self, tx: &mut Tx, messages: &[Message]) -> Result<OutboxWrite, StoreError> {
        let earlier = tx.take_earlier_event_batches();
        let channels = channels_of(messages);
        let has_row = !channels.is_empty();
        if has_row {
            let Self { batch_id, node_id, created_at } = self;
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
        self.service.0.event_outbox.end(&self.row.batch_id, self.end);
    }
}

impl EventOutbox {
    fn own(&self) -> MutexGuard<'_, OwnBatches> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn is_at_work_on(&self, batch: &BatchId) -> bool {
        let own = self.own();
        own.under_way.contains(batch) || own.settled.contains(batch)
    }

    /// Waits until this node no longer works on a batch. Returns whether it published the events.
    async fn is_settled(&self, batch: &BatchId) -> bool {
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
    async fn wait_for_work(&self) {
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

    fn first_settled(&self) -> Vec<BatchId> {
        self.own().settled.iter().take(SETTLE_MAX).cloned().collect()
    }

    fn first_in_doubt(&self) -> Vec<BatchId> {
        self.own().in_doubt.iter().take(TAKE_OVER_MAX).cloned().collect()
    }
}

impl Service {
    /// Begins the batch of a transaction. `None` on SQLite.
    pub(crate) fn begin_event_batch(&self) -> Option<OwnBatch> {
        if !self.has_event_outbox() {
            return None;
        }
        let created_at = self.now();
        let batch_id = BatchId::generate(created_at, self.random());
        self.0.event_outbox.own().under_way.insert(batch_id.clone());
        let row = BatchRow { batch_id, node_id: self.node().clone(), created_at };
        Some(OwnBatch { service: self.clone(), row, end: BatchEnd::Nothing })
    }

    /// Whether events are written to an outbox.
    pub fn has_event_outbox(&self) -> bool {
        self.0.store.is_remote()
    }

    /// Waits until this node has batches to settle.
    pub async fn has_events_to_settle(&self) {
        self.0.event_outbox.wait_for_work().await;
    }

    /// Deletes this node's published batches, and takes over its batches that were committed without an
    /// answer.
    ///
    /// # Errors
    /// When the store does not answer. The batches are kept for the next call.
    pub async fn settle_events(&self) -> Result<(), Error> {
        let outbox = &self.0.event_outbox;
        loop {
            let in_doubt = outbox.first_in_doubt();
            if in_doubt.is_empty() {
                break;
            }
            // A batch without a row was rolled back, or is committed later. In that case it is found when
            // it is overdue.
            let lost = self.unsettled(in_doubt.clone()).await?;
            self.take_over(lost).await?;
            let mut own = outbox.own();
            in_doubt.iter().for_each(|batch| _ = own.in_doubt.remove(batch));
        }
        loop {
            let settled = outbox.first_settled();
            if settled.is_empty() {
                return Ok(());
            }
            let batches = settled.clone();
            self.0.store.write(async move |tx: &mut Tx| tx.settle_event_batches(&batches).await).await?;
            let mut own = outbox.own();
            settled.iter().for_each(|batch| _ = own.settled.remove(batch));
        }
    }

    /// Takes over batches that are too old for a living node to work on. Returns the number of batches
    /// that were found. If it is [`OVERDUE_MAX`], there may be more.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn take_over_overdue_events(&self) -> Result<usize, Error> {
        let (before, node, all) = (self.overdue_before(), self.node().clone(), self.shares_bus());
        let found = self
            .read(async move |tx: &mut Tx| {
                // Without a shared bus, sessions of this node never get the events of other nodes, so
                // they cannot miss them.
                let of = if all { BatchesOf::All } else { BatchesOf::Node(&node) };
                Ok(tx.overdue_event_batches(before, of, OVERDUE_MAX as i64).await?)
            })
            .await?;
        let count = found.len();
        let unknown = found.into_iter().map(|batch| batch.batch_id);
        let unknown = unknown.filter(|batch| !self.0.event_outbox.is_at_work_on(batch)).collect();
        // The rows are read again, because this node may have deleted some of them since the first query.
        let lost = self.unsettled(unknown).await?;
        self.take_over(lost).await?;
        Ok(count)
    }

    /// The number of batches that this node took over since it started.
    pub fn event_batches_taken_over(&self) -> u64 {
        self.0.event_outbox.taken_over.load(Relaxed)
    }

    fn overdue_before(&self) -> Timestamp {
        self.now().plus_ms(-STAMPED_BEFORE_MS)
    }

    /// Waits until the events of these batches were published, or every session that may have missed them is
    /// closed before any later event. Their nodes get some time for the publication. Then the batches are
    /// taken over.
    ///
    /// # Errors
    /// The store's error. The outcome is then unknown.
    pub(crate) async fn await_published(&self, batches: Vec<BatchId>) -> Result<(), Error> {
        let deadline = self.clock().monotonic() + PUBLISHED_BY_OTHERS_WITHIN;
        let mut open = Vec::new();
        for batch in batches {
            let is_settled = tokio::select! {
                is_settled = self.0.event_outbox.is_settled(&batch) => is_settled,
                () = self.clock().sleep_until(deadline) => false,
            };
            if !is_settled {
                open.push(batch);
            }
        }
        let mut were_lost = false;
        while !open.is_empty() {
            let (is_late, overdue) =
                (self.clock().monotonic() >= deadline, BatchId::bound_at(self.overdue_before()));
            let (taken_over, waiting): (Vec<_>, Vec<_>) =
                self.unsettled(open).await?.into_iter().partition(|batch| batch.is_taken_over);
            let is_ours =
                |batch: &EventBatch| is_late || batch.node_id == *self.node() || batch.batch_id < overdue;
            let (lost, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_ours);
            were_lost |= !taken_over.is_empty() || !lost.is_empty();
            self.take_over(lost).await?;
            open = others.into_iter().map(|batch| batch.batch_id).collect();
            if !open.is_empty() {
                self.clock().sleep(POLL_EVERY).await;
            }
        }
        if were_lost && self.shares_bus() {
            self.clock().sleep(LOST_EVENTS_KNOWN_WITHIN).await;
        }
        Ok(())
    }

    /// The batches whose rows still exist and whose events sessions of this node may have missed.
    async fn unsettled(&self, batches: Vec<BatchId>) -> Result<Vec<EventBatch>, Error> {
        let mut found = self
            .read(async move |tx: &mut Tx| {
                let mut found = Vec::new();
                for batch in batches {
                    found.extend(tx.unsettled_event_batch(&batch).await?);
                }
                Ok::<_, Error>(found)
            })
            .await?;
        if !self.shares_bus() {
            found.retain(|batch| batch.node_id == *self.node());
        }
        Ok(found)
    }

    /// Records the channels of batches as lost, which closes the sessions subscribed to these channels.
    /// When several nodes try at once, one succeeds.
    async fn take_over(&self, mut batches: Vec<EventBatch>) -> Result<(), Error> {
        while !batches.is_empty() {
            let rest = batches.split_off(batches.len().min(TAKE_OVER_MAX));
            let part = std::mem::replace(&mut batches, rest);
            if !self.shares_bus() {
                // All sessions are on this node. The loss is reported before the rows are marked, so that
                // a crash in between leaves the rows to be found again.
                let lost = part.iter().flat_map(|batch| batch.channels.iter().cloned());
                self.0.bus.report_lost(lost.collect()).await;
            }
            let (now, node) = (self.now(), self.node().clone());
            let count =
                self.0.store.write(async move |tx: &mut Tx| mark_lost(tx, part, now, node).await).await?;
            if count > 0 {
                self.0.event_outbox.taken_over.fetch_add(count, Relaxed);
                tracing::warn!(
                    batches = count,
                    "committed events were not published: sessions subscribed to their channels are closed"
                );
            }
        }
        Ok(())
    }
}

/// Marks batches as taken over and records their channels as lost. Returns the number of batches that
/// this transaction took over.
async fn mark_lost(
    tx: &mut Tx,
    batches: Vec<EventBatch>,
    now: Timestamp,
    node: NodeId,
) -> Result<u64, Error> {
    let (mut count, mut channels) = (0, BTreeSet::new());
    for batch in batches {
        if tx.take_over_event_batch(&batch.batch_id, now).await? {
            count += 1;
            channels.extend(batch.channels);
        }
    }
    for channel_id in channels {
        tx.record_lost_events(&LostEvents { lost_at: now, channel_id, node_id: node.clone() }).await?;
    }
    Ok(count)
}
