//! The worlds of the process: the main one, and those that the sandbox API starts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use commands::state_file;
use domain::secret::OperatorKey;
use futures_util::future::BoxFuture;
use sandbox::{
    MAIN_WORLD, NewWorld, SnapshotSummary, WorldError, WorldFile, WorldHost, WorldResult, WorldSummary,
};
use serde_json::Value;
use service::Entropy;
use store::{Options, Store, Target};
use temporary_folder::TemporaryFolder;
use tokio::sync::{OnceCell, Semaphore};

use super::archive;
use super::creation::{Creation, CreationError};
use super::hosted::{Hosted, Running};
use super::kept_clock::KeptClock;
use super::notes::{self, Notes};
use super::snapshot::Snapshot;
use super::world::World;
use crate::{Footprint, Node, Settings, StoreSettings};

/// Maximum number of worlds beside the main one.
pub const WORLDS_MAX: usize = 50;
/// Maximum number of snapshots.
const SNAPSHOTS_MAX: usize = 100;

/// The worlds of the process.
pub struct Worlds {
    this: Weak<Self>,
    /// The settings of the main world, from which those of the others are made.
    base: Settings,
    /// The world file of the main world.
    file: WorldFile,
    root: TemporaryFolder,
    /// An empty database with the current schema.
    template: OnceCell<PathBuf>,
    worlds: Mutex<BTreeMap<String, Arc<Hosted>>>,
    snapshots: Mutex<BTreeMap<String, Arc<Snapshot>>>,
    places: Arc<Semaphore>,
    /// Number of files and folders that were named.
    named: AtomicU64,
}

