//! What the store counts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::StoreError;
use crate::disk::DiskWatch;

/// Counts since the store was opened, for metrics and load reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Write requests that were committed.
    pub committed: u64,
    /// Write requests that were rolled back: refused by their rules, failed, or in a batch whose commit
    /// failed.
    pub rolled_back: u64,
    /// Commits that made those requests durable. On SQLite many requests share a commit and its sync. On
    /// PostgreSQL each request has its own commit, and the server shares syncs.
    pub syncs: u64,
    /// The most requests that shared one commit.
    pub largest_batch: u64,
    /// Requests, reads included, that failed with [`StoreError::Busy`].
    pub busy: u64,
    /// Writes that wait now for the writer's thread or for a connection.
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

    /// Counts the error if it is [`StoreError::Busy`].
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
