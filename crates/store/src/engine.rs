//! The store: one way in for both engines.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use domain::BatchId;
use memchr::memchr;

use crate::disk::{Disk, DiskWatch};
use crate::migrate::{MIGRATIONS, Migration};
use crate::postgres::{self, Postgres};
use crate::queries::credential_changes::ChangeSlot;
use crate::sqlite::{self, Sqlite};
use crate::{Row, StoreError, Value};

/// The longest any caller waits for the store, queue and commit included, unless [`Options`] say otherwise. Half a second
/// short of the three that a request may take while the store is gone, so that the refusal still reaches its caller in time.
pub const DEADLINE: Duration = Duration::from_millis(2_500);

/// Requests that may wait for one kind of work (writes, reads); the next is refused at once with
/// [`StoreError::Busy`].
pub const QUEUE_CAP: usize = 4_096;

/// Threads that read from a SQLite file.
pub const SQLITE_READERS: usize = 4;

/// PostgreSQL connections for transactions.
pub const POSTGRES_CONNECTIONS: usize = 16;

/// PostgreSQL connections that share single look-ups, many under way on each.
pub const POSTGRES_READ_CONNECTIONS: usize = 4;

/// A boxed future that may move between threads: what a closure over a [`Tx`] returns.
pub type BoxFuture<'t, T> = Pin<Box<dyn Future<Output = T> + Send + 't>>;

/// Where the rows live.
#[derive(Debug, Clone)]
pub enum Target {
    /// One file, used by this process alone.
    Sqlite {
        /// The data file; made if missing, its folder is not.
        path: PathBuf,
    },
    /// A server, shared by many nodes.
    Postgres {
        /// `postgres://user:password@host:port/database`.
        url: DatabaseUrl,
    },
}

/// A database URL. It holds a password, so it has no `Display` and its `Debug` shows nothing.
#[derive(Clone)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl")
    }
}

/// How to run the store. `Options::default()` is right in production.
#[derive(Debug, Clone)]
pub struct Options {
    /// The schema's history, oldest first.
    pub migrations: &'static [Migration],
    /// Requests that may wait, for writes and for reads each.
    pub queue_cap: usize,
    /// Reader threads on SQLite.
    pub sqlite_readers: usize,
    /// Connections for transactions on PostgreSQL.
    pub postgres_connections: usize,
    /// Connections for [`Store::read`] on PostgreSQL.
    pub postgres_read_connections: usize,
    /// The longest any caller waits: see [`DEADLINE`].
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            migrations: MIGRATIONS,
            queue_cap: QUEUE_CAP,
            sqlite_readers: SQLITE_READERS,
            postgres_connections: POSTGRES_CONNECTIONS,
            postgres_read_connections: POSTGRES_READ_CONNECTIONS,
            deadline: DEADLINE,
        }
    }
}

/// What the store has done since it was opened, for metrics and load reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Write requests that were committed.
    pub committed: u64,
    /// Write requests that were rolled back: refused by their rules, failed, or in a batch whose commit failed.
    pub rolled_back: u64,
    /// Commits that made those requests durable. On SQLite each is one sync that many requests share; on PostgreSQL
    /// each is one request's, and the server shares its syncs by itself.
    pub syncs: u64,
    /// Most requests that shared one commit.
    pub largest_batch: u64,
    /// Requests, reads included, refused or given up with [`StoreError::Busy`].
    pub busy: u64,
    /// Writes waiting right now for the writer's thread or for a connection.
    pub waiting: usize,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub committed: AtomicU64,
    pub rolled_back: AtomicU64,
    pub syncs: AtomicU64,
    pub largest_batch: AtomicU64,
    pub busy: AtomicU64,
    pub disk: DiskWatch,
}

impl Counters {
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts the error if it says that the store was busy.
    pub fn refused(&self, error: StoreError) -> StoreError {
        if matches!(error, StoreError::Busy(_)) {
            Self::add(&self.busy, 1);
        }
        error
    }

    pub fn stats(&self, waiting: usize) -> Stats {
        Stats {
            committed: self.committed.load(Ordering::Relaxed),
            rolled_back: self.rolled_back.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
            largest_batch: self.largest_batch.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
            waiting,
        }
    }
}

/// An open store. Clones share it.
#[derive(Clone)]
pub struct Store(Engine);

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = match self.0 {
            Engine::Sqlite(_) => "sqlite",
            Engine::Postgres(_) => "postgres",
        };
        f.debug_tuple("Store").field(&engine).finish()
    }
}

