//! Pages of the live list with 50,000 lives, each of which changed its viewer count 15 times, while counts go
//! on changing.
//!
//!     cargo bench -p store --bench lives
//!
//! The same on PostgreSQL if `STAGEDOOR_TEST_DATABASE_URL` is set. Small counts are the most frequent, so
//! that ties are long.
#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::{ChannelId, Timestamp};
use store::queries::channels::ChannelRecord;
use store::queries::lives::{LiveListing, LiveOnAir, LivePlace, LiveShow, LiveVersions};
use store::testing::{self, Fresh};
use store::{Options, Store, StoreError, Tx, Value};

const LIVES: i64 = 50_000;
const CHANGES_EACH: i64 = 15;
const PAGES: usize = 2_000;
const PAGE: i64 = 21;
const WRITERS: u64 = 4;

/// One of the rounds that came before, each of which gave every live another count.
const PAST: &str = "
    INSERT INTO live_spans (live_id, viewer_rank, since_version, until_version, closed_at)
    SELECT live_id, -(hash * hash / 10), n * lives + live_id, (n + 1) * lives + live_id, 1
    FROM (SELECT live_id, (live_id * 7919 + CAST($2 AS BIGINT) * 3571) % 100 AS hash, CAST($1 AS BIGINT) AS lives,
            CAST($2 AS BIGINT) AS n
          FROM lives WHERE live_id > $3 AND live_id <= CAST($3 AS BIGINT) + 2000) l";

#[tokio::main]
async fn main() {
    measure(testing::sqlite()).await;
    if std::env::var(testing::DATABASE_URL).is_ok() {
        measure(testing::postgres().await).await;
    }
}

async fn measure(engine: Fresh) {
    let store = engine.open(Options::default()).await;
    fill(&store).await;
    for churning in [false, true] {
        let churn = Churn::begin(&store, if churning { WRITERS } else { 0 });
        for (what, deep, rounds_ago) in
            [("page 0", false, 0), ("a page deep in a walk", true, 0), ("and in one 3 rounds old", true, 3)]
        {
            let version = (CHANGES_EACH - rounds_ago + 1) * LIVES;
            let versions = LiveVersions::parse(&version.to_string()).expect("one number");
            let mut times = Vec::with_capacity(PAGES);
            for n in 0..PAGES {
                // All over the list, most of which has few viewers.
                let after = LivePlace {
                    versions: versions.clone(),
                    concurrent_user_count: (n as i64 * 7) % 300,
                    live_id: (n as i64 * 7_919) % LIVES,
                };
                let begun = Instant::now();
                let page = read(&store, deep.then_some(after)).await;
                times.push(begun.elapsed());
                assert!(page.len() as i64 == PAGE, "a full page");
            }
            println!("{} churning {churning}: {what}: {}", engine.name(), percentiles(&mut times));
        }
        println!("{} churning {churning}: {:.0} changes/s", engine.name(), churn.end().await);
    }
    store.close().await;
    engine.remove().await;
}

async fn read(store: &Store, after: Option<LivePlace>) -> Vec<LiveListing> {
    let page: Result<_, StoreError> = store
        .read(async move |tx: &mut Tx| match after {
            Some(place) => tx.next_lives(&place, PAGE).await,
            None => Ok(tx.first_lives(PAGE).await?.lives),
        })
        .await;
    page.expect("a page")
}

fn channel(n: i64) -> ChannelId {
    ChannelId::stored(format!("channel-{n:06}"))
}

fn live(live_id: i64, count: i64, since: i64) -> LiveOnAir {
    let show = LiveShow {
        title: "오늘도 게임 방송합니다 👋".to_owned(),
        thumbnail_image_url: Some(format!("https://images.example/{live_id}.png")),
        concurrent_user_count: count,
        adult: false,
        category_id: None,
        tags: vec!["게임".to_owned(), "한국어".to_owned()],
    };
    LiveOnAir { live_id, counted_since: since, show }
}

async fn fill(store: &Store) {
    for from in (0..LIVES).step_by(500) {
        let filled: Result<(), StoreError> = store
            .write(async move |tx: &mut Tx| {
                for n in from + 1..=from + 500 {
                    begin(tx, n).await?;
                }
                Ok(())
            })
            .await;
        filled.expect("lives");
    }
    for round in 0..CHANGES_EACH {
        for from in (0..LIVES).step_by(2_000) {
            execute(store, PAST, vec![LIVES, round, from]).await;
        }
    }
    execute(
        store,
        "UPDATE live_clocks SET version = $1 + clock_id",
        vec![(CHANGES_EACH + 2) * LIVES / 32 * 32],
    )
    .await;
    for analyze in ["ANALYZE channels", "ANALYZE lives", "ANALYZE live_spans"] {
        execute(store, analyze, vec![]).await;
    }
}

async fn execute(store: &Store, sql: &'static str, numbers: Vec<i64>) {
    let done: Result<u64, StoreError> = store
        .write(async move |tx: &mut Tx| {
            let params: Vec<_> = numbers.into_iter().map(Value::from).collect();
            tx.execute(sql, &params).await
        })
        .await;
    done.expect("a past");
}

async fn begin(tx: &mut Tx, n: i64) -> Result<(), StoreError> {
    let now = Timestamp::from_millis(1);
    let record = ChannelRecord {
        channel_id: channel(n),
        name: format!("채널 {n}"),
        image_url: None,
        verified_mark: false,
        real_name_verified: false,
    };
    tx.put_channel(&record, now).await?;
    let hash = n * 7_919 % 100;
    let (count, since) = (hash * hash / 10, CHANGES_EACH * LIVES + n);
    tx.begin_live(&channel(n), &live(n, count, since), now).await?;
    tx.open_live_span(n, count, since).await
}

/// Writers that give lives other counts until a flag stops them.
struct Churn {
    stop: Arc<AtomicBool>,
    changes: Arc<AtomicU64>,
    begun: Instant,
    writers: Vec<tokio::task::JoinHandle<()>>,
}

impl Churn {
    fn begin(store: &Store, writers: u64) -> Self {
        let (stop, changes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = |seed| {
            let (store, stop, changes) = (store.clone(), stop.clone(), changes.clone());
            tokio::spawn(async move {
                let mut random: u64 = seed;
                while !stop.load(Ordering::Relaxed) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed * 2 + 1);
                    let (n, count) = ((random >> 33) as i64 % LIVES + 1, (random >> 50) as i64 % 300);
                    change(&store, n, count).await.expect("a change");
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        Self { writers: (0..writers).map(writer).collect(), begun: Instant::now(), stop, changes }
    }

    async fn end(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.await.expect("it runs to its end");
        }
        self.changes.load(Ordering::Relaxed) as f64 / self.begun.elapsed().as_secs_f64()
    }
}

async fn change(store: &Store, n: i64, count: i64) -> Result<(), StoreError> {
    store
        .write(async move |tx: &mut Tx| {
            let version = tx.next_live_version().await?;
            let before = tx.live_on_air(&channel(n)).await?.ok_or(StoreError::NoRow)?;
            tx.close_live_span(n, before.counted_since, version, Timestamp::from_millis(1)).await?;
            tx.open_live_span(n, count, version).await?;
            tx.change_live(&channel(n), &live(n, count, version)).await
        })
        .await
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    format!("p50 {:?}, p99 {:?}, most {:?}", at(0.5), at(0.99), times.last().copied().unwrap_or_default())
}
