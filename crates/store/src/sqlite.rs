//! SQLite: one file, a writer thread that commits many waiting requests with one sync, a few reader threads,
//! and a thread that makes checkpoints.

mod checkpointer;
pub(crate) mod connection;
mod control;
mod functions;
mod reader;
mod request;
mod wal;
mod writer;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::StoreId;

use crate::disk::Disk;
use crate::log_archive::{self, LogArchive, LogWatch};
use crate::measure::{Measures, measure_file};
use crate::stats::Counters;
use crate::work::{Closure, CommitHook, Outcome};
use crate::{Options, Stats, StoreError};
use checkpointer::ArchivedLog;
use connection::SqliteConnection;
#[cfg(test)]
pub(crate) use functions::add_functions;
use request::{AnswerReceiver, Request, Ticket};
use wal::Wal;

/// The longest [`Sqlite::close`] waits for accepted work.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// A queue to threads. Without its sender the queue is closed: the threads finish the accepted requests, and
/// end.
type Queue = RwLock<Option<SyncSender<Request>>>;

/// An open SQLite file.
pub(crate) struct Sqlite {
    path: PathBuf,
    writes: Queue,
    reads: Queue,
    /// Requests in the write queue.
    waiting: Arc<AtomicUsize>,
    counters: Arc<Counters>,
    /// The longest that a caller waits.
    deadline: Duration,
    writer: Mutex<Vec<JoinHandle<()>>>,
    readers: Mutex<Vec<JoinHandle<()>>>,
    /// While the log is archived.
    archive: Option<Arc<LogArchive>>,
}

impl Sqlite {
    pub async fn open(path: PathBuf, options: Options) -> Result<Self, StoreError> {
        tokio::task::spawn_blocking(move || Self::open_blocking(&path, &options))
            .await
            .map_err(|_| StoreError::Open("opening it was interrupted".to_owned()))?
    }

