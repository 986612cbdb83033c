//! Copies of a snapshot into the other engine, or the same one.

use std::path::Path;

use super::catalog::TableShape;
use super::postgres_copy::{CopyBegin, PostgresCopy, TableState};
use super::sqlite_copy::SqliteCopy;
use super::{OnProgress, Progress, Snapshot, Step};
use crate::{DatabaseUrl, StoreError};

/// Copies all rows into a new SQLite file, which is not synced.
///
/// # Errors
/// [`StoreError::Open`] if the file cannot be made, else the engines'.
pub async fn copy_to_sqlite(
    snapshot: &Snapshot,
    path: &Path,
    on_progress: OnProgress<'_>,
) -> Result<(), StoreError> {
    let copy = SqliteCopy::create(path).await?;
    for table in snapshot.catalog().tables() {
        copy.clear(table).await?;
        let mut chunks = snapshot.rows(table, None);
        let mut done = 0;
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk?;
            done += chunk.len() as u64;
            copy.insert(table, chunk).await?;
            on_progress(Progress { step: Step::CopyRows, table: &table.name, done });
        }
    }
    copy.finish().await
}

/// Copies all rows into an empty schema of PostgreSQL. A copy of the same `source` that was interrupted goes
/// on, unless `begin` says otherwise. No node can start on the schema before [`copy_to_postgres`] has
/// succeeded.
///
/// # Errors
/// [`StoreError::Open`] if the schema has a store, or a part of another source; else the engines'.
pub async fn copy_to_postgres(
    snapshot: &Snapshot,
    url: &DatabaseUrl,
    source: &str,
    begin: CopyBegin,
    on_progress: OnProgress<'_>,
) -> Result<(), StoreError> {
    let copy = PostgresCopy::begin(url, source, begin).await?;
    let tables = snapshot.catalog().tables();
    clear_fresh(&copy, tables).await?;
    for table in tables {
        let after = match copy.state(table).await? {
            TableState::Done => continue,
            TableState::After(key) => Some(key),
            TableState::Fresh => None,
        };
        let mut done = 0;
        let mut on_rows = |rows: usize| {
            done += rows as u64;
            on_progress(Progress { step: Step::CopyRows, table: &table.name, done });
        };
        copy.copy_table(table, &mut snapshot.rows(table, after), &mut on_rows).await?;
    }
    copy.finish().await
}

/// Empties the tables whose copy has not begun: migrations have inserted rows, and a copy can begin anew.
/// A table that names one of them is younger, so its copy has not begun either.
async fn clear_fresh(copy: &PostgresCopy, tables: &[TableShape]) -> Result<(), StoreError> {
    for table in tables {
        if matches!(copy.state(table).await?, TableState::Fresh) {
            copy.clear(table).await?;
        }
    }
    Ok(())
}
