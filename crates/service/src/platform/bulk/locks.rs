//! The locks of a batch (`docs/adr/0025-locks-are-taken-in-one-order.md`).
//!
//! Entries take effect in the order of the request, and lock their rows in that order. So batches that share
//! rows could deadlock. To prevent this, a batch first takes all its shared locks in one order: in the
//! memory of this node, where waiting occupies no connection of the store, and then in the database.

use std::time::Duration;

use domain::Refusal;
use store::queries::locks::{Locks, Shared};
use tokio::sync::OwnedMutexGuard;

use super::entries::{BATCH_MAX, ChannelEvent, Entry, KeyedEntry, Prepared, PreparedEntry};
use crate::chat::slow_chats::SlowChats;
use crate::platform::idempotency::IdempotencyKey;
use crate::{Error, Service};

/// Maximum number of locking entries in a batch on PostgreSQL, so that locks are held briefly. PostgreSQL
/// reserves room for 64 locks of each connection (`max_locks_per_transaction`).
const LOCKING_ENTRIES_MAX: usize = 64;

/// The number of viewers of a watching report that count as one entry.
const VIEWERS_PER_ENTRY: usize = 16;

/// Maximum wait of a batch for the other batches of its node.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// When a caller may repeat a batch that conflicted with others, in seconds.
const RETRY_AFTER_S: u32 = 1;

/// The batch wrote nothing, because it conflicted with other batches for too long.
pub(super) const CONTENDED: Refusal = Refusal::Busy { retry_after_s: RETRY_AFTER_S };

impl Service {
    /// The number of waiting entries for the next batch, at least one. An entry that was refused already is
    /// `None`.
    pub fn batch_length<'w>(&self, waiting: impl Iterator<Item = Option<&'w KeyedEntry>>) -> usize {
        let mut locking = 0;
        let fits = |entry: &Option<&KeyedEntry>| {
            locking += entry.map_or(0, weight);
            locking <= LOCKING_ENTRIES_MAX || !self.0.store.is_remote()
        };
        waiting.take(BATCH_MAX).take_while(fits).count().max(1)
    }

    /// The locks of a batch. On SQLite there are none, because it has one writer.
    pub(super) fn locks_of(&self, batch: &[Prepared]) -> Locks {
        let mut locks = Locks::default();
        // A single message shares only its key with other batches.
        let is_message_alone = batch.len() == 1 && batch.iter().all(is_message);
        if self.0.store.is_remote() && !is_message_alone {
            batch.iter().for_each(|prepared| add(&mut locks, prepared, &self.0.slow_chats));
        }
        locks
    }

    /// Takes the locks among the batches of this node.
    pub(super) async fn lock_in_node(&self, locks: &Locks) -> Result<Vec<OwnedMutexGuard<()>>, Error> {
        if locks.is_empty() {
            return Ok(Vec::new());
        }
        tokio::select! {
            held = self.0.node_locks.lock_until_store_fails(locks) => Ok(held),
            () = self.0.clock.sleep(WAIT_MAX) => Err(CONTENDED.into()),
        }
    }
}

fn add(locks: &mut Locks, prepared: &Prepared, slow_chats: &SlowChats) {
    match &prepared.entry {
        PreparedEntry::Channel(Ok(channel)) => locks.add(Shared::Channel(channel.id())),
        PreparedEntry::Channel(Err(_)) => add_key(locks, prepared),
        PreparedEntry::Category(_) => locks.add(Shared::Categories),
        PreparedEntry::Event(channel, event) => match event {
            ChannelEvent::Chat(message) => {
                add_key(locks, prepared);
                if message.sender != *channel && slow_chats.contains(channel) {
                    locks.add(Shared::Channel(channel));
                }
            }
            ChannelEvent::Donation(_) => add_key(locks, prepared),
            ChannelEvent::Watching(_) => {
                add_key(locks, prepared);
                locks.add(Shared::WatchedMinutes);
            }
            // The key of such an entry contains the channel, so the lock of the channel covers the key.
            ChannelEvent::Subscription(_)
            | ChannelEvent::Follow { .. }
            | ChannelEvent::Unfollow { .. }
            | ChannelEvent::Manager { .. }
            | ChannelEvent::Unmanager { .. }
            | ChannelEvent::Claim(_)
            | ChannelEvent::Live(_)
            | ChannelEvent::LiveEnd => locks.add(Shared::Channel(channel)),
        },
    }
}

fn add_key(locks: &mut Locks, prepared: &Prepared) {
    if let Some(IdempotencyKey { operation, key, .. }) = &prepared.key {
        locks.add(Shared::Key { operation, key });
    }
}

fn is_message(prepared: &Prepared) -> bool {
    matches!(prepared.entry, PreparedEntry::Event(_, ChannelEvent::Chat(_) | ChannelEvent::Donation(_)))
}

/// How many locking entries this entry counts as.
fn weight(keyed: &KeyedEntry) -> usize {
    match &keyed.entry {
        Entry::Event(_, ChannelEvent::Chat(_) | ChannelEvent::Donation(_)) => keyed.key.iter().len(),
        Entry::Event(_, ChannelEvent::Watching(report)) => {
            report.viewers.ids().len().div_ceil(VIEWERS_PER_ENTRY)
        }
        _ => 1,
    }
}
