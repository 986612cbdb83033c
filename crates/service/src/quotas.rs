//! How much each caller has asked for lately. Kept in memory, a node for itself: a caller of `n` nodes may get up to `n`
//! times its quota, and a restart forgets. That is the price of a check that costs nanoseconds.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::quota::{Quota, QuotaName, Standing};

/// Buckets kept at once, over all shards: 16 MiB at the most.
pub const BUCKETS_MAX: usize = 262_144;
const SHARDS: usize = 16;
/// The pause between two looks through a full shard for buckets to forget, in microseconds: 1 second. Without it every
/// made-up caller would cost such a look.
const FORGET_PAUSE_US: u64 = 1_000_000;

/// What a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Client-mode calls of an application.
    Client,
    /// User-mode calls of an application for a user.
    User,
    /// Token calls of an application.
    Token,
    /// Failed proofs of identity from a network address.
    Failures,
    /// Session URLs of a caller.
    SessionUrls,
    /// Chat messages of a user.
    ChatSend,
    /// Calls from a network address that did not say who it is.
    Unknown,
}

impl Counted {
    /// Which quota that is, for a refusal.
    pub const fn name(self) -> QuotaName {
        match self {
            Self::Client => QuotaName::Client,
            Self::User => QuotaName::User,
            Self::Token => QuotaName::Token,
            Self::Failures => QuotaName::Failures,
            Self::SessionUrls => QuotaName::SessionUrls,
            Self::ChatSend => QuotaName::ChatSend,
            Self::Unknown => QuotaName::Address,
        }
    }
}

/// The buckets of all callers.
#[derive(Debug)]
pub struct Quotas {
    enforced: bool,
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    /// By caller, the moment at which the bucket is full again.
    buckets: HashMap<u64, u64>,
    /// When full buckets may be forgotten next.
    forget_at: u64,
}

impl Shard {
    fn has_room_for(&mut self, key: u64, now: u64) -> bool {
        let full = |buckets: &HashMap<u64, u64>| buckets.len() >= BUCKETS_MAX / SHARDS;
        if full(&self.buckets) && !self.buckets.contains_key(&key) && now >= self.forget_at {
            self.buckets.retain(|_, full_at| *full_at > now);
            self.forget_at = now.saturating_add(FORGET_PAUSE_US);
        }
        !full(&self.buckets) || self.buckets.contains_key(&key)
    }
}

impl Quotas {
    pub(crate) fn new(enforced: bool) -> Self {
        Self { enforced, hasher: RandomState::new(), shards: Default::default() }
    }

    /// Takes one request of `caller` out of its bucket. `None` where quotas are off.
    pub fn take(&self, counted: Counted, caller: impl Hash, quota: Quota, now: Duration) -> Option<Standing> {
        self.with(counted, caller, now, |full_at, now| quota.take(full_at, now))
    }

    /// Where `caller` stands, taking nothing. `None` where quotas are off.
    pub fn peek(&self, counted: Counted, caller: impl Hash, quota: Quota, now: Duration) -> Option<Standing> {
        self.with(counted, caller, now, |full_at, now| quota.peek(*full_at, now))
    }

    /// Where a caller stands for whom the quota does not hold: all of it is left. `None` where quotas are off.
    pub fn untouched(&self, quota: Quota) -> Option<Standing> {
        self.enforced.then(|| quota.untouched())
    }

    fn with(
        &self,
        counted: Counted,
        caller: impl Hash,
        now: Duration,
        act: impl FnOnce(&mut u64, u64) -> Standing,
    ) -> Option<Standing> {
        if !self.enforced {
            return None;
        }
        // Callers are told apart by a 64-bit keyed hash: eight bytes a bucket, and nobody can aim for a collision.
        let key = self.hasher.hash_one((counted, caller));
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let shard = &self.shards[usize::try_from(key % SHARDS as u64).unwrap_or(0)];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if !shard.has_room_for(key, now) {
            // Every bucket is in use, so somebody makes callers up. Nobody is locked out for that.
            return Some(act(&mut 0, now));
        }
        Some(act(shard.buckets.entry(key).or_insert(0), now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Quota = Quota::per_minute(1);

    #[test]
    fn callers_and_kinds_do_not_share_a_bucket() {
        let quotas = Quotas::new(true);
        let refused = |counted, caller: &str| {
            quotas
                .take(counted, caller, ONE, Duration::from_secs(1))
                .is_some_and(|s| s.retry_after_s.is_some())
        };
        assert!(!refused(Counted::Client, "a"));
        assert!(refused(Counted::Client, "a"));
        assert!(!refused(Counted::Client, "b"));
        assert!(!refused(Counted::Token, "a"));
    }

    #[test]
    fn made_up_callers_cannot_grow_the_map() {
        let quotas = Quotas::new(true);
        for caller in 0..BUCKETS_MAX * 2 {
            quotas.take(Counted::Client, caller, ONE, Duration::from_secs(1));
        }
        let kept = || -> usize {
            quotas.shards.iter().map(|shard| shard.lock().expect("not poisoned").buckets.len()).sum()
        };
        assert!(kept() <= BUCKETS_MAX);
        // Two minutes on they are all full again, and make room.
        let later = Duration::from_secs(121);
        for caller in 0..SHARDS * 20 {
            quotas.take(Counted::Client, ("later", caller), ONE, later);
        }
        assert!(kept() <= SHARDS * 20);
    }

    #[test]
    fn quotas_that_are_off_say_nothing() {
        assert_eq!(Quotas::new(false).take(Counted::Client, "a", ONE, Duration::ZERO), None);
    }
}
