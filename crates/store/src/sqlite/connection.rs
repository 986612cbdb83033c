//! A connection to the file: its settings, its statements, and the meaning of its errors.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_int;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::hooks;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, InterruptHandle, OpenFlags, ToSql, ffi};

use super::functions::add_functions;
use crate::migrate::{self, Applied, MigratedEngine, Migration};
use crate::{Row, StoreError, Value};

/// Copies all pages in one step.
const ALL_PAGES: c_int = -1;

/// Prepared statements that a connection keeps: more than the service has.
const STATEMENT_CACHE: usize = 256;

/// The first version without the bug that could damage a database in WAL mode.
const OLDEST_SQLITE: (i32, &str) = (3_051_003, "3.51.3");

/// Every connection: wait 2 s for a foreign lock (a backup's); LIKE and quotes as on PostgreSQL.
const SETUP: &str = "
    PRAGMA busy_timeout = 2000;
    PRAGMA foreign_keys = ON;
    PRAGMA case_sensitive_like = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA temp_store = MEMORY;
";

/// The writer: 2 MiB of cache, and a log file of at most 64 MiB after a restart of the log. `wal.rs` syncs
/// the commits, and `checkpointer.rs` makes the checkpoints.
///
/// The caches are small and the file is not mapped, because the system caches the file's pages anyway. A
/// second copy in this process would save a microsecond a page, and take the memory of thousands of sessions.
const SETUP_WRITER: &str = "
    PRAGMA synchronous = NORMAL;
    PRAGMA cache_size = -2048;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 67108864;
";

/// The checkpointer: it syncs the data file before the log may restart. It runs no queries, so it needs no
/// cache.
const SETUP_CHECKPOINTS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA cache_size = 10;
";

/// A writer and a checkpointer whose file does not outlive the process.
const SETUP_UNSYNCED: &str = "PRAGMA synchronous = OFF;";

/// A file that is copied from another one. An incomplete copy is never read.
const SETUP_COPY: &str = "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;";

/// A reader: 1 MiB of cache, and no writing.
const SETUP_READER: &str = "
    PRAGMA cache_size = -1024;
    PRAGMA query_only = ON;
";

/// The first read fixes the data that a transaction sees.
const PIN: &str = "BEGIN; SELECT COUNT(*) FROM sqlite_master;";
const UNPIN: &str = "ROLLBACK";

/// Refuses a SQLite library with a known data-loss bug.
pub(super) fn check_version() -> Result<(), StoreError> {
    if rusqlite::version_number() >= OLDEST_SQLITE.0 {
        return Ok(());
    }
    let (found, needed) = (rusqlite::version(), OLDEST_SQLITE.1);
    Err(StoreError::Open(format!("SQLite {found} may damage its log: {needed} or newer is needed")))
}

/// The address and the length of a statement's text, which is never moved or freed.
type StatementAddress = (usize, usize);

/// A connection, used by one thread.
pub(crate) struct SqliteConnection {
    sqlite: rusqlite::Connection,
    /// The order of the parameters of each statement that has run.
    parameter_orders: HashMap<StatementAddress, ParameterOrder>,
}

/// The index of the parameter at each of SQLite's positions.
type ParameterOrder = Box<[usize]>;

impl SqliteConnection {
    fn new(sqlite: rusqlite::Connection) -> Self {
        Self { sqlite, parameter_orders: HashMap::new() }
    }

    pub(crate) fn open_for_writing(path: &Path) -> Result<Self, StoreError> {
        let open = || -> rusqlite::Result<(Self, String)> {
            let connection = open(path)?;
            let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
            connection.execute_batch(SETUP_WRITER)?;
            Ok((Self::new(connection), mode))
        };
        match open() {
            Ok((connection, mode)) if mode.eq_ignore_ascii_case("wal") => Ok(connection),
            Ok(_) => Err(refuse(path, &"its file system does not support the write-ahead log")),
            Err(error) => Err(unopened(path, error)),
        }
    }

    pub(super) fn open_for_reading(path: &Path) -> Result<Self, StoreError> {
        let connection = open(path).map_err(|error| unopened(path, error))?;
        connection.execute_batch(SETUP_READER).map_err(|error| unopened(path, error))?;
        Ok(Self::new(connection))
    }