impl Store {
    /// Opens the store and brings its schema up to date.
    ///
    /// Fails with [`StoreError::Open`] if another process has the SQLite file, the PostgreSQL URL asks for TLS, the
    /// database is not UTF-8, or its schema is newer than, or other than, this program's.
    pub async fn open(target: Target, options: Options) -> Result<Self, StoreError> {
        Ok(Self(match target {
            Target::Sqlite { path } => Engine::Sqlite(Arc::new(Sqlite::open(path, options).await?)),
            Target::Postgres { url } => Engine::Postgres(Arc::new(Postgres::open(&url, options).await?)),
        }))
    }

    /// One write transaction: all of the closure's statements or none, answered after the sync, within the deadline.
    ///
    /// `Err` from the closure, a failed statement or a panic rolls back just this request. The closure awaits nothing
    /// but its `Tx`. A caller that stops waiting does not stop the work: it is done whole or not at all.
    ///
    /// ```no_run
    /// # use store::{Store, StoreError, params};
    /// # async fn use_code(store: Store, now: i64, id: String) -> Result<(), StoreError> {
    /// store.write(move |tx| Box::pin(async move {
    ///     tx.execute("UPDATE codes SET used_at = $1 WHERE id = $2", params![now, id]).await?;
    ///     Ok::<_, StoreError>(())
    /// })).await?;
    /// # Ok(()) }
    /// ```
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_with_commit_hook(work, |_| {}).await
    }

    /// Like [`Store::write`], and calls `on_commit` after the commit but before the sync. A power failure can still undo
    /// the commit, so `on_commit` must be safe to have run.
    ///
    /// On SQLite the writer thread calls `on_commit`, so it must not block. On PostgreSQL a commit is synced before it is
    /// reported. A panic in `on_commit` does not undo the commit.
    pub async fn write_with_commit_hook<T, E, F, C>(&self, work: F, on_commit: C) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        C: FnOnce(&mut T) + Send + 'static,
    {
        let on_commit = |value: &mut T| {
            if catch_unwind(AssertUnwindSafe(|| on_commit(value))).is_err() {
                tracing::error!("a commit hook panicked");
            }
        };
        match &self.0 {
            Engine::Sqlite(engine) => engine.write(work, on_commit).await,
            Engine::Postgres(engine) => engine.write(work, on_commit).await,
        }
    }

    /// Reads, within the deadline; a write fails with [`StoreError::ReadOnly`].
    ///
    /// Each statement sees everything committed before it. Only on SQLite do several statements see the same moment:
    /// on PostgreSQL each is its own single round trip. Use [`Store::snapshot`] where they must agree.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => engine.read(work).await,
            Engine::Postgres(engine) => engine.read(work).await,
        }
    }

    /// [`Store::read`] whose statements all see the same moment, on both engines. On PostgreSQL it costs two more
    /// round trips and a connection of its own meanwhile.
    pub async fn snapshot<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => engine.read(work).await,
            Engine::Postgres(engine) => engine.snapshot(work).await,
        }
    }

    /// Whether it is a server, which other nodes may use too, and whose answers can be lost on the way.
    pub fn is_remote(&self) -> bool {
        matches!(self.0, Engine::Postgres(_))
    }

    /// What the store has done since it was opened.
    pub fn stats(&self) -> Stats {
        match &self.0 {
            Engine::Sqlite(engine) => engine.stats(),
            Engine::Postgres(engine) => engine.stats(),
        }
    }

    /// Whether the disk has room, as far as writes have shown.
    pub fn disk(&self) -> Disk {
        match &self.0 {
            Engine::Sqlite(engine) => engine.disk(),
            Engine::Postgres(engine) => engine.disk(),
        }
    }

    /// Finishes what was accepted, refuses the rest with [`StoreError::Unavailable`], checkpoints
    /// SQLite's log and releases the file. Later calls do nothing.
    pub async fn close(&self) {
        match &self.0 {
            Engine::Sqlite(engine) => engine.close().await,
            Engine::Postgres(engine) => engine.close().await,
        }
    }
}

/// A transaction under way: the one thing that runs SQL.
///
/// After a statement failed, every later one fails with [`StoreError::Aborted`] and nothing is committed, as
/// PostgreSQL has it. To go on after a conflict, say so in the statement: `ON CONFLICT DO NOTHING`.
pub struct Tx {
    pub(crate) link: Link,
    /// Set while a statement runs and for good if it fails, or if its future was dropped half way.
    failed: bool,
    /// A statement found the disk full.
    pub(crate) found_disk_full: bool,
    /// A statement changed rows.
    pub(crate) has_written: bool,
    /// What the request under way has noted of changed credentials.
    pub(crate) changed: Vec<ChangeSlot>,
    /// The batch that the events of this transaction are recorded under.
    pub(crate) event_batch: Option<BatchId>,
    /// The batches of earlier requests whose idempotency keys this transaction was given again.
    pub(crate) earlier_event_batches: Vec<BatchId>,
    /// On PostgreSQL, what is sent together with COMMIT.
    with_commit: Option<LastStatement>,
}