    fn open_blocking(path: &Path, options: &Options) -> Result<Self, StoreError> {
        connection::check_version()?;
        let path = whole_path(path)?;
        if options.existing && !path.exists() {
            return Err(StoreError::NoStore);
        }
        let held = Arc::new(Held { _lock: lock(&path)?, archive: OnceLock::new() });
        make_private(&path)?;
        let mut connection = SqliteConnection::open_for_writing(&path)?;
        if !options.sqlite_sync {
            connection.stop_syncing()?;
        }
        if options.log_archiving.is_some() {
            connection.keep_log()?;
        }
        if options.existing && !connection.has_history()? {
            return Err(StoreError::NoStore);
        }
        connection.migrate(options.migrations)?;
        let wal = Wal::open(&path, &mut connection, options.sqlite_sync)?;
        let (archive, watch) = open_archive(&path, options)?.unzip();
        if let Some(archive) = &archive {
            let _ = held.archive.set(archive.clone());
        }

        let (writes, jobs) = sync_channel(options.queue_cap);
        let (reads, lookups) = sync_channel(options.queue_cap);
        let store = Self {
            path: path.clone(),
            writes: RwLock::new(Some(writes)),
            reads: RwLock::new(Some(reads)),
            waiting: Arc::default(),
            counters: Arc::default(),
            deadline: options.deadline,
            writer: Mutex::default(),
            readers: Mutex::default(),
            archive: archive.clone(),
        };
        let lookups = Arc::new(Mutex::new(lookups));
        for _ in 0..options.sqlite_readers.max(1) {
            let (connection, lookups, held) =
                (SqliteConnection::open_for_reading(&path)?, lookups.clone(), held.clone());
            if archive.is_some() {
                connection.keep_log()?;
            }
            let thread = spawn("store-reader", move || {
                reader::run(connection, &lookups);
                drop(held);
            })?;
            store.readers.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        let archived = archive.map(|archive| archived(&path, archive)).transpose()?;
        let is_archived = archived.is_some();
        let (checkpoints, checkpointer) = checkpointer::pair(&wal, watch, archived);
        let (second, also_held) = (SqliteConnection::open_for_checkpoints(&path)?, held.clone());
        if is_archived {
            second.keep_log()?;
        }
        if !options.sqlite_sync {
            second.stop_syncing()?;
        }
        let checkpointer = spawn("checkpointer", move || {
            checkpointer.run(&second);
            drop(second);
            drop(also_held);
        })?;
        let (waiting, counters) = (store.waiting.clone(), store.counters.clone());
        let thread = spawn("store-writer", move || {
            let writer = writer::Writer::new(connection, jobs, waiting, counters, wal, checkpoints);
            writer.run(checkpointer);
            drop(held);
        })?;
        store.writer.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(store)
    }

    pub async fn write(&self, work: Closure, on_commit: CommitHook) -> Outcome {
        let (request, ticket, answer) = Request::new(work, Some(on_commit));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = push(&self.writes, request) {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(self.counters.refused(error).into());
        }
        self.await_answer(answer, ticket, StoreError::CommitUnknown).await
    }

    pub async fn read(&self, work: Closure) -> Outcome {
        let (request, ticket, answer) = Request::new(work, None);
        push(&self.reads, request).map_err(|error| self.counters.refused(error))?;
        let too_long = StoreError::Unavailable("the read took too long".to_owned());
        self.await_answer(answer, ticket, too_long).await
    }

    /// Waits for an answer until the deadline. `unfinished` is the error for a request that runs at the
    /// deadline.
    async fn await_answer(
        &self,
        mut answer: AnswerReceiver,
        ticket: Ticket,
        unfinished: StoreError,
    ) -> Outcome {
        match tokio::time::timeout(self.deadline, &mut answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(StoreError::closed().into()),
            Err(_) if ticket.abandon() => {
                Err(self.counters.refused(StoreError::Busy("the request waited too long")).into())
            }
            // The request runs, and may have been answered meanwhile.
            Err(_) => answer.try_recv().unwrap_or_else(|_| Err(unfinished.into())),
        }
    }

    /// Copies the committed data into a new file.
    pub async fn copy_to(&self, to: PathBuf) -> Result<(), StoreError> {
        let path = self.path.clone();
        let copied = move || SqliteConnection::open_for_reading(&path)?.copy_to(&to);
        let interrupted = |_| StoreError::Unavailable("the copy was interrupted".to_owned());
        tokio::task::spawn_blocking(copied).await.map_err(interrupted)?
    }

    /// Measures the file of the store with this id, and its disk.
    pub async fn measure(&self, store: &StoreId) -> Result<Measures, StoreError> {
        let (path, store) = (self.path.clone(), store.clone());
        let interrupted = |_| StoreError::Unavailable("the measurement was interrupted".to_owned());
        tokio::task::spawn_blocking(move || measure_file(&path, &store)).await.map_err(interrupted)?
    }

    pub fn archive(&self) -> Option<Arc<LogArchive>> {
        self.archive.clone()
    }

    pub fn stats(&self) -> Stats {
        self.counters.stats(self.waiting.load(Ordering::Relaxed))
    }

    pub fn disk(&self) -> Disk {
        self.counters.disk.state()
    }

    /// Ends the readers first: the writer's last checkpoint needs the file alone.
    pub async fn close(&self) {
        for (queue, threads) in [(&self.reads, &self.readers), (&self.writes, &self.writer)] {
            queue.write().unwrap_or_else(PoisonError::into_inner).take();
            let threads = std::mem::take(&mut *threads.lock().unwrap_or_else(PoisonError::into_inner));
            let ended = tokio::task::spawn_blocking(move || {
                threads.into_iter().for_each(|thread| {
                    // A panicked thread has ended, too.
                    let _ = thread.join();
                });
            });
            if tokio::time::timeout(CLOSE_DEADLINE, ended).await.is_err() {
                tracing::warn!("the SQLite store did not finish its accepted work in time");
            }
        }
    }
}

/// What is held while a connection to the data file is open: closing the archive's own descriptor of the file
/// would release the locks of all connections.
struct Held {
    _lock: FileLock,
    archive: OnceLock<Arc<LogArchive>>,
}

/// The archive of the log and its watch, if the log is archived.
fn open_archive(path: &Path, options: &Options) -> Result<Option<(Arc<LogArchive>, LogWatch)>, StoreError> {
    let failed = |error: std::io::Error| cannot("cannot archive the log of", path, &error);
    let Some(archiving) = &options.log_archiving else {
        log_archive::stop_archiving(path).map_err(failed)?;
        return Ok(None);
    };
    LogArchive::open(path, archiving, options.sqlite_sync).map(Some).map_err(failed)
}

/// The archive with a connection that pins the log.
fn archived(path: &Path, archive: Arc<LogArchive>) -> Result<ArchivedLog, StoreError> {
    let pin = SqliteConnection::open_for_reading(path)?;
    pin.keep_log()?;
    Ok(ArchivedLog { archive, pin })
}

fn push(queue: &Queue, request: Request) -> Result<(), StoreError> {
    let queue = queue.read().unwrap_or_else(PoisonError::into_inner);
    let sender = queue.as_ref().ok_or_else(StoreError::closed)?;
    sender.try_send(request).map_err(|error| match error {
        TrySendError::Full(_) => StoreError::Busy("too many requests are waiting"),
        TrySendError::Disconnected(_) => StoreError::closed(),
    })
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| StoreError::Open(format!("no thread to be had: {error}")))
}

fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Open(format!("{what} {}: {error}", path.display()))
}

/// The canonical path of a file, so that each path to it has the same lock.
fn whole_path(path: &Path) -> Result<PathBuf, StoreError> {
    if path.exists() {
        return path.canonicalize().map_err(|error| cannot("cannot find", path, &error));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| cannot("not a file name:", path, &"choose a file"))?;
    Ok(folder.canonicalize().map_err(|error| cannot("no folder", folder, &error))?.join(name))
}

/// The exclusive lock on a data file.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl Drop for FileLock {
    /// Unlocks, because closing the file is not enough: a process that this one has just forked keeps the
    /// file open until it executes another program.
    fn drop(&mut self) {
        // If unlocking fails, closing the file unlocks it.
        let _ = self.0.unlock();
    }
}

/// Locks a data file for this process. Two processes would answer from stale caches.
pub(crate) fn lock(path: &Path) -> Result<FileLock, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = private().open(&name).map_err(|error| cannot("cannot make the lock file of", path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(FileLock(file)),
        Err(TryLockError::WouldBlock) => {
            Err(cannot("the data file is in use:", path, &"another process has it open"))
        }
        Err(TryLockError::Error(error)) => Err(cannot("cannot lock", path, &error)),
    }
}

/// Opens a file. A new one is readable by this user alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the file readable by this user alone. SQLite gives its log the same mode.
fn make_private(path: &Path) -> Result<(), StoreError> {
    private().open(path).map(drop).map_err(|error| cannot("cannot open", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_lock_is_free_while_a_copy_of_its_file_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let held = lock(&path).unwrap();
        let copy = held.0.try_clone().unwrap();
        assert!(lock(&path).is_err());
        drop(held);
        drop(lock(&path).unwrap());
        drop(copy);
    }
}