impl std::fmt::Debug for Worlds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worlds").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Worlds {
    /// Starts the main world. Returns the worlds and the description of the main one.
    pub(super) async fn start(
        settings: Settings,
        root: TemporaryFolder,
        creation: Creation,
        kept_clock: Option<KeptClock>,
    ) -> Result<(Arc<Self>, World), CreationError> {
        let (node, world) = creation.begin(settings.clone()).await?;
        let worlds = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            base: settings,
            file: creation.file,
            root,
            template: OnceCell::new(),
            worlds: Mutex::default(),
            snapshots: Mutex::default(),
            places: Arc::new(Semaphore::new(WORLDS_MAX)),
            named: AtomicU64::new(0),
        });
        let main = Hosted::new(MAIN_WORLD.to_owned(), creation.notes.operator_key, None, None);
        let main = Arc::new(main.with_kept_clock(kept_clock));
        main.run(Running { node, description: world.clone() }, None, worlds.host()).await;
        main.prepare_reset(worlds.new_file()).await;
        worlds.map().insert(MAIN_WORLD.to_owned(), main);
        Ok((worlds, world))
    }

    /// A new address that opens the console of the main world once; `None` without one.
    pub async fn console_url(&self) -> Option<String> {
        let main = self.world(MAIN_WORLD).ok()?;
        main.console_url().await
    }

    /// Ends all worlds.
    pub async fn stop(&self) {
        let worlds = std::mem::take(&mut *self.map());
        for (id, world) in worlds {
            if id == MAIN_WORLD { world.stop().await } else { world.end().await }
        }
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn host(&self) -> Weak<dyn WorldHost> {
        self.this.clone()
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Hosted>>> {
        self.worlds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Snapshot>>> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn world(&self, id: &str) -> WorldResult<Arc<Hosted>> {
        let rule = || format!("there is no world {id}");
        self.map().get(id).cloned().ok_or_else(|| WorldError::Unknown { field: "worldId", rule: rule() })
    }

    /// The path of a new file in the folder of this process.
    fn new_file(&self) -> PathBuf {
        self.root.path().join(format!("{}.db", self.named.fetch_add(1, Ordering::Relaxed)))
    }

    /// Reserves a place and an id. The world does not run yet.
    fn reserve(&self, name: Option<String>, notes: &Notes) -> WorldResult<(Arc<Hosted>, PathBuf)> {
        if let Some(name) = &name {
            check_name("name", name)?;
            if self.taken().contains_key(name) {
                return Err(WorldError::invalid("name", "is that of a snapshot"));
            }
        }
        let full = |_| WorldError::Full(format!("there are {WORLDS_MAX} worlds already: delete one first"));
        let place = self.places.clone().try_acquire_owned().map_err(full)?;
        let folder = self.root.path().join(format!("world-{}", self.named.fetch_add(1, Ordering::Relaxed)));
        let mut worlds = self.map();
        let id = match name {
            Some(name) if worlds.contains_key(&name) => {
                return Err(WorldError::invalid("name", format!("there is a world {name} already")));
            }
            Some(name) => name,
            None => free_id(|id| worlds.contains_key(id) || self.taken().contains_key(id)),
        };
        std::fs::create_dir(&folder)
            .map_err(|error| WorldError::Failed(format!("failed to create a folder: {error}")))?;
        let database = folder.join("stagedoor.db");
        let world = Arc::new(Hosted::new(id.clone(), notes.operator_key.clone(), Some(folder), Some(place)));
        worlds.insert(id, world.clone());
        Ok((world, database))
    }

    /// The settings of a world beside the main one.
    fn settings(&self, database: PathBuf, operator_key: &str) -> Settings {
        Settings {
            listen: SocketAddr::new(self.base.listen.ip(), 0),
            platform_listen: None,
            base_url: None,
            session_base: None,
            store: StoreSettings::Sqlite { path: database },
            operator_key: OperatorKey::presented(operator_key),
            footprint: Footprint::Small,
            ..self.base.clone()
        }
    }

    /// Runs what starts a reserved world. After a failure nothing of it is left.
    async fn started(
        &self,
        world: &Arc<Hosted>,
        start: impl Future<Output = Result<(Running, Option<Arc<Snapshot>>), WorldError>>,
    ) -> WorldResult<Value> {
        match start.await {
            Ok((running, origin)) => {
                world.run(running, origin, self.host()).await;
                if world.origin().is_err() {
                    world.prepare_reset(self.new_file()).await;
                }
                world.description().await
            }
            Err(error) => {
                self.map().remove(&world.id);
                world.end().await;
                Err(error)
            }
        }
    }

    async fn create_now(&self, new: NewWorld) -> WorldResult<Value> {
        let NewWorld { name, seed, clock, world, from } = new;
        if let Some(from) = from {
            if world.is_some() {
                return Err(WorldError::invalid("world", "must not be given together with from"));
            }
            let mut snapshot = self.state_of(&from).await?;
            if seed.is_some() || clock.is_some() {
                snapshot = Arc::new(self.altered(&snapshot, seed, clock).await?);
            }
            return self.create_from(name, snapshot).await;
        }
        let file = world.unwrap_or_else(|| self.file.clone());
        let entropy = notes::entropy(seed, 0);
        let creation = Creation {
            notes: Notes::new(&entropy, &file),
            file,
            entropy,
            clock,
            resumed: None,
            steered: true,
        };
        let (world, database) = self.reserve(name, &creation.notes)?;
        let start = async {
            self.copy_template(&database).await?;
            let settings = self.settings(database, &creation.notes.operator_key);
            let (node, description) = creation.begin(settings).await.map_err(|error| match error {
                CreationError::File(error) => {
                    WorldError::invalid(format!("world.{}", error.path), error.rule)
                }
                CreationError::Failed(error) => WorldError::Failed(error),
            })?;
            Ok((Running { node, description }, None))
        };
        self.started(&world, start).await
    }

    /// Starts a world in the state of a snapshot.
    async fn create_from(&self, name: Option<String>, snapshot: Arc<Snapshot>) -> WorldResult<Value> {
        let entropy = snapshot.seed.as_ref().map_or_else(Entropy::system, Entropy::resumed);
        let notes = Notes::new(&entropy, &WorldFile::default());
        let (world, database) = self.reserve(name, &notes)?;
        let start = async {
            snapshot.copy_to(&database).map_err(WorldError::Failed)?;
            let settings = self.settings(database, &notes.operator_key);
            let node = Node::start(settings, snapshot.environment()).await.map_err(WorldError::Failed)?;
            super::creation::resume(&node, &snapshot.client_secrets).await.map_err(WorldError::Failed)?;
            let description = snapshot.description.behind(&node, &notes.operator_key);
            Ok((Running { node, description }, Some(snapshot.clone())))
        };
        self.started(&world, start).await
    }

    /// The state that a new world begins with: that of a snapshot, or of a world now.
    async fn state_of(&self, from: &str) -> WorldResult<Arc<Snapshot>> {
        if let Some(snapshot) = self.taken().get(from) {
            return Ok(snapshot.clone());
        }
        let unknown = |_| WorldError::Unknown {
            field: "from",
            rule: format!("there is no snapshot and no world {from}"),
        };
        let world = self.world(from).map_err(unknown)?;
        Ok(Arc::new(world.snapshot(self.new_file()).await?))
    }

    /// The state with another seed, or another time at which the clock stands still.
    async fn altered(
        &self,
        snapshot: &Snapshot,
        seed: Option<u64>,
        clock: Option<domain::Timestamp>,
    ) -> WorldResult<Snapshot> {
        if clock.is_some_and(|clock| clock.as_millis() < snapshot.clock.now_ms) {
            return Err(WorldError::invalid("clock", "must not be before the time of the snapshot"));
        }
        let file = self.new_file();
        std::fs::copy(&snapshot.file, &file)
            .map_err(|error| WorldError::Failed(format!("failed to copy the database: {error}")))?;
        let seed = seed.map(|seed| service::SeedState { seed, ..service::SeedState::default() });
        Ok(Snapshot {
            world_id: snapshot.world_id.clone(),
            file,
            clock: clock.map_or(snapshot.clock, super::snapshot::ClockState::frozen_at),
            seed: seed.or_else(|| snapshot.seed.clone()),
            client_secrets: snapshot.client_secrets.clone(),
            description: snapshot.description.clone(),
        })
    }

    /// Copies the empty database, which is made once, because its migrations take longer than a copy.
    async fn copy_template(&self, database: &PathBuf) -> WorldResult<()> {
        let path = self.root.path().join("template.db");
        let template = self.template.get_or_try_init(async || {
            let store = Store::open(Target::Sqlite { path: path.clone() }, small_store()).await;
            let store = store.map_err(|error| WorldError::Failed(error.to_string()))?;
            store.close().await;
            Ok(path)
        });
        let failed =
            |error: std::io::Error| WorldError::Failed(format!("failed to copy the database: {error}"));
        std::fs::copy(template.await?, database).map_err(failed)?;
        Ok(())
    }

    /// Runs work to its end, also when the caller stops waiting.
    fn run<T, F>(&self, work: impl FnOnce(Arc<Self>) -> F + Send + 'static) -> BoxFuture<'_, WorldResult<T>>
    where
        T: Send + 'static,
        F: Future<Output = WorldResult<T>> + Send + 'static,
    {
        let this = self.this.upgrade();
        Box::pin(async move {
            let ended = || WorldError::Failed("the sandbox ends".to_owned());
            let this = this.ok_or_else(ended)?;
            tokio::spawn(work(this)).await.unwrap_or_else(|_| Err(ended()))
        })
    }
}

impl WorldHost for Worlds {
    fn list(&self) -> BoxFuture<'_, Vec<WorldSummary>> {
        Box::pin(async move {
            let mut worlds: Vec<_> = self.map().values().cloned().collect();
            worlds.sort_by_key(|world| world.id != MAIN_WORLD);
            let mut summaries = Vec::new();
            for world in worlds {
                summaries.extend(world.summary().await);
            }
            summaries
        })
    }

    fn create(&self, new: NewWorld) -> BoxFuture<'_, WorldResult<Value>> {
        self.run(move |this| async move { this.create_now(new).await })
    }

    fn delete(&self, id: String) -> BoxFuture<'_, WorldResult<()>> {
        self.run(move |this| async move {
            if id == MAIN_WORLD {
                return Err(WorldError::invalid("worldId", "main ends with `stagedoor dev`"));
            }
            let world = this.world(&id)?;
            this.map().remove(&id);
            world.end().await;
            Ok(())
        })
    }

    fn reset(&self, id: String) -> BoxFuture<'_, WorldResult<Value>> {
        self.run(move |this| async move {
            let world = this.world(&id)?;
            world.restore(&*world.origin()?, this.host()).await
        })
    }

    fn snapshot(&self, id: String, name: String) -> BoxFuture<'_, WorldResult<SnapshotSummary>> {
        self.run(move |this| async move {
            check_name("name", &name)?;
            let world = this.world(&id)?;
            if this.map().contains_key(&name) {
                return Err(WorldError::invalid("name", "is that of a world"));
            }
            let is_new = |taken: &BTreeMap<_, _>| !taken.contains_key(&name);
            if is_new(&this.taken()) && this.taken().len() >= SNAPSHOTS_MAX {
                let message = format!("there are {SNAPSHOTS_MAX} snapshots already: delete one first");
                return Err(WorldError::Full(message));
            }
            let snapshot = Arc::new(world.snapshot(this.new_file()).await?);
            let summary = summary(&name, &snapshot);
            this.taken().insert(name, snapshot);
            Ok(summary)
        })
    }

    fn restore(&self, id: String, snapshot: String) -> BoxFuture<'_, WorldResult<Value>> {
        self.run(move |this| async move {
            let world = this.world(&id)?;
            let unknown = || WorldError::Unknown {
                field: "snapshot",
                rule: format!("there is no snapshot {snapshot}"),
            };
            let found = this.taken().get(&snapshot).cloned().ok_or_else(unknown)?;
            world.restore(&found, this.host()).await
        })
    }

    fn snapshots(&self) -> Vec<SnapshotSummary> {
        self.taken().iter().map(|(name, snapshot)| summary(name, snapshot)).collect()
    }

    fn delete_snapshot(&self, name: &str) -> WorldResult<()> {
        let unknown = || WorldError::Unknown { field: "name", rule: format!("there is no snapshot {name}") };
        self.taken().remove(name).map(drop).ok_or_else(unknown)
    }

    fn export(&self, id: String) -> BoxFuture<'_, WorldResult<Value>> {
        self.run(move |this| async move {
            let snapshot = this.world(&id)?.snapshot(this.new_file()).await?;
            archive::write(&snapshot)
        })
    }

    fn world_file(&self, id: String) -> BoxFuture<'_, WorldResult<WorldFile>> {
        self.run(move |this| async move { this.world(&id)?.world_file().await })
    }

    fn import(&self, name: Option<String>, file: Value) -> BoxFuture<'_, WorldResult<Value>> {
        self.run(move |this| async move {
            let snapshot = archive::read(file, this.new_file())?;
            check_database(&snapshot).await?;
            this.create_from(name, Arc::new(snapshot)).await
        })
    }
}

