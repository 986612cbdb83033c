//! SQLite's shared commits.

use std::sync::mpsc;

use store::{Options, Store, StoreError, Tx, params};
use tokio::task::JoinHandle;

use crate::{Held, both, eventually, ids, insert, let_go, options, within};

fn spawn_insert(store: &Store, id: i64) -> JoinHandle<Result<(), StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { insert(&store, id).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_writes_share_one_sync() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(options()).await;
    let held = Held::start(&store, 0).await;
    let writes: Vec<_> = (1..=50).map(|id| spawn_insert(&store, id)).collect();
    eventually(|| store.stats().waiting == 50).await;
    held.release().await.unwrap();
    for write in writes {
        within(write).await.unwrap().unwrap();
    }
    let stats = store.stats();
    assert_eq!((stats.committed, stats.syncs, stats.largest_batch, stats.waiting), (51, 1, 51, 0));
    // And a lone one does not wait for company.
    insert(&store, 100).await.unwrap();
    assert_eq!(store.stats().syncs, 2);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_a_batch_is_answered_before_the_commit() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(options()).await;
    let first = Held::start(&store, 1).await;
    let early = spawn_insert(&store, 2);
    eventually(|| store.stats().waiting == 1).await;
    let (last, last_runs) = Held::queue(&store, 3);
    eventually(|| store.stats().waiting == 2).await;
    first.release.send(()).unwrap();
    within(last_runs).await.unwrap();
    // The first two have run; the last one holds the commit of all three.
    assert!(!first.done.is_finished() && !early.is_finished());
    assert!(ids(&store).await.is_empty());
    last.release().await.unwrap();
    within(early).await.unwrap().unwrap();
    within(first.done).await.unwrap().unwrap();
    assert_eq!(ids(&store).await, [1, 2, 3]);
    assert_eq!(store.stats().syncs, 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_hook_is_called_when_the_commit_can_be_read() {
    both(|store| async move {
        let sql = "INSERT INTO notes (id, body) VALUES ($1, $2)";
        for id in 1..=20_i64 {
            let (sender, answer) = tokio::sync::oneshot::channel();
            let write = store.write_with_commit_hook(
                async move |tx: &mut Tx| tx.execute(sql, params![id, "committed"]).await,
                move |rows| sender.send(*rows).unwrap(),
            );
            let read = async { (answer.await, ids(&store).await) };
            let (written, (answer, read)) = tokio::join!(write, read);
            assert_eq!((written, answer, read.last()), (Ok::<_, StoreError>(1), Ok(1), Some(&id)));
        }
        let again = store.write_with_commit_hook(
            async move |tx: &mut Tx| tx.execute(sql, params![1, "again"]).await,
            |_| panic!("nothing was committed"),
        );
        let refused = again.await;
        assert!(matches!(refused, Err(StoreError::Unique { .. })), "{refused:?}");
        store.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_a_commit_hook_undoes_nothing() {
    both(|store| async move {
        let written = store.write_with_commit_hook(
            async move |tx: &mut Tx| tx.execute("INSERT INTO notes (id) VALUES (1)", &[]).await,
            |_| panic!("on purpose"),
        );
        assert_eq!(written.await, Ok::<_, StoreError>(1));
        insert(&store, 2).await.unwrap();
        assert_eq!(ids(&store).await, [1, 2]);
        store.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_hook_is_called_after_its_caller_stopped_waiting() {
    let fresh = store::testing::sqlite();
    let deadline = std::time::Duration::from_millis(50);
    let store = Store::open(fresh.target(), Options { deadline, ..options() }).await.unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (sender, answer) = tokio::sync::oneshot::channel();
    let write = store.write_with_commit_hook(
        async move |tx: &mut Tx| {
            tx.execute("INSERT INTO notes (id) VALUES (1)", &[]).await?;
            // Blocks the thread that writes, on purpose.
            let _ = released.recv();
            Ok(())
        },
        move |()| sender.send(()).unwrap(),
    );
    assert_eq!(write.await, Err(StoreError::CommitUnknown));
    release.send(()).unwrap();
    within(answer).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_in_a_batch_roll_back_only_themselves() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(options()).await;
    let held = Held::start(&store, 0).await;
    let insert_and = |id: i64, end: fn() -> Result<(), StoreError>| {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .write(async move |tx: &mut Tx| {
                    tx.execute("INSERT INTO notes (id) VALUES ($1)", params![id]).await?;
                    end()
                })
                .await
        })
    };
    let writes = [
        (insert_and(1, || Ok(())), Ok(())),
        (insert_and(2, || panic!("expected by the test")), Err(StoreError::Panicked)),
        (insert_and(3, || Err(StoreError::NoRow)), Err(StoreError::NoRow)),
        (insert_and(0, || Ok(())), Err(StoreError::Unique { constraint: "notes(id)".to_owned() })),
        (insert_and(4, || Ok(())), Ok(())),
    ];
    eventually(|| store.stats().waiting == 5).await;
    held.release().await.unwrap();
    for (write, expected) in writes {
        assert_eq!(within(write).await.unwrap(), expected);
    }
    assert_eq!(ids(&store).await, [0, 1, 4]);
    let stats = store.stats();
    assert_eq!((stats.committed, stats.rolled_back, stats.syncs), (3, 3, 1));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_first_request_of_a_batch_leaves_nothing_to_the_next() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(options()).await;
    let (release, released) = mpsc::channel();
    let (start, started) = tokio::sync::oneshot::channel();
    let writer = store.clone();
    let head = tokio::spawn(async move {
        writer
            .write(async move |tx: &mut Tx| {
                tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await?;
                let _ = start.send(());
                let_go(released).await;
                Err::<(), _>(StoreError::NoRow)
            })
            .await
    });
    within(started).await.unwrap();
    // The id of the refused one is free again, and once more behind one that was taken.
    let (same, next, taken) = (spawn_insert(&store, 1), spawn_insert(&store, 2), spawn_insert(&store, 1));
    eventually(|| store.stats().waiting == 3).await;
    release.send(()).unwrap();
    assert_eq!(within(head).await.unwrap(), Err(StoreError::NoRow));
    let outcomes = [within(same).await.unwrap(), within(next).await.unwrap(), within(taken).await.unwrap()];
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 2);
    assert_eq!(ids(&store).await, [1, 2]);
    let stats = store.stats();
    assert_eq!((stats.committed, stats.rolled_back, stats.syncs), (2, 2, 1));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_is_answered_to_every_request() {
    const ORPHAN: &str = "INSERT INTO late (parent_id) VALUES ('missing')";
    let fresh = store::testing::sqlite();
    let store = fresh.open(options()).await;
    let held = Held::start(&store, 1).await;
    let innocent = spawn_insert(&store, 2);
    let refused = spawn_insert(&store, 1);
    let writer = store.clone();
    let culprit =
        tokio::spawn(
            async move { writer.write(async move |tx: &mut Tx| tx.execute(ORPHAN, &[]).await).await },
        );
    eventually(|| store.stats().waiting == 3).await;
    assert_eq!(held.release().await, Err(StoreError::ForeignKey));
    assert_eq!(within(culprit).await.unwrap(), Err(StoreError::ForeignKey));
    assert_eq!(within(innocent).await.unwrap(), Err(StoreError::ForeignKey));
    // This one's conflict was with a row that is gone again.
    assert_eq!(within(refused).await.unwrap(), Err(StoreError::ForeignKey));
    assert!(ids(&store).await.is_empty());
    insert(&store, 1).await.unwrap();
    assert_eq!(store.stats().syncs, 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_exactly_the_answered_writes() {
    let fresh = store::testing::sqlite();
    let store = fresh.open(options()).await;
    // As full as the file is now, with little room inside it.
    store
        .write(async move |tx: &mut Tx| tx.query("PRAGMA max_page_count = 1", &[]).await)
        .await
        .map_err(|e: StoreError| e)
        .unwrap();
    let held = Held::start(&store, 1).await;
    let writer = store.clone();
    let large = tokio::spawn(async move {
        let sql = "INSERT INTO notes (id, body) VALUES ($1, $2)";
        writer.write(async move |tx: &mut Tx| tx.execute(sql, params![2, "x".repeat(1 << 20)]).await).await
    });
    eventually(|| store.stats().waiting == 1).await;
    let small = spawn_insert(&store, 3);
    eventually(|| store.stats().waiting == 2).await;
    let mut answered = Vec::new();
    if held.release().await.is_ok() {
        answered.push(1);
    }
    let error = within(large).await.unwrap().unwrap_err();
    assert!(error.is_outage(), "{error:?}");
    if within(small).await.unwrap().is_ok() {
        answered.push(3);
    }
    assert_eq!(ids(&store).await, answered);
    store
        .write(async move |tx: &mut Tx| tx.query("PRAGMA max_page_count = 100000", &[]).await)
        .await
        .map_err(|e: StoreError| e)
        .unwrap();
    insert(&store, 4).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_queue_refuses_at_once_and_accepted_requests_run() {
    let options = Options { queue_cap: 4, ..options() };
    store::testing::both_with(options, |store| async move {
        let held = Held::start(&store, 0).await;
        let writes: Vec<_> = (1..=10).map(|id| spawn_insert(&store, id)).collect();
        // On PostgreSQL the one under way takes a place too, and the others need not wait for it.
        eventually(|| {
            store.stats().busy >= 1 && writes.iter().all(|w| w.is_finished() || store.stats().waiting > 0)
        })
        .await;
        held.release().await.unwrap();
        let mut expected = vec![0];
        for (id, write) in (1..=10).zip(writes) {
            match within(write).await.unwrap() {
                Ok(()) => expected.push(id),
                Err(error) => assert!(matches!(error, StoreError::Busy(_)), "{error:?}"),
            }
        }
        assert!((2..11).contains(&expected.len()), "some were accepted, some refused: {expected:?}");
        assert_eq!(ids(&store).await, expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_past_the_deadline_is_refused_and_never_runs() {
    let fresh = store::testing::sqlite();
    let store = Store::open(fresh.target(), options()).await.unwrap();
    let held = Held::start(&store, 1).await;
    let late = store::testing::while_running(std::time::Duration::from_secs(3), insert(&store, 2)).await;
    assert!(matches!(late.expect("an answer within 3 s"), Err(StoreError::Busy(_))));
    // The caller of the held write has the same deadline. The write is released only after that.
    eventually(|| held.done.is_finished()).await;
    assert_eq!(held.release().await, Err(StoreError::CommitUnknown));
    insert(&store, 3).await.unwrap();
    assert_eq!(ids(&store).await, [1, 3]);
    assert_eq!(store.stats().busy, 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn closing_finishes_accepted_requests_and_refuses_the_rest() {
    both(|store| async move {
        let held = Held::start(&store, 0).await;
        let writes: Vec<_> = (1..=5).map(|id| spawn_insert(&store, id)).collect();
        let all = |store: &Store| store.stats().waiting + store.stats().committed as usize;
        eventually(|| all(&store) == 5).await;
        held.release.send(()).unwrap();
        store.close().await;
        within(held.done).await.unwrap().unwrap();
        for write in writes {
            within(write).await.unwrap().unwrap();
        }
        for outcome in
            [insert(&store, 6).await, store.read(async move |_: &mut Tx| async { Ok(()) }.await).await]
        {
            assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
        }
        assert_eq!(store.stats().committed, 6);
        store.close().await;
    })
    .await;
}
