//! Damage below the rows: pages that cannot be read, and rows that name rows which are not there.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use store::testing::engines;
use store::transfer::Snapshot;
use store::{Options, Store, StoreError, Target, Tx};

use crate::{at, channel, seed};

/// What SQLite writes at once, in bytes.
const PAGE_BYTES: u64 = 4_096;

const BREAK: &str = "UPDATE followers SET follower_channel_id = 'gone'";

/// Makes a follower whose channel is not there. The engines enforce foreign keys, unless told not to.
async fn orphan(target: &Target, store: &Store) {
    if let Target::Sqlite { path } = target {
        let connection = rusqlite::Connection::open(path).unwrap();
        return connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {BREAK}")).unwrap();
    }
    let done = store.write(async move |tx: &mut Tx| {
        for sql in [
            "ALTER TABLE followers DROP CONSTRAINT followers_follower_channel_id_fkey",
            BREAK,
            "ALTER TABLE followers ADD CONSTRAINT again FOREIGN KEY (follower_channel_id)
                REFERENCES channels (channel_id) NOT VALID",
        ] {
            tx.execute(sql, &[]).await?;
        }
        Ok::<_, StoreError>(())
    });
    done.await.unwrap();
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
        orphan(&fresh.target(), &store).await;
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
