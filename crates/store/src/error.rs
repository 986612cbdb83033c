//! What can go wrong between a caller and its rows.

/// A failed store call. Neither `Display` nor `Debug` ever holds a parameter, a row's value or the database URL:
/// an engine's own words are kept only from preparing a statement, before any parameter has been sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A row with this key is there already. The name is `table(column, …)`, the same on both engines.
    #[error("a row with this key exists: {constraint}")]
    Unique {
        /// `table(column)` or `table(column, column)`, in the order of the index.
        constraint: String,
    },
    /// The row refers to a parent that is missing, or is itself a parent that is still referred to.
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
    /// Text with the NUL character, which PostgreSQL cannot hold and SQLite therefore may not.
    #[error("text must not contain the NUL character")]
    NulInText,
    /// A statement after one that failed in the same transaction, or success claimed after one: nothing was written.
    #[error("an earlier statement of this transaction failed")]
    Aborted,
    /// `query_one` found no row.
    #[error("a row that must exist was not found")]
    NoRow,
    /// A value had another type than the caller asked for, or one that neither TEXT, BIGINT nor BOOLEAN can hold.
    #[error("column {column}: wanted {wanted}, found {found}")]
    Decode {
        /// The column's index, from 0.
        column: usize,
        /// The type asked for.
        wanted: &'static str,
        /// What was there: a type's name, never the value.
        found: String,
    },
    /// A parameter cannot be bound, or there are too many or too few.
    #[error("parameter ${parameter}: {problem} in: {sql}")]
    Parameter {
        /// The parameter's number, from 1.
        parameter: usize,
        /// What is wrong with it: types and counts, never the value.
        problem: String,
        /// The statement.
        sql: &'static str,
    },
    /// The engine refused the statement itself: a mistake in our SQL.
    #[error("{code} {message} in: {sql}")]
    Statement {
        /// SQLSTATE on PostgreSQL, the extended result code on SQLite.
        code: String,
        /// The engine's words if it refused to prepare the statement, otherwise empty.
        message: String,
        /// The statement.
        sql: &'static str,
    },
    /// The caller broke a rule of this crate.
    #[error("misuse of the store: {0}")]
    Misuse(&'static str),
    /// The caller's closure panicked. Its writes were rolled back.
    #[error("the work on the store panicked")]
    Panicked,
    /// Too much is waiting, or a lock was not to be had in time. Nothing was written; trying again later may work.
    #[error("the store is busy: {0}")]
    Busy(&'static str),
    /// The disk that holds the rows has no room left. Nothing was written; reads go on.
    #[error("the disk of the database is full")]
    DiskFull,
    /// The engine cannot be reached, does not answer in time, or the store is closed. Nothing was written.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The commit was under way when the engine stopped answering: the write may or may not have happened.
    #[error("the store did not confirm the commit")]
    CommitUnknown,
    /// The data file is damaged.
    #[error("the data file is damaged: {0}")]
    Corrupt(String),
    /// The store cannot be opened like this: an operator has to act.
    #[error("the store cannot be opened: {0}")]
    Open(String),
}

impl StoreError {
    /// Whether the store, not the request, is to blame and a later try may work (answer 503 and `Retry-After`).
    /// After [`StoreError::CommitUnknown`] only an idempotent write may be tried again.
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Busy(_) | Self::DiskFull | Self::Unavailable(_) | Self::CommitUnknown | Self::Corrupt(_)
        )
    }

    /// Whether the transaction and another waited for each other, and this one was ended for it. Nothing was written;
    /// the other goes on, so trying again works.
    pub fn is_deadlock(&self) -> bool {
        *self == Self::DEADLOCK
    }

    /// Whether other transactions were in the way: a deadlock, a lost race, a lock that was not to be had in time, or several
    /// locks that a statement waited for. Nothing was written, and the same work may succeed when it is done again.
    pub fn is_contention(&self) -> bool {
        match self {
            Self::Unavailable(why) => why == Self::STATEMENT_TIMEOUT,
            error => [Self::DEADLOCK, Self::LOST_RACE, Self::LOCK_TIMEOUT].contains(error),
        }
    }

    /// The error of a transaction that lost a race.
    pub(crate) const LOST_RACE: Self = Self::Busy("lost a race against another transaction");

    /// The error of a transaction that waited too long for a lock.
    pub(crate) const LOCK_TIMEOUT: Self = Self::Busy("a lock was not to be had in time");

    /// What the server says of a statement that it stopped.
    pub(crate) const STATEMENT_TIMEOUT: &str = "a statement took too long";

    /// The error of the transaction that a deadlock ended.
    pub(crate) const DEADLOCK: Self = Self::Busy("deadlock");

    /// Whether this is a violated unique constraint of the given `table(column, …)`.
    pub fn is_unique(&self, constraint: &str) -> bool {
        matches!(self, Self::Unique { constraint: found } if found == constraint)
    }

    /// The error of every call after [`Store::close`](crate::Store::close).
    pub(crate) fn closed() -> Self {
        Self::Unavailable("it is closed".to_owned())
    }
}
