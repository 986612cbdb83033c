//! Events that may not have reached every node. The publisher records their channels, and every gateway reads them
//! (`docs/spec/realtime.md#delivery`).
//!
//! An event that the bus did not confirm is committed, so its call is answered. Before answering, the publisher
//! records the channel in `lost_events` and waits one polling interval. By then every gateway has closed the
//! affected sessions or is holding deliveries. So no session receives a newer event after a missing one.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use domain::limits::DAY_MS;
use domain::{ChannelId, Timestamp};
use store::queries::lost_events::LostEvents;

use crate::publication::Publication;
use crate::{Error, LogLimit, Service};

/// How long the record of a loss is kept: a node that was away for longer has no sessions left.
pub(crate) const LOST_EVENTS_KEPT_MS: i64 = DAY_MS / 24;
/// How far back losses are looked for each time: rows become visible up to 2.5 s after their time; the rest is for clocks
/// that differ.
const LOOK_BACK_MS: i64 = 10_000;
/// A transaction takes no longer, in milliseconds: the deadline of the store.
const COMMITTED_WITHIN_MS: i64 = 2_500;
/// A publication is confirmed or given up after that, in milliseconds.
const PUBLISHED_WITHIN_MS: i64 = 3_000;
/// The clocks of two nodes differ by no more, in milliseconds.
const CLOCKS_DIFFER_MS: i64 = 2_500;
/// An event is stamped before its commit, and no longer than this before its publication has ended, by anybody's clock.
pub(crate) const STAMPED_BEFORE_MS: i64 = COMMITTED_WITHIN_MS + PUBLISHED_WITHIN_MS + CLOCKS_DIFFER_MS;
/// Losses or channels that are listed; where there are more, everything counts as lost.
const LISTED_MAX: i64 = 50_000;
/// Tries to record a loss before the call is answered without.
const RECORD_TRIES: u32 = 3;
/// Pause between them.
const RECORD_PAUSE: Duration = Duration::from_millis(100);

/// Which channels' events may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Those.
    Channels(Vec<ChannelId>),
    /// So many that they are not worth telling apart.
    Everything,
}

/// A gateway delivers an event only when its last look for losses began no longer ago than this.
pub const LOSSES_KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// Losses that were already seen, by a node that looks for them.
#[derive(Debug, Default)]
pub struct SeenLosses(HashSet<LostEvents>);

/// Channels whose losses wait to be recorded.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    waiting: Mutex<Round>,
    /// Calls whose events were not confirmed.
    log: LogLimit,
    /// Held by whoever records all that wait.
    turn: tokio::sync::Mutex<()>,
}

/// Losses that are recorded together.
#[derive(Debug, Default)]
struct Round {
    channels: BTreeSet<ChannelId>,
    /// Whether they were recorded, once that is known.
    is_recorded: Arc<OnceLock<bool>>,
}

impl Losses {
    fn waiting(&self) -> MutexGuard<'_, Round> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the round that waits, and gives its outcome.
    fn add(&self, channels: Vec<ChannelId>) -> Arc<OnceLock<bool>> {
        let mut round = self.waiting();
        round.channels.extend(channels);
        round.is_recorded.clone()
    }
}

impl Service {
    /// Finishes a publication, and records the events that the bus did not confirm. `false` when they could
    /// not be recorded.
    pub(crate) async fn publish(&self, publication: Publication) -> bool {
        let unconfirmed = publication.finish().await;
        if unconfirmed.is_empty() {
            return true;
        }
        if let Some(times) = self.0.losses.log.due(self.clock().monotonic()) {
            tracing::warn!(events = unconfirmed.len(), times, "the bus did not confirm events in time");
        }
        let is_recorded = self.record_losses(unconfirmed).await;
        self.clock().sleep(LOSSES_KNOWN_WITHIN).await;
        is_recorded
    }

    /// One writes for all who wait meanwhile, so that an outage costs one transaction at a time. Whether they are recorded.
    async fn record_losses(&self, channels: Vec<ChannelId>) -> bool {
        let losses = &self.0.losses;
        let outcome = losses.add(channels);
        let _turn = losses.turn.lock().await;
        if let Some(is_recorded) = outcome.get() {
            return *is_recorded;
        }
        let round = std::mem::take(&mut *losses.waiting());
        let is_recorded = self.try_to_write_losses(&round.channels).await;
        // Nobody but the holder of the turn sets it.
        let _ = round.is_recorded.set(is_recorded);
        is_recorded
    }

    async fn try_to_write_losses(&self, channels: &BTreeSet<ChannelId>) -> bool {
        for tries in 1..=RECORD_TRIES {
            match self.write_losses(channels).await {
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

    async fn write_losses(&self, channels: &BTreeSet<ChannelId>) -> Result<(), Error> {
        let (channels, lost_at, node_id) = (channels.clone(), self.now(), self.node().clone());
        self.write(move |tx| {
            Box::pin(async move {
                for channel_id in channels {
                    let lost = LostEvents { lost_at, channel_id, node_id: node_id.clone() };
                    tx.record_lost_events(&lost).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// The channels of losses that were recorded since the last call with this memory.
    ///
    /// # Errors
    /// When the store does not answer: look again.
    pub async fn new_losses(&self, seen: &mut SeenLosses) -> Result<Lost, Error> {
        let since = self.now().plus_ms(-LOOK_BACK_MS);
        let found = self
            .read(move |tx| Box::pin(async move { Ok(tx.lost_events_since(since, LISTED_MAX).await?) }))
            .await?;
        let is_complete = (found.len() as i64) < LISTED_MAX;
        let found: HashSet<_> = found.into_iter().collect();
        // The newest come first, so none that is new is beyond the limit unless the listed ones are.
        let new: BTreeSet<_> = found.difference(&seen.0).map(|lost| lost.channel_id.clone()).collect();
        seen.0 = found;
        Ok(if is_complete || new.is_empty() {
            Lost::Channels(new.into_iter().collect())
        } else {
            Lost::Everything
        })
    }

    /// The channels of which a node that heard nothing since then may have missed events.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn events_since(&self, since: Timestamp) -> Result<Lost, Error> {
        let since = since.plus_ms(-STAMPED_BEFORE_MS);
        let channels = self
            .read(move |tx| {
                Box::pin(async move { Ok(tx.channels_with_events_since(since, LISTED_MAX).await?) })
            })
            .await?;
        let is_complete = (channels.len() as i64) < LISTED_MAX;
        Ok(if is_complete { Lost::Channels(channels) } else { Lost::Everything })
    }

    /// Makes this node receive the events of a channel for as long as the guard is held.
    pub fn interest(&self, channel: &ChannelId) -> bus::Interest {
        self.0.bus.interest(channel)
    }

    /// Whether other nodes are on the bus.
    pub fn shares_bus(&self) -> bool {
        self.0.bus.is_shared()
    }

    /// What the bus has done so far.
    pub fn bus_stats(&self) -> bus::Stats {
        self.0.bus.stats()
    }
}
