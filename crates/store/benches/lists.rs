//! Pages of a list of 1,000,000 followers, on SQLite and, if `STAGEDOOR_TEST_DATABASE_URL` is set, on
//! PostgreSQL: what the first page costs and what deep ones do, against `OFFSET` over the same index; what a
//! follow and an unfollow cost; and how long the migration takes that counts an older database's list.
//!
//!     cargo bench -p store --bench lists
#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::time::{Duration, Instant};

use domain::{ChannelId, Timestamp};
use store::migrate::MIGRATIONS;
use store::queries::Page;
use store::testing::{self, Fresh};
use store::{Options, SendAsyncFnOnce, Store, StoreError, Tx, params};

const FOLLOWERS: i64 = 1_000_000;
const CHUNK: i64 = 20_000;
const SIZE: i64 = 30;
const ROUNDS: usize = 400;
const WRITES: i64 = 400;

/// What pages are without blocks.
const BY_OFFSET: &str = "
    SELECT p.id, c.channel_name, p.created_at FROM (
        SELECT follower_channel_id AS id, created_at, newest_rank FROM followers WHERE channel_id = $1
        ORDER BY newest_rank, follower_channel_id LIMIT $3 OFFSET $2
    ) p JOIN channels c ON c.channel_id = p.id ORDER BY p.newest_rank, p.id";

#[tokio::main]
async fn main() {
    measure(testing::sqlite()).await;
    if std::env::var(testing::DATABASE_URL).is_ok() {
        measure(testing::postgres().await).await;
    }
}

async fn measure(engine: Fresh) {
    let name = engine.name();
    let old = engine.open(Options { migrations: &MIGRATIONS[..1], ..Options::default() }).await;
    fill(&old).await;
    old.close().await;
    let begun = Instant::now();
    let store = engine.open(Options::default()).await;
    println!("{name}: migrated {FOLLOWERS} followers in {:.1?}", begun.elapsed());
    write_some(&store, name).await;
    if let Some(url) = engine.url() {
        vacuum(&url).await;
    }
    for offset in [0, 30, 15_000, 500_010, 999_000, FOLLOWERS + 30, i64::from(i32::MAX) * SIZE] {
        let page = Page { size: SIZE, page: offset / SIZE };
        let with_blocks = sample(&store, async move |tx: &mut Tx| {
            tx.followers(&streamer(), page).await.map(|found| found.len())
        })
        .await;
        let by_offset = sample_few(&store, async move |tx: &mut Tx| {
            tx.query(BY_OFFSET, params!["0", page.offset(), SIZE]).await.map(|found| found.len())
        })
        .await;
        println!("{name}: from {offset}: {with_blocks}; by OFFSET {by_offset}");
    }
    store.close().await;
    engine.remove().await;
}

fn streamer() -> ChannelId {
    ChannelId::stored("0".to_owned())
}

fn viewer(n: i64) -> ChannelId {
    ChannelId::stored(format!("viewer-{n}"))
}

/// Channels and follows as the first release wrote them: three years of follows, in no order, with days of
/// rush in them.
async fn fill(store: &Store) {
    const CHANNEL: &str = "
        INSERT INTO channels (channel_id, channel_name, verified_mark, real_name_verified, created_at, follower_count)
        VALUES ('0', 'streamer', FALSE, FALSE, 1, CAST($1 AS BIGINT))";
    const CHANNELS: &str = "
        INSERT INTO channels (channel_id, channel_name, verified_mark, real_name_verified, created_at)
        WITH RECURSIVE numbers (n) AS (
            SELECT CAST($1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < $2
        ) SELECT 'viewer-' || n, 'name of ' || n, FALSE, FALSE, 1 FROM numbers";
    const FOLLOWS: &str = "
        INSERT INTO followers (channel_id, follower_channel_id, created_at)
        WITH RECURSIVE numbers (n) AS (
            SELECT CAST($1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < $2
        ) SELECT '0', 'viewer-' || n,
            1700000000000 + CASE WHEN n % 10 = 0 THEN n % 7 ELSE (n * 7919 % 1000003) * 94608 END FROM numbers";
    run(store, async move |tx: &mut Tx| tx.execute(CHANNEL, params![FOLLOWERS]).await.map(drop)).await;
    for sql in [CHANNELS, FOLLOWS] {
        for first in (0..FOLLOWERS).step_by(CHUNK as usize) {
            run(store, async move |tx: &mut Tx| {
                tx.execute(sql, params![first, first + CHUNK]).await.map(drop)
            })
            .await;
        }
    }
}

/// What PostgreSQL does by itself soon after a million rows were written.
async fn vacuum(url: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("it answers");
    let connection = tokio::spawn(connection);
    for table in ["followers", "list_blocks", "channels"] {
        client.batch_execute(&format!("VACUUM ANALYZE {table}")).await.expect("the test's user owns them");
    }
    drop(client);
    connection.abort();
}

/// Unfollows, follows now and follows long ago, each in a transaction of its own.
async fn write_some(store: &Store, name: &str) {
    for (what, at) in [
        ("unfollows", None),
        ("follows now", Some(2_000_000_000_000)),
        ("follows back-dated", Some(1_750_000_000_000)),
    ] {
        let begun = Instant::now();
        for n in 0..WRITES {
            run(store, async move |tx: &mut Tx| match at {
                None => {
                    tx.unfollow(&streamer(), &viewer(n)).await?;
                    tx.unfollow(&streamer(), &viewer(n + WRITES)).await.map(drop)
                }
                Some(at) => {
                    let who = viewer(if at > 1_800_000_000_000 { n } else { n + WRITES });
                    tx.follow(&streamer(), &who, Timestamp::from_millis(at + n)).await.map(drop)
                }
            })
            .await;
        }
        println!("{name}: {WRITES} {what}, {:?} each", begun.elapsed() / WRITES as u32);
    }
}

async fn run<F>(store: &Store, work: F)
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<(), StoreError>> + Send + 'static,
{
    store.write(work).await.expect("the statement succeeds");
}

async fn sample<F>(store: &Store, read: F) -> String
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<usize, StoreError>> + Copy + Send + 'static,
{
    times(store, read, ROUNDS).await
}

async fn sample_few<F>(store: &Store, read: F) -> String
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<usize, StoreError>> + Copy + Send + 'static,
{
    times(store, read, 10).await
}

async fn times<F>(store: &Store, read: F, rounds: usize) -> String
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<usize, StoreError>> + Copy + Send + 'static,
{
    let (mut times, mut rows) = (Vec::new(), 0);
    for _ in 0..rounds {
        let begun = Instant::now();
        match store.read(read).await {
            Ok(found) => rows = found,
            Err(error) => return format!("{error}"),
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(Duration::ZERO);
    format!("p50 {:.0?}, p99 {:.0?} ({rows} rows)", at(50), at(99))
}
