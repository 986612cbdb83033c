//! Durable commits per second on SQLite by concurrent writers, with the syncs they shared, and a point
//! look-up's time.
//!
//!     cargo bench -p store
//!
//! The same with an archived log, whose segments a thread copies elsewhere, and on PostgreSQL if
//! `STAGEDOOR_TEST_DATABASE_URL` is set. A row is about 300 bytes, its key grows with time.
#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use store::log_archive::{LogArchive, LogArchiving};
use store::testing::{self, Fresh};
use store::{Migration, Options, Store, StoreError, Tx, params};

const RUN: Duration = Duration::from_secs(3);

const TABLES: &[Migration] = &[Migration {
    version: 1,
    name: "chat",
    sql: "CREATE TABLE chat (id BIGINT PRIMARY KEY, channel TEXT NOT NULL, body TEXT NOT NULL)",
}];

#[tokio::main]
async fn main() {
    // Twice, in turns, because a machine is never equally fast.
    for _ in 0..2 {
        measure(testing::sqlite(), None).await;
        let now = Arc::new(|| {
            let ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
            Timestamp::from_millis(ms as i64)
        });
        let archiving = LogArchiving { every: Duration::from_secs(5), spool_bytes_max: u64::MAX / 2, now };
        measure(testing::sqlite(), Some(archiving)).await;
    }
    if std::env::var(testing::DATABASE_URL).is_ok() {
        measure(testing::postgres().await, None).await;
    }
}

async fn measure(engine: Fresh, log_archiving: Option<LogArchiving>) {
    let kind = if log_archiving.is_some() { " archived" } else { "" };
    let options = Options { migrations: TABLES, log_archiving, ..Options::default() };
    let store = Store::open(engine.target(), options).await.expect("the store opens");
    let (stop, stopped) = mpsc::channel();
    let archiver =
        store.log_archive().map(|archive| std::thread::spawn(move || archive_all(&archive, &stopped)));
    let next = Arc::new(AtomicI64::new(0));
    for writers in [1, 16, 256] {
        let before = store.stats();
        let mut times = concurrently(writers, |until| writer(store.clone(), next.clone(), until)).await;
        let after = store.stats();
        let commits = after.committed - before.committed;
        let syncs = after.syncs - before.syncs;
        println!(
            "{}{kind} {writers} writers: {:.0} durable commits/s in {syncs} syncs ({:.1} each), {}",
            engine.name(),
            commits as f64 / RUN.as_secs_f64(),
            commits as f64 / syncs as f64,
            percentiles(&mut times),
        );
    }
    for readers in [1, 16] {
        let rows = next.load(Ordering::Relaxed);
        let mut times = concurrently(readers, |until| reader(store.clone(), rows, until)).await;
        let per_second = times.len() as f64 / RUN.as_secs_f64();
        println!(
            "{}{kind} {readers} readers: {per_second:.0} point look-ups/s, {}",
            engine.name(),
            percentiles(&mut times)
        );
    }
    store.close().await;
    drop(stop);
    if let Some(archiver) = archiver.map(|thread| thread.join().expect("it ends")) {
        println!("{}{kind}: {} segments, {} MiB", engine.name(), archiver.0, archiver.1);
    }
    engine.remove().await;
}

/// Copies segments into another folder once a second. Gives their number and their size in MiB.
fn archive_all(archive: &LogArchive, stopped: &Receiver<()>) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    archive.begin("bench");
    let (mut count, mut bytes) = (0, 0);
    loop {
        let is_over = stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Disconnected);
        for segment in archive.segments().expect("the spool") {
            let to = folder.path().join(count.to_string());
            std::fs::copy(&segment.path, &to).expect("copied");
            File::open(&to).and_then(|file| file.sync_all()).expect("synced");
            archive.remove(&segment).expect("deleted");
            (count, bytes) = (count + 1, bytes + segment.bytes);
        }
        if is_over {
            return (count, bytes >> 20);
        }
    }
}

/// Runs that many tasks at once until the time is up, and gives all the times they took.
async fn concurrently<F>(tasks: usize, task: impl Fn(Instant) -> F) -> Vec<Duration>
where
    F: Future<Output = Vec<Duration>> + Send + 'static,
{
    let until = Instant::now() + RUN;
    let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(task(until))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("it runs to its end"));
    }
    times
}

async fn writer(store: Store, next: Arc<AtomicI64>, until: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    while Instant::now() < until {
        let id = next.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let inserted: Result<u64, StoreError> = store
            .write(async move |tx: &mut Tx| {
                let insert = "INSERT INTO chat (id, channel, body) VALUES ($1, $2, $3)";
                tx.execute(insert, params![id, "channel", "x".repeat(260)]).await
            })
            .await;
        inserted.expect("the row is inserted");
        times.push(begun.elapsed());
    }
    times
}

async fn reader(store: Store, rows: i64, until: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut seed = 1_u64;
    while Instant::now() < until {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = (seed >> 33) as i64 % rows;
        let begun = Instant::now();
        let found: Result<usize, StoreError> = store
            .read(async move |tx: &mut Tx| {
                let row = tx.query_one("SELECT body FROM chat WHERE id = $1", params![id]).await?;
                Ok(row.get::<&str>(0)?.len())
            })
            .await;
        assert_eq!(found, Ok(260));
        times.push(begun.elapsed());
    }
    times
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    format!("p50 {:?}, p99 {:?}", at(0.5), at(0.99))
}
