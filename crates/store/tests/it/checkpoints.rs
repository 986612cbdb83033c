//! Checkpoints are made in parallel with writes, and the log restarts.

use std::path::Path;

use store::{Store, StoreError, Target, Tx, params};

use crate::options;

const MIB: u64 = 1024 * 1024;
/// Written altogether, in pages of which each commit fills a few.
const COMMITS: i64 = 3_000;
const BODY_BYTES: usize = 32 * 1024;

async fn fill(store: &Store, ids: std::ops::Range<i64>) {
    let body = "x".repeat(BODY_BYTES);
    for id in ids {
        let body = body.clone();
        let written = store.write(async move |tx: &mut Tx| {
            tx.execute("INSERT INTO notes (id, body) VALUES ($1, $2)", params![id, &body]).await
        });
        written.await.unwrap_or_else(|error: StoreError| panic!("{error}"));
    }
}

fn size(path: &Path, suffix: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(name).map_or(0, |file| file.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_stays_short_under_continuous_writes() {
    let fresh = store::testing::sqlite();
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let store = fresh.open(options()).await;
    let mut longest = 0;
    for from in (0..COMMITS).step_by(500) {
        fill(&store, from..from + 500).await;
        longest = longest.max(size(&path, "-wal"));
    }
    let (written, copied) = (COMMITS as u64 * BODY_BYTES as u64, size(&path, ""));
    assert!(longest < 64 * MIB && longest < written / 2, "{longest} of {written} bytes");
    assert!(copied > written / 2, "{copied} of {written} bytes are in the data file before the end");
    store.close().await;
    assert_eq!(size(&path, "-wal"), 0);
    assert!(size(&path, "") > written);
}
