//! A transaction commits everything or nothing.

use std::time::Duration;

use store::{Store, StoreError, Tx, params};

use crate::{Held, both, eventually, ids, insert, options, within};

#[tokio::test(flavor = "multi_thread")]
async fn an_error_rolls_back_everything_the_closure_wrote() {
    both(|store| async move {
        let outcome: Result<(), StoreError> = store
            .write(async move |tx: &mut Tx| {
                tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await?;
                tx.execute("INSERT INTO notes (id) VALUES ($1)", params![2]).await?;
                Err(StoreError::NoRow)
            })
            .await;
        assert_eq!(outcome, Err(StoreError::NoRow));
        assert!(ids(&store).await.is_empty());
        insert(&store, 1).await.unwrap();
        assert_eq!(ids(&store).await, [1]);
        let stats = store.stats();
        assert_eq!((stats.committed, stats.rolled_back, stats.syncs), (1, 1, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_rolls_back_its_own_request_alone() {
    both(|store| async move {
        let outcome: Result<(), StoreError> = store
            .write(async move |tx: &mut Tx| {
                tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await?;
                panic!("expected by the test");
            })
            .await;
        assert_eq!(outcome, Err(StoreError::Panicked));
        let read: Result<(), StoreError> =
            store.read(async |_: &mut Tx| panic!("expected by the test")).await;
        assert_eq!(read, Err(StoreError::Panicked));
        insert(&store, 2).await.unwrap();
        assert_eq!(ids(&store).await, [2]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_statement_cannot_be_ignored() {
    both(|store| async move {
        insert(&store, 1).await.unwrap();
        let outcome: Result<(), StoreError> = store
            .write(async move |tx: &mut Tx| {
                tx.execute("INSERT INTO notes (id) VALUES ($1)", params![2]).await?;
                let conflict = tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await;
                assert!(conflict.unwrap_err().is_unique("notes(id)"));
                let next = tx.execute("INSERT INTO notes (id) VALUES ($1)", params![3]).await;
                assert_eq!(next, Err(StoreError::Aborted));
                Ok(())
            })
            .await;
        assert_eq!(outcome, Err(StoreError::Aborted));
        assert_eq!(ids(&store).await, [1]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expected_conflict_does_not_end_the_transaction() {
    both(|store| async move {
        insert(&store, 1).await.unwrap();
        let changed: Result<_, StoreError> = store
            .write(async move |tx: &mut Tx| {
                let nothing = "INSERT INTO notes (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
                let update = "INSERT INTO notes (id, body) VALUES ($1, $2)
                                  ON CONFLICT (id) DO UPDATE SET body = excluded.body RETURNING body";
                let ignored = tx.execute(nothing, params![1]).await?;
                let body: String = tx.query_one(update, params![1, "new"]).await?.get(0)?;
                Ok((ignored, body, tx.execute(update, params![1, "newer"]).await?))
            })
            .await;
        assert_eq!(changed, Ok((0, "new".to_owned(), 1)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_write_is_seen_by_the_next_read() {
    both(|store| async move {
        for id in 0..50 {
            insert(&store, id).await.unwrap();
            assert_eq!(ids(&store).await.last(), Some(&id));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_inside_a_read_is_refused() {
    const INSERT: &str = "INSERT INTO notes (id) VALUES ($1)";
    both(|store| async move {
        let read = store.read(async move |tx: &mut Tx| tx.execute(INSERT, params![1]).await).await;
        assert_eq!(read, Err(StoreError::ReadOnly));
        let snapshot = store.snapshot(async move |tx: &mut Tx| tx.execute(INSERT, params![1]).await).await;
        assert_eq!(snapshot, Err(StoreError::ReadOnly));
        assert!(ids(&store).await.is_empty());
        insert(&store, 1).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_statements_of_a_snapshot_see_the_same_data() {
    const COUNT: &str = "SELECT COUNT(*) FROM notes";
    both(|store| async move {
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        let reader = store.clone();
        let counts = tokio::spawn(async move {
            reader
                .snapshot(async move |tx: &mut Tx| {
                    let before: i64 = tx.query_one(COUNT, &[]).await?.get(0)?;
                    let _ = begun.send(());
                    crate::let_go(may_go_on).await;
                    let after: i64 = tx.query_one(COUNT, &[]).await?.get(0)?;
                    Ok::<_, StoreError>((before, after))
                })
                .await
        });
        within(has_begun).await.unwrap();
        insert(&store, 1).await.unwrap();
        go_on.send(()).unwrap();
        assert_eq!(within(counts).await.unwrap(), Ok((0, 0)));
        assert_eq!(ids(&store).await, [1]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_cannot_be_ended_by_a_statement() {
    both(|store| async move {
        for sql in ["COMMIT", "rollback", "BEGIN", "SAVEPOINT mine", "RELEASE request"] {
            let outcome = store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
            assert!(matches!(outcome, Err(StoreError::Misuse(_))), "{sql}: {outcome:?}");
        }
        insert(&store, 1).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_caller_that_stops_waiting_does_not_stop_its_write() {
    both(|store| async move {
        let held = Held::start(&store, 1).await;
        held.done.abort();
        held.release.send(()).unwrap();
        eventually(|| store.stats().committed == 1).await;
        assert_eq!(ids(&store).await, [1]);
    })
    .await;
}

#[tokio::test]
async fn sqlite_refuses_a_closure_that_awaits_something_else() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(options()).await;
    let outcome: Result<(), StoreError> = store
        .write(async move |tx: &mut Tx| {
            tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await?;
            std::future::pending().await
        })
        .await;
    assert!(matches!(outcome, Err(StoreError::Misuse(_))), "{outcome:?}");
    assert!(ids(&store).await.is_empty());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_rolls_back_a_closure_that_outlives_the_deadline() {
    let fresh = store::testing::postgres().await;
    let store = Store::open(fresh.target(), options()).await.unwrap();
    let writer = store.clone();
    let outcome: Result<(), StoreError> = store::testing::while_running(
        Duration::from_secs(3),
        writer.write(async move |tx: &mut Tx| {
            tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await?;
            std::future::pending().await
        }),
    )
    .await
    .expect("an answer within 3 s");
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    assert!(ids(&store).await.is_empty());
    // The connection in doubt was thrown away, with the lock on that key.
    insert(&store, 1).await.unwrap();
    store.close().await;
    fresh.remove().await;
}

const INSERT: &str = "INSERT INTO notes (id) VALUES ($1) RETURNING id";

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_with_its_commit_gives_rows_and_commits_all_statements_before_it() {
    both(|store| async move {
        let written: Result<i64, StoreError> = store
            .write(async move |tx: &mut Tx| {
                let rows = tx.query_with_commit(INSERT, params![1]).await?;
                let next = tx.execute("INSERT INTO notes (id) VALUES ($1)", params![9]).await;
                assert_eq!(next, Err(StoreError::Misuse(AFTER_THE_LAST)));
                rows[0].get(0)
            })
            .await;
        // On both engines a statement after the last one is a mistake of ours.
        assert!(written.is_err(), "{written:?}");
        for id in [2, 4] {
            let written: Result<i64, StoreError> = store
                .write(async move |tx: &mut Tx| {
                    tx.execute("INSERT INTO notes (id) VALUES ($1)", params![id]).await?;
                    tx.query_with_commit(INSERT, params![id + 1]).await?[0].get(0)
                })
                .await;
            assert_eq!(written, Ok(id + 1));
        }
        let alone: Result<i64, StoreError> = store
            .write(async move |tx: &mut Tx| tx.query_with_commit(INSERT, params![6]).await?[0].get(0))
            .await;
        assert_eq!(alone, Ok(6));
        assert_eq!(ids(&store).await.iter().filter(|id| **id > 1).count(), 5);
    })
    .await;
}

/// The error of a statement after [`Tx::query_with_commit`].
const AFTER_THE_LAST: &str = "a statement followed the last one of its transaction";

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_fails_with_its_commit_undoes_the_transaction() {
    both(|store| async move {
        insert(&store, 1).await.unwrap();
        for before in [None, Some(2)] {
            let written: Result<(), StoreError> = store
                .write(async move |tx: &mut Tx| {
                    if let Some(id) = before {
                        tx.execute("INSERT INTO notes (id) VALUES ($1)", params![id]).await?;
                    }
                    tx.query_with_commit(INSERT, params![1]).await.map(drop)
                })
                .await;
            assert!(written.as_ref().is_err_and(|error| error.is_unique("notes(id)")), "{written:?}");
            assert_eq!(ids(&store).await, [1]);
        }
        insert(&store, 3).await.unwrap();
        assert_eq!(store.stats().committed, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_without_a_statement_is_committed() {
    both(|store| async move {
        let empty: Result<(), StoreError> = store.write(async |_: &mut Tx| Ok(())).await;
        assert_eq!(empty, Ok(()));
        let refused: Result<(), StoreError> = store.write(async |_: &mut Tx| Err(StoreError::NoRow)).await;
        assert_eq!(refused, Err(StoreError::NoRow));
        insert(&store, 1).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_may_be_the_first_statement() {
    both(|store| async move {
        let written: Result<(), StoreError> = store
            .write(async move |tx: &mut Tx| {
                let failed = tx
                    .attempt(async |tx: &mut Tx| {
                        tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await?;
                        Err::<(), _>(StoreError::NoRow)
                    })
                    .await?;
                assert_eq!(failed, Err(StoreError::NoRow));
                tx.execute("INSERT INTO notes (id) VALUES ($1)", params![2]).await.map(drop)
            })
            .await;
        assert_eq!((written, ids(&store).await), (Ok(()), vec![2]));
    })
    .await;
}
