//! The rows and pages of a SQLite file that another process may be writing to.

use std::ffi::c_int;
use std::path::Path;

use domain::StoreId;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::catalog::{ColumnKind, TABLES, TableShape};
use super::{CHUNK_ROWS, ChunkSender, OnProgress, Progress, Step};
use crate::migrate::{self, Applied};
use crate::sqlite::connection::{SqliteParameter, preparing, running, unopened};
use crate::sqlite::{FileLock, lock};
use crate::{Row, StoreError, Value};

/// Pages between two reports of the progress of a copy: 4 MiB.
const PAGES_A_STEP: c_int = 1_024;

/// A reader with a larger cache than the service's readers.
const SETUP: &str = "
    PRAGMA busy_timeout = 5000;
    PRAGMA query_only = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cache_size = -16384;
";

/// A data file that no other process can open as a store while the value lives.
#[derive(Debug)]
pub struct HeldFile {
    _lock: FileLock,
}

impl HeldFile {
    /// Locks an existing data file, as a running service does.
    ///
    /// # Errors
    /// [`StoreError::Open`] if there is no file, or a process has it open.
    pub fn lock(path: &Path) -> Result<Self, StoreError> {
        let whole = path.canonicalize();
        let whole =
            whole.map_err(|error| StoreError::Open(format!("cannot open {}: {error}", path.display())))?;
        Ok(Self { _lock: lock(&whole)? })
    }
}

/// Opens an existing file for reading, and begins a transaction, so that every later read sees the same data.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let missing =
        |error: &dyn std::fmt::Display| StoreError::Open(format!("cannot open {}: {error}", path.display()));
    std::fs::metadata(path).map_err(|error| missing(&error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| unopened(path, error))?;
    // The first read fixes the data that the transaction sees.
    let begin = || connection.execute_batch(&format!("{SETUP} BEGIN; SELECT COUNT(*) FROM sqlite_master;"));
    begin().map_err(|error| unopened(path, error))?;
    Ok(connection)
}

/// The applied migrations of an open file.
pub(super) fn history(connection: &Connection) -> Result<Vec<Applied>, StoreError> {
    let read = || -> rusqlite::Result<Vec<Applied>> {
        let mut statement = connection.prepare(migrate::READ_HISTORY)?;
        let rows =
            statement.query_map([], |row| Ok(Applied { version: row.get(0)?, checksum: row.get(1)? }))?;
        rows.collect()
    };
    read().map_err(|_| StoreError::Open("it is not a store of stagedoor".to_owned()))
}

/// The texts of the only column of a statement.
pub(super) fn texts(connection: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare(sql).map_err(|error| preparing(error, ""))?;
    let texts = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect);
    texts.map_err(|error| running(error, ""))
}

/// The problems that the check `sql` of the file names. A check that cannot go on is one of them.
pub(super) fn problems(connection: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare(sql).map_err(|error| running(error, ""))?;
    let mut rows = statement.query([]).map_err(|error| running(error, ""))?;
    let mut problems = Vec::new();
    loop {
        match rows.next().and_then(|row| row.map(|row| row.get::<_, String>(0)).transpose()) {
            Ok(Some(problem)) if problem == "ok" => {}
            Ok(Some(problem)) => problems.push(problem),
            Ok(None) => return Ok(problems),
            Err(error) => {
                problems.push(running(error, "").to_string());
                return Ok(problems);
            }
        }
    }
}

/// Sends the rows of a table in chunks, and stops when the receiver is gone.
pub(super) fn send_rows(
    connection: &Connection,
    table: &TableShape,
    sql: &str,
    params: &[Value<'static>],
    to: &ChunkSender,
) {
    if let Err(error) = send_rows_or_fail(connection, table, sql, params, to) {
        // A receiver that is gone needs no error.
        let _ = to.blocking_send(Err(table.unread(error)));
    }
}

fn send_rows_or_fail(
    connection: &Connection,
    table: &TableShape,
    sql: &str,
    params: &[Value<'static>],
    to: &ChunkSender,
) -> Result<(), StoreError> {
    let failed = |error| running(error, "");
    let mut statement = connection.prepare(sql).map_err(|error| preparing(error, ""))?;
    let mut rows = statement.query(params_from_iter(params.iter().map(SqliteParameter))).map_err(failed)?;
    let mut chunk = Vec::with_capacity(CHUNK_ROWS);
    while let Some(row) = rows.next().map_err(failed)? {
        let mut values = Vec::with_capacity(table.columns.len());
        for (index, column) in table.columns.iter().enumerate() {
            values.push(read(row.get_ref(index).map_err(failed)?, column.kind, index)?);
        }
        chunk.push(Row::new(values));
        if chunk.len() == CHUNK_ROWS {
            let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK_ROWS));
            if to.blocking_send(Ok(full)).is_err() {
                return Ok(());
            }
        }
    }
    if !chunk.is_empty() {
        let _ = to.blocking_send(Ok(chunk));
    }
    Ok(())
}

