//! The transaction that all statements run in.

use std::any::Any;

use crate::notes::Notes;
use crate::postgres::connection::{LastStatement, PostgresConnection};
use crate::sqlite::connection::SqliteConnection;
use crate::{Row, StoreError, Value};

/// A transaction. All SQL runs in one.
///
/// After a failed statement every later one fails with [`StoreError::Aborted`], and nothing is committed.
/// PostgreSQL works like that. A statement that may meet a conflict says so: `ON CONFLICT DO NOTHING`.
pub struct Tx {
    pub(crate) link: Link,
    /// Set while a statement runs. Stays set if the statement fails or its future is dropped.
    failed: bool,
    /// A statement found the disk full.
    pub(crate) found_disk_full: bool,
    /// A statement changed rows.
    pub(crate) has_written: bool,
    /// Values that queries keep for the request.
    notes: Notes,
    /// On PostgreSQL, the statement that is sent together with COMMIT.
    with_commit: Option<LastStatement>,
    /// The last statement has run.
    is_over: bool,
}

/// The error of a second last statement.
const ONE_LAST_STATEMENT: StoreError = StoreError::Misuse("a transaction has one last statement");

/// The connection of a [`Tx`].
pub(crate) enum Link {
    Sqlite(SqliteConnection),
    Postgres(PostgresConnection),
}

