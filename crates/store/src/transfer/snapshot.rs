//! A store as it is at one moment.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::catalog::{Catalog, TableShape};
use super::postgres_source::Connected;
use super::sum::{Adder, TableSum};
use super::{CHUNKS_WAITING, Chunks, OnProgress, Progress, Step, sqlite_source, structure};
use crate::migrate::{self, Applied, MIGRATIONS};
use crate::queries::invariants::{Invariant, NAMED_MAX};
use crate::queries::store_identity::StoreIdentity;
use crate::{Row, StoreError, Target, Value};

/// All rows of a store at one moment. The service may run and write meanwhile. While the value lives, SQLite
/// cannot shorten its log, and PostgreSQL keeps deleted rows.
pub struct Snapshot {
    source: Source,
    catalog: Catalog,
}

enum Source {
    Sqlite(Arc<Mutex<Connection>>),
    Postgres(Arc<Connected>),
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Snapshot").field(&self.engine()).finish()
    }
}

impl Snapshot {
    /// Opens a store of this program's schema.
    ///
    /// # Errors
    /// [`StoreError::Open`] if there is no store, or its schema is older or newer than this program's;
    /// [`StoreError::Unavailable`] if the server cannot be reached.
    pub async fn open(target: &Target) -> Result<Self, StoreError> {
        let (source, applied) = match target {
            Target::Sqlite { path } => {
                let path = path.clone();
                let open = move || {
                    let connection = sqlite_source::open(&path)?;
                    let applied = sqlite_source::history(&connection)?;
                    Ok((Source::Sqlite(Arc::new(Mutex::new(connection))), applied))
                };
                blocking(open).await?
            }
            Target::Postgres { url } => {
                let connected = Connected::open(url).await?;
                connected.begin_snapshot().await?;
                let applied = connected.history().await?;
                (Source::Postgres(Arc::new(connected)), applied)
            }
        };
        check_history(&applied)?;
        Ok(Self { source, catalog: Catalog::of(MIGRATIONS)? })
    }

