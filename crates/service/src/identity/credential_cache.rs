//! The cached credentials of this node. An answer is valid until a row that it depends on changes.
//!
//! An answer has the [`Epoch`] of its question. A slot has the epoch of its last change. An answer is valid
//! while none of its slots has a later epoch. So a revocation of any number of tokens costs one atomic store
//! per slot. An answer that was read while a revocation committed is stale before it is cached.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::application::Application;
use domain::secret::SecretHash;
use domain::{ApplicationSecretId, Timestamp};
use store::queries::credential_changes::{ChangeSlot, SLOTS};
use store::queries::tokens::Holder as StoredHolder;

use crate::developer::usage_counters::ApplicationUsage;

/// Maximum number of cached access tokens. Each takes about half a KiB.
const HOLDERS_MAX: usize = 100_000;
/// Maximum number of cached client secrets.
const APPLICATIONS_MAX: usize = 10_000;
/// How long the result of a poll is trusted, from the start of the poll. Every node must refuse a revoked
/// token within two seconds. This leaves half a second.
pub const TRUST: Duration = Duration::from_millis(1_500);

const SHARDS: usize = 64;

/// A point in the sequence of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

/// For each slot, the epoch of the last change that this node found.
#[derive(Debug)]
pub(crate) struct CredentialChanges {
    latest: AtomicU64,
    slots: Box<[AtomicU64]>,
}

impl Default for CredentialChanges {
    fn default() -> Self {
        let slots = std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect();
        Self { latest: AtomicU64::default(), slots }
    }
}

impl CredentialChanges {
    /// The current epoch. A caller reads the epoch before it queries the store.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.latest.load(Ordering::SeqCst))
    }

    /// Marks a slot as changed. The change must be visible in the store already.
    pub fn changed(&self, slot: ChangeSlot) {
        let epoch = self.latest.fetch_add(1, Ordering::SeqCst) + 1;
        self.slots[slot.index()].fetch_max(epoch, Ordering::SeqCst);
    }

    fn none_since(&self, epoch: Epoch, slots: &[ChangeSlot]) -> bool {
        slots.iter().all(|slot| self.slots[slot.index()].load(Ordering::SeqCst) <= epoch.0)
    }

    /// The changes of a transaction. They are applied when the returned value is dropped. It is part of the
    /// result of the transaction, so it is dropped after the commit, even if the caller no longer waits.
    pub fn when_dropped(self: Arc<Self>, slots: Vec<ChangeSlot>) -> CommittedChanges {
        CommittedChanges { changes: self, slots }
    }
}

/// See [`CredentialChanges::when_dropped`].
pub(crate) struct CommittedChanges {
    changes: Arc<CredentialChanges>,
    slots: Vec<ChangeSlot>,
}

impl CommittedChanges {
    /// Applies the changes now.
    pub fn apply(&mut self) {
        for slot in self.slots.drain(..) {
            self.changes.changed(slot);
        }
    }
}

impl Drop for CommittedChanges {
    fn drop(&mut self) {
        self.apply();
    }
}

/// Answers by the hash of the credential. A shard has two halves. When the younger half is full, it replaces
/// the older half, whose answers are dropped. A lookup moves an answer to the younger half. So the least
/// recently used answers are dropped first, without a list.
pub(crate) struct Cache<V> {
    hasher: RandomState,
    shards: Box<[Mutex<CacheShard<V>>]>,
    half: usize,
}

struct CacheShard<V> {
    younger: HashMap<SecretHash, CachedAnswer<V>>,
    older: HashMap<SecretHash, CachedAnswer<V>>,
}

struct CachedAnswer<V> {
    answer: Arc<V>,
    asked: Epoch,
    slots: Vec<ChangeSlot>,
}

impl<V> Cache<V> {
    /// A cache of at most `answers_max` answers.
    pub fn new(answers_max: usize) -> Self {
        let shard = || Mutex::new(CacheShard { younger: HashMap::new(), older: HashMap::new() });
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        Self { hasher: RandomState::new(), shards, half: (answers_max / SHARDS / 2).max(1) }
    }

    /// The answer, if it is cached and valid.
    pub fn get(&self, credential: &SecretHash, changes: &CredentialChanges) -> Option<Arc<V>> {
        let mut shard = self.shard(credential);
        if let Some(kept) = shard.younger.get(credential) {
            if changes.none_since(kept.asked, &kept.slots) {
                return Some(kept.answer.clone());
            }
            shard.younger.remove(credential);
            return None;
        }
        let (credential, kept) = shard.older.remove_entry(credential)?;
        let answer = changes.none_since(kept.asked, &kept.slots).then(|| kept.answer.clone())?;
        let dropped = shard.insert(credential, kept, self.half);
        drop(shard);
        drop(dropped);
        Some(answer)
    }

