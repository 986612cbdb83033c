//! An outage of PostgreSQL: an error within 3 s, and no restart afterwards.

use std::time::Duration;

use store::testing::{Fresh, Network, Wire, postgres, while_running};
use store::{Contention, Options, Store, StoreError, Target, Tx, params};

use crate::{ids, insert, options, within};

/// A store whose every connection goes over a wire.
async fn over_a_wire() -> (Fresh, Wire, Store) {
    let fresh = postgres().await;
    let wire = Wire::to(&fresh).await;
    let options = Options { postgres_connections: 4, postgres_read_connections: 2, ..options() };
    let store = Store::open(Target::Postgres { url: wire.url().into() }, options).await.unwrap();
    (fresh, wire, store)
}

async fn read(store: &Store) -> Result<i64, StoreError> {
    store.read(async move |tx: &mut Tx| tx.query_one("SELECT COUNT(*) FROM notes", &[]).await?.get(0)).await
}

async fn survives(outage: Network) {
    let (fresh, wire, store) = over_a_wire().await;
    insert(&store, 1).await.unwrap();
    assert_eq!(read(&store).await, Ok(1));

    wire.set(outage);
    let limit = Duration::from_secs(3);
    for _ in 0..2 {
        let both = async { tokio::join!(insert(&store, 2), read(&store)) };
        let (write, read) = while_running(limit, both).await.expect("errors within 3 s");
        assert!(write.as_ref().is_err_and(StoreError::is_outage), "{write:?}");
        assert!(read.as_ref().is_err_and(StoreError::is_outage), "{read:?}");
    }

    wire.set(Network::Up);
    // Connections that died unnoticed are thrown away by use, each once.
    within(async { while insert(&store, 3).await.is_err() {} }).await;
    within(async { while read(&store).await.is_err() {} }).await;
    for id in 4..30 {
        insert(&store, id).await.unwrap();
    }
    assert!(!ids(&store).await.contains(&2));
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_its_connections_is_an_error_within_3_s_and_is_found_again() {
    survives(Network::Down).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_an_error_within_3_s_and_is_found_again() {
    survives(Network::Silent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_backend_fails_its_own_request_alone() {
    const SUICIDE: &str = "SELECT pg_terminate_backend(CAST(pg_backend_pid() AS INTEGER))";
    let fresh = postgres().await;
    let store = fresh.open(options()).await;
    let outcome: Result<(), StoreError> = store
        .write(async move |tx: &mut Tx| {
            tx.execute("INSERT INTO notes (id) VALUES ($1)", params![1]).await?;
            tx.query(SUICIDE, &[]).await?;
            Ok(())
        })
        .await;
    assert!(outcome.as_ref().is_err_and(StoreError::is_outage), "{outcome:?}");
    let outcome = store.read(async move |tx: &mut Tx| tx.query(SUICIDE, &[]).await).await;
    assert!(outcome.as_ref().is_err_and(StoreError::is_outage), "{outcome:?}");
    assert!(ids(&store).await.is_empty());
    for id in 2..20 {
        insert(&store, id).await.unwrap();
    }
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_stops_a_statement_that_takes_too_long() {
    const SLOW: &str = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT pg_sleep(10)) AS slow";
    let fresh = postgres().await;
    let store = Store::open(fresh.target(), options()).await.unwrap();
    let slow = store.read(async move |tx: &mut Tx| tx.query(SLOW, &[]).await);
    let slow = while_running(Duration::from_secs(3), slow).await.expect("an answer within 3 s");
    // Not by the deadline of the store: the server has stopped working on the statement.
    assert_eq!(slow, Err(Contention::StatementTimeout.into()));
    assert_eq!(read(&store).await, Ok(0));
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_writes_is_read_only_outside_of_its_transactions() {
    // So a statement whose BEGIN failed changes nothing.
    let fresh = postgres().await;
    let store = fresh.open(options()).await;
    let shown: Result<String, StoreError> = store
        .write(async move |tx: &mut Tx| {
            tx.execute("INSERT INTO notes (id) VALUES (1)", &[]).await?;
            tx.query_one("SELECT current_setting('default_transaction_read_only')", &[]).await?.get(0)
        })
        .await;
    assert_eq!(shown.as_deref(), Ok("on"));
    assert_eq!(ids(&store).await, [1]);
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_a_statement_with_its_commit_leaves_the_commit_unknown() {
    let (fresh, wire, store) = over_a_wire().await;
    insert(&store, 1).await.unwrap();
    wire.set(Network::LosesCommits);
    let outcome: Result<(), StoreError> = store
        .write(async move |tx: &mut Tx| {
            tx.query_with_commit("INSERT INTO notes (id) VALUES (2)", &[]).await.map(drop)
        })
        .await;
    assert_eq!(outcome, Err(StoreError::CommitUnknown));
    wire.set(Network::Up);
    within(async { while ids(&store).await != [1, 2] {} }).await;
    store.close().await;
    fresh.remove().await;
}
