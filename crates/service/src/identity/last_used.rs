//! The last uses of applications and of their secrets. A call notes a use in memory. A job writes it to the
//! store.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use domain::Timestamp;
use domain::limits::USE_WRITTEN_EVERY_MS;

/// Maximum number of ids in memory, all used within the last hour: about 20 MiB. While the map is full, the
/// uses of further ids are not noted. This does not matter for a limit of 90 days.
const IDS_MAX: usize = 100_000;

/// The last use of each id that was used on this node within the last hour.
#[derive(Debug)]
pub(crate) struct LastUsed<K>(RwLock<HashMap<K, LastUse>>);

impl<K> Default for LastUsed<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

#[derive(Debug)]
struct LastUse {
    at: AtomicI64,
    /// The last use that was written to the store.
    written: Option<i64>,
}

impl LastUse {
    fn at(&self) -> i64 {
        self.at.load(Ordering::Relaxed)
    }

    /// The first use is due at once, later uses once an hour. So the last use of all is written within an
    /// hour.
    fn is_due(&self, now: i64) -> bool {
        match self.written {
            None => true,
            Some(written) => self.at() > written && now - written >= USE_WRITTEN_EVERY_MS,
        }
    }

    fn is_pending(&self) -> bool {
        self.written.is_none_or(|written| self.at() > written)
    }
}

impl<K: Clone + Eq + Hash + Ord> LastUsed<K> {
    /// Notes a use. Each use after the first costs a shared lock and one atomic store.
    pub(crate) fn note(&self, id: &K, now: Timestamp) {
        let now = now.as_millis();
        if let Some(last) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(id) {
            last.at.fetch_max(now, Ordering::Relaxed);
            return;
        }
        let mut uses = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if uses.len() < IDS_MAX || uses.contains_key(id) {
            let last = uses.entry(id.clone()).or_insert(LastUse { at: AtomicI64::new(now), written: None });
            last.at.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Whether the id was used on this node after `then`.
    pub(crate) fn used_since(&self, id: &K, then: Timestamp) -> bool {
        let uses = self.0.read().unwrap_or_else(PoisonError::into_inner);
        uses.get(id).is_some_and(|last| last.at() > then.as_millis())
    }

    /// The uses to write at `now`, ordered by id: all unwritten uses if `every`, else the due uses.
    pub(crate) fn to_write(&self, now: Timestamp, every: bool) -> Vec<(K, Timestamp)> {
        let uses = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<_> = uses
            .iter()
            .filter(|(_, last)| if every { last.is_pending() } else { last.is_due(now.as_millis()) })
            .map(|(id, last)| (id.clone(), Timestamp::from_millis(last.at())))
            .collect();
        found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        found
    }

    /// Notes that these uses were written to the store.
    pub(crate) fn written(&self, uses: &[(K, Timestamp)]) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (id, at) in uses {
            if let Some(last) = known.get_mut(id) {
                last.written = last.written.max(Some(at.as_millis()));
            }
        }
    }

    /// Drops the ids that were not used within the last hour and whose last use was written.
    pub(crate) fn drop_idle(&self, now: Timestamp) {
        let idle_since = now.as_millis() - USE_WRITTEN_EVERY_MS;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, last| last.is_pending() || last.at() > idle_since);
    }
}

#[cfg(test)]
mod tests {
    use domain::ClientId;

    use super::*;

    fn client(id: &str) -> ClientId {
        ClientId::stored(id.to_owned())
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_first_use_is_due_at_once_and_the_last_one_an_hour_later() {
        let uses = LastUsed::default();
        let due =
            |now| uses.to_write(at(now), false).into_iter().map(|(_, at)| at.as_millis()).collect::<Vec<_>>();
        uses.note(&client("a"), at(0));
        assert_eq!(due(0), [0]);
        assert_eq!(due(60_000), [0], "due until written");
        uses.written(&[(client("a"), at(0))]);
        assert!(due(60_000).is_empty());
        uses.note(&client("a"), at(70_000));
        uses.note(&client("a"), at(65_000));
        let used_since = |id, then| uses.used_since(&client(id), at(then));
        assert!(used_since("a", 69_999) && !used_since("a", 70_000) && !used_since("b", 0));
        assert!(due(USE_WRITTEN_EVERY_MS - 1).is_empty());
        assert_eq!(uses.to_write(at(70_000), true), [(client("a"), at(70_000))]);
        assert_eq!(due(USE_WRITTEN_EVERY_MS), [70_000]);
        uses.written(&[(client("a"), at(70_000))]);
        assert!(due(i64::MAX).is_empty());
    }

    #[test]
    fn only_idle_and_written_ids_are_dropped() {
        let uses = LastUsed::default();
        for id in ["pending", "written"] {
            uses.note(&client(id), at(0));
        }
        uses.written(&[(client("written"), at(0))]);
        let known = || uses.0.read().expect("not poisoned").len();
        uses.drop_idle(at(USE_WRITTEN_EVERY_MS - 1));
        assert_eq!(known(), 2);
        uses.drop_idle(at(USE_WRITTEN_EVERY_MS));
        assert_eq!(known(), 1);
        assert_eq!(uses.to_write(at(0), true)[0].0, client("pending"));
    }

    #[test]
    fn the_number_of_ids_is_bounded() {
        let uses = LastUsed::default();
        for n in 0..IDS_MAX + 10 {
            uses.note(&client(&n.to_string()), at(0));
        }
        assert_eq!(uses.0.read().expect("not poisoned").len(), IDS_MAX);
        uses.note(&client("0"), at(5));
        assert_eq!(
            uses.to_write(at(5), true).iter().find(|(id, _)| *id == client("0")).expect("there").1,
            at(5)
        );
    }
}
