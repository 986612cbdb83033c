//! Locks that a transaction takes before it writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use domain::ChannelId;
use store::queries::locks::{Locks, Shared};
use store::{Options, Store, StoreError};

use crate::{at, both, channel, record, tx};

/// Transactions at once.
const TRANSACTIONS: usize = 8;
/// Channels that each locks.
const CHANNELS: usize = 40;

fn all_of(channels: &[ChannelId]) -> Locks {
    let mut locks = Locks::default();
    for shared in [Shared::Categories, Shared::WatchedMinutes] {
        locks.add(shared);
    }
    for channel in channels {
        locks.add(Shared::Channel(channel));
        locks.add(Shared::Key { operation: "follow", key: channel.as_str() });
    }
    locks
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_write_the_same_channels_in_other_orders_do_not_deadlock() {
    both(|store| async move {
        let ids: Vec<ChannelId> = (0..CHANNELS).map(|n| channel(&format!("c{n}"))).collect();
        let made = ids.clone();
        tx!(store, tx => {
            for id in &made {
                tx.put_channel(&record(id.as_str()), at(1)).await?;
            }
            Ok(())
        })
        .unwrap();
        let tasks: Vec<_> = (0..TRANSACTIONS)
            .map(|task| {
                let (store, mut ids) = (store.clone(), ids.clone());
                ids.rotate_left(task * 17 % CHANNELS);
                if task % 2 == 0 {
                    ids.reverse();
                }
                tokio::spawn(async move {
                    let follower = channel(&format!("c{task}"));
                    tx!(store, tx => {
                        tx.lock_in_order(&all_of(&ids)).await?;
                        for id in &ids {
                            tx.follow(id, &follower, at(1)).await?;
                        }
                        Ok(())
                    })
                    .unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no transaction fails");
        }
        tx!(store, tx => {
            for id in &ids {
                assert_eq!(tx.count_followers(id).await?, TRANSACTIONS as i64, "{id}");
            }
            Ok(())
        })
        .unwrap();
    })
    .await;
}

/// Takes the lock, and gives how many others had it at the same time.
async fn others_with_the_lock(
    store: Store,
    shares: bool,
    holders: Arc<AtomicUsize>,
) -> Result<usize, StoreError> {
    tx!(store, tx => {
        if shares {
            tx.share_lock(Shared::WatchedMinutes).await?;
        } else {
            tx.lock_in_order(&all_of(&[])).await?;
        }
        let before = holders.fetch_add(1, SeqCst);
        for _ in 0..10 {
            tx.category_version().await?;
        }
        let after = holders.fetch_sub(1, SeqCst) - 1;
        Ok(before.max(after))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_lock_excludes_every_other() {
    both(|store| async move {
        let holders = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..40)
            .map(|n| {
                let shares = n % 4 != 0;
                (shares, tokio::spawn(others_with_the_lock(store.clone(), shares, holders.clone())))
            })
            .collect();
        for (shares, task) in tasks {
            let others = task.await.expect("a task that ends").unwrap();
            assert!(shares || others == 0, "{others} others");
        }
    })
    .await;
}

/// One transaction begins and ends while another has the lock.
#[tokio::test(flavor = "multi_thread")]
async fn shared_locks_do_not_exclude_each_other() {
    let fresh = store::testing::postgres().await;
    let store = fresh.open(Options::default()).await;
    let other = store.clone();
    tx!(store, tx => {
        tx.share_lock(Shared::WatchedMinutes).await?;
        others_with_the_lock(other, true, Arc::default()).await
    })
    .unwrap();
    store.close().await;
    fresh.remove().await;
}
