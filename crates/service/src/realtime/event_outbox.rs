//! The transactional outbox of events on PostgreSQL. Every committed event is published, or the sessions that
//! may have missed it are closed, also when a node dies between the commit and the publication
//! (`docs/adr/0024-events-have-an-outbox.md`).
//!
//! A transaction with events writes one row for all of them, its batch, together with its COMMIT. The row
//! is deleted after the bus has confirmed the events. A row that stays belongs to a commit without an
//! answer, or to a dead node. The node that finds such a row records the row's channels as lost. On
//! SQLite there is no batch, because the process that commits also publishes, and every commit has an
//! answer.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{BatchId, NodeId, Timestamp};
use store::Tx;
use store::queries::event_outbox::{BatchesOf, EventBatch};
use store::queries::lost_events::LostEvents;

use crate::realtime::event_batches::OwnBatch;
use crate::realtime::lost_events::{LOST_EVENTS_KNOWN_WITHIN, STAMPED_BEFORE_MS};
use crate::{Error, Purpose, Service};

/// How long a node collects settled batches before it deletes them together.
pub const SETTLE_EVERY: Duration = Duration::from_millis(100);
/// How often a node queries overdue batches.
pub const TAKE_OVER_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of overdue batches that one query reads.
pub const OVERDUE_MAX: usize = 500;
/// Maximum number of batches that one transaction takes over.
const TAKE_OVER_MAX: usize = 64;
/// How long a repeated request waits for the node that publishes the events of the first one.
const PUBLISHED_BY_OTHERS_WITHIN: Duration = Duration::from_millis(2_500);
/// How often a waiting repeated request queries the store.
const POLL_EVERY: Duration = Duration::from_millis(100);

impl Service {
    /// Begins the batch of a transaction. `None` on SQLite.
    pub(crate) fn begin_event_batch(&self) -> Option<OwnBatch> {
        if !self.has_event_outbox() {
            return None;
        }
        let created_at = self.now();
        let batch_id = BatchId::generate(created_at, self.random(Purpose::Batch));
        Some(self.0.event_outbox.begin(batch_id, self.node().clone(), created_at))
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
            let in_doubt = outbox.first_in_doubt(TAKE_OVER_MAX);
            if in_doubt.is_empty() {
                break;
            }
            // A batch without a row was rolled back, or is committed later. In that case it is found when
            // it is overdue.
            let lost = self.unsettled(in_doubt.clone()).await?;
            self.take_over(lost).await?;
            outbox.drop_in_doubt(&in_doubt);
        }
        loop {
            let settled = outbox.first_settled();
            if settled.is_empty() {
                return Ok(());
            }
            let batches = settled.clone();
            self.0.store.write(async move |tx: &mut Tx| tx.settle_event_batches(&batches).await).await?;
            outbox.drop_settled(&settled);
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
        self.0.event_outbox.taken_over()
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
                self.0.event_outbox.add_taken_over(count);
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