impl Tx {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            failed: false,
            found_disk_full: false,
            has_written: false,
            notes: Notes::default(),
            with_commit: None,
            is_over: false,
        }
    }

    /// Forgets the failure and the notes of an earlier request.
    pub(crate) fn begin_request(&mut self) {
        self.failed = false;
        self.is_over = false;
        self.notes.clear();
    }

    /// Whether a statement of the request has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// The value of this type that queries keep until the end of the request.
    pub(crate) fn notes<T: Any + Default + Send>(&mut self) -> &mut T {
        self.notes.of()
    }

    /// The connection, and the statement that is sent together with COMMIT.
    pub(crate) fn into_parts(self) -> (Link, Option<LastStatement>) {
        (self.link, self.with_commit)
    }

    /// Whether no other transaction writes until this one ends. Then a transaction needs no locks.
    pub(crate) fn writes_alone(&self) -> bool {
        matches!(self.link, Link::Sqlite(_))
    }

    /// Whether a parameter can be an array.
    pub(crate) fn takes_arrays(&self) -> bool {
        matches!(self.link, Link::Postgres(_))
    }

    /// Runs a statement and gives its rows.
    pub async fn query(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        self.begin_statement(sql, params)?;
        let rows = match &mut self.link {
            Link::Sqlite(connection) => connection.query(sql, params),
            Link::Postgres(connection) => connection.query(sql, params).await,
        };
        self.end_statement(&rows);
        rows
    }

    /// Runs a statement that gives one row or none. More rows are [`StoreError::Misuse`].
    pub async fn query_opt(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Option<Row>, StoreError> {
        let mut rows = self.query(sql, params).await?;
        match rows.len() {
            0 | 1 => Ok(rows.pop()),
            _ => Err(StoreError::Misuse("query_opt or query_one found more than one row")),
        }
    }

    /// Runs a statement that gives exactly one row. No row is [`StoreError::NoRow`].
    pub async fn query_one(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Row, StoreError> {
        self.query_opt(sql, params).await?.ok_or(StoreError::NoRow)
    }

    /// Runs a statement and gives the number of rows that it inserted, updated or deleted.
    pub async fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.begin_statement(sql, params)?;
        let changed = match &mut self.link {
            Link::Sqlite(connection) => connection.execute(sql, params),
            Link::Postgres(connection) => connection.execute(sql, params).await,
        };
        self.end_statement(&changed);
        self.has_written |= changed.as_ref().is_ok_and(|changed| *changed > 0);
        changed
    }

    /// Runs a statement as the last one of the transaction. PostgreSQL gets it together with COMMIT, so it
    /// costs no round trip of its own; when it fails, the transaction fails. There is one such statement in a
    /// transaction at the most.
    pub async fn execute_with_commit(
        &mut self,
        sql: &'static str,
        params: Vec<Value<'static>>,
    ) -> Result<(), StoreError> {
        if matches!(self.link, Link::Sqlite(_)) {
            return self.execute(sql, &params).await.map(drop);
        }
        self.begin_statement(sql, &params)?;
        if self.with_commit.is_some() {
            return Err(ONE_LAST_STATEMENT);
        }
        self.with_commit = Some(LastStatement { sql, params });
        self.failed = false;
        Ok(())
    }

    /// Runs a statement as the last one of the transaction, and gives its rows. PostgreSQL gets it together
    /// with COMMIT, and with BEGIN if it is the first one. So its transaction costs one round trip, and is
    /// committed when the rows are known.
    ///
    /// # Errors
    /// [`StoreError::CommitUnknown`] when the server did not say whether it committed.
    pub async fn query_with_commit(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.begin_statement(sql, params)?;
        let rows = match &mut self.link {
            Link::Sqlite(connection) => connection.query(sql, params),
            Link::Postgres(_) if self.with_commit.is_some() => Err(ONE_LAST_STATEMENT),
            Link::Postgres(connection) => connection.query_with_commit(sql, params).await,
        };
        self.end_statement(&rows);
        self.is_over = true;
        self.has_written = true;
        rows
    }

    /// Runs a part of the transaction in a savepoint. An error of the part undoes the part alone, and the
    /// transaction goes on.
    ///
    /// # Errors
    /// The savepoint failed, so the transaction is lost.
    pub async fn attempt<T, E: From<StoreError>>(
        &mut self,
        part: impl AsyncFnOnce(&mut Tx) -> Result<T, E>,
    ) -> Result<Result<T, E>, StoreError> {
        self.control("SAVEPOINT attempt").await?;
        let mut outcome = part(self).await;
        if self.failed && outcome.is_ok() {
            outcome = Err(StoreError::Aborted.into());
        }
        if outcome.is_err() {
            self.failed = false;
            self.control("ROLLBACK TO SAVEPOINT attempt").await?;
        }
        self.control("RELEASE SAVEPOINT attempt").await?;
        Ok(outcome)
    }

    /// Begins or ends a savepoint. After an error the transaction is lost.
    async fn control(&mut self, sql: &'static str) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Aborted);
        }
        self.failed = true;
        match &mut self.link {
            Link::Sqlite(connection) => connection.execute(sql, &[]).map(drop)?,
            Link::Postgres(connection) => connection.control(sql).await?,
        }
        self.failed = false;
        Ok(())
    }

    /// Records the end of a statement.
    fn end_statement<T>(&mut self, outcome: &Result<T, StoreError>) {
        self.failed = outcome.is_err();
        self.found_disk_full |= matches!(outcome, Err(StoreError::DiskFull));
    }

    /// Refuses what both engines must refuse in the same way.
    fn begin_statement(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Aborted);
        }
        self.failed = true;
        if self.is_over {
            return Err(StoreError::Misuse("a statement followed the last one of its transaction"));
        }
        if controls_transaction(sql) {
            return Err(StoreError::Misuse("a statement cannot begin or end the transaction"));
        }
        if params.iter().any(Value::has_nul) {
            return Err(StoreError::NulInText);
        }
        Ok(())
    }
}

/// Whether a statement would end or nest the transaction. On SQLite other requests share it.
fn controls_transaction(sql: &str) -> bool {
    const WORDS: [&str; 8] = ["ABORT", "BEGIN", "COMMIT", "END", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"];
    let word =
        sql.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
    WORDS.iter().any(|control| word.eq_ignore_ascii_case(control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_begin_or_end_a_transaction_are_found() {
        for sql in ["COMMIT", " rollback ", "\n\tBegin immediate", "SAVEPOINT a", ";END", "RELEASE a"] {
            assert!(controls_transaction(sql), "{sql}");
        }
        for sql in [
            "",
            "SELECT 1",
            "UPDATE begins SET a = 1",
            "DELETE FROM commit_log",
            "WITH a AS (SELECT 1) SELECT 1",
        ] {
            assert!(!controls_transaction(sql), "{sql}");
        }
    }
}
