//! The transactional outbox of events: what is committed on PostgreSQL is heard, or the sessions that may have missed it
//! are closed, whatever dies between the commit and the publication (`docs/adr/0024-events-have-an-outbox.md`).
//!
//! A transaction with events writes one row for all of them, its batch, together with its COMMIT. The row is deleted
//! when the bus has confirmed the events. A row that stays belongs to a commit whose answer was lost, or to a node that died:
//! whoever finds it records its channels as lost. On SQLite there is no batch: the process that commits is the one that
//! publishes, and a commit has an answer.

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

/// How long a node gathers batches whose events were heard before it deletes them together.
pub const SETTLE_EVERY: Duration = Duration::from_millis(100);
/// How often batches are looked for that nobody settles.
pub const TAKE_OVER_EVERY: Duration = Duration::from_secs(1);
/// Batches read by one look for them.
pub const OVERDUE_MAX: usize = 500;
/// Batches taken over by one transaction.
const TAKE_OVER_MAX: usize = 64;
/// Batches deleted by one transaction.
const SETTLE_MAX: usize = 512;
/// Batches that wait to be deleted. Those beyond it are left to the look for overdue ones.
const SETTLED_MAX: usize = 65_536;
/// Batches of unknown outcome that are looked at first when the store answers again; the others are found when they are
/// overdue.
const IN_DOUBT_MAX: usize = 4_096;
/// How long a repeated request waits for the node that publishes the events of the first one.
const HEARD_WITHIN: Duration = Duration::from_millis(2_500);
/// How often it asks meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What this node knows of its own batches.
#[derive(Debug, Default)]
pub(crate) struct EventOutbox {
    own: Mutex<Own>,
    /// Something is to be settled or looked at.
    has_work: Notify,
    /// A batch is under way no more.
    has_ended: Notify,
    taken_over: AtomicU64,
}

#[derive(Debug, Default)]
struct Own {
    /// Being committed or published.
    under_way: HashSet<BatchId>,
    /// Heard, and not deleted yet.
    settled: BTreeSet<BatchId>,
    /// Committed or not, and not published.
    in_doubt: BTreeSet<BatchId>,
}

/// A batch of this node, from before its transaction until its events are heard.
pub(crate) struct OwnBatch {
    service: Service,
    entry: Entry,
    end: End,
}

/// How a batch ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is nothing to settle, or somebody else has to.
    Nothing,
    Settled,
    InDoubt,
}

/// What a transaction writes down of its batch.
#[derive(Clone)]
pub(crate) struct Entry {
    batch_id: BatchId,
    node_id: NodeId,
    created_at: Timestamp,
}

/// What a transaction did to the outbox.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// It has a row there.
    pub has_row: bool,
    /// The batches of the requests that had its idempotency keys first.
    pub earlier: Vec<BatchId>,
}

impl Entry {
    /// Before the work.
    pub fn begin(&self, tx: &mut Tx) {
        tx.begin_event_batch(self.batch_id.clone());
    }

    /// After it.
    pub async fn record(self, tx: &mut Tx, messages: &[Message]) -> Result<Recorded, StoreError> {
        let earlier = tx.take_earlier_event_batches();
        let channels = channels_of(messages);
        let has_row = !channels.is_empty();
        if has_row {
            let Self { batch_id, node_id, created_at } = self;
            let batch = EventBatch { batch_id, node_id, channels, is_taken_over: false };
            tx.record_event_batch(&batch, created_at).await?;
        }
        Ok(Recorded { has_row, earlier })
    }
}

/// The channels of the events among messages, each once.
fn channels_of(messages: &[Message]) -> Vec<ChannelId> {
    let mut channels: Vec<_> = messages.iter().filter_map(Message::channel).cloned().collect();
    channels.sort_unstable();
    channels.dedup();
    channels
}

impl OwnBatch {
    pub fn entry(&self) -> Entry {
        self.entry.clone()
    }

    /// Its events were heard: its row is deleted behind the call.
    pub fn settle(mut self) {
        self.end = End::Settled;
    }

    /// Its events were not heard, if they were committed: its row is looked at as soon as the store answers.
    pub fn doubt(mut self) {
        self.end = End::InDoubt;
    }
}

impl Drop for OwnBatch {
    fn drop(&mut self) {
        self.service.0.event_outbox.end(&self.entry.batch_id, self.end);
    }
}

