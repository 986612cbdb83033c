//! Archives of the log of a SQLite store: what is restored from them, and what they notice.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use backup::BackupError;
use backup::archive::{
    ArchivePlace, ArchiveSettings, Archiver, ListedGeneration, RestoredArchive, list_archive, restore_archive,
};
use domain::Timestamp;
use store::log_archive::LogArchiving;
use store::{Migration, Options, Store, StoreError, Target, Tx, params};
use tempfile::TempDir;

use super::quiet;

const TABLES: &[Migration] = &[Migration {
    version: 1,
    name: "tables of the tests",
    sql: "CREATE TABLE notes (id BIGINT PRIMARY KEY, body TEXT NOT NULL);",
}];
/// 2026-11-26T12:00:00Z
const BEGIN_MS: i64 = 1_795_694_400_000;
const DAY_MS: i64 = 86_400_000;
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// A store with an archive beside it. Its clock goes on by a millisecond at each look.
struct World {
    folder: TempDir,
    clock: Arc<AtomicI64>,
    spool_bytes_max: u64,
}

struct Running {
    store: Store,
    archiver: Archiver,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self { folder, clock: Arc::new(AtomicI64::new(BEGIN_MS)), spool_bytes_max: 1 << 30 }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("stagedoor.db")
    }

    fn place(&self) -> ArchivePlace {
        ArchivePlace::Folder(self.folder.path().join("place"))
    }

    fn now(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let clock = self.clock.clone();
        Arc::new(move || Timestamp::from_millis(clock.fetch_add(1, Ordering::Relaxed)))
    }

    async fn open(&self, log_archiving: Option<LogArchiving>) -> Store {
        let options = Options { migrations: TABLES, log_archiving, ..Options::default() };
        Store::open(Target::Sqlite { path: self.data() }, options).await.expect("a store")
    }

    async fn start(&self) -> Running {
        let (every, spool_bytes_max) = (Duration::from_millis(50), self.spool_bytes_max);
        let store = self.open(Some(LogArchiving { every, spool_bytes_max, now: self.now() })).await;
        let settings = ArchiveSettings {
            place: self.place(),
            base_every: 24 * HOUR,
            keep: 48 * HOUR,
            spool_bytes_max,
            version: "1.0.0",
            now: self.now(),
            random: Arc::new(|| 7),
            on_outcome: Arc::new(|_| {}),
        };
        let log = store.log_archive().expect("an archived log");
        Running { store, archiver: Archiver::start(log, settings) }
    }

    async fn listed(&self) -> Vec<ListedGeneration> {
        list_archive(&self.place()).await.expect("a list")
    }

    /// Waits until the archive has this many bases.
    async fn bases(&self, count: usize) {
        let wait = async {
            while self.listed().await.iter().map(|each| each.bases.len()).sum::<usize>() < count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the bases");
    }

    async fn restore(
        &self,
        name: &str,
        at: Option<Timestamp>,
    ) -> Result<(RestoredArchive, PathBuf), BackupError> {
        let to = self.folder.path().join(name).join("stagedoor.db");
        restore_archive(&self.place(), at, &to, &mut quiet).await.map(|restored| (restored, to))
    }

    /// The files of the segments, in their order.
    fn segments(&self, generation: &str) -> Vec<PathBuf> {
        let folder = self.folder.path().join("place/archive").join(generation).join("segments");
        let mut files: Vec<_> =
            fs::read_dir(folder).expect("the segments").map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }
}

impl Running {
    async fn stop(self) {
        self.store.close().await;
        self.archiver.stop(PATIENCE).await;
    }
}

async fn write(store: &Store, id: i64, body: String) {
    let written: Result<u64, StoreError> = store
        .write(async move |tx: &mut Tx| {
            let sql = "INSERT INTO notes (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = $2";
            tx.execute(sql, params![id, body]).await
        })
        .await;
    assert_eq!(written, Ok(1));
}

async fn rows(store: &Store) -> Vec<(i64, String)> {
    let rows: Result<Vec<_>, StoreError> = store
        .read(async |tx: &mut Tx| {
            let rows = tx.query("SELECT id, body FROM notes ORDER BY id", &[]).await?;
            rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
        })
        .await;
    rows.expect("the rows")
}

