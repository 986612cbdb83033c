//! Archives of the log of a SQLite store: what is restored from them, and what they notice.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use backup::BackupError;
use backup::archive::{
    ArchivePlace, ArchiveSettings, Archiver, ListedGeneration, RestoredArchive, Wanted, list_archive,
    restore_archive,
};
use domain::{StoreId, Timestamp};
use store::log_archive::{LogArchiving, SegmentName};
use store::{Migration, Options, Store, StoreError, Target, Tx, params};
use tempfile::TempDir;

use super::quiet;

const TABLES: &[Migration] = &[Migration {
    version: 1,
    name: "tables of the tests",
    sql: "CREATE TABLE notes (id BIGINT PRIMARY KEY, body TEXT NOT NULL);",
}];
/// 2026-11-26T12:00:00Z
pub(super) const BEGIN_MS: i64 = 1_795_694_400_000;
const DAY_MS: i64 = 86_400_000;
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// A store with an archive beside it. Its clock goes on by a millisecond at each look.
pub(super) struct World {
    pub folder: TempDir,
    pub clock: Arc<AtomicI64>,
    pub store_id: &'static str,
    pub place_name: &'static str,
    pub other_store: bool,
    pub spool_bytes_max: u64,
    pub every: Duration,
}

pub(super) struct Running {
    pub store: Store,
    pub archiver: Archiver,
}

impl World {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let clock = Arc::new(AtomicI64::new(BEGIN_MS));
        Self {
            folder,
            clock,
            store_id: "own",
            place_name: "place",
            other_store: false,
            spool_bytes_max: 1 << 30,
            every: Duration::from_millis(50),
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("stagedoor.db")
    }

    pub fn place(&self) -> ArchivePlace {
        ArchivePlace::Folder(self.folder.path().join(self.place_name))
    }

    pub fn now(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let clock = self.clock.clone();
        Arc::new(move || Timestamp::from_millis(clock.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::Relaxed))
    }

    async fn open(&self, log_archiving: Option<LogArchiving>) -> Store {
        let options = Options { migrations: TABLES, log_archiving, ..Options::default() };
        Store::open(Target::Sqlite { path: self.data() }, options).await.expect("a store")
    }

    pub async fn start(&self) -> Running {
        let Self { every, spool_bytes_max, .. } = *self;
        let store = self.open(Some(LogArchiving { every, spool_bytes_max, now: self.now() })).await;
        let settings = ArchiveSettings {
            place: self.place(),
            base_every: 24 * HOUR,
            keep: 48 * HOUR,
            spool_bytes_max,
            store: StoreId::stored(self.store_id.to_owned()),
            store_made_at: Timestamp::from_millis(BEGIN_MS - 300 * DAY_MS),
            other_store: self.other_store,
            version: "1.0.0",
            now: self.now(),
            random: Arc::new(|| 7),
            on_outcome: Arc::new(|_| {}),
        };
        let log = store.log_archive().expect("an archived log");
        Running { store, archiver: Archiver::start(log, settings) }
    }

    pub async fn listed(&self) -> Vec<ListedGeneration> {
        list_archive(&self.place()).await.expect("a list")
    }

