//! How much each caller has asked for lately. Kept in memory, a node for itself: a caller of `n` nodes may
//! get up to `n` times its quota, and a restart forgets. That is the price of a check that costs nanoseconds.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::quota::{Quota, QuotaName, QuotaStatus};

/// Buckets kept at once, over all shards: 16 MiB at the most. Half of them are for callers that proved who
/// they are, so that strangers, of whom there can be any number, never take their places.
pub const BUCKETS_MAX: usize = 262_144;
/// Shards of each half.
const SHARDS: usize = 16;
/// Buckets of one shard.
const SHARD_BUCKETS_MAX: usize = BUCKETS_MAX / 2 / SHARDS;
/// The pause between two looks through a full shard for buckets to forget, in seconds. Without it every
/// made-up caller would cost such a look.
const FORGET_PAUSE_S: u32 = 1;

/// What a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Client-mode calls of an application.
    Client,
    /// User-mode calls of an application for a user.
    User,
    /// Token calls of an application.
    Token,
    /// Bad codes and refresh tokens of an application that proved itself.
    Exchanges,
    /// Wrong client secrets from a network address.
    ClientSecrets,
    /// Wrong passwords from a network address.
    SignIns,
    /// Wrong passwords of an account, from addresses that it does not know.
    Account,
    /// Tries from a network address at an account that is slowed down.
    SlowedAccount,
    /// Wrong passwords of an account from an address that it knows.
    KnownPlace,
    /// Wrong operator keys from a network address.
    OperatorKeys,
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
            Self::SessionUrls => QuotaName::SessionUrls,
            Self::ChatSend => QuotaName::ChatSend,
            Self::Unknown => QuotaName::Address,
            Self::Exchanges
            | Self::ClientSecrets
            | Self::SignIns
            | Self::Account
            | Self::SlowedAccount
            | Self::KnownPlace
            | Self::OperatorKeys => QuotaName::Failures,
        }
    }

    /// Whether callers are counted that proved nothing, so that one person can be any number of them.
    const fn of_strangers(self) -> bool {
        match self {
            Self::Client
            | Self::User
            | Self::Token
            | Self::Exchanges
            | Self::SessionUrls
            | Self::ChatSend
            | Self::KnownPlace => false,
            Self::ClientSecrets | Self::SignIns | Self::Account | Self::SlowedAccount => true,
            Self::OperatorKeys | Self::Unknown => true,
        }
    }
}

/// The buckets of all callers.
#[derive(Debug)]
pub struct Quotas {
    enforced: bool,
    hasher: RandomState,
    proven: [Mutex<QuotaShard>; SHARDS],
    strangers: [Mutex<QuotaShard>; SHARDS],
}

#[derive(Debug, Default)]
struct QuotaShard {
    /// By caller, the moment at which the bucket is full again.
    buckets: HashMap<u64, u64>,
    /// When full buckets may be forgotten next.
    forget_at: u64,
}

impl QuotaShard {
    fn has_room_for(&mut self, key: u64, now: u64) -> bool {
        let full = |buckets: &HashMap<u64, u64>| buckets.len() >= SHARD_BUCKETS_MAX;
        if full(&self.buckets) && !self.buckets.contains_key(&key) && now >= self.forget_at {
            self.buckets.retain(|_, full_at| *full_at > now);
            self.forget_at = now.saturating_add(u64::from(FORGET_PAUSE_S) * 1_000_000);
        }
        !full(&self.buckets) || self.buckets.contains_key(&key)
    }
}

impl Quotas {
    pub(crate) fn new(enforced: bool) -> Self {
        let hasher = RandomState::new();
        Self { enforced, hasher, proven: Default::default(), strangers: Default::default() }
    }

    /// Takes one request of `caller` out of its bucket. `None` where quotas are off. A new caller for whom
    /// there is no bucket left is refused.
    pub fn take(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        now: Duration,
    ) -> Option<QuotaStatus> {
        self.with(counted, caller, now, |bucket, now| match bucket {
            Some(full_at) => quota.take(full_at, now),
            None => QuotaStatus { remaining: 0, retry_after_s: Some(FORGET_PAUSE_S), ..quota.untouched() },
        })
    }

