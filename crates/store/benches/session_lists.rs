//! Pages of a list of 300,000 sessions, on SQLite and, if `STAGEDOOR_TEST_DATABASE_URL` is set, on PostgreSQL
//! with its partitions: the first page, deep ones and the total, against `OFFSET` and `COUNT` over the same
//! rows; and what a connect costs.
//!
//!     cargo bench -p store --bench session_lists
#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::time::{Duration, Instant};

use domain::limits::{DAY_MS, DISCONNECTED_SESSION_VISIBLE_MS};
use domain::session::SessionOwner;
use domain::{ClientId, NodeId, SessionKey, Timestamp};
use store::queries::Page;
use store::testing::{self, Fresh};
use store::{Options, PartitionedTable, SendAsyncFnOnce, Store, StoreError, Tx, params};

/// Sessions of 90 days, and those of nine days before, which PostgreSQL has for so much longer.
const LISTED: i64 = 300_000;
const OLDER: i64 = 30_000;
const EVERY_MS: i64 = DISCONNECTED_SESSION_VISIBLE_MS / LISTED;
const LASTS_MS: i64 = 3 * EVERY_MS;
/// Rows of one statement that fills the tables.
const CHUNK: i64 = 10_000;
/// The last sessions come by the calls of the program, so many in a transaction.
const CALLED: i64 = 1_000;
const CALLED_AT_ONCE: i64 = 100;
const SIZE: i64 = 50;
const ROUNDS: usize = 200;
const NOW_MS: i64 = 1_795_665_600_000;

/// What pages and their total are without ordinals.
const BY_OFFSET: &str = "
    SELECT p.session_key, p.connected_at, p.disconnected_at, s.event_type, s.channel_id FROM (
        SELECT session_key, connected_at, disconnected_at FROM sessions
        WHERE client_id = 'app' AND (CASE WHEN channel_id IS NULL THEN 0 ELSE 1 END) = 0
        AND (disconnected_at IS NULL OR disconnected_at > $1)
        ORDER BY session_key DESC LIMIT $2 OFFSET $3
    ) p LEFT JOIN session_subscriptions s ON s.session_key = p.session_key
    ORDER BY p.session_key DESC, s.created_at, s.event_type, s.channel_id";
const BY_COUNT: &str = "
    SELECT COUNT(*) FROM sessions WHERE client_id = 'app' AND (CASE WHEN channel_id IS NULL THEN 0 ELSE 1 END) = 0
    AND (disconnected_at IS NULL OR disconnected_at > $1)";

#[tokio::main]
async fn main() {
    measure(testing::sqlite()).await;
    if std::env::var(testing::DATABASE_URL).is_ok() {
        measure(testing::postgres().await).await;
    }
}

async fn measure(engine: Fresh) {
    let name = engine.name();
    let store = engine.open(Options::default()).await;
    let oldest = now(-LISTED - OLDER);
    // As the upkeep of 99 days has made them.
    for day in 0..100 {
        let then = oldest.plus_ms(day * DAY_MS);
        let kept_ms = DISCONNECTED_SESSION_VISIBLE_MS;
        let kept =
            store.keep_partitions(PartitionedTable::Sessions, then, kept_ms, Duration::from_secs(10)).await;
        kept.expect("the bench alone uses the store");
    }
    fill(&store).await;
    if let Some(url) = engine.url() {
        vacuum(&url).await;
    }
    let begun = Instant::now();
    call(&store).await;
    println!("{name}: a connect, a subscription and an end, {:?}", begun.elapsed() / CALLED as u32);
    let after = now(0).plus_ms(-DISCONNECTED_SESSION_VISIBLE_MS);
    for page in [0, LISTED / SIZE / 2, LISTED / SIZE - 1, LISTED / SIZE, i64::from(i32::MAX)] {
        let page = Page { size: SIZE, page };
        let by_ordinal = sample(&store, async move |tx: &mut Tx| {
            tx.sessions_of(&owner(), after, page).await.map(|found| found.len())
        });
        let by_offset = sample(&store, async move |tx: &mut Tx| {
            tx.query(BY_OFFSET, params![after, page.size, page.offset()]).await.map(|found| found.len())
        });
        println!("{name}: page {}: {}; by OFFSET {}", page.page, by_ordinal.await, by_offset.await);
    }
    let total = sample(&store, async move |tx: &mut Tx| {
        tx.count_sessions_of(&owner(), after).await.map(|count| count as usize)
    });
    let by_count = sample(&store, async move |tx: &mut Tx| {
        tx.query(BY_COUNT, params![after])
            .await?
            .first()
            .map_or(Ok(0), |row| row.get::<i64>(0))
            .map(|count| count as usize)
    });
    println!("{name}: total: {}; by COUNT {}", total.await, by_count.await);
    store.close().await;
    engine.remove().await;
}

fn owner() -> SessionOwner {
    SessionOwner::Client { client_id: ClientId::stored("app".to_owned()) }
}