    pub(super) fn open_for_checkpoints(path: &Path) -> Result<Self, StoreError> {
        let connection = open(path).map_err(|error| unopened(path, error))?;
        connection.execute_batch(SETUP_CHECKPOINTS).map_err(|error| unopened(path, error))?;
        Ok(Self::new(connection))
    }

    /// Leaves the log as it is when this connection is closed last. SQLite would move it into the data file.
    pub(super) fn keep_log(&self) -> Result<(), StoreError> {
        let kept = self.sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        kept.map(drop).map_err(|error| running(error, ""))
    }

    /// Begins to read the data of now. Until [`unpin`](Self::unpin) no checkpoint passes them, and the log is
    /// not overwritten.
    pub(super) fn pin(&self) -> Result<(), StoreError> {
        let pinned = self.sqlite.execute_batch(PIN);
        pinned.map_err(|error| running(error, PIN))
    }

    /// Ends [`pin`](Self::pin).
    pub(super) fn unpin(&self) -> Result<(), StoreError> {
        self.sqlite.execute_batch(UNPIN).map_err(|error| running(error, UNPIN))
    }

    /// Turns the syncs of this connection off.
    pub(crate) fn stop_syncing(&self) -> Result<(), StoreError> {
        self.sqlite.execute_batch(SETUP_UNSYNCED).map_err(|error| running(error, SETUP_UNSYNCED))
    }

    /// Copies the committed data into a new file. Writes go on meanwhile.
    pub(super) fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let copy = || -> rusqlite::Result<StepResult> {
            let mut copy = rusqlite::Connection::open(path)?;
            copy.execute_batch(SETUP_COPY)?;
            Backup::new(&self.sqlite, &mut copy)?.step(ALL_PAGES)
        };
        match copy() {
            Ok(StepResult::Done) => Ok(()),
            Ok(_) => Err(StoreError::Busy("another process holds the data file")),
            Err(error) => Err(running(error, "")),
        }
    }

    /// Calls `on_commit` after every commit, with the number of pages in the write-ahead log.
    pub(super) fn watch_wal(
        &mut self,
        mut on_commit: impl FnMut(u32) + Send + 'static,
    ) -> Result<(), StoreError> {
        let hook = move |_: &mut hooks::Wal, pages: c_int| {
            on_commit(pages.unsigned_abs());
            Ok(())
        };
        let hooked = self.sqlite.wal_hook(Some(hook));
        hooked.map_err(|error| StoreError::Open(format!("cannot watch its write-ahead log: {error}")))
    }

    /// Whether a transaction has begun and not ended.
    pub(super) fn in_transaction(&self) -> bool {
        !self.sqlite.is_autocommit()
    }

    pub(super) fn interrupt_handle(&self) -> InterruptHandle {
        self.sqlite.get_interrupt_handle()
    }

    /// Checkpoints the whole log, and empties it.
    pub(super) fn checkpoint_and_truncate(&self) -> Result<(), StoreError> {
        self.run_checkpoint("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Checkpoints as much of the log as readers and a writer allow.
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        self.run_checkpoint("PRAGMA wal_checkpoint(PASSIVE)")
    }

    fn run_checkpoint(&self, sql: &'static str) -> Result<(), StoreError> {
        let blocked: i64 =
            self.sqlite.query_row(sql, [], |row| row.get(0)).map_err(|error| running(error, sql))?;
        if blocked == 0 { Ok(()) } else { Err(StoreError::Busy("another connection uses the log")) }
    }

    /// Whether a migration was ever applied.
    pub(super) fn has_history(&mut self) -> Result<bool, StoreError> {
        const HAS_HISTORY: &str =
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'";
        Ok(!self.query(HAS_HISTORY, &[])?.is_empty())
    }

    /// Brings the schema up to date, each migration in its own transaction.
    pub(crate) fn migrate(&mut self, known: &'static [Migration]) -> Result<(), StoreError> {
        self.execute(migrate::CREATE_HISTORY, &[])?;
        let mut applied = Vec::new();
        for row in self.query(migrate::READ_HISTORY, &[])? {
            applied.push(Applied { version: row.get(0)?, checksum: row.get(1)? });
        }
        for migration in migrate::pending(known, &applied)? {
            self.apply(migration).map_err(|error| migrate::failed(migration, &error))?;
            tracing::info!(version = migration.version, name = migration.name, "migration applied");
        }
        Ok(())
    }

    fn apply(&mut self, migration: &Migration) -> rusqlite::Result<()> {
        let transaction = self.sqlite.transaction()?;
        transaction.execute_batch(&migration.text_for(MigratedEngine::Sqlite))?;
        transaction.execute(
            "INSERT INTO schema_migrations (version, name, checksum, applied_at)
             VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER))",
            (migration.version, migration.name, migration.checksum()),
        )?;
        transaction.commit()
    }

    pub(crate) fn query(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.bound(sql, params)?;
        step_through(&mut statement, sql)
    }

    pub(crate) fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        let before = self.sqlite.total_changes();
        let mut statement = self.bound(sql, params)?;
        if statement.column_count() > 0 {
            return Ok(step_through(&mut statement, sql)?.len() as u64);
        }
        let changed = statement.raw_execute().map_err(|error| running(error, sql))? as u64;
        drop(statement);
        // After a statement other than INSERT, UPDATE or DELETE, SQLite repeats the number of the last one of
        // these.
        Ok(if self.sqlite.total_changes() == before { 0 } else { changed })
    }

    /// The statement with its parameters. SQLite numbers `$1` by its first position, not by its digits, so
    /// each is bound by its name. The names are read once.
    fn bound(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<CachedStatement<'_>, StoreError> {
        let mut statement = self.sqlite.prepare_cached(sql).map_err(|error| preparing(error, sql))?;
        let count = statement.parameter_count();
        if count != params.len() {
            let problem = format!("{} parameters given", params.len());
            return Err(StoreError::Parameter { parameter: count, problem, sql });
        }
        let order = match self.parameter_orders.entry((sql.as_ptr().addr(), sql.len())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(parameter_order(&statement, sql)?),
        };
        for (position, parameter) in order.iter().enumerate() {
            let bound = statement.raw_bind_parameter(position + 1, SqliteParameter(&params[*parameter]));
            bound.map_err(|error| running(error, sql))?;
        }
        Ok(statement)
    }
}

