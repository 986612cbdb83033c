//! The store: one interface to both engines.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::{StoreId, Timestamp};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::disk::Disk;
use crate::log_archive::LogArchive;
use crate::measure::Measures;
use crate::partitions::{PartitionUpkeep, PartitionedTable};
use crate::postgres::Postgres;
use crate::sqlite::Sqlite;
use crate::work::{Closure, CommitHook, Outcome, erase, erase_hook, typed};
use crate::{Options, SendAsyncFnOnce, Stats, StoreError, Target, Tx};

/// An open store. Its clones share it.
#[derive(Clone)]
pub struct Store(Engine);

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

/// The data that the statements of a read see.
enum Reading {
    /// Each statement sees the commits before it.
    Latest,
    /// All statements see the same commits.
    Snapshot,
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
    /// Fails with [`StoreError::Open`] if another process has the SQLite file, the PostgreSQL URL or a file
    /// that it names is wrong, the database is not UTF-8, or its schema is newer than, or other than, this
    /// program's.
    pub async fn open(target: Target, options: Options) -> Result<Self, StoreError> {
        Ok(Self(match target {
            Target::Sqlite { path } => Engine::Sqlite(Arc::new(Sqlite::open(path, options).await?)),
            Target::Postgres { url } => Engine::Postgres(Arc::new(Postgres::open(&url, options).await?)),
        }))
    }

    /// Runs one write transaction: all of the closure's statements or none. Answers after the sync, within
    /// the deadline.
    ///
    /// `Err` from the closure, a failed statement or a panic rolls back this request alone. The closure
    /// awaits only its `Tx`. A caller that stops waiting does not stop the transaction.
    ///
    /// ```no_run
    /// # use store::{Store, StoreError, Tx, params};
    /// # async fn use_code(store: Store, now: i64, id: String) -> Result<(), StoreError> {
    /// store.write(async move |tx: &mut Tx| {
    ///     tx.execute("UPDATE codes SET used_at = $1 WHERE id = $2", params![now, id]).await?;
    ///     Ok::<_, StoreError>(())
    /// }).await?;
    /// # Ok(()) }
    /// ```
    pub fn write<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_with_commit_hook(work, |_| {})
    }

    /// Like [`Store::write`], and calls `on_commit` after the commit but before the sync. A power failure can
    /// still undo the commit, so `on_commit` must be safe to have run.
    ///
    /// On SQLite the writer thread calls `on_commit`, so it must not block. On PostgreSQL a commit is synced
    /// before it is reported. A panic in `on_commit` does not undo the commit.
    pub fn write_with_commit_hook<T, E, F, C>(
        &self,
        work: F,
        on_commit: C,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        C: FnOnce(&mut T) + Send + 'static,
    {
        self.write_erased(erase(work), erase_hook(on_commit)).map(typed)
    }

    /// Reads, within the deadline. A write fails with [`StoreError::ReadOnly`].
    ///
    /// Each statement sees every earlier commit. On SQLite all statements see the same data. On PostgreSQL
    /// each statement is a round trip of its own, and sees the data of its own time: see [`Store::snapshot`].
    pub fn read<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.read_erased(erase(work), Reading::Latest).map(typed)
    }

    /// Like [`Store::read`], but all statements see the same data on both engines. On PostgreSQL a snapshot
    /// costs two more round trips, and holds a connection.
    pub fn snapshot<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.read_erased(erase(work), Reading::Snapshot).map(typed)
    }

    // These two are not generic, and their futures are boxed, so that both engines are compiled in this crate
    // and not in each crate that awaits a request.

    fn write_erased(&self, work: Closure, on_commit: CommitHook) -> BoxFuture<'_, Outcome> {
        match &self.0 {
            Engine::Sqlite(engine) => engine.write(work, on_commit).boxed(),
            Engine::Postgres(engine) => engine.write(work, on_commit).boxed(),
        }
    }

    fn read_erased(&self, work: Closure, reading: Reading) -> BoxFuture<'_, Outcome> {
        match (&self.0, reading) {
            // Every read of SQLite has a snapshot.
            (Engine::Sqlite(engine), _) => engine.read(work).boxed(),
            (Engine::Postgres(engine), Reading::Latest) => engine.read(work).boxed(),
            (Engine::Postgres(engine), Reading::Snapshot) => engine.snapshot(work).boxed(),
        }
    }

    /// Copies all committed data into a new SQLite file. Only a SQLite file can be copied.
    pub async fn copy_to(&self, path: PathBuf) -> Result<(), StoreError> {
        match &self.0 {
            Engine::Sqlite(engine) => engine.copy_to(path).await,
            Engine::Postgres(_) => Err(StoreError::Unavailable("PostgreSQL is not copied".to_owned())),
        }
    }

    /// Makes the partitions of a table that are needed next, and drops those whose rows are all older than
    /// `kept_ms`. `None` on SQLite, which has none. Statements that wait for the table wait for `longest`,
    /// and only when a clock was far ahead or the upkeep did not run for days.
    ///
    /// # Errors
    /// [`StoreError::Contention`] if other transactions held the table for too long: try again later.
    pub async fn keep_partitions(
        &self,
        table: PartitionedTable,
        now: Timestamp,
        kept_ms: i64,
        longest: Duration,
    ) -> Result<Option<PartitionUpkeep>, StoreError> {
        match &self.0 {
            Engine::Sqlite(_) => Ok(None),
            Engine::Postgres(engine) => engine.keep_partitions(table, now, kept_ms, longest).await.map(Some),
        }
    }

    /// The archive of the log, if [`Options`] asked for one.
    pub fn log_archive(&self) -> Option<Arc<LogArchive>> {
        match &self.0 {
            Engine::Sqlite(engine) => engine.archive(),
            Engine::Postgres(_) => None,
        }
    }

    /// Whether the store is a server. Other nodes may use a server, and its answers can be lost on the
    /// network.
    pub fn is_remote(&self) -> bool {
        matches!(self.0, Engine::Postgres(_))
    }

    /// Counts since the store was opened.
    pub fn stats(&self) -> Stats {
        match &self.0 {
            Engine::Sqlite(engine) => engine.stats(),
            Engine::Postgres(engine) => engine.stats(),
        }
    }

    /// Whether the disk has room, according to the last writes.
    pub fn disk(&self) -> Disk {
        match &self.0 {
            Engine::Sqlite(engine) => engine.disk(),
            Engine::Postgres(engine) => engine.disk(),
        }
    }

    /// Measures the store, which has this id. On PostgreSQL the disk is not measured, because it is another
    /// machine's.
    pub async fn measure(&self, store: &StoreId) -> Result<Measures, StoreError> {
        match &self.0 {
            Engine::Sqlite(engine) => engine.measure(store).await,
            Engine::Postgres(_) => {
                let read: Result<(i64, Option<Timestamp>), StoreError> = self
                    .read(async move |tx: &mut Tx| Ok((tx.database_bytes().await?, tx.last_backup().await?)))
                    .await;
                let (bytes, last_backup) = read?;
                Ok(Measures { bytes: bytes.unsigned_abs(), disk: None, last_backup })
            }
        }
    }

    /// Finishes the accepted requests and refuses later ones with [`StoreError::Unavailable`]. On SQLite
    /// checkpoints the log and releases the file. A second call does nothing.
    pub async fn close(&self) {
        match &self.0 {
            Engine::Sqlite(engine) => engine.close().await,
            Engine::Postgres(engine) => engine.close().await,
        }
    }
}
