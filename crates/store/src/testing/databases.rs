//! Databases of the test server: an empty one, or a copy of one that has the tables of this program.
//!
//! A copy takes a tenth of a second. The migrations take five times as long, and would wait for each other in
//! one database. A database of its own also leaves no dead rows in the catalog of the others. Copied files
//! cost a third of the processor time that copied pages cost, whose every page is logged.

use std::time::Duration;

use domain::Timestamp;
use domain::limits::DAY_MS;
use domain::retention::Retention;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::migrate::MIGRATIONS;
use crate::{DatabaseUrl, Options, PartitionedTable, Store, Target};

/// Names the PostgreSQL server of the tests: a `postgres://` URL without `options`, whose user may create
/// databases.
pub const DATABASE_URL: &str = "STAGEDOOR_TEST_DATABASE_URL";

/// The schema of the tables, which is the only one in the search path: an operator may have such a schema.
const SCHEMA: &str = "stagedoor";
/// The lock of the process that makes the database of the copies.
const TEMPLATE_LOCK: i64 = 0x7465_6d70_6c61_7465;
/// Hex digits of the migrations' checksum in the name of the database of the copies.
const CHECKSUM_DIGITS: usize = 16;
/// A statement is tried for a minute while something else uses its database.
const TRIES: u32 = 600;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// The longest that partitions of one table are made.
const UPKEEP_MAX: Duration = Duration::from_secs(60);

/// The test server's URL.
///
/// # Panics
/// If `STAGEDOOR_TEST_DATABASE_URL` is missing.
pub fn database_url() -> String {
    std::env::var(DATABASE_URL).unwrap_or_else(|_| {
        panic!(
            "{DATABASE_URL} is not set: tests run on both engines and are never skipped. \
             Run them by the project's test command, which starts a PostgreSQL server for them."
        )
    })
}

/// A database of the test server.
pub(super) struct Database {
    name: String,
}

impl Database {
    /// A new one, without tables.
    pub async fn empty(name: String) -> Self {
        create(&server().await, &name, "template0").await;
        let database = Self { name };
        let client = connect(&database.bare_url()).await;
        run(&client, &format!("CREATE SCHEMA {SCHEMA}")).await;
        database
    }

    /// A new one, with the tables of this program, and with the partitions of that time.
    pub async fn migrated(name: String, at: Option<Timestamp>) -> Self {
        static TEMPLATES: Mutex<Vec<String>> = Mutex::const_new(Vec::new());
        let template = template_name(at);
        let mut known = TEMPLATES.lock().await;
        if !known.contains(&template) {
            make_template(&template, at).await;
            known.push(template.clone());
        }
        drop(known);
        create(&server().await, &name, &template).await;
        Self { name }
    }

    /// The URL of the store in it.
    pub fn url(&self) -> String {
        let url = self.bare_url();
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}options=-c%20search_path%3D{SCHEMA}")
    }

    /// Removes it, with the connections that it still has.
    pub async fn remove(&self) {
        run(&server().await, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)).await;
    }

    /// The server's URL, with this database in place of the named one.
    fn bare_url(&self) -> String {
        let url = database_url();
        let (address, parameters) = url.split_at(url.find('?').unwrap_or(url.len()));
        let (server, _) = address.rsplit_once('/').expect("a URL that names a database");
        format!("{server}/{}{parameters}", self.name)
    }
}

/// The name of the database of the copies. Partitions are those of a day.
fn template_name(at: Option<Timestamp>) -> String {
    let day = at.map(|at| format!("_{}", at.as_millis() / DAY_MS));
    format!("template_{}{}", checksum(), day.unwrap_or_default())
}

/// Makes the database of the copies, if the server has none with these migrations.
async fn make_template(name: &str, at: Option<Timestamp>) {
    let client = server().await;
    run(&client, &format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})")).await;
    let known = client.query("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]).await;
    if known.expect("the test server answers").is_empty() {
        let unfinished = format!("{name}_unfinished");
        run(&client, &format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)")).await;
        let database = Database::empty(unfinished).await;
        let target = Target::Postgres { url: DatabaseUrl::from(database.url()) };
        let store = Store::open(target, Options::default()).await.expect("the migrations pass");
        if let Some(at) = at {
            make_partitions(&store, at).await;
        }
        store.close().await;
        run(&client, &format!("ALTER DATABASE {} RENAME TO {name}", database.name)).await;
    }
}

/// Makes the partitions that a node of this time makes when it starts.
async fn make_partitions(store: &Store, at: Timestamp) {
    let retention = Retention::default();
    for table in PartitionedTable::ALL {
        let kept_ms = retention.kept_ms(table.retained());
        store.keep_partitions(table, at, kept_ms, UPKEEP_MAX).await.expect("partitions are made");
    }
}

fn checksum() -> String {
    let mut checksum = Sha256::new();
    MIGRATIONS.iter().for_each(|migration| checksum.update(migration.checksum()));
    let digits: String = checksum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    digits[..CHECKSUM_DIGITS].to_owned()
}

async fn create(server: &Client, name: &str, template: &str) {
    run(server, &format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")).await;
}

async fn server() -> Client {
    connect(&database_url()).await
}

/// A connection, which ends when the client is dropped.
async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .unwrap_or_else(|error| panic!("the server of {DATABASE_URL} does not answer: {error}"));
    tokio::spawn(connection);
    client
}

/// Runs a statement, which may need its database for itself. The server refuses the statement while an
/// autovacuum worker uses the database, with "permission denied" if the role is no superuser.
async fn run(client: &Client, sql: &str) {
    for _ in 0..TRIES {
        let Err(error) = client.batch_execute(sql).await else { return };
        let code = error.code();
        let in_use = [SqlState::OBJECT_IN_USE, SqlState::INSUFFICIENT_PRIVILEGE];
        assert!(in_use.iter().any(|known| code == Some(known)), "{sql}: {error:?}");
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
    panic!("{sql}: the database is in use, or the test's user may not create databases");
}
