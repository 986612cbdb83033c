//! The writer thread: takes what is waiting, runs each request so that it can be taken back alone, commits them together,
//! syncs the log once, and only then answers them. Who asked to hear of the commit hears of it before the sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use super::checkpoints::Checkpoints;
use super::connection::{Connection, control, in_transaction};
use super::log::Log;
use super::request::{Request, Settled};
use crate::StoreError;
use crate::engine::{Counters, Link, Tx};

/// Most requests in one commit. Beyond this a shared sync costs each hardly less, and the first waits ever longer.
const BATCH_CAP: usize = 512;

pub(super) struct Writer {
    tx: Tx,
    queue: Receiver<Box<dyn Request>>,
    waiting: Arc<AtomicUsize>,
    counters: Arc<Counters>,
    log: Log,
    checkpoints: Checkpoints,
    /// The last commit failed, and the log says so.
    is_failing: bool,
}

impl Writer {
    pub fn new(
        connection: Connection,
        queue: Receiver<Box<dyn Request>>,
        waiting: Arc<AtomicUsize>,
        counters: Arc<Counters>,
        log: Log,
        checkpoints: Checkpoints,
    ) -> Self {
        let tx = Tx::new(Link::Sqlite(connection));
        Self { tx, queue, waiting, counters, log, checkpoints, is_failing: false }
    }

    /// Runs until the queue is closed and empty, ends the thread that folds the log into the data file, and folds the rest.
    pub fn run(mut self, folder: JoinHandle<()>) {
        while let Ok(first) = self.queue.recv() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if first.start(None) {
                self.commit_together(first);
                if let Link::Sqlite(connection) = &self.tx.link {
                    self.checkpoints.between_commits(connection);
                }
            }
        }
        drop(self.checkpoints);
        // Had it panicked, its part is done here.
        let _ = folder.join();
        if let Link::Sqlite(connection) = &self.tx.link
            && let Err(error) = connection.fold_whole_log()
        {
            tracing::warn!(%error, "the log stays beside the data file until the next start");
        }
    }

    /// Commits `first` and the requests that are waiting by the time it has run, in one transaction.
    fn commit_together(&mut self, first: Box<dyn Request>) {
        (self.tx.found_disk_full, self.tx.has_written) = (false, false);
        if let Err(error) = self.begin() {
            self.counters.disk.note(error == StoreError::DiskFull, false);
            Counters::add(&self.counters.rolled_back, 1);
            return first.refuse(self.counters.refused(error));
        }
        let mut batch = Vec::new();
        let mut outcome = self.run_batch(first, &mut batch);
        if outcome.is_ok() {
            batch.iter_mut().for_each(Settled::committed);
            outcome = self.log.sync();
        }
        if outcome.is_err() && in_transaction(&self.tx) {
            // Left open it would fail the next batch's BEGIN, and so on for ever.
            if let Err(error) = control(&mut self.tx, "ROLLBACK") {
                tracing::error!(%error, "a failed write transaction would not roll back");
            }
        }
        let was_full = self.tx.found_disk_full || outcome == Err(StoreError::DiskFull);
        self.counters.disk.note(was_full, self.tx.has_written && outcome.is_ok());
        self.count(&batch, outcome.is_ok());
        for settled in batch {
            settled.answer(outcome.clone());
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        if let Link::Sqlite(connection) = &self.tx.link {
            self.log.mend(connection)?;
        }
        control(&mut self.tx, "BEGIN IMMEDIATE")
    }

    fn run_batch(&mut self, first: Box<dyn Request>, batch: &mut Vec<Settled>) -> Result<(), StoreError> {
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
            // The log may hold the commit though not all of it was written: a crash now could bring it back. On a full disk
            // the end of the commit is missing, and without it there is none.
            StoreError::Unavailable(why) => {
                if !self.is_failing {
                    tracing::error!(why, "commits fail");
                }
                StoreError::CommitUnknown
            }
            error => error,
        });
        self.is_failing = committed == Err(StoreError::CommitUnknown);
        committed
    }

    fn next_waiting(&mut self) -> Option<Box<dyn Request>> {
        loop {
            let request = self.queue.try_recv().ok()?;
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if request.start(None) {
                return Some(request);
            }
        }
    }

    /// Runs a request in a transaction that holds no writes yet, and says whether it does now. To take it back is to roll
    /// back, so it needs no savepoint, for which SQLite would copy each page before it is written to.
    fn run_first(&mut self, request: Box<dyn Request>, batch: &mut Vec<Settled>) -> Result<bool, StoreError> {
        let keep = self.run_request(request, batch)?;
        if !keep {
            control(&mut self.tx, "ROLLBACK")?;
            control(&mut self.tx, "BEGIN IMMEDIATE")?;
        }
        Ok(keep)
    }

    /// An error is the whole batch's: its transaction is lost.
    fn run_in_savepoint(
        &mut self,
        request: Box<dyn Request>,
        batch: &mut Vec<Settled>,
    ) -> Result<(), StoreError> {
        if let Err(error) = control(&mut self.tx, "SAVEPOINT request") {
            request.refuse(error.clone());
            return Err(error);
        }
        if !self.run_request(request, batch)? {
            control(&mut self.tx, "ROLLBACK TO request")?;
        }
        control(&mut self.tx, "RELEASE request")
    }

    /// Gives whether the request's writes are to stay.
    fn run_request(
        &mut self,
        request: Box<dyn Request>,
        batch: &mut Vec<Settled>,
    ) -> Result<bool, StoreError> {
        let settled = request.run(&mut self.tx);
        let keep = settled.keep;
        batch.push(settled);
        // A full disk and the like make SQLite end the transaction by itself, with everyone's writes.
        if in_transaction(&self.tx) {
            Ok(keep)
        } else if self.tx.found_disk_full {
            Err(StoreError::DiskFull)
        } else {
            Err(StoreError::Unavailable("the engine gave up the transaction".to_owned()))
        }
    }

    fn count(&self, batch: &[Settled], committed: bool) {
        let kept = batch.iter().filter(|settled| settled.keep && committed).count() as u64;
        Counters::add(&self.counters.committed, kept);
        Counters::add(&self.counters.rolled_back, batch.len() as u64 - kept);
        if kept > 0 {
            Counters::add(&self.counters.syncs, 1);
            self.counters.largest_batch.fetch_max(kept, Ordering::Relaxed);
        }
    }
}