/// Refuses a database that cannot be opened, such as one of a newer program.
async fn check_database(snapshot: &Snapshot) -> WorldResult<()> {
    let target = Target::Sqlite { path: snapshot.file.clone() };
    let store = Store::open(target, small_store()).await;
    store.map_err(|error| WorldError::invalid("database", error))?.close().await;
    Ok(())
}

/// How a store runs that is opened only for a moment.
fn small_store() -> Options {
    Options { sqlite_readers: 1, sqlite_sync: false, ..Options::default() }
}

fn check_name(field: &str, name: &str) -> WorldResult<()> {
    match state_file::is_name(name) {
        true => Ok(()),
        false => {
            let max = state_file::NAME_CHARS_MAX;
            Err(WorldError::invalid(field, format!("must be 1 to {max} letters, digits, '-' and '_'")))
        }
    }
}

/// The first free one of `world-1`, `world-2` and so on.
fn free_id(is_taken: impl Fn(&str) -> bool) -> String {
    let mut ids = (1_u64..).map(|number| format!("world-{number}"));
    ids.find(|id| !is_taken(id)).unwrap_or_default()
}

fn summary(name: &str, snapshot: &Snapshot) -> SnapshotSummary {
    SnapshotSummary {
        name: name.to_owned(),
        world_id: snapshot.world_id.clone(),
        at: domain::Timestamp::from_millis(snapshot.clock.now_ms),
    }
}
