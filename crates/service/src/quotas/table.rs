//! A table of buckets with a fixed size. It never refuses a caller: in the place of a caller without a bucket
//! the fullest of some others is dropped, which is the one that has lost least.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks of a table.
const SHARDS: usize = 16;
/// Buckets among which the place of a caller is.
const WAYS: usize = 16;

/// The key of a caller, and the time at which its bucket is full again. Zeros are an empty place.
type Slot = [u64; 2];

/// Buckets by key.
#[derive(Debug)]
pub(super) struct BucketTable {
    /// Places of one shard.
    slots: usize,
    /// A shard takes its memory when it is used.
    shards: [Mutex<Vec<Slot>>; SHARDS],
}

impl BucketTable {
    /// A table of this size.
    pub(super) fn new(buckets_max: usize) -> Self {
        let slots = (buckets_max / SHARDS / WAYS).max(1) * WAYS;
        Self { slots, shards: Default::default() }
    }

    /// The time at which the bucket of a caller is full again; `None` if it is full.
    pub(super) fn get(&self, key: u64) -> Option<u64> {
        let (shard, set) = self.set_of(key);
        shard.get(set)?.iter().find(|slot| slot[0] == key).map(|slot| slot[1])
    }

    /// Changes the bucket of a caller.
    pub(super) fn with<T>(&self, key: u64, act: impl FnOnce(&mut u64) -> T) -> T {
        let (mut shard, set) = self.set_of(key);
        if shard.is_empty() {
            shard.resize(self.slots, [0; 2]);
        }
        let slots = &mut shard[set];
        let own = slots.iter().position(|slot| slot[0] == key);
        let fullest = || slots.iter().enumerate().min_by_key(|(_, slot)| slot[1]).map(|(at, _)| at);
        let at = own.or_else(fullest).unwrap_or(0);
        if own.is_none() {
            slots[at] = [key, 0];
        }
        act(&mut slots[at][1])
    }

    /// The shard of a caller, and the range of its places there.
    fn set_of(&self, key: u64) -> (MutexGuard<'_, Vec<Slot>>, std::ops::Range<usize>) {
        let index = |key: u64, len: usize| usize::try_from(key % len as u64).unwrap_or(0);
        let shard = self.shards[index(key, SHARDS)].lock().unwrap_or_else(PoisonError::into_inner);
        let begin = index(key / SHARDS as u64, self.slots / WAYS) * WAYS;
        (shard, begin..begin + WAYS)
    }

    #[cfg(test)]
    pub(super) fn buckets(&self) -> usize {
        let used = |shard: &Mutex<Vec<Slot>>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.iter().filter(|slot| slot[1] > 0).count()
        };
        self.shards.iter().map(used).sum()
    }
}
