//! Events that may not have reached every node. The publisher records their channels, and every gateway reads
//! them (`docs/spec/realtime.md#delivery`).
//!
//! An event that the bus did not confirm is committed, so its call succeeds. Before the answer, the
//! publisher records the channel in `lost_events` and waits one polling interval. After this interval
//! every gateway has closed the affected sessions or is holding deliveries. So no session receives a
//! newer event after a missing one.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use domain::limits::DAY_MS;
use domain::{ChannelId, Timestamp};
use store::Tx;
use store::queries::lost_events::LostEvents;

use crate::realtime::publication::Publication;
use crate::{Error, Service};

/// How long a row of `lost_events` is kept. A node that was away for longer has no sessions left.
pub(crate) const LOST_EVENTS_KEPT_MS: i64 = DAY_MS / 24;
/// How far back each poll reads. Rows become visible up to 2.5 s after their time. The rest allows for
/// differences between clocks.
const LOOK_BACK_MS: i64 = 10_000;
/// Maximum duration of a transaction, in milliseconds. This is the deadline of the store.
const COMMITTED_WITHIN_MS: i64 = 2_500;
/// Maximum time until a publication is confirmed or given up, in milliseconds.
const PUBLISHED_WITHIN_MS: i64 = 3_000;
/// Maximum difference between the clocks of two nodes, in milliseconds.
const CLOCKS_DIFFER_MS: i64 = 2_500;
/// Maximum time from an event's timestamp to the end of its publication, by the clock of any node.
pub(crate) const STAMPED_BEFORE_MS: i64 = COMMITTED_WITHIN_MS + PUBLISHED_WITHIN_MS + CLOCKS_DIFFER_MS;
/// Maximum number of rows that a poll reads. When there are more, every channel counts as lost.
const LISTED_MAX: i64 = 50_000;
/// Maximum number of tries to record lost events. After the last one the call is answered without the
/// record.
const RECORD_TRIES: u32 = 3;
/// Pause between two tries.
const RECORD_PAUSE: Duration = Duration::from_millis(100);

/// The channels whose events may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// These channels.
    Channels(Vec<ChannelId>),
    /// Too many channels to list.
    Everything,
}

/// A gateway delivers an event only if its last poll of `lost_events` began within this time.
pub const LOST_EVENTS_KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// The rows of `lost_events` that a node has handled already.
#[derive(Debug, Default)]
pub struct SeenLostEvents(HashSet<LostEvents>);

impl Service {
    /// Finishes a publication, and records the events that the bus did not confirm. Returns `false` when
    /// they could not be recorded.
    pub(crate) async fn publish(&self, publication: Publication) -> bool {
        let unconfirmed = publication.finish().await;
        if unconfirmed.is_empty() {
            return true;
        }
        if let Some(times) = self.0.lost_events.log.due(self.clock().monotonic()) {
            tracing::warn!(events = unconfirmed.len(), times, "the bus did not confirm events in time");
        }
        let is_recorded = self.record_lost_events(unconfirmed).await;
        self.clock().sleep(LOST_EVENTS_KNOWN_WITHIN).await;
        is_recorded
    }

    /// Records channels as lost. One call writes for all waiting calls, so that only one such transaction
    /// runs at a time during an outage.
    async fn record_lost_events(&self, channels: Vec<ChannelId>) -> bool {
        let recorder = &self.0.lost_events;
        let outcome = recorder.add(channels);
        let _turn = recorder.turn.lock().await;
        if let Some(is_recorded) = outcome.get() {
            return *is_recorded;
        }
        let round = recorder.take_round();
        let is_recorded = self.try_to_write_lost_events(&round.channels).await;
        // Only the holder of the turn sets the outcome, so this cannot fail.
        let _ = round.is_recorded.set(is_recorded);
        is_recorded
    }

    async fn try_to_write_lost_events(&self, channels: &BTreeSet<ChannelId>) -> bool {
        for tries in 1..=RECORD_TRIES {
            match self.write_lost_events(channels).await {
                Ok(()) => return true,
                Err(error) if tries < RECORD_TRIES => {
                    self.log_failure("lost events were not recorded yet", &error);
                    self.clock().sleep(RECORD_PAUSE).await;
                }
                Err(error) => {
                    tracing::error!(%error, channels = channels.len(), "lost events could not be recorded");
                }
            }
        }
        false
    }

    async fn write_lost_events(&self, channels: &BTreeSet<ChannelId>) -> Result<(), Error> {
        let (channels, lost_at, node_id) = (channels.clone(), self.now(), self.node().clone());
        self.0
            .store
            .write(async move |tx: &mut Tx| {
                for channel_id in channels {
                    let lost = LostEvents { lost_at, channel_id, node_id: node_id.clone() };
                    tx.record_lost_events(&lost).await?;
                }
                Ok(())
            })
            .await
    }

    /// Returns the channels that were recorded as lost since the last call with the same `seen`.
    ///
    /// # Errors
    /// When the store does not answer. The next call finds the same channels.
    pub async fn new_lost_events(&self, seen: &mut SeenLostEvents) -> Result<Lost, Error> {
        let since = self.now().plus_ms(-LOOK_BACK_MS);
        let found =
            self.read(async move |tx: &mut Tx| Ok(tx.lost_events_since(since, LISTED_MAX).await?)).await?;
        let is_complete = (found.len() as i64) < LISTED_MAX;
        let found: HashSet<_> = found.into_iter().collect();
        // The newest rows come first. So if no listed row is new, no row beyond the limit is new.
        let new: BTreeSet<_> = found.difference(&seen.0).map(|lost| lost.channel_id.clone()).collect();
        seen.0 = found;
        Ok(if is_complete || new.is_empty() {
            Lost::Channels(new.into_iter().collect())
        } else {
            Lost::Everything
        })
    }

    /// Returns the channels whose events a node may have missed, if it has received no events since
    /// `since`.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn events_since(&self, since: Timestamp) -> Result<Lost, Error> {
        let since = since.plus_ms(-STAMPED_BEFORE_MS);
        let channels = self
            .read(async move |tx: &mut Tx| Ok(tx.channels_with_events_since(since, LISTED_MAX).await?))
            .await?;
        let is_complete = (channels.len() as i64) < LISTED_MAX;
        Ok(if is_complete { Lost::Channels(channels) } else { Lost::Everything })
    }

    /// Subscribes this node to the events of a channel until the guard is dropped.
    pub fn interest(&self, channel: &ChannelId) -> bus::Interest {
        self.0.bus.interest(channel)
    }

    /// Whether other nodes are on the bus.
    pub fn shares_bus(&self) -> bool {
        self.0.bus.is_shared()
    }

    /// The counters of the bus.
    pub fn bus_stats(&self) -> bus::Stats {
        self.0.bus.stats()
    }
}
