//! What an archive does when its place is lost, moved, or another one, under load: what the figures promise
//! can be restored, and what comes back goes on by itself.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backup::archive::{ArchiverFigures, check_archive, list_archive};
use domain::{StoreId, Timestamp};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::archive::{BEGIN_MS, PATIENCE, Running, World, rows_of, write};

/// What the clock moves at once, in milliseconds, and the real pause between two moves.
const TICK_MS: i64 = 250;
const TICK: Duration = Duration::from_millis(10);

/// A store that is written to all the time, with a clock that runs 25 times as fast.
struct Loaded {
    world: World,
    running: Option<Running>,
    /// What was acknowledged, and when.
    acknowledged: Arc<Mutex<Vec<(i64, Timestamp)>>>,
    stop: Arc<AtomicBool>,
    load: Vec<JoinHandle<()>>,
}

impl Loaded {
    async fn begin(world: World) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut loaded = Self { world, running: None, acknowledged: Arc::default(), stop, load: Vec::new() };
        loaded.start().await;
        let begun = loaded.world.time();
        loaded.promises(begun).await;
        loaded
    }

    async fn start(&mut self) {
        let running = self.world.start().await;
        self.stop = Arc::default();
        let (stop, clock) = (self.stop.clone(), self.world.clock.clone());
        let ticking = tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                clock.fetch_add(TICK_MS, Ordering::Relaxed);
                tokio::time::sleep(TICK).await;
            }
        });
        let (store, stop, done, now) =
            (running.store.clone(), self.stop.clone(), self.acknowledged.clone(), self.world.now());
        let writing = tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let id = done.lock().expect("no panic").len() as i64;
                write(&store, id, "w".repeat(500)).await;
                done.lock().expect("no panic").push((id, now()));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        self.load = vec![ticking, writing];
        self.running = Some(running);
    }

    /// The service goes on, and has nothing to write.
    async fn write_no_more(&mut self) {
        self.load.pop().expect("the load runs").abort();
        let written = self.world.time();
        self.promises(written).await;
    }

    async fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.load.drain(..) {
            task.await.expect("the load ends");
        }
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    fn figures(&self) -> ArchiverFigures {
        self.running.as_ref().expect("it runs").archiver.figures().read()
    }

    fn promised(&self) -> Timestamp {
        self.figures().archived_until.unwrap_or_default()
    }

    /// Waits until everything before a time is promised.
    async fn promises(&self, at: Timestamp) {
        let wait = async {
            while self.promised() <= at || self.figures().last_base.is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{:?}", self.figures()));
    }

    /// Waits until looks fail, and checks that nothing more is promised meanwhile.
    async fn is_not_reached(&self) {
        let before = self.figures();
        let wait = async {
            while self.figures().failures < before.failures + 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{:?}", self.figures()));
        // What was on its way at the moment of the loss.
        let after = self.promised().as_millis() - before.archived_until.unwrap_or_default().as_millis();
        assert!(after <= 60_000, "{after} ms more are promised");
        assert!(self.figures().spool_bytes > 0, "the spool grows");
    }

    /// Restores the last time, and finds everything that was acknowledged before the promised one.
    async fn keeps_its_promise(&self, name: &str) {
        let promised = self.promised();
        let acknowledged = self.acknowledged.lock().expect("no panic").clone();
        let (_, path) =
            self.world.restore(name, None).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let there: std::collections::BTreeSet<_> =
            rows_of(&path).await.into_iter().map(|(id, _)| id).collect();
        let owed: Vec<_> = acknowledged.iter().filter(|(_, at)| *at < promised).collect();
        let lost = owed.iter().filter(|(id, _)| !there.contains(id)).count();
        assert!(owed.len() > 10 && lost == 0, "{name}: {lost} of {} are lost", owed.len());
    }

    fn place(&self) -> PathBuf {
        self.world.folder.path().join(self.world.place_name)
    }

    fn aside(&self) -> PathBuf {
        self.world.folder.path().join("aside")
    }

    async fn newest(&self) -> String {
        self.world.listed().await.last().expect("a generation").name.clone()
    }
}

fn make(folder: &Path) {
    fs::create_dir(folder).expect("a new folder");
}

fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).expect("renamed");
}