/// The index of the parameter at each position of a statement. Every index is below the number of parameters.
fn parameter_order(statement: &CachedStatement<'_>, sql: &'static str) -> Result<ParameterOrder, StoreError> {
    let count = statement.parameter_count();
    let parameter = |position| {
        let digits = statement.parameter_name(position).and_then(|name| name.strip_prefix('$'));
        let number = digits.and_then(|digits| digits.parse::<usize>().ok());
        number.and_then(|number| number.checked_sub(1)).filter(|index| *index < count)
    };
    let in_order = |position| {
        parameter(position).ok_or_else(|| StoreError::Parameter {
            parameter: position,
            problem: "parameters are $1..$n".to_owned(),
            sql,
        })
    };
    (1..=count).map(in_order).collect()
}

fn open(path: &Path) -> rusqlite::Result<rusqlite::Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    add_functions(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Without this setting SQLite prepares a statement again when a parameter changes that might change the
    // plan. That costs more than the statement, and without statistics no plan changes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(SETUP)?;
    Ok(connection)
}

/// A parameter as SQLite takes it.
pub(crate) struct SqliteParameter<'a>(pub(crate) &'a Value<'a>);

impl ToSql for SqliteParameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Ints(_) | Value::Bools(_) | Value::Texts(_) => {
                return Err(rusqlite::Error::ToSqlConversionFailure("SQLite has no arrays".into()));
            }
        }))
    }
}

fn step_through(statement: &mut CachedStatement<'_>, sql: &'static str) -> Result<Vec<Row>, StoreError> {
    let columns = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| running(error, sql))? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(read(row.get_ref(column).map_err(|error| running(error, sql))?, column)?);
        }
        found.push(Row::new(values));
    }
    Ok(found)
}

fn read(value: ValueRef<'_>, column: usize) -> Result<Value<'static>, StoreError> {
    let other = |found: &str| StoreError::Decode {
        column,
        wanted: "text, bigint or boolean",
        found: found.to_owned(),
    };
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Text(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| other("text that is not UTF-8"))?;
            Value::Text(text.to_owned().into())
        }
        ValueRef::Real(_) => return Err(other("real")),
        ValueRef::Blob(_) => return Err(other("blob")),
    })
}

