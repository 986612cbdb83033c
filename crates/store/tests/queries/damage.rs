//! Damage below the rows: pages that cannot be read, and rows that name rows which are not there.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use store::testing::{Fresh, engines, run_unchecked};
use store::transfer::Snapshot;
use store::{Options, StoreError, Target, Tx};

use crate::{at, channel, seed};

/// What SQLite writes at once, in bytes.
const PAGE_BYTES: u64 = 4_096;

/// Makes channels and a follower, and closes the store.
async fn fill(fresh: &Fresh) {
    let store = fresh.open(Options::default()).await;
    let filled = store.write(async move |tx: &mut Tx| {
        seed(tx).await?;
        tx.follow(&channel("a"), &channel("b"), at(7)).await?;
        Ok::<_, StoreError>(())
    });
    filled.await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_name_no_row_are_named() {
    for fresh in engines().await {
        fill(&fresh).await;
        let orphans = async || Snapshot::open(&fresh.target()).await.unwrap().orphans().await.unwrap();
        let damage = async || Snapshot::open(&fresh.target()).await.unwrap().damage().await.unwrap();
        assert_eq!((orphans().await, damage().await), ((Vec::new(), false), (Vec::new(), false)));
        run_unchecked(&fresh.target(), "UPDATE followers SET follower_channel_id = 'gone'").await;
        let (names, _) = orphans().await;
        assert_eq!(names, ["followers.follower_channel_id = gone: no such row in channels"]);
        fresh.remove().await;
    }
}

/// What a backup cannot read: the damage, the words that name it, and whether only SQLite allows it.
const UNREADABLE: [(&str, &str, bool); 4] = [
    (
        "UPDATE channels SET channel_name = CAST(x'ff' AS TEXT)",
        "channels.channel_name: wanted text, found text that is not UTF-8",
        true,
    ),
    ("UPDATE followers SET newest_rank = 1.5", "followers.newest_rank: wanted bigint, found real", true),
    ("ALTER TABLE followers RENAME COLUMN newest_rank TO old_rank", "newest_rank", false),
    ("DROP TABLE form_drafts", "form_drafts", false),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_backup_cannot_read_is_damage_of_a_named_table() {
    for (damage, words, only_on_sqlite) in UNREADABLE {
        for fresh in engines().await {
            let target = fresh.target();
            if only_on_sqlite && matches!(target, Target::Postgres { .. }) {
                fresh.remove().await;
                continue;
            }
            fill(&fresh).await;
            run_unchecked(&target, damage).await;
            let snapshot = Snapshot::open(&target).await.unwrap();
            let (names, _) = snapshot.damage().await.unwrap();
            assert!(names.iter().any(|name| name.contains(words)), "{damage}: {names:?}");
            drop(snapshot);
            let snapshot = Snapshot::open(&target).await.unwrap();
            let error = snapshot.sums(&mut |_| {}).await.expect_err("a backup fails").to_string();
            assert!(error.contains(words) && !error.contains(" in: "), "{damage}: {error}");
            drop(snapshot);
            fresh.remove().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_overwritten_is_found() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(Options::default()).await;
    store.write(async move |tx: &mut Tx| seed(tx).await).await.unwrap();
    store.close().await;
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let root: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'channels'", [], |row| row.get(0))
        .unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0; PAGE_BYTES as usize], (root.unsigned_abs() - 1) * PAGE_BYTES).unwrap();
    // SQLite names the page, or gives up. The doctor takes both as a finding.
    match Snapshot::open(&fresh.target()).await.unwrap().damage().await {
        Ok((damaged, _)) => {
            assert!(damaged.iter().any(|text| text.contains(&root.to_string())), "{damaged:?}")
        }
        Err(error) => assert!(matches!(error, StoreError::Corrupt(_)), "{error}"),
    }
    fresh.remove().await;
}
