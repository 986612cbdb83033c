//! The errors of the store.

/// A failed call of the store. `Display` and `Debug` never show a parameter, a value of a row or the database
/// URL. So an engine's message is shown only for a failed preparation, before any parameter is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A row with this key exists. The name is `table(column, …)` on both engines.
    #[error("a row with this key exists: {constraint}")]
    Unique {
        /// `table(column)` or `table(column, column)`, in the order of the index.
        constraint: String,
    },
    /// The row refers to a missing row, or a row that is deleted is still referred to.
    #[error("a foreign key was violated")]
    ForeignKey,
    /// A CHECK constraint refused the row.
    #[error("a check constraint was violated")]
    Check,
    /// A NOT NULL column was given NULL.
    #[error("a column that must be set was null")]
    NotNull,
    /// A write inside [`Store::read`](crate::Store::read) or [`Store::snapshot`](crate::Store::snapshot).
    #[error("a read tried to write")]
    ReadOnly,
    /// Text with the NUL character. PostgreSQL cannot store it, so SQLite may not either.
    #[error("text must not contain the NUL character")]
    NulInText,
    /// A statement after a failed one of the same transaction, or a success after one. Nothing was written.
    #[error("an earlier statement of this transaction failed")]
    Aborted,
    /// `query_one` found no row.
    #[error("a row that must exist was not found")]
    NoRow,
    /// A value had another type than the caller asked for, or is neither TEXT, BIGINT nor BOOLEAN.
    #[error("column {column}: wanted {wanted}, found {found}")]
    Decode {
        /// The column's index, from 0.
        column: usize,
        /// The type asked for.
        wanted: &'static str,
        /// The type that was found, never the value.
        found: String,
    },
    /// A parameter cannot be bound, or there are too many or too few.
    #[error("parameter ${parameter}: {problem} in: {sql}")]
    Parameter {
        /// The parameter's number, from 1.
        parameter: usize,
        /// The problem: types and counts, never the value.
        problem: String,
        /// The statement.
        sql: &'static str,
    },
    /// The engine refused the statement itself: a mistake in our SQL.
    #[error("{}", refused(.code, .message, .sql))]
    Statement {
        /// SQLSTATE on PostgreSQL, the extended result code on SQLite.
        code: String,
        /// The engine's message if it refused to prepare the statement, otherwise empty.
        message: String,
        /// The statement; empty for work that is not a statement of a request.
        sql: &'static str,
    },
    /// The caller broke a rule of this crate.
    #[error("misuse of the store: {0}")]
    Misuse(&'static str),
    /// The caller's closure panicked. Its writes were rolled back.
    #[error("the work on the store panicked")]
    Panicked,
    /// Too many requests are waiting, or another process locks the data file. Nothing was written. A later
    /// try may work.
    #[error("the store is busy: {0}")]
    Busy(&'static str),
    /// Other transactions were in the way. Nothing was written. The same work may succeed at once.
    #[error(transparent)]
    Contention(#[from] Contention),
    /// The disk of the database is full. Nothing was written. Reads go on.
    #[error("the disk of the database is full")]
    DiskFull,
    /// The engine cannot be reached, does not answer in time, or the store is closed. Nothing was written.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The engine refuses this program: the user, the password, the database or a certificate is wrong. An
    /// operator has to act. Nothing was written.
    #[error("the store is unavailable: {0}")]
    Refused(String),
    /// The engine stopped answering during the commit. The write may have happened or not.
    #[error("the store did not confirm the commit")]
    CommitUnknown,
    /// The data file is damaged.
    #[error("the data file is damaged: {0}")]
    Corrupt(String),
    /// The folder or the schema is empty, and a store was expected there.
    #[error("there is no store")]
    NoStore,
    /// The store cannot be opened. An operator has to act.
    #[error("the store cannot be opened: {0}")]
    Open(String),
}

/// The code, the message if there is one, and the statement if there is one.
fn refused(code: &str, message: &str, sql: &str) -> String {
    match (message, sql) {
        ("", "") => format!("the engine refuses a statement (code {code})"),
        (_, "") => format!("the engine refuses a statement: {message} (code {code})"),
        ("", _) => format!("{code} in: {sql}"),
        _ => format!("{code} {message} in: {sql}"),
    }
}

/// Why other transactions made a transaction fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Contention {
    /// The transaction and others waited for each other, and the engine ended this one.
    #[error("the store is busy: deadlock")]
    Deadlock,
    /// Another transaction changed the same rows first.
    #[error("the store is busy: lost a race against another transaction")]
    LostRace,
    /// The transaction waited too long for a lock.
    #[error("the store is busy: waited too long for a lock")]
    LockTimeout,
    /// A statement took too long, perhaps because it waited for several locks.
    #[error("the store is unavailable: a statement took too long")]
    StatementTimeout,
}

impl StoreError {
    /// Whether the store caused the failure, not the request, so that a later try may work (503 and
    /// `Retry-After`). After [`StoreError::CommitUnknown`] only an idempotent write may be tried again.
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Busy(_)
                | Self::Contention(_)
                | Self::DiskFull
                | Self::Unavailable(_)
                | Self::Refused(_)
                | Self::CommitUnknown
                | Self::Corrupt(_)
        )
    }

    /// Whether the failure to open a store ends by itself: its server cannot be reached, is starting, or has
    /// no connection left. A wrong configuration does not.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Whether other transactions were in the way.
    pub fn is_contention(&self) -> bool {
        matches!(self, Self::Contention(_))
    }

    /// Whether this is a violated unique constraint of the given `table(column, …)`.
    pub fn is_unique(&self, constraint: &str) -> bool {
        matches!(self, Self::Unique { constraint: found } if found == constraint)
    }

    /// The error of every call after [`Store::close`](crate::Store::close).
    pub(crate) fn closed() -> Self {
        Self::Unavailable("it is closed".to_owned())
    }
}