fn refuse(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Open(format!("cannot open {}: {error}", path.display()))
}

/// The error of a file that SQLite could not open.
pub(crate) fn unopened(path: &Path, error: rusqlite::Error) -> StoreError {
    let words = error.to_string();
    match running(error, "") {
        StoreError::DiskFull => refuse(path, &"the disk is full: SQLite needs room for its log beside it"),
        _ => refuse(path, &words),
    }
}

/// An error from preparing. SQLite has seen no parameter, so its message is safe to keep.
pub(crate) fn preparing(error: rusqlite::Error, sql: &'static str) -> StoreError {
    let message = match &error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::MultipleStatement => "more than one statement".to_owned(),
        _ => String::new(),
    };
    match running(error, sql) {
        StoreError::Statement { code, sql, .. } => StoreError::Statement { code, message, sql },
        other => other,
    }
}

/// An error from running. It contains only SQLite's code, and the names of a unique constraint's columns.
pub(crate) fn running(error: rusqlite::Error, sql: &'static str) -> StoreError {
    let (code, message) = match &error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            (failure.extended_code, message.as_deref().unwrap_or_default())
        }
        rusqlite::Error::SqlInputError { error, .. } => (error.extended_code, ""),
        _ => (ffi::SQLITE_MISUSE, ""),
    };
    let unavailable = |why: &str| StoreError::Unavailable(format!("{why} (SQLite code {code})"));
    match code {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            StoreError::Unique { constraint: unique_name(message) }
        }
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => StoreError::ForeignKey,
        ffi::SQLITE_CONSTRAINT_CHECK => StoreError::Check,
        ffi::SQLITE_CONSTRAINT_NOTNULL => StoreError::NotNull,
        ffi::SQLITE_READONLY => StoreError::ReadOnly,
        // The index file of the log cannot grow.
        ffi::SQLITE_IOERR_SHMSIZE => StoreError::DiskFull,
        _ => match code & 0xff {
            ffi::SQLITE_READONLY => unavailable("the file is read-only"),
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => StoreError::Busy("another process holds the data file"),
            ffi::SQLITE_INTERRUPT => unavailable("the read took too long"),
            ffi::SQLITE_FULL => StoreError::DiskFull,
            ffi::SQLITE_IOERR => unavailable("the disk failed"),
            ffi::SQLITE_CANTOPEN => unavailable("the file cannot be opened"),
            ffi::SQLITE_NOMEM => unavailable("out of memory"),
            ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => StoreError::Corrupt(format!("SQLite code {code}")),
            _ => StoreError::Statement { code: code.to_string(), message: String::new(), sql },
        },
    }
}

/// `table(column, …)` from "UNIQUE constraint failed: table.column, table.column".
fn unique_name(message: &str) -> String {
    let names = message.split_once("failed: ").map_or(message, |(_, names)| names);
    let pairs: Vec<(&str, &str)> = names.split(", ").filter_map(|name| name.split_once('.')).collect();
    let Some((table, _)) = pairs.first() else { return names.to_owned() };
    let columns: Vec<&str> = pairs.iter().map(|(_, column)| *column).collect();
    format!("{table}({})", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_constraints_are_named_by_table_and_columns() {
        for (message, name) in [
            ("UNIQUE constraint failed: codes.hash", "codes(hash)"),
            ("UNIQUE constraint failed: links.a, links.b", "links(a, b)"),
            ("UNIQUE constraint failed: index 'by_lower_name'", "index 'by_lower_name'"),
        ] {
            assert_eq!(unique_name(message), name);
        }
    }

    #[test]
    fn a_statement_is_prepared_once_for_all_values() {
        let connection = open(Path::new(":memory:")).unwrap();
        connection
            .execute_batch("CREATE TABLE t (a, b); CREATE INDEX ta ON t (a) WHERE b IS NULL; ANALYZE")
            .unwrap();
        for sql in ["SELECT 1 FROM t WHERE a > $1", "SELECT 1 FROM t WHERE a = $1 AND b IS NULL"] {
            let mut statement = connection.prepare(sql).unwrap();
            for value in 0..3 {
                statement.exists([value]).unwrap();
            }
            assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0, "{sql}");
        }
    }

    #[test]
    fn the_library_is_new_enough() {
        check_version().unwrap();
    }
}
