//! The schema's history.

use store::testing::engines;
use store::{Migration, Options, Store, StoreError, Tx};

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
            .read(async |tx: &mut Tx| {
                let sql = "SELECT COUNT(*), (SELECT COUNT(*) FROM schema_migrations WHERE applied_at > 1600000000000)
                           FROM a";
                tx.query_one(sql, &[]).await
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
async fn a_failed_migration_is_rolled_back() {
    for engine in engines().await {
        let why = refusal(Store::open(engine.target(), history(&[ONE, BROKEN]))).await;
        assert!(why.contains("migration 2 (broken)"), "{why}");
        let store = engine.open(history(&[ONE])).await;
        let table = store.read(async move |tx: &mut Tx| tx.query("SELECT id FROM c", &[]).await).await;
        assert!(matches!(table, Err(StoreError::Statement { .. })), "{table:?}");
        store.close().await;
        engine.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_nodes_start_on_one_postgres_database_at_once() {
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

/// Columns as they are in a database whose collation is a language's, with the things that hang on them.
const COLLATED: Migration = Migration {
    version: 1,
    name: "collated",
    sql: r#"
        CREATE TABLE words (word TEXT COLLATE "und-x-icu" PRIMARY KEY, kind TEXT COLLATE "und-x-icu", "odd Name" TEXT);
        CREATE TABLE uses (word TEXT COLLATE "und-x-icu" NOT NULL REFERENCES words (word) ON DELETE CASCADE);
        CREATE INDEX words_kind ON words (kind) WHERE kind IS NOT NULL;
        INSERT INTO words (word) VALUES ('b'), ('B'), ('a'), ('A'), ('a-c'), ('a_c'), ('ab'), ('Z'), ('10'), ('9');
        INSERT INTO uses (word) SELECT word FROM words;
    "#,
};
const LATER: Migration = Migration {
    version: 2,
    name: "later",
    sql: "CREATE TABLE sorted (place BIGINT, word TEXT);
          INSERT INTO sorted SELECT ROW_NUMBER() OVER (ORDER BY word), word FROM words",
};

#[tokio::test(flavor = "multi_thread")]
async fn postgres_orders_text_by_bytes_whatever_collation_its_columns_had() {
    let fresh = store::testing::postgres().await;
    let store = fresh.open(history(&[COLLATED])).await;
    // As an older release left it.
    const BACK: &str = r#"ALTER TABLE words ALTER COLUMN word TYPE TEXT COLLATE "und-x-icu""#;
    let undone = store.write(async move |tx: &mut Tx| tx.execute(BACK, &[]).await).await;
    undone.unwrap_or_else(|error: StoreError| panic!("{error}"));
    store.close().await;
    let store = fresh.open(history(&[COLLATED, LATER])).await;
    let words = |sql: &'static str| {
        let rows = store.read(async move |tx: &mut Tx| tx.query(sql, &[]).await);
        async move {
            let rows: Vec<store::Row> = rows.await.unwrap_or_else(|error: StoreError| panic!("{error}"));
            rows.iter().map(|row| row.get::<String>(0).unwrap()).collect::<Vec<_>>()
        }
    };
    let by_bytes = ["10", "9", "A", "B", "Z", "a", "a-c", "a_c", "ab", "b"];
    assert_eq!(words("SELECT word FROM words ORDER BY word").await, by_bytes);
    assert_eq!(words("SELECT word FROM uses ORDER BY word").await, by_bytes);
    assert_eq!(
        words("SELECT word FROM sorted ORDER BY place").await,
        by_bytes,
        "inside the next migration too"
    );
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_column_of_the_programs_schema_is_ordered_by_bytes_on_postgres() {
    let fresh = store::testing::postgres().await;
    let store = fresh.open(Options::default()).await;
    const COLUMNS: &str = "
        SELECT COUNT(*), COUNT(*) FILTER (WHERE collation_name = 'C') FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text'";
    let row = store.read(async move |tx: &mut Tx| tx.query_one(COLUMNS, &[]).await).await;
    let row = row.unwrap_or_else(|error: StoreError| panic!("{error}"));
    let (all, by_bytes): (i64, i64) = (row.get(0).unwrap(), row.get(1).unwrap());
    assert!(all > 30 && all == by_bytes, "{by_bytes} of {all}");
    store.close().await;
    fresh.remove().await;
}
