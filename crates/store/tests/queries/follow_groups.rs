//! Follows and unfollows that are written together, on PostgreSQL.

use std::collections::{BTreeMap, BTreeSet};

use domain::Timestamp;
use store::queries::follow_groups::{FollowRow, FollowWritten};
use store::testing::postgres;
use store::{Options, Store, StoreError};
use tokio::sync::oneshot;

use crate::lists::{Dice, check_lists, id, in_order, put_channels, walk};
use crate::{at, channel, number, seed, tx};

/// Writes the changes of channel `a` in one transaction. `None` is an unfollow.
async fn change(store: &Store, changes: Vec<(String, Option<Timestamp>)>) -> Vec<FollowWritten> {
    let written = tx!(*store, tx => {
        let a = channel("a");
        assert_eq!(tx.lock_channels(&BTreeSet::from([&a]), true).await?, BTreeSet::from([a.clone()]));
        let followers: Vec<_> = changes.iter().map(|(who, _)| channel(who)).collect();
        let rows = changes.iter().zip(&followers).map(|((_, follows_at), follower)| FollowRow {
            channel: &a,
            follower,
            follows_at: *follows_at,
        });
        tx.change_follows(&rows.collect::<Vec<_>>()).await
    });
    written.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_changes_by_many_rows_at_once_is_counted_row_by_row() {
    let fresh = postgres().await;
    let store = fresh.open(Options::default()).await;
    tx!(store, tx => { seed(tx).await }).unwrap();
    put_channels(&store, 900).await;
    let (mut dice, mut model) = (Dice(11), BTreeMap::<String, i64>::new());
    for round in 0..14 {
        // More come than go, then more go than come; a few days only, so that many share one.
        let coming = if round < 8 { 9 } else { 2 };
        let mut changes = BTreeMap::new();
        for _ in 0..400 {
            let (who, day) = (id(dice.throw(900) as usize), dice.throw(9));
            changes.insert(who, (dice.throw(10) < coming).then(|| at(day)));
        }
        let mut expected = Vec::new();
        for (who, follows_at) in &changes {
            let followed_since = model.get(who).map(|day| at(*day));
            expected.push(FollowWritten::Written { followed_since });
            match follows_at {
                Some(at) => _ = model.entry(who.clone()).or_insert(at.as_millis()),
                None => _ = model.remove(who),
            }
        }
        assert_eq!(change(&store, changes.into_iter().collect()).await, expected);
        check_lists(&store).await;
        assert_eq!(walk(&store, None, 50).await, in_order(&model));
    }
    let all: Vec<_> = model.into_keys().map(|who| (who, None)).collect();
    assert!(all.len() > 50, "{}", all.len());
    change(&store, all).await;
    check_lists(&store).await;
    assert_eq!(tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM list_blocks").await }), Ok(3));
    let unknown = change(&store, vec![("missing".to_owned(), Some(at(1)))]).await;
    assert_eq!(unknown, [FollowWritten::UnknownFollower]);
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_another_transaction_has_locked_are_left_out() {
    let fresh = postgres().await;
    let store = fresh.open(Options::default()).await;
    tx!(store, tx => { seed(tx).await }).unwrap();
    let (held, is_held) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let holder = store.clone();
    let holding = tokio::spawn(async move {
        tx!(holder, tx => {
            tx.lock_channel(&channel("b")).await?;
            held.send(()).unwrap();
            ended.await.unwrap();
            Ok(())
        })
    });
    is_held.await.unwrap();
    let lock = async |waits| -> Result<Vec<String>, StoreError> {
        tx!(store, tx => {
            let [a, b, missing] = ["a", "b", "missing"].map(channel);
            let locked = tx.lock_channels(&BTreeSet::from([&a, &b, &missing]), waits).await?;
            Ok(locked.iter().map(|id| id.as_str().to_owned()).collect())
        })
    };
    assert_eq!(lock(false).await.unwrap(), ["a"]);
    end.send(()).unwrap();
    assert_eq!(lock(true).await.unwrap(), ["a", "b"]);
    holding.await.unwrap().unwrap();
    store.close().await;
    fresh.remove().await;
}