/// A value as the type of its column. SQLite stores whatever it is given.
fn read(value: ValueRef<'_>, kind: ColumnKind, column: usize) -> Result<Value<'static>, StoreError> {
    let other = |found: &str| StoreError::Decode { column, wanted: kind.name(), found: found.to_owned() };
    match (value, kind) {
        (ValueRef::Null, _) => Ok(Value::Null),
        (ValueRef::Integer(value), ColumnKind::Integer) => Ok(Value::Int(value)),
        (ValueRef::Integer(value @ (0 | 1)), ColumnKind::Boolean) => Ok(Value::Bool(value == 1)),
        (ValueRef::Text(bytes), ColumnKind::Text) => std::str::from_utf8(bytes)
            .map(|text| Value::Text(text.to_owned().into()))
            .map_err(|_| other("text that is not UTF-8")),
        (ValueRef::Integer(_), _) => Err(other("bigint")),
        (ValueRef::Text(_), _) => Err(other("text")),
        (ValueRef::Real(_), _) => Err(other("real")),
        (ValueRef::Blob(_), _) => Err(other("blob")),
    }
}

/// Copies the pages of the transaction of `connection` into a new file. Other processes may write meanwhile.
pub(super) fn copy_pages(
    connection: &Connection,
    to: &Path,
    on_progress: OnProgress<'_>,
) -> Result<(), StoreError> {
    let failed = |error| running(error, "");
    let mut copy = Connection::open(to).map_err(|error| unopened(to, error))?;
    // `to` gets its name when it is complete and synced.
    copy.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;").map_err(failed)?;
    let backup = Backup::new(connection, &mut copy).map_err(failed)?;
    loop {
        let step = backup.step(PAGES_A_STEP).map_err(failed)?;
        let pages = backup.progress();
        let done = u64::try_from(pages.pagecount - pages.remaining).unwrap_or_default();
        on_progress(Progress { step: Step::CopyFile, table: "", done });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => return Err(StoreError::Busy("another process holds the data file")),
        }
    }
}

/// The tables of a file that no process writes to, of whatever schema, with the numbers of their rows.
///
/// # Errors
/// The engine's; [`StoreError::Open`] if the file cannot be opened.
pub fn count_rows(path: &Path) -> Result<Vec<(String, u64)>, StoreError> {
    let connection = open(path)?;
    let count = |table: String| -> rusqlite::Result<(String, u64)> {
        let sql = format!("SELECT COUNT(*) FROM \"{}\"", table.replace('"', "\"\""));
        let rows: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
        Ok((table, rows.unsigned_abs()))
    };
    let tables = texts(&connection, TABLES)?;
    let counted = tables.into_iter().map(count).collect::<rusqlite::Result<_>>();
    counted.map_err(|error| running(error, ""))
}

/// The id of the store of a file, and the test of its service key; `None` if its schema is older than both.
///
/// # Errors
/// The engine's.
pub fn file_identity(path: &Path) -> Result<Option<(StoreId, Option<String>)>, StoreError> {
    let connection = open(path)?;
    if texts(&connection, "SELECT name FROM sqlite_master WHERE name = 'store_identity'")?.is_empty() {
        return Ok(None);
    }
    let sql = "SELECT store_id, key_test FROM store_identity WHERE identity_id = 1";
    let found = connection.query_row(sql, [], |row| Ok((StoreId::stored(row.get(0)?), row.get(1)?)));
    found.map(Some).map_err(|error| running(error, ""))
}

/// Checks the pages, indexes and foreign keys of a file that no process writes to.
///
/// # Errors
/// [`StoreError::Corrupt`] names the first problem; [`StoreError::Open`] if the file cannot be opened.
pub fn check_file(path: &Path) -> Result<(), StoreError> {
    let connection = open(path)?;
    let first = |sql: &str| -> Result<Option<String>, StoreError> {
        let found = connection.query_row(sql, [], |row| row.get::<_, String>(0));
        match found {
            Ok(text) => Ok(Some(text)),
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            Err(error) => Err(running(error, "")),
        }
    };
    if let Some(problem) = first("PRAGMA integrity_check(1)")?.filter(|text| text != "ok") {
        return Err(StoreError::Corrupt(problem));
    }
    if let Some(table) = first("PRAGMA foreign_key_check")? {
        return Err(StoreError::Corrupt(format!(
            "a row of {table} names a row that is not there: stagedoor doctor --deep says which, and how to mend it"
        )));
    }
    Ok(())
}