impl EventOutbox {
    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, batch: &BatchId, end: End) {
        let has_work = {
            let mut own = self.own();
            own.under_way.remove(batch);
            let (to, max) = match end {
                End::Nothing => (None, 0),
                End::Settled => (Some(&mut own.settled), SETTLED_MAX),
                End::InDoubt => (Some(&mut own.in_doubt), IN_DOUBT_MAX),
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

    /// Whether this node is at work on a batch, or has settled it.
    fn knows(&self, batch: &BatchId) -> bool {
        let own = self.own();
        own.under_way.contains(batch) || own.settled.contains(batch)
    }

    /// Waits while this node is at work on a batch. Whether it has settled it then.
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

    /// Waits until there is something to settle or to look at.
    async fn work(&self) {
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
    /// A batch for the events of a transaction that is about to begin; `None` on SQLite.
    pub(crate) fn begin_event_batch(&self) -> Option<OwnBatch> {
        if !self.has_event_outbox() {
            return None;
        }
        let created_at = self.now();
        let batch_id = BatchId::generate(created_at, self.random());
        self.0.event_outbox.own().under_way.insert(batch_id.clone());
        let entry = Entry { batch_id, node_id: self.node().clone(), created_at };
        Some(OwnBatch { service: self.clone(), entry, end: End::Nothing })
    }

    /// Whether events are written to an outbox.
    pub fn has_event_outbox(&self) -> bool {
        self.0.store.is_remote()
    }

    /// Waits until this node has batches to settle.
    pub async fn has_events_to_settle(&self) {
        self.0.event_outbox.work().await;
    }

    /// Deletes this node's batches whose events were heard, and takes over those that were committed without an answer.
    ///
    /// # Errors
    /// When the store does not answer: they are kept for the next time.
    pub async fn settle_events(&self) -> Result<(), Error> {
        let outbox = &self.0.event_outbox;
        loop {
            let in_doubt = outbox.first_in_doubt();
            if in_doubt.is_empty() {
                break;
            }
            // One that is not there was rolled back, or is committed later: then it is found when it is overdue.
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
            self.write(move |tx| Box::pin(async move { Ok(tx.settle_event_batches(&batches).await?) }))
                .await?;
            let mut own = outbox.own();
            settled.iter().for_each(|batch| _ = own.settled.remove(batch));
        }
    }

    /// Takes over batches that no living node can be at work on any more. Gives how many were found; there may be more when it
    /// gives [`OVERDUE_MAX`].
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn take_over_overdue_events(&self) -> Result<usize, Error> {
        let (before, node, all) = (self.overdue_before(), self.node().clone(), self.shares_bus());
        let found = self
            .read(move |tx| {
                Box::pin(async move {
                    // Without a shared bus the sessions of another node have never heard of its events.
                    let of = if all { BatchesOf::All } else { BatchesOf::Node(&node) };
                    Ok(tx.overdue_event_batches(before, of, OVERDUE_MAX as i64).await?)
                })
            })
            .await?;
        let count = found.len();
        let unknown = found.into_iter().map(|batch| batch.batch_id);
        let unknown = unknown.filter(|batch| !self.0.event_outbox.knows(batch)).collect();
        // Read again, for this node may have settled some of them meanwhile, and forgotten them.
        let lost = self.unsettled(unknown).await?;
        self.take_over(lost).await?;
        Ok(count)
    }

    /// Batches that this node took over so far.
    pub fn event_batches_taken_over(&self) -> u64 {
        self.0.event_outbox.taken_over.load(Relaxed)
    }

    fn overdue_before(&self) -> Timestamp {
        self.now().plus_ms(-STAMPED_BEFORE_MS)
    }

    /// Returns when the events of these batches were heard, or every session that may have missed them is closed before
    /// anything that is posted from now on. Their nodes are given some time for it; then the batches are taken over.
    ///
    /// # Errors
    /// The store's: then it is not known.
    pub(crate) async fn await_heard(&self, batches: Vec<BatchId>) -> Result<(), Error> {
        let deadline = self.clock().monotonic() + HEARD_WITHIN;
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
                self.clock().sleep(ASK_EVERY).await;
            }
        }
        if were_lost && self.shares_bus() {
            self.clock().sleep(LOST_EVENTS_KNOWN_WITHIN).await;
        }
        Ok(())
    }

    /// Those of the batches that are not settled, and that sessions may wait for.
    async fn unsettled(&self, batches: Vec<BatchId>) -> Result<Vec<EventBatch>, Error> {
        let mut found = self
            .read(move |tx| {
                Box::pin(async move {
                    let mut found = Vec::new();
                    for batch in batches {
                        found.extend(tx.unsettled_event_batch(&batch).await?);
                    }
                    Ok::<_, Error>(found)
                })
            })
            .await?;
        if !self.shares_bus() {
            found.retain(|batch| batch.node_id == *self.node());
        }
        Ok(found)
    }

    /// Records the channels of batches as lost, which closes the sessions subscribed to them. Of several nodes that try,
    /// one does it.
    async fn take_over(&self, mut batches: Vec<EventBatch>) -> Result<(), Error> {
        while !batches.is_empty() {
            let rest = batches.split_off(batches.len().min(TAKE_OVER_MAX));
            let part = std::mem::replace(&mut batches, rest);
            if !self.shares_bus() {
                // All its sessions are here. Before the mark, so that no crash comes in between.
                let lost = part.iter().flat_map(|batch| batch.channels.iter().cloned());
                self.0.bus.report_lost(lost.collect()).await;
            }
            let (now, node) = (self.now(), self.node().clone());
            let count = self.write(move |tx| Box::pin(mark_lost(tx, part, now, node))).await?;
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

/// Gives how many batches were neither settled nor taken over meanwhile.
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