async fn rows_of(path: &Path) -> Vec<(i64, String)> {
    let options = Options { migrations: TABLES, ..Options::default() };
    let store = Store::open(Target::Sqlite { path: path.to_owned() }, options).await.expect("the store");
    let found = rows(&store).await;
    store.close().await;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_restored_row_for_row_after_many_checkpoints_beside_a_base() {
    let world = World::new();
    let running = world.start().await;
    let stop = Arc::new(AtomicBool::new(false));
    // Every page is written again and again, in the log and by checkpoints, while the base is copied.
    let writers: Vec<_> = (0..4_i64)
        .map(|writer| {
            let (store, stop) = (running.store.clone(), stop.clone());
            tokio::spawn(async move {
                for round in 0_i64.. {
                    if round >= 2_500 && stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let id = (round * 7_919 + writer) % 3_000;
                    write(&store, id, format!("{writer} {round} {}", "x".repeat(4_000))).await;
                }
            })
        })
        .collect();
    world.bases(1).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("a writer ends");
    }
    let expected = rows(&running.store).await;
    running.stop().await;
    let listed = world.listed().await;
    assert_eq!(listed.len(), 1, "the generation had no gap: {listed:?}");
    assert!(listed[0].segments > 5, "{listed:?}");
    let (restored, path) = world.restore("restored", None).await.expect("restored");
    assert_eq!(Some(restored.until), listed[0].reaches.map(|(_, last)| last));
    assert_eq!(rows_of(&path).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_time_is_restored_as_it_was_and_nothing_is_skipped_silently() {
    let world = World::new();
    let running = world.start().await;
    write(&running.store, 0, "0".to_owned()).await;
    world.bases(1).await;
    let mut times = Vec::new();
    for id in 1..=4 {
        write(&running.store, id, id.to_string()).await;
        running.store.log_archive().expect("archived").copy();
        times.push(Timestamp::from_millis(world.clock.load(Ordering::Relaxed)));
    }
    let generation = world.listed().await[0].name.clone();
    running.stop().await;
    for (written, at) in times.iter().enumerate() {
        let (restored, path) = world.restore(&format!("at-{written}"), Some(*at)).await.expect("restored");
        assert!(restored.until <= *at && restored.complete_until <= restored.until);
        let ids: Vec<_> = rows_of(&path).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, (0..=written as i64 + 1).collect::<Vec<_>>(), "{at:?}");
    }
    let early = world.restore("early", Some(Timestamp::from_millis(BEGIN_MS - 1))).await.unwrap_err();
    assert!(early.to_string().contains("begins at"), "{early}");
    let again = world.restore("at-0", None).await.unwrap_err();
    assert!(again.to_string().contains("is there already"), "{again}");

    // A changed byte, and a missing file. The times before can be reached.
    let segments = world.segments(&generation);
    let victim = &segments[segments.len() - 2];
    let whole = fs::read(victim).expect("a segment");
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(victim, bytes).expect("written");
    let damaged = world.restore("damaged", None).await.unwrap_err().to_string();
    assert!(damaged.contains("is damaged") && damaged.contains("last time that can be reached"), "{damaged}");
    fs::remove_file(victim).expect("deleted");
    let missing = world.restore("missing", None).await.unwrap_err().to_string();
    assert!(missing.contains("is missing: the last time that can be reached is 2026-"), "{missing}");
    assert!(!world.folder.path().join("missing/stagedoor.db").exists());
    world.restore("before", Some(times[0])).await.expect("a time before the gap");
    fs::write(victim, &whole).expect("written");
    world.restore("whole", None).await.expect("whole again");

    // A base that is not what its description says.
    let base = world.folder.path().join("place/archive").join(&generation).join("bases");
    let base = fs::read_dir(base).expect("bases").next().expect("one").expect("one").path();
    let file = base.join("stagedoor.db");
    let mut bytes = fs::read(&file).expect("the base");
    bytes[100] ^= 1;
    fs::write(&file, bytes).expect("written");
    let damaged = world.restore("base", None).await.unwrap_err().to_string();
    assert!(damaged.contains("stagedoor.db is damaged"), "{damaged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_and_a_log_that_was_overwritten_unseen_begins_a_generation() {
    let world = World::new();
    let running = world.start().await;
    write(&running.store, 1, "first".to_owned()).await;
    world.bases(1).await;
    running.stop().await;
    let running = world.start().await;
    write(&running.store, 2, "after a restart".to_owned()).await;
    let expected = rows(&running.store).await;
    running.stop().await;
    assert_eq!(world.listed().await.len(), 1, "the log goes on, so the generation does");
    let (_, path) = world.restore("one", None).await.expect("restored");
    assert_eq!(rows_of(&path).await, expected);

    // Without archiving the log is emptied at the end.
    let store = world.open(None).await;
    write(&store, 3, "unseen".to_owned()).await;
    store.close().await;
    let running = world.start().await;
    world.bases(2).await;
    let expected = rows(&running.store).await;
    running.stop().await;
    assert_eq!(world.listed().await.len(), 2);
    let (_, path) = world.restore("two", None).await.expect("restored");
    assert_eq!(rows_of(&path).await, expected);

    // Another program may have written and deleted the log, and the store was restored from somewhere.
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", world.data().display()));
    }
    let running = world.start().await;
    world.bases(3).await;
    running.stop().await;
    assert_eq!(world.listed().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_away_stops_nothing_and_a_full_spool_begins_a_generation() {
    let world = World { spool_bytes_max: 4 << 20, ..World::new() };
    let running = world.start().await;
    world.bases(1).await;
    let (place, away) = (world.folder.path().join("place"), world.folder.path().join("away"));
    fs::rename(&place, &away).expect("moved");
    fs::write(&place, "no folder").expect("written");
    write(&running.store, 1, "while the place is away".to_owned()).await;
    let log = running.store.log_archive().expect("archived");
    log.copy();
    assert!(log.spool_bytes() > 0);
    fs::remove_file(&place).expect("deleted");
    fs::rename(&away, &place).expect("moved back");
    let wait = async {
        while log.spool_bytes() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the spool is brought");
    assert_eq!(world.listed().await.len(), 1, "nothing was lost");

    fs::rename(&place, &away).expect("moved");
    fs::write(&place, "no folder").expect("written");
    for id in 0..2_000 {
        write(&running.store, id, "y".repeat(4_000)).await;
    }
    log.copy();
    assert_eq!(log.state(), None, "the generation has ended");
    fs::remove_file(&place).expect("deleted");
    fs::rename(&away, &place).expect("moved back");
    world.bases(2).await;
    let expected = rows(&running.store).await;
    running.stop().await;
    assert_eq!(world.listed().await.len(), 2);
    let (_, path) = world.restore("restored", None).await.expect("restored");
    assert_eq!(rows_of(&path).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_bases_and_segments_are_deleted_and_the_last_days_can_be_reached() {
    let world = World::new();
    let running = world.start().await;
    let mut days = Vec::new();
    for day in 1..=5 {
        world.bases(if day > 3 { 3 } else { day }).await;
        let newest = |listed: &[ListedGeneration]| listed[0].bases.last().map(|base| base.until.clone());
        let before = newest(&world.listed().await);
        write(&running.store, day as i64, "z".repeat(4_000)).await;
        running.store.log_archive().expect("archived").copy();
        days.push(Timestamp::from_millis(world.clock.load(Ordering::Relaxed)));
        world.clock.fetch_add(DAY_MS, Ordering::Relaxed);
        let wait = async {
            while newest(&world.listed().await) == before {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the base of a day");
    }
    let wait = async {
        while world.listed().await[0].bases.len() > 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("old bases are deleted");
    running.stop().await;
    let listed = world.listed().await;
    assert_eq!((listed.len(), listed[0].bases.len()), (1, 3), "{listed:?}");
    let early = world.restore("early", Some(days[0])).await.unwrap_err().to_string();
    assert!(early.contains("begins at"), "{early}");
    for day in [4, 5] {
        let (_, path) = world.restore(&format!("day-{day}"), Some(days[day - 1])).await.expect("restored");
        assert_eq!(rows_of(&path).await.len(), day);
    }
}
