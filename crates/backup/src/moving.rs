//! Moves a store to another engine, while no node runs on it.

use std::path::{Path, PathBuf};

use domain::Timestamp;
use domain::limits::NODE_DEAD_AFTER_MS;
use store::transfer::{CopyBegin, HeldFile, Snapshot, copy_to_postgres, copy_to_sqlite};
use store::{DatabaseUrl, Target};

use crate::manifest::{TableEntry, compare};
use crate::new_file::NewDataFile;
use crate::report::{OnReport, forward};
use crate::take::{sums, verify};
use crate::{BackupError, files};

/// From where to where.
#[derive(Debug, Clone)]
pub enum Move {
    /// From a SQLite file into an empty schema of PostgreSQL.
    ToPostgres {
        /// The file.
        from: PathBuf,
        /// The database.
        to: DatabaseUrl,
        /// What becomes of a move that was interrupted.
        begin: CopyBegin,
    },
    /// From PostgreSQL into a new SQLite file.
    ToSqlite {
        /// The database.
        from: DatabaseUrl,
        /// The file.
        to: PathBuf,
    },
}

/// A store that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its tables, compared on both sides.
    pub tables: Vec<TableEntry>,
}

/// Copies all rows, and compares every table on both sides.
///
/// # Errors
/// [`BackupError::Refused`] if the place is not empty or a node runs; [`BackupError::Damaged`] if a table
/// differs.
pub async fn move_store(work: &Move, now: Timestamp, on_report: OnReport<'_>) -> Result<Moved, BackupError> {
    let tables = match work {
        Move::ToPostgres { from, to, begin } => to_postgres(from, to, *begin, on_report).await?,
        Move::ToSqlite { from, to } => to_sqlite(from, to, now, on_report).await?,
    };
    Ok(Moved { tables })
}

async fn to_postgres(
    from: &Path,
    to: &DatabaseUrl,
    begin: CopyBegin,
    on_report: OnReport<'_>,
) -> Result<Vec<TableEntry>, BackupError> {
    files::check_owner(from)?;
    // No service can start on the file, nor write to it, until the move has ended.
    let _held = HeldFile::lock(from).map_err(BackupError::of("the source"))?;
    let source = Target::Sqlite { path: from.to_owned() };
    let snapshot = Snapshot::open(&source).await.map_err(BackupError::of("the source"))?;
    let identity = snapshot.identity().await.map_err(BackupError::of("the source"))?;
    // By its id, because another store can be in the same file by now.
    let name = format!("the store {}", identity.store_id);
    let copied = copy_to_postgres(&snapshot, to, &name, begin, &mut forward(on_report)).await;
    copied.map_err(BackupError::of("the destination"))?;
    let tables = sums(&snapshot, on_report).await?;
    let target = Target::Postgres { url: to.clone() };
    let moved = Snapshot::open(&target).await.map_err(BackupError::of("the destination"))?;
    compare(&tables, &sums(&moved, on_report).await?)?;
    Ok(tables)
}

async fn to_sqlite(
    from: &DatabaseUrl,
    to: &Path,
    now: Timestamp,
    on_report: OnReport<'_>,
) -> Result<Vec<TableEntry>, BackupError> {
    let new = NewDataFile::begin(to)?;
    let source = Target::Postgres { url: from.clone() };
    let snapshot = Snapshot::open(&source).await.map_err(BackupError::of("the source"))?;
    refuse_running_nodes(&snapshot, now).await?;
    let copied = copy_to_sqlite(&snapshot, new.partial(), &mut forward(on_report)).await;
    copied.map_err(BackupError::of("the destination"))?;
    let tables = sums(&snapshot, on_report).await?;
    verify(new.partial(), &tables, on_report).await?;
    files::settle(new.partial())?;
    new.complete()?;
    Ok(tables)
}

/// A node that runs writes rows that the move would not have.
async fn refuse_running_nodes(snapshot: &Snapshot, now: Timestamp) -> Result<(), BackupError> {
    let since = now.plus_ms(-NODE_DEAD_AFTER_MS).as_millis();
    let nodes = snapshot.nodes_seen_after(since).await.map_err(BackupError::of("the source"))?;
    if nodes.is_empty() {
        return Ok(());
    }
    Err(BackupError::Refused(format!(
        "nodes are running on the source, or were until {} seconds ago: {}. Stop all nodes first",
        NODE_DEAD_AFTER_MS / 1_000,
        nodes.join(", ")
    )))
}
