//! The recent requests of each caller. Each node counts in its own memory. So a caller of `n` nodes gets up
//! to `n` times its quota, and a restart resets the counts. In return a check costs nanoseconds.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::quota::{Quota, QuotaName, QuotaStatus};

/// Maximum number of buckets over all shards, at most 16 MiB. Half of them are for authenticated callers. So
/// callers that are not authenticated, whose number has no limit, never take the room of the others.
pub const BUCKETS_MAX: usize = 262_144;
/// Shards of each half.
const SHARDS: usize = 16;
/// Buckets of one shard.
const SHARD_BUCKETS_MAX: usize = BUCKETS_MAX / 2 / SHARDS;
/// The pause between two scans of a full shard for buckets to drop, in seconds. Without the pause every
/// invented caller would cost a scan.
const SCAN_PAUSE_S: u32 = 1;

/// The requests that a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Client-mode calls of an application.
    Client,
    /// User-mode calls of an application for a user.
    User,
    /// Token calls of an application.
    Token,
    /// Bad codes and refresh tokens of an authenticated application.
    Exchanges,
    /// Wrong client secrets from a network address.
    ClientSecrets,
    /// Wrong passwords from a network address.
    SignIns,
    /// Wrong passwords of an account from unknown addresses.
    Account,
    /// Attempts from a network address to sign in to an account that is slowed down.
    SlowedAccount,
    /// Wrong passwords of an account from a known address.
    KnownPlace,
    /// Wrong passwords of a signed-in person, on the pages of the account.
    Confirmations,
    /// Registrations of a network address.
    Registrations,
    /// Requested password resets of a network address.
    PasswordResets,
    /// Sign-ins of a network address that begin at a provider.
    UpstreamSignIns,
    /// Requests of a person for a page of the studio.
    StudioPages,
    /// Forms of a person on a page of the studio.
    StudioForms,
    /// Wrong operator keys from a network address.
    OperatorKeys,
    /// Session URLs of a caller.
    SessionUrls,
    /// Chat messages of a user.
    ChatSend,
    /// Calls without authentication from a network address.
    Unknown,
}

impl Counted {
    /// The name of the quota, for a refusal.
    pub const fn name(self) -> QuotaName {
        match self {
            Self::Client => QuotaName::Client,
            Self::User => QuotaName::User,
            Self::Token => QuotaName::Token,
            Self::SessionUrls => QuotaName::SessionUrls,
            Self::ChatSend => QuotaName::ChatSend,
            Self::Unknown => QuotaName::Address,
            Self::Registrations | Self::PasswordResets | Self::UpstreamSignIns => QuotaName::Accounts,
            Self::StudioPages | Self::StudioForms => QuotaName::Studio,
            Self::Exchanges
            | Self::ClientSecrets
            | Self::SignIns
            | Self::Account
            | Self::SlowedAccount
            | Self::KnownPlace
            | Self::Confirmations
            | Self::OperatorKeys => QuotaName::Failures,
        }
    }

    /// Whether the counted callers are not authenticated, so that one person can pose as any number of
    /// callers.
    const fn is_unauthenticated(self) -> bool {
        match self {
            Self::Client
            | Self::User
            | Self::Token
            | Self::Exchanges
            | Self::SessionUrls
            | Self::ChatSend
            | Self::KnownPlace
            | Self::StudioPages
            | Self::StudioForms
            | Self::Confirmations => false,
            Self::ClientSecrets | Self::SignIns | Self::Account | Self::SlowedAccount => true,
            Self::OperatorKeys | Self::Unknown => true,
            Self::Registrations | Self::PasswordResets | Self::UpstreamSignIns => true,
        }
    }
}

/// The buckets of all callers.
#[derive(Debug)]
pub struct Quotas {
    enforced: bool,
    hasher: RandomState,
    authenticated: [Mutex<QuotaShard>; SHARDS],
    unauthenticated: [Mutex<QuotaShard>; SHARDS],
}

#[derive(Debug, Default)]
struct QuotaShard {
    /// For each caller, the time at which the bucket is full again.
    buckets: HashMap<u64, u64>,
    /// The earliest time of the next scan for full buckets.
    scan_at: u64,
}