/// Deletes what is in a folder, and not the folder.
fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("deleted");
    }
}

/// How many generations the place has at the end.
async fn generations(loaded: &Loaded) -> usize {
    loaded.world.listed().await.iter().filter(|each| !each.bases.is_empty()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_was_changed_while_the_service_was_stopped_gets_a_whole_base() {
    // The disk is another one, or the option names another folder.
    for other_folder in [false, true] {
        let mut loaded = Loaded::begin(World::new()).await;
        loaded.stop().await;
        match other_folder {
            true => loaded.world.place_name = "another",
            false => {
                rename(&loaded.place(), &loaded.aside());
                make(&loaded.place());
            }
        }
        loaded.start().await;
        let changed = loaded.world.time();
        loaded.promises(changed).await;
        loaded.keeps_its_promise("moved").await;
        assert_eq!(generations(&loaded).await, 1);
        loaded.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_comes_back_goes_on_without_a_hole() {
    type Act = fn(&Loaded);
    let other = World { store_id: "another", ..World::new() };
    let others = other.start().await;
    other.bases(1).await;
    others.stop().await;
    let others = other.folder.path().join("place");
    let ways: [(&str, Act, Act); 3] = [
        ("renamed", |_| (), |_| ()),
        (
            "a file in its place",
            |loaded| fs::write(loaded.place(), "no folder").expect("written"),
            |loaded| fs::remove_file(loaded.place()).expect("deleted"),
        ),
        ("the archive of another store", |_| (), |_| ()),
    ];
    for (index, (name, put, take_away)) in ways.into_iter().enumerate() {
        let mut loaded = Loaded::begin(World::new()).await;
        rename(&loaded.place(), &loaded.aside());
        put(&loaded);
        if index == 2 {
            rename(&others, &loaded.place());
        }
        loaded.is_not_reached().await;
        if index == 2 {
            let listed = list_archive(&loaded.world.place()).await.expect("a list");
            assert!(listed.iter().all(|each| each.store_id.as_deref() == Some("another")), "{listed:?}");
            rename(&loaded.place(), &others);
        } else {
            assert!(index == 1 || !loaded.place().exists(), "{name}: a folder is not made again");
        }
        take_away(&loaded);
        rename(&loaded.aside(), &loaded.place());
        let back = loaded.world.time();
        loaded.promises(back).await;
        loaded.keeps_its_promise(name).await;
        let listed = loaded.world.listed().await;
        assert_eq!((listed.len(), listed[0].reaches.len()), (1, 1), "{name}: no hole: {listed:?}");
        loaded.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_not_mounted_is_waited_for() {
    let shared = Path::new("/dev/shm");
    let Ok(disk) = TempDir::new_in(shared) else { return };
    let world = World::new();
    let device = |path: &Path| fs::metadata(path).expect("a folder").dev();
    if device(disk.path()) == device(world.folder.path()) {
        return;
    }
    let place = world.folder.path().join("place");
    symlink(disk.path(), &place).expect("linked");
    let mut loaded = Loaded::begin(world).await;
    for restarts in [false, true] {
        if restarts {
            loaded.stop().await;
        }
        fs::remove_file(&place).expect("unlinked");
        make(&place);
        if restarts {
            loaded.start().await;
        }
        loaded.is_not_reached().await;
        assert_eq!(fs::read_dir(&place).expect("a folder").count(), 0, "nothing is written there");
        fs::remove_dir(&place).expect("deleted");
        symlink(disk.path(), &place).expect("linked");
        let back = loaded.world.time();
        loaded.promises(back).await;
        loaded.keeps_its_promise(if restarts { "restarted" } else { "running" }).await;
        assert_eq!(generations(&loaded).await, 1);
    }
    loaded.stop().await;
}

/// A small disk of its own. Mounting it needs root, or sudo without a password.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Self {
        make(&at);
        let mounted = is_done(&["mount", "-t", "tmpfs", "-o", "size=64m,mode=0777", "tmpfs"], &at);
        assert!(mounted, "this test mounts a tmpfs: run it as root, or with sudo -n");
        Self(at)
    }

    fn remount(&self, how: &str) {
        let option = format!("remount,{how}");
        // A file that is open at the moment keeps the disk busy.
        while !is_done(&["mount", "-o", &option], &self.0) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn fill(&self) {
        let mut filler = fs::File::create(self.0.join("filler")).expect("a file");
        for size in [65_536, 4_096, 1] {
            while std::io::Write::write_all(&mut filler, &vec![0; size]).is_ok() {}
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        is_done(&["umount", "--lazy"], &self.0);
    }
}

fn is_done(command: &[&str], path: &Path) -> bool {
    // The folder of a process is its user's.
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let sudo: &[&str] = if is_root { &[] } else { &["sudo", "-n"] };
    let words = [sudo, command].concat();
    let done = std::process::Command::new(words[0]).args(&words[1..]).arg(path).output();
    done.is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_takes_no_writes_is_waited_for_and_what_is_promised_can_be_restored() {
    let world = World::new();
    let disk = SmallDisk::mount(world.folder.path().join("place"));
    let mut loaded = Loaded::begin(world).await;
    for way in ["read-only", "full"] {
        match way {
            "full" => disk.fill(),
            _ => disk.remount("ro"),
        }
        loaded.is_not_reached().await;
        // What is there can be restored meanwhile.
        loaded.keeps_its_promise(&format!("{way} still")).await;
        match way {
            "full" => fs::remove_file(disk.0.join("filler")).expect("deleted"),
            _ => disk.remount("rw"),
        }
        let back = loaded.world.time();
        loaded.promises(back).await;
        loaded.keeps_its_promise(way).await;
        let listed = loaded.world.listed().await;
        assert_eq!((listed.len(), listed[0].reaches.len()), (1, 1), "{way}: no hole: {listed:?}");
    }
    loaded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_from_the_place_is_replaced_by_a_whole_base() {
    async fn bases_gone(loaded: &Loaded) {
        let newest = loaded.newest().await;
        empty(&loaded.place().join("archive").join(newest).join("bases"));
    }
    async fn copies_gone(loaded: &Loaded) {
        let folder = loaded.place().join("archive").join(loaded.newest().await).join("bases");
        for base in fs::read_dir(folder).expect("the bases") {
            fs::remove_file(base.expect("one").path().join("stagedoor.db")).expect("deleted");
        }
    }
    async fn base_broken(loaded: &Loaded) {
        let folder = loaded.place().join("archive").join(loaded.newest().await).join("bases");
        for base in fs::read_dir(folder).expect("the bases") {
            fs::write(base.expect("one").path().join("base.json"), "{").expect("written");
        }
    }
    async fn description_broken(loaded: &Loaded) {
        let description = format!("archive/generations/{}.json", loaded.newest().await);
        fs::write(loaded.place().join(description), "{").expect("written");
    }
    async fn segment_gone(loaded: &Loaded) {
        let segments = loaded.world.segments(&loaded.newest().await);
        fs::remove_file(&segments[segments.len() / 2]).expect("deleted");
    }
    let mut loaded = Loaded::begin(World::new()).await;
    for way in ["emptied", "bases", "copies", "base.json", "description", "segment", "older copy"] {
        if way == "older copy" {
            let copied =
                std::process::Command::new("cp").arg("-r").args([loaded.place(), loaded.aside()]).status();
            assert!(copied.expect("cp runs").success());
            let begun = loaded.world.time();
            loaded.promises(begun.plus_ms(30_000)).await;
        }
        match way {
            "emptied" => empty(&loaded.place()),
            "bases" => bases_gone(&loaded).await,
            "copies" => copies_gone(&loaded).await,
            "base.json" => base_broken(&loaded).await,
            "description" => description_broken(&loaded).await,
            "segment" => segment_gone(&loaded).await,
            _ => {
                fs::remove_dir_all(loaded.place()).expect("deleted");
                rename(&loaded.aside(), &loaded.place());
            }
        }
        // The files are listed every 20 seconds, and a base is made.
        let lost = loaded.world.time();
        loaded.promises(lost.plus_ms(45_000)).await;
        loaded.keeps_its_promise(way).await;
    }
    loaded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_was_emptied_under_an_idle_service_gets_a_new_generation() {
    let mut loaded = Loaded::begin(World::new()).await;
    loaded.write_no_more().await;
    let before = loaded.newest().await;
    empty(&loaded.place());
    let wait = async {
        while loaded.world.listed().await.iter().all(|each| each.name == before || each.bases.is_empty()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{:?}", loaded.figures()));
    let begun_again = loaded.world.time();
    loaded.promises(begun_again).await;
    loaded.keeps_its_promise("emptied").await;
    loaded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_deleted_is_made_again_by_its_operator_alone() {
    let mut loaded = Loaded::begin(World::new()).await;
    fs::remove_dir_all(loaded.place()).expect("deleted");
    loaded.is_not_reached().await;
    assert!(!loaded.place().exists());
    // A restart remembers that there was a place, and up to when it had everything.
    let promised = loaded.promised();
    loaded.stop().await;
    loaded.start().await;
    loaded.is_not_reached().await;
    assert!(!loaded.place().exists() && loaded.promised() <= promised);
    make(&loaded.place());
    let made = loaded.world.time();
    loaded.promises(made).await;
    loaded.keeps_its_promise("made again").await;
    assert_eq!(generations(&loaded).await, 1);
    loaded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_of_another_store_is_refused_and_never_deleted() {
    let mut world = World { store_id: "one", ..World::new() };
    let running = world.start().await;
    write(&running.store, 1, "of the first store".to_owned()).await;
    world.bases(1).await;
    running.stop().await;

    // Another store in the same place: an empty folder where the data was, with another id.
    fs::remove_file(world.folder.path().join("stagedoor.db")).expect("deleted");
    for rest in ["stagedoor.db-wal", "stagedoor.db-shm"] {
        let _ = fs::remove_file(world.folder.path().join(rest));
    }
    fs::remove_dir_all(world.folder.path().join("archive-spool")).expect("deleted");
    world.store_id = "two";
    let running = world.start().await;
    let log = running.store.log_archive().expect("archived");
    let [one, two] = ["one", "two"].map(|id| StoreId::stored(id.to_owned()));
    let refused = check_archive(&log, &world.place(), &two, false).await.unwrap_err().to_string();
    assert!(refused.contains("the archive of another store (one; this one is two)"), "{refused}");
    check_archive(&log, &world.place(), &one, false).await.expect("its own");
    check_archive(&log, &world.place(), &two, true).await.expect("it is meant");
    let wait = async {
        while running.archiver.figures().read().failures < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("looks fail");
    assert_eq!(world.listed().await.len(), 1, "nothing was written there");
    running.stop().await;

    // Where it is meant, days pass, and what is old of the first one stays.
    world.other_store = true;
    let running = world.start().await;
    for bases in 2..=4 {
        world.bases(bases.min(3)).await;
        world.clock.fetch_add(5 * 86_400_000, Ordering::Relaxed);
    }
    let wait = async {
        loop {
            let listed = world.listed().await;
            let newest = listed.last().and_then(|each| each.bases.last()).map(|base| base.completed());
            if newest.is_some_and(|newest| newest.as_millis() > BEGIN_MS + 10 * 86_400_000) {
                return listed;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let listed = tokio::time::timeout(PATIENCE, wait).await.expect("a base of the last day");
    running.stop().await;
    assert_eq!((listed[0].store_id.as_deref(), listed[0].bases.len()), (Some("one"), 1), "{listed:?}");
    let both = world.restore("both", None).await.unwrap_err().to_string();
    assert!(both.contains("2 stores, one, two: name one with --store-id"), "{both}");
    let wanted = backup::archive::Wanted { store: Some(one), ..Default::default() };
    let to = world.folder.path().join("first/stagedoor.db");
    backup::archive::restore_archive(&world.place(), &wanted, &to, &mut super::quiet)
        .await
        .expect("restored");
    assert_eq!(rows_of(&to).await.len(), 1);
}