    /// `sqlite` or `postgresql`.
    pub fn engine(&self) -> &'static str {
        match self.source {
            Source::Sqlite(_) => "sqlite",
            Source::Postgres(_) => "postgresql",
        }
    }

    /// The number of the latest migration of the schema.
    pub fn schema_version(&self) -> i64 {
        MIGRATIONS.last().map_or(0, |migration| migration.version)
    }

    /// What contradicts a sentence: the first [`NAMED_MAX`] names, and whether there are more.
    ///
    /// # Errors
    /// The engine's.
    pub async fn contradictions(&self, invariant: &Invariant) -> Result<(Vec<String>, bool), StoreError> {
        Ok(first_names(self.texts(&invariant.sql).await?))
    }

    /// The texts of the only column of a statement.
    async fn texts(&self, sql: &str) -> Result<Vec<String>, StoreError> {
        match &self.source {
            Source::Sqlite(connection) => {
                let (connection, sql) = (connection.clone(), sql.to_owned());
                let read = move || {
                    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                    sqlite_source::texts(&connection, &sql)
                };
                blocking(read).await
            }
            Source::Postgres(connected) => connected.texts(sql).await,
        }
    }

    /// What cannot be read: the first damaged pages and indexes of a SQLite file, and on both engines the
    /// tables of which a backup would fail. Reads everything.
    ///
    /// # Errors
    /// The store is not reached.
    pub async fn damage(&self) -> Result<(Vec<String>, bool), StoreError> {
        let mut damaged = self.damaged_pages().await?;
        for table in self.catalog.tables() {
            match self.read_table(table, &mut |_| {}).await {
                Ok(()) => {}
                Err(StoreError::Corrupt(problem)) => damaged.push(problem),
                Err(error) => return Err(error),
            }
            if let Source::Postgres(connected) = &self.source {
                connected.go_on().await?;
            }
        }
        Ok(first_names(damaged))
    }

    async fn damaged_pages(&self) -> Result<Vec<String>, StoreError> {
        let Source::Sqlite(connection) = &self.source else { return Ok(Vec::new()) };
        let connection = connection.clone();
        let check = move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            sqlite_source::problems(&connection, structure::SQLITE_PAGES)
        };
        blocking(check).await
    }

    /// Reads every row of a table.
    async fn read_table(
        &self,
        table: &TableShape,
        on_rows: &mut (dyn FnMut(&[Row]) + Send),
    ) -> Result<(), StoreError> {
        let mut chunks = self.select(table, table.select_all(), Vec::new());
        while let Some(chunk) = chunks.recv().await {
            on_rows(&chunk?);
        }
        Ok(())
    }

    /// The first rows that name a row which is not there, by the foreign keys of the schema.
    ///
    /// # Errors
    /// The engine's.
    pub async fn orphans(&self) -> Result<(Vec<String>, bool), StoreError> {
        let references = match &self.source {
            Source::Sqlite(_) => structure::SQLITE_REFERENCES,
            Source::Postgres(_) => structure::POSTGRES_REFERENCES,
        };
        match structure::orphans_sql(&self.texts(references).await?) {
            Some(sql) => Ok(first_names(self.texts(&sql).await?)),
            None => Ok((Vec::new(), false)),
        }
    }

    /// The nodes that were alive after this time, in epoch milliseconds: they write to the store.
    ///
    /// # Errors
    /// The engine's.
    pub async fn nodes_seen_after(&self, ms: i64) -> Result<Vec<String>, StoreError> {
        let table = self.catalog.table("nodes")?;
        let mut chunks = self.select(table, table.select_all(), Vec::new());
        let (id, seen_at) = (table.position("node_id"), table.position("seen_at"));
        let mut nodes = Vec::new();
        while let Some(chunk) = chunks.recv().await {
            for row in chunk? {
                if row.get::<i64>(seen_at)? > ms {
                    nodes.push(row.get(id)?);
                }
            }
        }
        Ok(nodes)
    }

    /// What the store says of itself.
    ///
    /// # Errors
    /// The engine's, and [`StoreError::NoRow`] if it says nothing.
    pub async fn identity(&self) -> Result<StoreIdentity, StoreError> {
        let table = self.catalog.table("store_identity")?;
        let position = |name| table.position(name);
        let mut chunks = self.select(table, table.select_all(), Vec::new());
        let rows = chunks.recv().await.transpose()?.unwrap_or_default();
        let row = rows.first().ok_or(StoreError::NoRow)?;
        Ok(StoreIdentity {
            store_id: row.get(position("store_id"))?,
            key_test: row.get(position("key_test"))?,
            former_key_test: row.get(position("former_key_test"))?,
        })
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The rows of a table, in the order of its key and after `after` if it has a key and one is given.
    pub(super) fn rows(&self, table: &TableShape, after: Option<Vec<Value<'static>>>) -> Chunks {
        let sql = match table.key.is_empty() {
            true => table.select_all(),
            false => table.select_in_order(after.is_some()),
        };
        self.select(table, sql, after.unwrap_or_default())
    }

    fn select(&self, table: &TableShape, sql: String, params: Vec<Value<'static>>) -> Chunks {
        let (sender, chunks) = mpsc::channel(CHUNKS_WAITING);
        let table = table.clone();
        match &self.source {
            Source::Sqlite(connection) => {
                let connection = connection.clone();
                tokio::task::spawn_blocking(move || {
                    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                    sqlite_source::send_rows(&connection, &table, &sql, &params, &sender);
                });
            }
            Source::Postgres(connected) => {
                let connected = connected.clone();
                tokio::spawn(async move { connected.send_rows(&table, &sql, &params, &sender).await });
            }
        }
        chunks
    }

    /// Reads every row, and adds up the rows of each table.
    ///
    /// # Errors
    /// The engine's.
    pub async fn sums(&self, on_progress: OnProgress<'_>) -> Result<Vec<TableSum>, StoreError> {
        let mut sums = Vec::new();
        for table in self.catalog.tables() {
            let mut adder = Adder::default();
            let mut add = |rows: &[Row]| {
                tokio::task::block_in_place(|| rows.iter().for_each(|row| adder.add(row)));
                on_progress(Progress { step: Step::Sum, table: &table.name, done: adder.rows() });
            };
            self.read_table(table, &mut add).await?;
            sums.push(adder.finish(&table.name));
        }
        Ok(sums)
    }

    /// Copies a SQLite store into a new file, page by page. The file is not synced.
    ///
    /// # Errors
    /// [`StoreError::Misuse`] on PostgreSQL, else the engine's.
    pub fn copy_file(&self, to: PathBuf, on_progress: OnProgress<'_>) -> Result<(), StoreError> {
        let Source::Sqlite(connection) = &self.source else {
            return Err(StoreError::Misuse("only a SQLite store is one file"));
        };
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::task::block_in_place(|| sqlite_source::copy_pages(&connection, &to, on_progress))
    }
}

/// The first [`NAMED_MAX`] names, and whether there are more.
fn first_names(mut names: Vec<String>) -> (Vec<String>, bool) {
    let are_more = names.len() > NAMED_MAX;
    names.truncate(NAMED_MAX);
    (names, are_more)
}

/// Runs blocking work of a store.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let interrupted = |_| StoreError::Unavailable("the work was interrupted".to_owned());
    tokio::task::spawn_blocking(work).await.map_err(interrupted)?
}

/// Refuses a schema that is not exactly this program's.
fn check_history(applied: &[Applied]) -> Result<(), StoreError> {
    if applied.is_empty() {
        return Err(StoreError::Open("it has no schema of stagedoor".to_owned()));
    }
    match migrate::pending(MIGRATIONS, applied)? {
        [] => Ok(()),
        [first, ..] => Err(StoreError::Open(format!(
            "its schema is older than this program's: migration {} ({}) is missing. Start `stagedoor serve` of this \
             version once, or use the older program",
            first.version, first.name
        ))),
    }
}
