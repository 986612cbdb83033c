//! Damage below the rows: pages that cannot be read, and rows that name rows which are not there.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use store::testing::engines;
use store::transfer::Snapshot;
use store::{Options, StoreError, Target, Tx};

use crate::{at, channel, seed};

/// What SQLite writes at once, in bytes.
const PAGE_BYTES: u64 = 4_096;

/// Makes a follower whose channel is not there. Each engine enforces its foreign keys unless told not to.
async fn orphan(target: &Target, tx: impl AsyncFn(&'static str)) {
    let sql = "UPDATE followers SET follower_channel_id = 'gone'";
    match target {
        Target::Sqlite { path } => {
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
        }
        Target::Postgres { .. } => tx(sql).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_name_no_row_are_named() {
    for fresh in engines().await {
        let store = fresh.open(Options::default()).await;
        let filled = store.write(async move |tx: &mut Tx| {
            seed(tx).await?;
            tx.follow(&channel("a"), &channel("b"), at(7)).await?;
            Ok::<_, StoreError>(())
        });
        filled.await.unwrap();
        let orphans = async || Snapshot::open(&fresh.target()).await.unwrap().orphans().await.unwrap();
        let damage = async || Snapshot::open(&fresh.target()).await.unwrap().damage().await.unwrap();
        assert_eq!((orphans().await, damage().await), ((Vec::new(), false), (Vec::new(), false)));
        let unchecked = async |sql: &'static str| {
            let done = store.write(async move |tx: &mut Tx| {
                tx.execute("SET LOCAL session_replication_role = replica", &[]).await?;
                tx.execute(sql, &[]).await
            });
            done.await.unwrap();
        };
        orphan(&fresh.target(), unchecked).await;
        let (names, _) = orphans().await;
        assert_eq!(names, ["a row of followers names a row of channels that is not there: gone"]);
        store.close().await;
        fresh.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_overwritten_is_found() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(Options::default()).await;
    store.write(async move |tx: &mut Tx| seed(tx).await).await.unwrap();
    store.close().await;
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let root: u64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'channels'", [], |row| row.get(0))
        .unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0; PAGE_BYTES as usize], (root - 1) * PAGE_BYTES).unwrap();
    let (damaged, _) = Snapshot::open(&fresh.target()).await.unwrap().damage().await.unwrap();
    assert!(damaged.iter().any(|text| text.contains(&root.to_string())), "{damaged:?}");
    fresh.remove().await;
}
