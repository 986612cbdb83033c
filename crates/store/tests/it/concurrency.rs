//! The patterns that keep rules true under concurrency without `FOR UPDATE`.

use store::testing::postgres;
use store::{Contention, Store, StoreError, Tx, params};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::both;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_100_concurrent_uses_of_a_code_succeeds() {
    const USE: &str = "UPDATE codes SET used_by = $2 WHERE code = $1 AND used_by IS NULL RETURNING code";
    both(|store| async move {
        let made = store
            .write(async move |tx: &mut Tx| tx.execute("INSERT INTO codes (code) VALUES ('one')", &[]).await)
            .await;
        assert_eq!(made, Ok::<_, StoreError>(1));
        let mut uses = JoinSet::new();
        for user in 0..100_i64 {
            let store = store.clone();
            uses.spawn(async move {
                let used =
                    store.write(async move |tx: &mut Tx| tx.query_opt(USE, params!["one", user]).await).await;
                used.map_err(|error: StoreError| error).unwrap().map(|_| user)
            });
        }
        let winners: Vec<i64> = uses.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        let recorded = store
            .read(async move |tx: &mut Tx| tx.query_one("SELECT used_by FROM codes", &[]).await)
            .await
            .map_err(|error: StoreError| error)
            .unwrap();
        assert_eq!(recorded.get::<i64>(0), Ok(winners[0]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_60_concurrent_inserts_under_a_cap_of_30_exactly_30_pass() {
    // The update locks the parent's row until the commit, so each counts what the one before it left.
    const LOCK: &str = "UPDATE parents SET children = children + 1 WHERE id = $1";
    const COUNT: &str = "SELECT COUNT(*) FROM children WHERE parent_id = $1";
    const INSERT: &str = "INSERT INTO children (parent_id, kind, open) VALUES ($1, $2, FALSE)";
    const CAP: i64 = 30;
    both(|store| async move {
        let made = store
            .write(async move |tx: &mut Tx| {
                tx.execute("INSERT INTO parents (id, children) VALUES ('p', 0)", &[]).await
            })
            .await;
        assert_eq!(made, Ok::<_, StoreError>(1));
        let mut inserts = JoinSet::new();
        for kind in 0..60 {
            let store = store.clone();
            inserts.spawn(async move {
                let inserted: Result<(), StoreError> = store
                    .write(async move |tx: &mut Tx| {
                        tx.execute(LOCK, params!["p"]).await?;
                        if tx.query_one(COUNT, params!["p"]).await?.get::<i64>(0)? >= CAP {
                            return Err(StoreError::NoRow);
                        }
                        tx.execute(INSERT, params!["p", kind.to_string()]).await?;
                        Ok(())
                    })
                    .await;
                inserted
            });
        }
        let outcomes = inserts.join_all().await;
        let refused = outcomes.iter().filter(|outcome| **outcome == Err(StoreError::NoRow)).count();
        let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!((passed, refused), (30, 30), "{outcomes:?}");
        let rows =
            store.read(async move |tx: &mut Tx| tx.query_one(COUNT, params!["p"]).await?.get::<i64>(0)).await;
        assert_eq!(rows, Ok(CAP));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_reads_at_once_all_find_their_row() {
    both(|store| async move {
        for id in 0..20 {
            crate::insert(&store, id).await.unwrap();
        }
        let mut reads = JoinSet::new();
        for n in 0..400_i64 {
            let store = store.clone();
            reads.spawn(async move {
                let id = n % 20;
                let found: Result<i64, StoreError> = store
                    .read(async move |tx: &mut Tx| {
                        tx.query_one("SELECT id FROM notes WHERE id = $1", params![id]).await?.get(0)
                    })
                    .await;
                found == Ok(id)
            });
        }
        assert!(reads.join_all().await.into_iter().all(|found| found));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_transaction_that_another_one_was_faster_than_has_lost_a_race() {
    // The transactions of the service have READ COMMITTED, where this is rare.
    const ISOLATE: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    const CHANGE: &str = "UPDATE notes SET body = $1 WHERE id = 1";
    let fresh = postgres().await;
    let store = fresh.open(crate::options()).await;
    crate::insert(&store, 1).await.unwrap();
    let ((began, has_begun), (changed, has_changed)) = (oneshot::channel(), oneshot::channel::<()>());
    let slow = {
        let store: Store = store.clone();
        tokio::spawn(async move {
            let changed: Result<u64, StoreError> = store
                .write(async move |tx: &mut Tx| {
                    tx.execute(ISOLATE, &[]).await?;
                    tx.query("SELECT id FROM notes", &[]).await?;
                    began.send(()).expect("the test waits");
                    has_changed.await.expect("the test goes on");
                    tx.execute(CHANGE, params!["slow"]).await
                })
                .await;
            changed
        })
    };
    has_begun.await.unwrap();
    let fast = store.write(async move |tx: &mut Tx| tx.execute(CHANGE, params!["fast"]).await).await;
    assert_eq!(fast, Ok::<_, StoreError>(1));
    changed.send(()).unwrap();
    assert_eq!(slow.await.unwrap(), Err(Contention::LostRace.into()));
    store.close().await;
    fresh.remove().await;
}