/// The time at which this many sessions have come since 0.
fn now(sessions: i64) -> Timestamp {
    Timestamp::from_millis(NOW_MS + sessions * EVERY_MS)
}

/// All sessions but the last ones, as the calls of the program would leave them. Two are still connected.
async fn fill(store: &Store) {
    const APPLICATION: &str =
        "INSERT INTO applications (client_id, name, scopes, created_at) VALUES ('app', 'app', 0, 0)";
    run(store, async move |tx: &mut Tx| tx.execute(APPLICATION, &[]).await.map(drop)).await;
    let key = SessionKey::generate(now(0), [7; 10]);
    let (_, random) = key.as_str().split_at(12);
    let hex = if store.is_remote() { "lpad(to_hex(at), 12, '0')" } else { "printf('%012x', at)" };
    let (first, last) = (-LISTED - OLDER, -CALLED - 1);
    // $1 and $2 are the first and the last number.
    let numbers = format!(
        "WITH RECURSIVE numbers (n) AS (
            SELECT CAST($1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $2
        ), sessions_of_numbers AS (
            SELECT {hex} || '{random}' AS session_key, at, n - ({first}) AS place, n
            FROM (SELECT n, {NOW_MS} + n * {EVERY_MS} AS at FROM numbers) t
        )"
    );
    let sessions = format!(
        "INSERT INTO sessions (session_key, counted_as, client_id, node_id, version, connected_at, disconnected_at,
            close_reason, ordinal, oldest_connected)
        {numbers} SELECT session_key, '{}', 'app', 'n', 0, at, CASE WHEN n < {} THEN at + {LASTS_MS} END,
            CASE WHEN n < {} THEN 'client_goodbye' END, place + 1, CASE WHEN place < 2 THEN 1 ELSE place - 1 END
        FROM sessions_of_numbers",
        owner().counted_as(),
        last - 1,
        last - 1
    );
    let subscriptions = format!(
        "INSERT INTO session_subscriptions (session_key, event_type, channel_id, client_id, family, created_at)
        {numbers} SELECT session_key, 'CHAT', 'a', 'app', 'f', 1 FROM sessions_of_numbers"
    );
    for sql in [sessions, subscriptions] {
        let sql: &str = sql.leak();
        for first in (first..=last).step_by(CHUNK as usize) {
            run(store, async move |tx: &mut Tx| {
                tx.execute(sql, params![first, last.min(first + CHUNK - 1)]).await.map(drop)
            })
            .await;
        }
    }
}

/// The last sessions. Each ends when the next but one has come.
async fn call(store: &Store) {
    const SUBSCRIPTION: &str = "
        INSERT INTO session_subscriptions (session_key, event_type, channel_id, client_id, family, created_at)
        VALUES ($1, 'CHAT', 'a', 'app', 'f', 1)";
    for first in (-CALLED..0).step_by(CALLED_AT_ONCE as usize) {
        run(store, async move |tx: &mut Tx| {
            for n in first..first + CALLED_AT_ONCE {
                let key = |n| SessionKey::generate(now(n), [7; 10]);
                tx.insert_session(&key(n), &owner(), None, &NodeId::stored("n".to_owned()), now(n)).await?;
                let ended = now(n).plus_ms(LASTS_MS - 2 * EVERY_MS);
                tx.disconnect_session(&key(n - 2), ended, "client_goodbye").await?;
                tx.execute(SUBSCRIPTION, params![&key(n)]).await?;
            }
            Ok(())
        })
        .await;
    }
}

/// What PostgreSQL does by itself soon after so many rows were written. It analyzes partitions, and not the
/// tables to which they belong.
async fn vacuum(url: &str) {
    const PARTITIONS: &str = "
        SELECT CAST(c.relname AS TEXT) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE c.relkind = 'r' AND i.inhparent IN (to_regclass('sessions'), to_regclass('session_subscriptions'))";
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("it answers");
    let connection = tokio::spawn(connection);
    for row in client.query(PARTITIONS, &[]).await.expect("the server has a catalog") {
        let name: &str = row.get(0);
        client.batch_execute(&format!("VACUUM ANALYZE {name}")).await.expect("the test's user owns it");
    }
    drop(client);
    connection.abort();
}

async fn run<F>(store: &Store, work: F)
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<(), StoreError>> + Send + 'static,
{
    store.write(work).await.expect("the bench alone uses the store");
}

/// The median of the rounds, and the rows that were found.
async fn sample<F>(store: &Store, read: F) -> String
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<usize, StoreError>> + Send + Clone + 'static,
{
    let (mut times, mut found) = (Vec::with_capacity(ROUNDS), 0);
    let until = Instant::now() + Duration::from_secs(10);
    while times.len() < ROUNDS && (times.is_empty() || Instant::now() < until) {
        let (read, begun) = (read.clone(), Instant::now());
        found = store.read(read).await.expect("the bench alone uses the store");
        times.push(begun.elapsed());
    }
    times.sort();
    format!("{:?} ({found})", times[times.len() / 2])
}