    /// Gives a request back that was taken.
    pub fn give_back(&self, counted: Counted, caller: impl Hash, quota: Quota, now: Duration) {
        self.with(counted, caller, now, |bucket, _| bucket.map(|full_at| quota.give_back(full_at)));
    }

    /// Takes one request of `caller`, and gives how long it has to wait, at the most `delay_max`:
    /// [`Quota::pace`].
    pub fn pace(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        delay_max: Duration,
        now: Duration,
    ) -> Duration {
        let delay = self.with(counted, caller, now, |bucket, now| {
            let Some(full_at) = bucket else { return delay_max };
            Duration::from_micros(quota.pace(full_at, micros(delay_max), now))
        });
        delay.unwrap_or_default()
    }

    /// Where `caller` stands, taking nothing. `None` where quotas are off.
    pub fn peek(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        now: Duration,
    ) -> Option<QuotaStatus> {
        self.with(counted, caller, now, |bucket, now| match bucket {
            Some(full_at) => quota.peek(*full_at, now),
            None => quota.untouched(),
        })
    }

    /// Where a caller stands for whom the quota does not hold: all of it is left. `None` where quotas are
    /// off.
    pub fn untouched(&self, quota: Quota) -> Option<QuotaStatus> {
        self.enforced.then(|| quota.untouched())
    }

    /// Acts on the bucket of a caller, or on none where there is no room for a new one. `None` where quotas
    /// are off.
    fn with<T>(
        &self,
        counted: Counted,
        caller: impl Hash,
        now: Duration,
        act: impl FnOnce(Option<&mut u64>, u64) -> T,
    ) -> Option<T> {
        if !self.enforced {
            return None;
        }
        // Callers are identified by a 64-bit keyed hash: eight bytes a bucket, and no caller can aim for a
        // collision.
        let key = self.hasher.hash_one((counted, caller));
        let now = micros(now);
        let shards = if counted.of_strangers() { &self.strangers } else { &self.proven };
        let shard = &shards[usize::try_from(key % SHARDS as u64).unwrap_or(0)];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = shard.has_room_for(key, now).then(|| shard.buckets.entry(key).or_insert(0));
        Some(act(bucket, now))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
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
        let begin = Duration::from_secs(1);
        for caller in 0..BUCKETS_MAX * 2 {
            quotas.take(Counted::SignIns, caller, ONE, begin);
        }
        let kept = || -> usize {
            quotas.strangers.iter().map(|shard| shard.lock().expect("not poisoned").buckets.len()).sum()
        };
        assert_eq!(kept(), BUCKETS_MAX / 2);
        // A new one is refused, and delayed as long as can be; who has a bucket goes on; who proves something
        // has room.
        let refused = |counted, caller: &str, now| {
            quotas.take(counted, caller, ONE, now).is_some_and(|s| s.retry_after_s.is_some())
        };
        assert!(refused(Counted::SignIns, "new", begin));
        assert_eq!(quotas.pace(Counted::Account, "new", ONE, begin, begin), begin);
        assert!(!refused(Counted::Client, "new", begin));
        quotas.give_back(Counted::SignIns, 0_usize, ONE, begin);
        let first = quotas.take(Counted::SignIns, 0_usize, ONE, begin);
        assert_eq!(first.and_then(|status| status.retry_after_s), None);
        // Two minutes on they are all full again, and make room.
        let later = Duration::from_secs(121);
        for caller in 0..SHARDS * 20 {
            assert!(!refused(Counted::SignIns, &format!("later {caller}"), later));
        }
        assert!(kept() <= SHARDS * 20);
    }

    #[test]
    fn quotas_that_are_off_say_nothing() {
        assert_eq!(Quotas::new(false).take(Counted::Client, "a", ONE, Duration::ZERO), None);
    }
}
