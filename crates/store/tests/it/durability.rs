//! Acknowledged writes survive `kill -9`.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use store::{Store, StoreError, Target, Tx};

use crate::{ids, insert, options};

const DATA_FILE: &str = "STORE_TEST_DURABLE_WRITER_FILE";
const ACKNOWLEDGED: &str = "acknowledged ";

/// The child's part: writes until it is killed, and prints each id once it is acknowledged. In the parent's
/// test run there is nothing to do for it.
#[tokio::test(flavor = "multi_thread")]
async fn durable_writer_process() {
    let Ok(path) = std::env::var(DATA_FILE) else { return };
    let store = Store::open(Target::Sqlite { path: PathBuf::from(path) }, options()).await.unwrap();
    let next = Arc::new(AtomicI64::new(ids(&store).await.last().map_or(0, |last| last + 1)));
    let writers: Vec<_> =
        (0..16).map(|_| tokio::spawn(write_for_ever(store.clone(), next.clone()))).collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
}

async fn write_for_ever(store: Store, next: Arc<AtomicI64>) -> Result<(), StoreError> {
    loop {
        let id = next.fetch_add(1, Ordering::Relaxed);
        insert(&store, id).await?;
        // One write of a whole line: a killed process leaves no half id that reads as another.
        std::io::stdout().write_all(format!("\n{ACKNOWLEDGED}{id};\n").as_bytes()).unwrap();
    }
}

/// Kills the writer after this many acknowledgements and gives all that reached the pipe.
fn write_until_killed(path: &std::path::Path, acknowledgements: usize) -> Vec<i64> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::durable_writer_process", "--nocapture", "--test-threads=1"])
        .env(DATA_FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    let id = |line: String| line.strip_prefix(ACKNOWLEDGED)?.strip_suffix(';')?.parse::<i64>().ok();
    while acknowledged.len() < acknowledgements {
        acknowledged.extend(id(lines.next().expect("the writer goes on").unwrap()));
    }
    writer.kill().unwrap();
    acknowledged.extend(lines.map_while(Result::ok).filter_map(id));
    writer.wait().unwrap();
    acknowledged
}

#[tokio::test]
async fn every_acknowledged_write_is_found_after_kill_9() {
    let fresh = store::testing::sqlite();
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let mut acknowledged = Vec::new();
    // The count is fixed, the moment is not: the writers are anywhere in their next batches.
    for acknowledgements in [1, 40, 300, 1000, 17] {
        acknowledged.extend(write_until_killed(&path, acknowledgements));
        let store = fresh.open(options()).await;
        let found: HashSet<i64> = ids(&store).await.into_iter().collect();
        let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains(id)).collect();
        assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), acknowledged.len());
        let check =
            store.read(async move |tx: &mut Tx| tx.query_one("PRAGMA integrity_check", &[]).await).await;
        assert_eq!(check.map_err(|error: StoreError| error).unwrap().get(0), Ok("ok"));
        store.close().await;
    }
    assert!(acknowledged.len() >= 1358);
}
