//! Fresh homes for a store on both engines.

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::Timestamp;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::databases::Database;
use crate::migrate::MIGRATIONS;
use crate::{DatabaseUrl, Options, Store, Target};

/// Small enough for many tests at once on one server.
const POSTGRES_CONNECTIONS: usize = 8;
const POSTGRES_READ_CONNECTIONS: usize = 2;

/// How long a caller waits for the store in a test that is not about waiting: long enough that a machine
/// which stands still for some seconds, as shared ones do, makes no error that the test then takes for ours.
pub const UNHURRIED: Duration = Duration::from_secs(20);
/// The longest transaction of a test that uses a store without a server. Some write thousands of rows.
const SEEDING_MAX: Duration = Duration::from_secs(90);

/// Runs the body on a fresh SQLite file, then on a fresh PostgreSQL database, both with the program's tables.
///
/// # Panics
/// If the body panics, naming the engine, or `STAGEDOOR_TEST_DATABASE_URL` is missing.
pub async fn both<F, Fut>(body: F)
where
    F: FnMut(Store) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    both_with(Options::default(), body).await;
}

/// What [`both_with`] starts on each engine. Options start a store. `testkit` starts services and nodes.
pub trait Level {
    /// What the body of the test uses. Clones are the same world.
    type World: Clone + Send + 'static;

    /// Whether the database has the tables of this program before the start. The store makes them otherwise.
    fn migrated(&self) -> bool {
        true
    }

    /// The time whose partitions a migrated PostgreSQL database has. A node makes those that it lacks, which
    /// takes a quarter of a second.
    fn partitioned_at(&self) -> Option<Timestamp> {
        None
    }

    /// Starts it on a fresh database.
    fn start(&self, fresh: &Fresh) -> impl Future<Output = Self::World>;

    /// Stops it, also after a failed test.
    fn stop(world: Self::World) -> impl Future<Output = ()>;
}

impl Level for Options {
    type World = Store;

    fn migrated(&self) -> bool {
        std::ptr::eq(self.migrations, MIGRATIONS)
    }

    async fn start(&self, fresh: &Fresh) -> Store {
        fresh.open(self.clone()).await
    }

    async fn stop(store: Store) {
        store.close().await;
    }
}

/// Nothing but the database.
#[derive(Clone, Copy, Debug)]
pub struct EmptyDatabase;

impl Level for EmptyDatabase {
    type World = Target;

    fn migrated(&self) -> bool {
        false
    }

    async fn start(&self, fresh: &Fresh) -> Target {
        fresh.target()
    }

    async fn stop(_: Target) {}
}

/// Runs the body on a new world on SQLite, then on one on PostgreSQL.
///
/// # Panics
/// If the body panics, naming the engine, or `STAGEDOOR_TEST_DATABASE_URL` is missing.
pub async fn both_with<L, F, Fut>(level: L, mut body: F)
where
    L: Level,
    F: FnMut(L::World) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let homes = if level.migrated() {
        [migrated_sqlite().await, migrated_postgres(level.partitioned_at()).await]
    } else {
        engines().await
    };
    for fresh in homes {
        let world = level.start(&fresh).await;
        // In a task, so that the world is stopped after a failed test.
        let outcome = tokio::spawn(Box::pin(body(world.clone()))).await;
        L::stop(world).await;
        let name = fresh.name();
        fresh.remove().await;
        assert!(outcome.is_ok(), "failed on {name}: see the panic above");
    }
}

/// An empty home for a store on each engine. A test may open both often. [`Fresh::remove`] is the end.
///
/// # Panics
/// If `STAGEDOOR_TEST_DATABASE_URL` is missing or its server does not answer.
pub async fn engines() -> [Fresh; 2] {
    [sqlite(), postgres().await]
}

/// An empty SQLite file's place.
///
/// # Panics
/// If there is no room for temporary files.
pub fn sqlite() -> Fresh {
    Fresh { folder: temporary_folder("store"), database: None }
}

/// A SQLite file with the tables of this program.
///
/// # Panics
/// If there is no room for temporary files.
pub async fn migrated_sqlite() -> Fresh {
    static FILE: OnceCell<Vec<u8>> = OnceCell::const_new();
    let migrate = async || {
        let fresh = sqlite();
        fresh.open(Options::default()).await.close().await;
        std::fs::read(fresh.file()).expect("the file of a closed store")
    };
    let content = FILE.get_or_init(migrate).await;
    let fresh = sqlite();
    std::fs::write(fresh.file(), content).expect("room for temporary files");
    fresh
}

/// An empty PostgreSQL database.
///
/// # Panics
/// If `STAGEDOOR_TEST_DATABASE_URL` is missing or its server does not answer.
pub async fn postgres() -> Fresh {
    let folder = temporary_folder("");
    let database = Database::empty(database_name(&folder)).await;
    Fresh { folder, database: Some(database) }
}

/// A PostgreSQL database with the tables of this program, and with the partitions of that time.
///
/// # Panics
/// If `STAGEDOOR_TEST_DATABASE_URL` is missing or its server does not answer.
pub async fn migrated_postgres(partitioned_at: Option<Timestamp>) -> Fresh {
    let folder = temporary_folder("");
    let database = Database::migrated(database_name(&folder), partitioned_at).await;
    Fresh { folder, database: Some(database) }
}

fn temporary_folder(prefix: &str) -> TempDir {
    TempDir::with_prefix(prefix).expect("a temporary folder")
}

/// The folder's random name keeps test runs on one server apart, the count keeps tests apart.
fn database_name(folder: &TempDir) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let random = folder.path().file_name().and_then(|name| name.to_str()).expect("a folder's name");
    format!("test_{}_{}", random.to_lowercase(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A fresh place for a store on one engine.
pub struct Fresh {
    folder: TempDir,
    database: Option<Database>,
}

impl Fresh {
    /// `"SQLite"` or `"PostgreSQL"`.
    pub fn name(&self) -> &'static str {
        if self.database.is_some() { "PostgreSQL" } else { "SQLite" }
    }

    /// Where the store is.
    pub fn target(&self) -> Target {
        match &self.database {
            Some(database) => Target::Postgres { url: DatabaseUrl::from(database.url()) },
            None => Target::Sqlite { path: self.file() },
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("data.sqlite")
    }

    /// The URL of the PostgreSQL database; `None` on SQLite.
    pub fn url(&self) -> Option<String> {
        self.database.as_ref().map(Database::url)
    }

    /// Opens the store, with fewer PostgreSQL connections than in production, and a long deadline.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub async fn open(&self, options: Options) -> Store {
        let options = Options {
            postgres_connections: options.postgres_connections.min(POSTGRES_CONNECTIONS),
            postgres_read_connections: options.postgres_read_connections.min(POSTGRES_READ_CONNECTIONS),
            deadline: SEEDING_MAX,
            ..options
        };
        Store::open(self.target(), options).await.unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }

    /// Removes the file or the database. Close the stores first.
    pub async fn remove(self) {
        if let Some(database) = &self.database {
            database.remove().await;
        }
    }
}
