//! The writer thread (group commit). It takes the requests that are waiting, runs each in a savepoint,
//! commits them together, calls their commit hooks, syncs the log once, and then answers their callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use super::checkpointer::CheckpointScheduler;
use super::connection::SqliteConnection;
use super::control::{control, in_transaction};
use super::request::{Executed, Request};
use super::wal::Wal;
use crate::StoreError;
use crate::stats::Counters;
use crate::tx::{Link, Tx};

/// The most requests in one commit. A larger batch saves hardly any cost of the sync, and its first caller
/// waits longer.
const BATCH_CAP: usize = 512;

/// The writer of a SQLite file.
pub(super) struct Writer {
    tx: Tx,
    queue: Receiver<Request>,
    /// Requests in the queue.
    waiting: Arc<AtomicUsize>,
    counters: Arc<Counters>,
    wal: Wal,
    checkpoints: CheckpointScheduler,
    /// The last commit failed, and was logged.
    is_failing: bool,
}

impl Writer {
    pub fn new(
        connection: SqliteConnection,
        queue: Receiver<Request>,
        waiting: Arc<AtomicUsize>,
        counters: Arc<Counters>,
        wal: Wal,
        checkpoints: CheckpointScheduler,
    ) -> Self {
        let tx = Tx::new(Link::Sqlite(connection));
        Self { tx, queue, waiting, counters, wal, checkpoints, is_failing: false }
    }

    /// Runs until the queue is closed and empty. Then ends the checkpoint thread, and checkpoints the rest of
    /// the log.
    pub fn run(mut self, checkpointer: JoinHandle<()>) {
        while let Ok(first) = self.queue.recv() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if first.start(None) {
                self.commit_together(first);
                if let Link::Sqlite(connection) = &self.tx.link {
                    self.checkpoints.between_commits(connection);
                }
            }
        }
        let is_archived = self.checkpoints.is_archived();
        self.checkpoints.end();
        // The last checkpoint includes what the thread left out if it panicked.
        let _ = checkpointer.join();
        if is_archived {
            // The log stays: the next start proves with it that the generation goes on.
            return self.checkpoints.archive_rest();
        }
        if let Link::Sqlite(connection) = &self.tx.link
            && let Err(error) = connection.checkpoint_and_truncate()
        {
            tracing::warn!(%error, "failed to checkpoint the log at the end: it stays until the next start");
        }
    }

    /// Commits `first` and the requests that are waiting by the time it has run, in one transaction.
    fn commit_together(&mut self, first: Request) {
        (self.tx.found_disk_full, self.tx.has_written) = (false, false);
        if let Err(error) = self.begin() {
            self.counters.disk.note(error == StoreError::DiskFull, false);
            Counters::add(&self.counters.rolled_back, 1);
            return first.refuse(self.counters.refused(error));
        }
        let mut batch = Vec::new();
        let mut committed = self.run_batch(first, &mut batch);
        if committed.is_ok() {
            self.checkpoints.note_commit();
            batch.iter_mut().for_each(Executed::committed);
            committed = self.wal.sync();
        }
        if committed.is_err() && in_transaction(&self.tx) {
            // An open transaction would fail every later BEGIN.
            if let Err(error) = control(&mut self.tx, "ROLLBACK") {
                tracing::error!(%error, "failed to roll back a write transaction");
            }
        }
        let was_full = self.tx.found_disk_full || committed == Err(StoreError::DiskFull);
        self.counters.disk.note(was_full, self.tx.has_written && committed.is_ok());
        self.count(&batch, committed.is_ok());
        for executed in batch {
            executed.answer(committed.clone());
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        if let Link::Sqlite(connection) = &self.tx.link {
            if self.wal.needs_repair() {
                self.checkpoints.archive_rest();
            }
            self.wal.repair(connection)?;
        }
        control(&mut self.tx, "BEGIN IMMEDIATE")
    }

    fn run_batch(&mut self, first: Request, batch: &mut Vec<Executed>) -> Result<(), StoreError> {
        let mut next = Some(first);
        let mut holds_writes = false;
        while let Some(request) = next {
            if holds_writes {
                self.run_in_savepoint(request, batch)?;
            } else {
                holds_writes = self.run_first(request, batch)?;
            }
            next = if batch.len() < BATCH_CAP { self.next_waiting() } else { None };
        }
        let committed = control(&mut self.tx, "COMMIT").map_err(|error| match error {
            // The log may contain the commit, so a crash now could restore it. On a full disk the end of the
            // commit is missing, so SQLite ignores it.
            StoreError::Unavailable(why) => {
                if !self.is_failing {
                    tracing::error!(why, "a commit failed");
                }
                StoreError::CommitUnknown
            }
            error => error,
        });
        self.is_failing = committed == Err(StoreError::CommitUnknown);
        committed
    }

    fn next_waiting(&mut self) -> Option<Request> {
        loop {
            let request = self.queue.try_recv().ok()?;
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if request.start(None) {
                return Some(request);
            }
        }
    }

    /// Runs a request in a transaction without writes, and gives whether it has writes now. A failed request
    /// is undone by a rollback of the transaction. So it needs no savepoint, for which SQLite would copy each
    /// page before a write.
    fn run_first(&mut self, request: Request, batch: &mut Vec<Executed>) -> Result<bool, StoreError> {
        let succeeded = self.run_request(request, batch)?;
        if !succeeded {
            control(&mut self.tx, "ROLLBACK")?;
            control(&mut self.tx, "BEGIN IMMEDIATE")?;
        }
        Ok(succeeded)
    }

    /// Runs a request in a savepoint. After an error the transaction of the whole batch is lost.
    fn run_in_savepoint(&mut self, request: Request, batch: &mut Vec<Executed>) -> Result<(), StoreError> {
        if let Err(error) = control(&mut self.tx, "SAVEPOINT request") {
            request.refuse(error.clone());
            return Err(error);
        }
        if !self.run_request(request, batch)? {
            control(&mut self.tx, "ROLLBACK TO request")?;
        }
        control(&mut self.tx, "RELEASE request")
    }

    /// Runs a request, and gives whether it succeeded.
    fn run_request(&mut self, request: Request, batch: &mut Vec<Executed>) -> Result<bool, StoreError> {
        let executed = request.run(&mut self.tx);
        let succeeded = executed.has_succeeded();
        batch.push(executed);
        // After some errors, such as a full disk, SQLite rolls back the whole transaction.
        if in_transaction(&self.tx) {
            Ok(succeeded)
        } else if self.tx.found_disk_full {
            Err(StoreError::DiskFull)
        } else {
            Err(StoreError::Unavailable("SQLite rolled back the transaction".to_owned()))
        }
    }

    fn count(&self, batch: &[Executed], committed: bool) {
        let written = batch.iter().filter(|executed| executed.has_succeeded() && committed).count() as u64;
        Counters::add(&self.counters.committed, written);
        Counters::add(&self.counters.rolled_back, batch.len() as u64 - written);
        if written > 0 {
            Counters::add(&self.counters.syncs, 1);
            self.counters.largest_batch.fetch_max(written, Ordering::Relaxed);
        }
    }
}
