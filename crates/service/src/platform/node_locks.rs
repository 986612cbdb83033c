//! The locks among the batches of this node (`docs/adr/0025-locks-are-taken-in-one-order.md`). Waiting for
//! them occupies no connection of the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use store::queries::locks::Locks;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};

/// Maximum number of unused locks in memory.
const IDLE_LOCKS_MAX: usize = 1_024;

/// The locks of this node's batches. The batch that waits longest for a lock gets it next.
#[derive(Debug, Default)]
pub(crate) struct NodeLocks {
    mutexes: Mutex<HashMap<i64, Arc<AsyncMutex<()>>>>,
    store_failed: Notify,
}

impl NodeLocks {
    fn mutexes(&self, locks: &Locks) -> Vec<Arc<AsyncMutex<()>>> {
        let mut known = self.mutexes.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > IDLE_LOCKS_MAX {
            known.retain(|_, mutex| Arc::strong_count(mutex) > 1);
        }
        locks.numbers().map(|number| known.entry(number).or_default().clone()).collect()
    }

    async fn lock(&self, locks: &Locks) -> Vec<OwnedMutexGuard<()>> {
        let mut held = Vec::new();
        for mutex in self.mutexes(locks) {
            held.push(mutex.lock_owned().await);
        }
        held
    }

    /// Takes the locks. Returns none when the store fails. Then only the locks of the database order the
    /// batches.
    pub async fn lock_until_store_fails(&self, locks: &Locks) -> Vec<OwnedMutexGuard<()>> {
        let store_failed = self.store_failed.notified();
        tokio::select! {
            held = self.lock(locks) => held,
            () = store_failed => Vec::new(),
        }
    }

    /// Ends the waits of all batches, so that they fail at the same time and not one after the other.
    pub fn store_failed(&self) {
        self.store_failed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use domain::ChannelId;
    use store::queries::locks::Shared;

    use super::*;

    fn channels(ids: &[usize]) -> Locks {
        let mut locks = Locks::default();
        for id in ids {
            locks.add(Shared::Channel(&ChannelId::stored(id.to_string())));
        }
        locks
    }

    #[tokio::test]
    async fn batches_that_share_a_lock_wait_and_others_do_not() {
        let locks = Arc::new(NodeLocks::default());
        let first = locks.lock(&channels(&[1, 2])).await;
        let _other = locks.lock(&channels(&[3])).await;
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { locks.lock(&channels(&[4, 2])).await.len() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert_eq!(waiting.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_failure_of_the_store_ends_the_waits() {
        let locks = Arc::new(NodeLocks::default());
        let _held = locks.lock(&channels(&[1])).await;
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { locks.lock_until_store_fails(&channels(&[0, 1])).await.len() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        locks.store_failed();
        assert_eq!(waiting.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn the_number_of_unused_locks_is_bounded() {
        let locks = Arc::new(NodeLocks::default());
        let held = locks.lock(&channels(&[0])).await;
        for id in 1..3 * IDLE_LOCKS_MAX {
            locks.lock(&channels(&[id])).await;
        }
        assert!(locks.mutexes.lock().unwrap().len() <= IDLE_LOCKS_MAX + 1);
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { locks.lock(&channels(&[0])).await.len() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "a held lock stays in memory");
        drop(held);
        assert_eq!(waiting.await.unwrap(), 1);
    }
}