/// A statement that is run together with COMMIT.
pub(crate) struct LastStatement {
    pub(crate) sql: &'static str,
    pub(crate) params: Vec<Value<'static>>,
}

/// What a [`Tx`] talks through.
pub(crate) enum Link {
    Sqlite(sqlite::Connection),
    Postgres(postgres::Connection),
}

impl Tx {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            failed: false,
            found_disk_full: false,
            has_written: false,
            changed: Vec::new(),
            event_batch: None,
            earlier_event_batches: Vec::new(),
            with_commit: None,
        }
    }

    /// The connection, to end the transaction, and what is to be run together with COMMIT.
    pub(crate) fn into_parts(self) -> (Link, Option<LastStatement>) {
        (self.link, self.with_commit)
    }

    /// Whether no other transaction writes until this one ends, so that a lock on a row adds nothing.
    pub(crate) fn writes_alone(&self) -> bool {
        matches!(self.link, Link::Sqlite(_))
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

    /// Runs a statement that gives one row or none; more is [`StoreError::Misuse`].
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

    /// Runs a statement that gives exactly one row; none is [`StoreError::NoRow`].
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

    /// Runs a statement as the last one of the transaction. PostgreSQL gets it together with COMMIT, so it costs no round
    /// trip of its own; when it fails, the transaction fails. There is one such statement in a transaction at the most.
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
            return Err(StoreError::Misuse("a transaction has one last statement"));
        }
        self.with_commit = Some(LastStatement { sql, params });
        self.failed = false;
        Ok(())
    }

    /// Runs a part of the transaction that may fail alone: when it gives an error, what it wrote is taken back, and the
    /// transaction goes on as if it had never been tried.
    ///
    /// # Errors
    /// The transaction is lost: the part could not be begun or taken back.
    pub async fn attempt<T, E, F>(&mut self, part: F) -> Result<Result<T, E>, StoreError>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>>,
        E: From<StoreError>,
    {
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

    /// Begins or ends a part of the transaction. If that fails the transaction is lost.
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

    /// Notes how a statement ended.
    fn end_statement<T>(&mut self, outcome: &Result<T, StoreError>) {
        self.failed = outcome.is_err();
        self.found_disk_full |= matches!(outcome, Err(StoreError::DiskFull));
    }

    /// What both engines must refuse alike.
    fn begin_statement(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Aborted);
        }
        self.failed = true;
        if controls_transaction(sql) {
            return Err(StoreError::Misuse("a transaction cannot be begun or ended by a statement"));
        }
        if params
            .iter()
            .any(|value| matches!(value, Value::Text(text) if memchr(0, text.as_bytes()).is_some()))
        {
            return Err(StoreError::NulInText);
        }
        Ok(())
    }
}

/// Whether the statement would end or nest the transaction, and on SQLite that of everyone in the batch.
fn controls_transaction(sql: &str) -> bool {
    const WORDS: [&str; 8] = ["ABORT", "BEGIN", "COMMIT", "END", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"];
    let word =
        sql.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
    WORDS.iter().any(|control| word.eq_ignore_ascii_case(control))
}

/// The closure of a request, for the signatures inside this crate.
pub(crate) trait Work<T, E>:
    for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static
{
}

impl<T, E, F> Work<T, E> for F where
    F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static
{
}

/// Runs a request's closure: a panic becomes [`StoreError::Panicked`], and success that was claimed over a failed
/// statement becomes [`StoreError::Aborted`].
pub(crate) async fn run<T, E: From<StoreError>>(work: impl Work<T, E>, tx: &mut Tx) -> Result<T, E> {
    tx.failed = false;
    tx.changed.clear();
    tx.event_batch = None;
    tx.earlier_event_batches.clear();
    let outcome = contain_panic(work, tx).await;
    match outcome {
        Ok(_) if tx.failed => Err(StoreError::Aborted.into()),
        outcome => outcome,
    }
}

async fn contain_panic<T, E: From<StoreError>>(work: impl Work<T, E>, tx: &mut Tx) -> Result<T, E> {
    let panicked = || E::from(StoreError::Panicked);
    let mut future = catch_unwind(AssertUnwindSafe(|| work(tx))).map_err(|_| panicked())?;
    poll_fn(move |context| {
        // Nothing that the closure touched is looked at again: the request's savepoint or transaction goes too.
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_end_a_transaction_are_told_apart() {
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

    #[test]
    fn a_database_url_shows_nothing_of_itself() {
        let target = Target::Postgres { url: "postgres://u:hunter2@h/d".to_owned().into() };
        assert!(!format!("{target:?}").contains("hunter2"));
    }
}