impl QuotaShard {
    fn has_room_for(&mut self, key: u64, now: u64) -> bool {
        let full = |buckets: &HashMap<u64, u64>| buckets.len() >= SHARD_BUCKETS_MAX;
        if full(&self.buckets) && !self.buckets.contains_key(&key) && now >= self.scan_at {
            self.buckets.retain(|_, full_at| *full_at > now);
            self.scan_at = now.saturating_add(u64::from(SCAN_PAUSE_S) * 1_000_000);
        }
        !full(&self.buckets) || self.buckets.contains_key(&key)
    }
}

impl Quotas {
    pub(crate) fn new(enforced: bool) -> Self {
        let hasher = RandomState::new();
        Self { enforced, hasher, authenticated: Default::default(), unauthenticated: Default::default() }
    }

    /// Takes one request of `caller` from its bucket. `None` if quotas are off. If no bucket is left for a
    /// new caller, the caller is refused.
    pub fn take(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        now: Duration,
    ) -> Option<QuotaStatus> {
        self.with(counted, caller, now, |bucket, now| match bucket {
            Some(full_at) => quota.take(full_at, now),
            None => QuotaStatus { remaining: 0, retry_after_s: Some(SCAN_PAUSE_S), ..quota.untouched() },
        })
    }

    /// Returns a taken request to the bucket.
    pub fn give_back(&self, counted: Counted, caller: impl Hash, quota: Quota, now: Duration) {
        self.with(counted, caller, now, |bucket, _| bucket.map(|full_at| quota.give_back(full_at)));
    }

    /// Takes one request of `caller`, and returns the time that the caller has to wait, at most `delay_max`:
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

    /// Uses up the quota of `caller` for `span`: [`Quota::exhaust`]. Returns the time until the next request
    /// is free; `None` if quotas are off.
    pub fn exhaust(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        span: Duration,
        now: Duration,
    ) -> Option<Duration> {
        self.with(counted, caller, now, |bucket, now| {
            let left = bucket.map(|full_at| quota.exhaust(full_at, micros(span), now));
            Duration::from_micros(left.unwrap_or_default())
        })
    }

    /// The status of `caller`. Takes no request. `None` if quotas are off.
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

    /// The status of a caller without a quota: all requests are left. `None` if quotas are off.
    pub fn untouched(&self, quota: Quota) -> Option<QuotaStatus> {
        self.enforced.then(|| quota.untouched())
    }

    /// Calls `act` with the bucket of a caller, or with `None` if no room is left for a new bucket. Returns
    /// `None` if quotas are off.
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
        // A 64-bit keyed hash identifies a caller. It takes eight bytes, and a caller cannot cause a
        // collision on purpose.
        let key = self.hasher.hash_one((counted, caller));
        let now = micros(now);
        let shards = if counted.is_unauthenticated() { &self.unauthenticated } else { &self.authenticated };
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
    fn each_caller_has_a_bucket_of_each_kind() {
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
    fn the_number_of_buckets_is_bounded() {
        let quotas = Quotas::new(true);
        let begin = Duration::from_secs(1);
        for caller in 0..BUCKETS_MAX * 2 {
            quotas.take(Counted::SignIns, caller, ONE, begin);
        }
        let kept = || -> usize {
            quotas.unauthenticated.iter().map(|shard| shard.lock().expect("not poisoned").buckets.len()).sum()
        };
        assert_eq!(kept(), BUCKETS_MAX / 2);
        // A new caller is refused, with the maximum delay. A caller with a bucket and an authenticated
        // caller are not.
        let refused = |counted, caller: &str, now| {
            quotas.take(counted, caller, ONE, now).is_some_and(|s| s.retry_after_s.is_some())
        };
        assert!(refused(Counted::SignIns, "new", begin));
        assert_eq!(quotas.pace(Counted::Account, "new", ONE, begin, begin), begin);
        assert!(!refused(Counted::Client, "new", begin));
        quotas.give_back(Counted::SignIns, 0_usize, ONE, begin);
        let first = quotas.take(Counted::SignIns, 0_usize, ONE, begin);
        assert_eq!(first.and_then(|status| status.retry_after_s), None);
        // After two minutes all buckets are full again and are dropped.
        let later = Duration::from_secs(121);
        for caller in 0..SHARDS * 20 {
            assert!(!refused(Counted::SignIns, &format!("later {caller}"), later));
        }
        assert!(kept() <= SHARDS * 20);
    }

    #[test]
    fn without_quotas_there_is_no_status() {
        assert_eq!(Quotas::new(false).take(Counted::Client, "a", ONE, Duration::ZERO), None);
    }
}