    /// The number of cached answers, valid or not.
    pub fn len(&self) -> usize {
        let len = |shard: &Mutex<CacheShard<V>>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.younger.len() + shard.older.len()
        };
        self.shards.iter().map(len).sum()
    }

    /// Caches an answer of the store to a query that began at the epoch `asked` or later.
    pub fn put(&self, credential: SecretHash, answer: Arc<V>, asked: Epoch, slots: Vec<ChangeSlot>) {
        let mut shard = self.shard(&credential);
        let dropped = shard.insert(credential, CachedAnswer { answer, asked, slots }, self.half);
        drop(shard);
        drop(dropped);
    }

    fn shard(&self, credential: &SecretHash) -> MutexGuard<'_, CacheShard<V>> {
        let shard = self.hasher.hash_one(credential) % SHARDS as u64;
        self.shards[usize::try_from(shard).unwrap_or(0)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> CacheShard<V> {
    /// Returns the dropped answers, so that the caller frees them outside the lock.
    fn insert(
        &mut self,
        credential: SecretHash,
        kept: CachedAnswer<V>,
        half: usize,
    ) -> HashMap<SecretHash, CachedAnswer<V>> {
        let mut dropped = HashMap::new();
        if self.younger.len() >= half {
            dropped = std::mem::replace(&mut self.older, std::mem::take(&mut self.younger));
        }
        self.younger.insert(credential, kept);
        dropped
    }
}

/// The cached credentials of this node.
pub(crate) struct CachedCredentials {
    pub changes: Arc<CredentialChanges>,
    holders: Cache<Holder>,
    applications: Cache<ProvenApplication>,
    token_lookups: Lookups,
    client_lookups: Lookups,
    /// For each slot, the version that the last poll found.
    versions: Mutex<Vec<i64>>,
    /// Until when the cache is trusted, in microseconds of the monotonic clock.
    trusted_until: AtomicU64,
}

/// The holder of an access token. Dereferences to what the store says.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The caller, the name of the user's channel, and the end of the token.
    pub stored: StoredHolder,
    /// Counts the requests of the application, if there is room.
    pub usage: Option<Arc<ApplicationUsage>>,
}

impl Deref for Holder {
    type Target = StoredHolder;

    fn deref(&self) -> &StoredHolder {
        &self.stored
    }
}

/// An application whose client secret was checked. Dereferences to the application.
#[derive(Clone, Debug)]
pub struct ProvenApplication {
    /// The application.
    pub application: Application,
    /// The secret.
    pub secret_id: ApplicationSecretId,
    /// When the secret expires.
    pub expires_at: Option<Timestamp>,
    /// Counts the requests of the application, if there is room.
    pub usage: Option<Arc<ApplicationUsage>>,
}

impl Deref for ProvenApplication {
    type Target = Application;

    fn deref(&self) -> &Application {
        &self.application
    }
}

/// The number of lookups that the cache answered, and of those that queried the store.
#[derive(Debug, Default)]
struct Lookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Lookups {
    fn count(&self, is_hit: bool) {
        let counter = if is_hit { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn figures<V>(&self, name: &'static str, cache: &Cache<V>) -> CacheFigures {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        CacheFigures { cache: name, hits, misses, entries: cache.len() }
    }
}

/// The current figures of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheFigures {
    /// `tokens` or `clients`.
    pub cache: &'static str,
    /// Checks that the cache answered.
    pub hits: u64,
    /// Checks that queried the store.
    pub misses: u64,
    /// Answers in the cache.
    pub entries: usize,
}

impl Default for CachedCredentials {
    fn default() -> Self {
        Self {
            changes: Arc::default(),
            holders: Cache::new(HOLDERS_MAX),
            applications: Cache::new(APPLICATIONS_MAX),
            token_lookups: Lookups::default(),
            client_lookups: Lookups::default(),
            versions: Mutex::new(vec![0; SLOTS]),
            trusted_until: AtomicU64::new(0),
        }
    }
}

impl CachedCredentials {
    /// The holder of an access token, if it is cached and valid at the monotonic time `now`.
    pub fn holder(&self, token: &SecretHash, now: Duration) -> Option<Arc<Holder>> {
        let found = self.trusted(now).then(|| self.holders.get(token, &self.changes)).flatten();
        self.token_lookups.count(found.is_some());
        found
    }