    /// Waits until the archive has this many bases.
    pub async fn bases(&self, count: usize) {
        let wait = async {
            while self.listed().await.iter().map(|each| each.bases.len()).sum::<usize>() < count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the bases");
    }

    pub async fn restore(
        &self,
        name: &str,
        at: Option<Timestamp>,
    ) -> Result<(RestoredArchive, PathBuf), BackupError> {
        let to = self.folder.path().join(name).join("stagedoor.db");
        let wanted = Wanted { at, ..Wanted::default() };
        restore_archive(&self.place(), &wanted, &to, &mut quiet).await.map(|restored| (restored, to))
    }

    /// The files of the segments, in their order.
    pub fn segments(&self, generation: &str) -> Vec<PathBuf> {
        let folder = self.folder.path().join(self.place_name);
        let folder = folder.join("archive").join(generation).join("segments");
        let mut files: Vec<_> =
            fs::read_dir(folder).expect("the segments").map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }
}

impl Running {
    /// Waits until the log is archived: before that, no segment is made.
    async fn begun(&self) {
        let archive = self.store.log_archive().expect("archived");
        let wait = async {
            while archive.state().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("a generation");
    }

    pub async fn stop(self) {
        self.store.close().await;
        self.archiver.stop(PATIENCE).await;
    }
}

pub(super) async fn write(store: &Store, id: i64, body: String) {
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

pub(super) async fn rows_of(path: &Path) -> Vec<(i64, String)> {
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
    assert!(listed[0].segments > 1, "{listed:?}");
    let (restored, path) = world.restore("restored", None).await.expect("restored");
    assert_eq!(Some(restored.until), listed[0].reaches.last().map(|(_, last)| *last));
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
        times.push(world.time());
        // So that it is not merged with the next one.
        world.clock.fetch_add(10_000, Ordering::Relaxed);
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
    // A hole: what can be reached is restored, and the hole is named.
    let (part, path) = world.restore("missing", None).await.expect("a part");
    let hole = part.hole.expect("a hole");
    assert!(hole.missing.is_some() && hole.again.is_none(), "{hole:?}");
    assert!(rows_of(&path).await.len() < 5, "what came after the hole is not there");
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
    // The archive can be listed while old files are deleted.
    let (place, is_enough) = (world.place(), Arc::new(AtomicBool::new(false)));
    let listing = tokio::spawn({
        let is_enough = is_enough.clone();
        async move {
            while !is_enough.load(Ordering::Relaxed) {
                list_archive(&place).await.expect("a list");
            }
        }
    });
    let mut days = Vec::new();
    for day in 1..=5 {
        world.bases(if day > 3 { 3 } else { day }).await;
        let newest = |listed: &[ListedGeneration]| listed[0].bases.last().map(|base| base.until.clone());
        let before = newest(&world.listed().await);
        write(&running.store, day as i64, "z".repeat(4_000)).await;
        running.store.log_archive().expect("archived").copy();
        days.push(world.time());
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
    is_enough.store(true, Ordering::Relaxed);
    listing.await.expect("every list is there");
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

/// A store whose segments wait for each other, and are made by the test alone.
fn slow_world() -> World {
    World { every: Duration::from_secs(3_600), ..World::new() }
}

/// Writes a row, and makes a segment of it. A tenth of a second passes.
async fn write_segment(world: &World, running: &Running, id: i64) {
    write(&running.store, id, format!("{id} {}", "s".repeat(500))).await;
    // This row is in every segment.
    write(&running.store, 0, format!("the last one is {id}")).await;
    running.store.log_archive().expect("archived").copy();
    world.clock.fetch_add(100, Ordering::Relaxed);
}

/// Waits for the first base, while seconds pass, and gives the generation.
async fn base_as_time_passes(world: &World) -> String {
    let wait = async {
        loop {
            match world.listed().await.first() {
                Some(first) if !first.bases.is_empty() => return first.name.clone(),
                _ => world.clock.fetch_add(1_000, Ordering::Relaxed),
            };
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("a base")
}

/// The row that says which one was written last.
async fn last_of(path: &Path) -> (usize, String) {
    let rows = rows_of(path).await;
    (rows.len() - 1, rows[0].1.clone())
}

/// The segments of an archive: the first number, the last one, and the time.
fn objects(world: &World, generation: &str) -> Vec<SegmentName> {
    let names = world.segments(generation).into_iter();
    let names = names.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned());
    names.map(|name| SegmentName::parse(&name).expect("a segment")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_the_archive_gets_few_objects_and_each_time_within_five_seconds() {
    let world = slow_world();
    let running = world.start().await;
    running.begun().await;
    let mut id = 0;
    // The base is made meanwhile: its last segment is merged with later ones.
    let wait = async {
        while world.listed().await.iter().all(|each| each.bases.is_empty()) {
            id += 1;
            write_segment(&world, &running, id).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("a base");
    for _ in 0..200 {
        id += 1;
        write_segment(&world, &running, id).await;
    }
    let took_ms = world.time().as_millis() - BEGIN_MS;
    let expected = rows(&running.store).await;
    running.stop().await;
    let listed = world.listed().await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    let objects = objects(&world, &listed[0].name);
    assert!(objects.last().is_some_and(|last| last.last >= id as u64), "{objects:?}");
    assert!(objects.len() as i64 <= 3 + took_ms / 4_000, "{} in {took_ms} ms: {objects:?}", objects.len());
    for pair in objects.windows(2) {
        assert_eq!(pair[0].last + 1, pair[1].first, "{objects:?}");
        let covered = pair[1].until.as_millis() - pair[0].until.as_millis();
        assert!(covered <= 5_000, "{covered} ms: {objects:?}");
    }
    let begin = listed[0].bases[0].completed();
    let end = world.time().as_millis();
    for (index, at) in (begin.as_millis()..end).step_by(3_700).enumerate() {
        let at = Timestamp::from_millis(at);
        let (restored, path) = world.restore(&format!("at-{index}"), Some(at)).await.expect("restored");
        assert!(restored.until <= at && at.as_millis() - restored.until.as_millis() <= 5_200, "{restored:?}");
        let (ids, last) = last_of(&path).await;
        assert_eq!(last, format!("the last one is {ids}"));
    }
    let (_, path) = world.restore("latest", None).await.expect("restored");
    assert_eq!(rows_of(&path).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_an_object_and_its_segments_loses_and_doubles_nothing() {
    // Which segments of the spool the kill has left, by their number.
    let left: [fn(u64) -> bool; 4] = [|_| true, |n| n > 4, |n| n % 3 == 0, |n| n < 5];
    for (index, is_left) in left.into_iter().enumerate() {
        let world = slow_world();
        let running = world.start().await;
        write_segment(&world, &running, 1).await;
        let generation = base_as_time_passes(&world).await;
        world.clock.fetch_add(10_000, Ordering::Relaxed);
        for id in 2..=12 {
            write_segment(&world, &running, id).await;
        }
        let spool = world.folder.path().join("archive-spool").join(&generation);
        let aside = world.folder.path().join("aside");
        fs::create_dir(&aside).expect("a folder");
        for entry in fs::read_dir(&spool).expect("the spool") {
            let path = entry.expect("a file").path();
            fs::copy(&path, aside.join(path.file_name().expect("a name"))).expect("copied");
        }
        assert!(fs::read_dir(&aside).expect("the copy").count() > 8, "they wait for each other");
        running.stop().await;
        let before = objects(&world, &generation);
        assert!(before.iter().any(|name| name.last - name.first > 6), "{before:?}");
        for entry in fs::read_dir(&aside).expect("the copy") {
            let path = entry.expect("a file").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            if SegmentName::parse(&file).is_some_and(|name| is_left(name.first)) {
                fs::copy(&path, spool.join(file)).expect("copied");
            }
        }
        let running = world.start().await;
        let middle = world.time();
        world.clock.fetch_add(10_000, Ordering::Relaxed);
        for id in 13..=20 {
            write_segment(&world, &running, id).await;
        }
        let expected = rows(&running.store).await;
        running.stop().await;
        let listed = world.listed().await;
        assert_eq!(listed.len(), 1, "{index}: {listed:?}");
        let after = objects(&world, &generation);
        assert!(after.len() > before.len() + 1, "{index}: {after:?}");
        let (_, path) = world.restore("latest", None).await.expect("restored");
        assert_eq!(rows_of(&path).await, expected, "{index}: {after:?}");
        let (_, path) = world.restore("middle", Some(middle)).await.expect("restored");
        assert_eq!(last_of(&path).await, (12, "the last one is 12".to_owned()), "{index}: {after:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_segment_of_the_spool_is_not_hidden_by_merging() {
    let world = slow_world();
    let running = world.start().await;
    write_segment(&world, &running, 1).await;
    let generation = base_as_time_passes(&world).await;
    for id in 2..=9 {
        write_segment(&world, &running, id).await;
    }
    let spool = world.folder.path().join("archive-spool").join(&generation);
    let mut files: Vec<_> =
        fs::read_dir(spool).expect("the spool").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let victim = &files[files.len() - 3];
    let mut bytes = fs::read(victim).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(victim, bytes).expect("written");
    running.stop().await;
    let damaged = world.restore("damaged", None).await.unwrap_err().to_string();
    assert!(damaged.contains("is damaged") && damaged.contains("last time that can be reached"), "{damaged}");
    let (_, said) = damaged.split_once("before it is ").expect("a time");
    let at = Timestamp::parse_rfc3339(said.trim()).expect("a time");
    let (_, path) = world.restore("before", Some(at)).await.expect("restored");
    assert_eq!(last_of(&path).await, (6, "the last one is 6".to_owned()));
}
