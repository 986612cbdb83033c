//! A new SQLite file that rows are copied into.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, params_from_iter};

use super::Chunk;
use super::catalog::TableShape;
use super::snapshot::blocking;
use crate::StoreError;
use crate::migrate::MIGRATIONS;
use crate::sqlite::connection::{SqliteConnection, SqliteParameter, running, unopened};

/// A file that gets its name when it is complete and synced. Rows come parents first, but a chunk may name a
/// row of its own table that comes later, so the foreign keys are checked at the end.
const SETUP: &str = "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -65536;";

/// A file that is being filled.
pub(super) struct SqliteCopy(Arc<Mutex<Connection>>);

impl SqliteCopy {
    /// Makes the file with an empty schema.
    pub async fn create(path: &Path) -> Result<Self, StoreError> {
        let path = path.to_owned();
        blocking(move || {
            let mut migrating = SqliteConnection::open_for_writing(&path)?;
            migrating.stop_syncing()?;
            migrating.migrate(MIGRATIONS)?;
            drop(migrating);
            let connection = Connection::open(&path).map_err(|error| unopened(&path, error))?;
            connection.execute_batch(SETUP).map_err(|error| running(error, SETUP))?;
            Ok(Self(Arc::new(Mutex::new(connection))))
        })
        .await
    }

    /// Deletes the rows that migrations have inserted.
    pub async fn clear(&self, table: &TableShape) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM {}", table.name);
        self.with(move |connection| connection.execute_batch(&sql)).await
    }

    pub async fn insert(&self, table: &TableShape, chunk: Chunk) -> Result<(), StoreError> {
        let sql = table.insert();
        self.with(move |connection| {
            let transaction = connection.transaction()?;
            let mut statement = transaction.prepare_cached(&sql)?;
            for row in &chunk {
                statement.execute(params_from_iter(row.values().iter().map(SqliteParameter)))?;
            }
            drop(statement);
            transaction.commit()
        })
        .await
    }

    /// Moves the log into the file, which is then complete, and leaves the mode with a log.
    pub async fn finish(&self) -> Result<(), StoreError> {
        self.with(|connection| connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))).await
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let connection = self.0.clone();
        blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut connection).map_err(|error| running(error, ""))
        })
        .await
    }
}
