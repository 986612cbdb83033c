//! Snapshots, checksums and copies of whole stores, from either engine to the other.

use std::sync::Arc;

use store::testing::{Fresh, engines, postgres, sqlite};
use store::transfer::{
    CopyBegin, Progress, Restart, Snapshot, TableSum, check_file, copy_to_postgres, copy_to_sqlite,
};
use store::{DatabaseUrl, Options, Store, StoreError, Target, Tx, params};
use tokio::sync::Notify;

use crate::{at, channel, seed};

/// More than two chunks.
const MESSAGES: i64 = 12_345;

const FILL_CHAT: &str = "
    INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time, hidden_at)
    WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST($1 AS BIGINT))
    SELECT 'm' || CAST(1000000 + i AS TEXT), 'a', 'b', CAST($2 AS TEXT) || CAST(i AS TEXT), '{}', i,
           CASE WHEN i % 3 = 0 THEN i END
    FROM n";

/// A store with rows of every type, and texts that need escapes.
async fn filled(fresh: &Fresh) -> Store {
    let store = fresh.open(Options::default()).await;
    let fill = store.write(async move |tx: &mut Tx| {
        seed(tx).await?;
        tx.follow(&channel("a"), &channel("b"), at(7)).await?;
        tx.execute(FILL_CHAT, params![MESSAGES, "\\N \t tab\r\nline \u{1f} 한국어 🎈"]).await?;
        Ok::<_, StoreError>(())
    });
    fill.await.unwrap();
    store
}

async fn sums(target: &Target) -> Vec<TableSum> {
    Snapshot::open(target).await.unwrap().sums(&mut |_| {}).await.unwrap()
}

fn url(fresh: &Fresh) -> DatabaseUrl {
    match fresh.target() {
        Target::Postgres { url } => url,
        Target::Sqlite { .. } => panic!("PostgreSQL"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_the_rows_of_its_source_whatever_the_engines() {
    for source in engines().await {
        let store = filled(&source).await;
        let snapshot = Snapshot::open(&source.target()).await.unwrap();
        let expected = snapshot.sums(&mut |_| {}).await.unwrap();
        let rows = |table: &str| expected.iter().find(|sum| sum.table == table).unwrap().rows;
        assert_eq!((rows("chat_messages"), rows("channels")), (MESSAGES.unsigned_abs(), 3));
        let (file, database) = (sqlite(), postgres().await);
        let Target::Sqlite { path } = file.target() else { panic!("a file") };
        copy_to_sqlite(&snapshot, &path, &mut |_| {}).await.unwrap();
        check_file(&path).unwrap();
        assert_eq!(sums(&file.target()).await, expected);
        copy_to_postgres(&snapshot, &url(&database), "a", CopyBegin::GO_ON, &mut |_| {}).await.unwrap();
        assert_eq!(sums(&database.target()).await, expected);
        // Both copies are stores.
        for copy in [&file, &database] {
            copy.open(Options::default()).await.close().await;
        }
        drop(snapshot);
        store.close().await;
        for fresh in [source, file, database] {
            fresh.remove().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_does_not_see_later_writes() {
    for fresh in engines().await {
        let store = filled(&fresh).await;
        let snapshot = Snapshot::open(&fresh.target()).await.unwrap();
        let before = snapshot.sums(&mut |_| {}).await.unwrap();
        let later = store.write(async move |tx: &mut Tx| {
            tx.execute("DELETE FROM chat_messages WHERE message_time < 100", &[]).await
        });
        later.await.unwrap();
        assert_eq!(snapshot.sums(&mut |_| {}).await.unwrap(), before);
        if snapshot.engine() == "sqlite" {
            let copy = sqlite();
            let Target::Sqlite { path } = copy.target() else { panic!("a file") };
            snapshot.copy_file(path.clone(), &mut |_| {}).unwrap();
            check_file(&path).unwrap();
            assert_eq!(sums(&copy.target()).await, before);
        }
        drop(snapshot);
        assert_ne!(sums(&fresh.target()).await, before);
        store.close().await;
        fresh.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_copy_goes_on_and_no_node_starts_before_it_is_complete() {
    let (source, database) = (sqlite(), postgres().await);
    filled(&source).await.close().await;
    let snapshot = Snapshot::open(&source.target()).await.unwrap();
    let expected = snapshot.sums(&mut |_| {}).await.unwrap();
    for restart in [Restart::Never, Restart::Always] {
        let half = Arc::new(Notify::new());
        let reached = half.clone();
        let mut stop = move |progress: Progress<'_>| {
            if progress.table == "chat_messages" && progress.done >= 5_000 {
                reached.notify_one();
            }
        };
        let url = url(&database);
        tokio::select! {
            biased;
            () = half.notified() => {}
            done = copy_to_postgres(&snapshot, &url, "one", CopyBegin { restart, other: false }, &mut stop) => panic!("not stopped: {done:?}"),
        }
        let refused = Store::open(database.target(), Options::default()).await.unwrap_err().to_string();
        assert!(refused.contains("is not complete"), "{refused}");
        let other =
            copy_to_postgres(&snapshot, &url, "two", CopyBegin::GO_ON, &mut |_| {}).await.unwrap_err();
        assert!(other.to_string().contains("a part of another store (one)"), "{other}");
    }
    // Who says so replaces the part of the other store, and every row is copied again.
    let replace = CopyBegin { other: true, ..CopyBegin::GO_ON };
    let half = Arc::new(Notify::new());
    let reached = half.clone();
    let mut begun = None;
    let mut stop = |progress: Progress<'_>| {
        if progress.table == "chat_messages" {
            begun.get_or_insert(progress.done);
            reached.notify_one();
        }
    };
    let target = url(&database);
    tokio::select! {
        biased;
        () = half.notified() => {}
        done = copy_to_postgres(&snapshot, &target, "two", replace, &mut stop) => panic!("not stopped: {done:?}"),
    }
    assert_eq!(begun, Some(5_000), "from the first chunk");
    let mut stop = |_: Progress<'_>| {};
    let refused = copy_to_postgres(&snapshot, &url(&database), "one", CopyBegin::GO_ON, &mut stop).await;
    assert!(refused.unwrap_err().to_string().contains("a part of another store (two)"));
    let mut first = None;
    let mut note = |progress: Progress<'_>| {
        if progress.table == "chat_messages" {
            first.get_or_insert(progress.done);
        }
    };
    copy_to_postgres(&snapshot, &url(&database), "two", CopyBegin::GO_ON, &mut note).await.unwrap();
    assert_eq!(first, Some(5_000), "the copy goes on with the second chunk");
    assert_eq!(sums(&database.target()).await, expected);
    let again = copy_to_postgres(&snapshot, &url(&database), "two", CopyBegin::GO_ON, &mut |_| {}).await;
    assert!(again.unwrap_err().to_string().contains("has a store already"));
    database.open(Options::default()).await.close().await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_and_a_foreign_file_are_refused() {
    let fresh = sqlite();
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let missing = Snapshot::open(&fresh.target()).await.unwrap_err().to_string();
    assert!(missing.contains("cannot open"), "{missing}");
    assert!(!path.exists(), "a read does not make a file");
    filled(&fresh).await.close().await;
    let bytes = std::fs::read(&path).unwrap();
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 8_192].fill(0x5a);
    std::fs::write(&path, damaged).unwrap();
    assert!(matches!(check_file(&path), Err(StoreError::Corrupt(_))));
    std::fs::write(&path, "not a database, but long enough to be looked at as one".repeat(50)).unwrap();
    assert!(Snapshot::open(&fresh.target()).await.is_err());
}
