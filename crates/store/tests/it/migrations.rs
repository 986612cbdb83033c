//! The schema's history.

use store::testing::engines;
use store::{Migration, Options, Store, StoreError};

const ONE: Migration =
    Migration { version: 1, name: "one", sql: "CREATE TABLE a (id BIGINT); CREATE TABLE b (id BIGINT)" };
const TWO: Migration = Migration { version: 2, name: "two", sql: "INSERT INTO a (id) VALUES (1)" };
const EDITED: Migration = Migration { version: 1, name: "one", sql: "CREATE TABLE a (id BIGINT)" };
const BROKEN: Migration =
    Migration { version: 2, name: "broken", sql: "CREATE TABLE c (id BIGINT); CREATE TABLE a (id BIGINT)" };

fn history(migrations: &'static [Migration]) -> Options {
    Options { migrations, ..Options::default() }
}

async fn refusal(opening: impl Future<Output = Result<Store, StoreError>>) -> String {
    match opening.await {
        Err(StoreError::Open(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_migration_runs_once() {
    for engine in engines().await {
        engine.open(history(&[ONE])).await.close().await;
        engine.open(history(&[ONE, TWO])).await.close().await;
        let store = engine.open(history(&[ONE, TWO])).await;
        let row = store
            .read(|tx| {
                let sql = "SELECT COUNT(*), (SELECT COUNT(*) FROM schema_migrations WHERE applied_at > 1600000000000)
                           FROM a";
                Box::pin(tx.query_one(sql, &[]))
            })
            .await
            .map_err(|error: StoreError| error)
            .unwrap();
        assert_eq!((row.get(0), row.get(1)), (Ok(1_i64), Ok(2_i64)), "{}", engine.name());
        store.close().await;
        engine.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_history_is_refused() {
    for engine in engines().await {
        engine.open(history(&[ONE, TWO])).await.close().await;
        let newer = refusal(Store::open(engine.target(), history(&[ONE]))).await;
        assert!(newer.contains("newer"), "{newer}");
        let edited = refusal(Store::open(engine.target(), history(&[EDITED, TWO]))).await;
        assert!(edited.contains("changed"), "{edited}");
        engine.open(history(&[ONE, TWO])).await.close().await;
        engine.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_fails_leaves_nothing_of_itself() {
    for engine in engines().await {
        let why = refusal(Store::open(engine.target(), history(&[ONE, BROKEN]))).await;
        assert!(why.contains("migration 2 (broken)"), "{why}");
        let store = engine.open(history(&[ONE])).await;
        let table = store.read(|tx| Box::pin(tx.query("SELECT id FROM c", &[]))).await;
        assert!(matches!(table, Err(StoreError::Statement { .. })), "{table:?}");
        store.close().await;
        engine.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_nodes_may_start_on_one_postgres_database_at_once() {
    let fresh = store::testing::postgres().await;
    let starts: Vec<_> =
        (0..6).map(|_| tokio::spawn(Store::open(fresh.target(), history(&[ONE, TWO])))).collect();
    for start in starts {
        start.await.unwrap().unwrap().close().await;
    }
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_own_schema_opens_on_both_engines() {
    for engine in engines().await {
        engine.open(Options::default()).await.close().await;
        engine.open(Options::default()).await.close().await;
        engine.remove().await;
    }
}