    /// Caches the holder of an access token. See [`Cache::put`].
    pub fn put_holder(&self, token: SecretHash, holder: Arc<Holder>, asked: Epoch) {
        let slots = holder.slots();
        self.holders.put(token, holder, asked, slots);
    }

    /// The application of a client id and its secret, if it is cached and valid at the monotonic time `now`.
    pub fn application(&self, pair: &SecretHash, now: Duration) -> Option<Arc<ProvenApplication>> {
        let found = self.trusted(now).then(|| self.applications.get(pair, &self.changes)).flatten();
        self.client_lookups.count(found.is_some());
        found
    }

    /// Caches the application of a client id and its secret. See [`Cache::put`].
    pub fn put_application(
        &self,
        pair: SecretHash,
        application: Arc<ProvenApplication>,
        asked: Epoch,
        slots: Vec<ChangeSlot>,
    ) {
        self.applications.put(pair, application, asked, slots);
    }

    /// The figures of both caches.
    pub fn figures(&self) -> [CacheFigures; 2] {
        [
            self.token_lookups.figures("tokens", &self.holders),
            self.client_lookups.figures("clients", &self.applications),
        ]
    }

    /// Applies the result of a poll that began at `began`.
    pub fn found(&self, began: Duration, versions: &[(ChangeSlot, i64)]) {
        let mut known = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        for (slot, version) in versions {
            if std::mem::replace(&mut known[slot.index()], *version) != *version {
                self.changes.changed(*slot);
            }
        }
        self.trusted_until.fetch_max(micros(began + TRUST), Ordering::SeqCst);
    }

    fn trusted(&self, now: Duration) -> bool {
        micros(now) < self.trusted_until.load(Ordering::SeqCst)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use domain::{ChannelId, ClientId};
    use store::queries::credential_changes::Dependency;

    use super::*;

    fn token(n: usize) -> SecretHash {
        SecretHash::of(&n.to_string())
    }

    fn slot(channel: &str) -> ChangeSlot {
        ChangeSlot::from(Dependency::Channel(&ChannelId::stored(channel.to_owned())))
    }

    #[test]
    fn an_answer_is_valid_until_a_slot_of_it_changes() {
        let (cache, changes) = (Cache::new(1_000), CredentialChanges::default());
        let application = ChangeSlot::from(Dependency::Application(&ClientId::stored("app".to_owned())));
        cache.put(token(1), Arc::new(1), changes.epoch(), vec![slot("a"), application]);
        cache.put(token(2), Arc::new(2), changes.epoch(), vec![slot("b")]);
        assert_eq!(cache.get(&token(1), &changes).as_deref(), Some(&1));
        changes.changed(application);
        assert_eq!(cache.get(&token(1), &changes), None);
        assert_eq!(cache.get(&token(2), &changes).as_deref(), Some(&2));
        // A new answer is valid.
        cache.put(token(1), Arc::new(1), changes.epoch(), vec![slot("a"), application]);
        assert_eq!(cache.get(&token(1), &changes).as_deref(), Some(&1));
    }

    #[test]
    fn an_answer_that_was_read_before_a_change_is_invalid_after_it() {
        let (cache, changes) = (Cache::new(1_000), CredentialChanges::default());
        let asked = changes.epoch();
        drop(Arc::new(CredentialChanges::default()).when_dropped(vec![slot("a")]));
        changes.changed(slot("a"));
        cache.put(token(1), Arc::new(1), asked, vec![slot("a")]);
        assert_eq!(cache.get(&token(1), &changes), None);
    }

    #[test]
    fn the_changes_of_a_transaction_are_applied_when_its_result_is_dropped() {
        let changes = Arc::new(CredentialChanges::default());
        let committed = changes.clone().when_dropped(vec![slot("a"), slot("b")]);
        let before = changes.epoch();
        assert!(changes.none_since(before, &[slot("a"), slot("b")]));
        drop(committed);
        assert!(!changes.none_since(before, &[slot("a")]));
        assert!(!changes.none_since(before, &[slot("b")]));
        assert!(changes.none_since(changes.epoch(), &[slot("a"), slot("b")]));
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_used_answers() {
        const MAX: usize = 64 * 20;
        let (cache, changes) = (Cache::new(MAX), CredentialChanges::default());
        for n in 0..MAX * 10 {
            cache.put(token(n), Arc::new(n), changes.epoch(), Vec::new());
            assert!(cache.get(&token(0), &changes).is_some(), "looked up each time, at {n}");
        }
        assert!(cache.len() <= MAX, "{}", cache.len());
        assert!(cache.len() >= MAX / 2, "{}", cache.len());
    }
}
