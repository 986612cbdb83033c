//! Checkpoints, in parallel with the writer (`docs/adr/0016-what-a-writer-waits-for.md`).
//!
//! A checkpoint of 16 MiB takes tens of milliseconds. If the writer made it between two commits, every write
//! would wait. So a thread with its own connection makes it. SQLite restarts the log only when all of it is
//! in the data file, which this thread never reaches beside a busy writer. So afterwards the writer
//! checkpoints the few pages that came meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use super::connection::SqliteConnection;
use super::wal::Wal;
use crate::StoreError;

/// Pages in the log that start a checkpoint: 16 MiB.
const CHECKPOINT_PAGES: u32 = 4_000;

/// Decides on the writer's thread when a checkpoint is due.
pub(super) struct CheckpointScheduler {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    /// Requests a checkpoint.
    requests: SyncSender<()>,
    /// Receives the end of a checkpoint.
    done: Receiver<()>,
    /// A checkpoint was requested and is not done.
    is_running: bool,
    /// Pages in the log that start the next checkpoint.
    next_at: u32,
}

/// Makes checkpoints on its own thread.
pub(super) struct Checkpointer {
    requests: Receiver<()>,
    done: SyncSender<()>,
}

/// A scheduler for the writer's log, and its checkpointer.
pub(super) fn pair(wal: &Wal) -> (CheckpointScheduler, Checkpointer) {
    // At most one request or one end is in a channel, so no sender waits.
    let ((requests, requested), (ended, done)) = (sync_channel(1), sync_channel(1));
    let scheduler = CheckpointScheduler {
        pages: wal.pages(),
        requests,
        done,
        is_running: false,
        next_at: CHECKPOINT_PAGES,
    };
    (scheduler, Checkpointer { requests: requested, done: ended })
}

impl CheckpointScheduler {
    /// Runs between two commits, when the callers of the last one are answered.
    pub(super) fn between_commits(&mut self, writer: &SqliteConnection) {
        let pages = self.pages.load(Ordering::Relaxed);
        let is_writers_turn = if self.is_running {
            !matches!(self.done.try_recv(), Err(TryRecvError::Empty))
        } else if pages >= self.next_at {
            self.is_running = self.requests.try_send(()).is_ok();
            // The channel is only closed if the checkpoint thread panicked; then the writer checkpoints
            // itself.
            !self.is_running
        } else {
            if pages < CHECKPOINT_PAGES {
                // SQLite has restarted the log.
                self.next_at = CHECKPOINT_PAGES;
            }
            false
        };
        if is_writers_turn {
            self.is_running = false;
            self.next_at = pages.saturating_add(CHECKPOINT_PAGES);
            log_failure(writer.checkpoint());
        }
    }
}

impl Checkpointer {
    /// Makes checkpoints until the writer has ended.
    pub(super) fn run(self, connection: &SqliteConnection) {
        while self.requests.recv().is_ok() {
            log_failure(connection.checkpoint());
            // The channel is only full or closed when the writer has ended.
            let _ = self.done.try_send(());
        }
    }
}

/// A failed checkpoint loses nothing: the log stays longer until the next one.
fn log_failure(checkpoint: Result<(), StoreError>) {
    match checkpoint {
        Ok(()) => {}
        Err(StoreError::Busy(why)) => tracing::debug!(why, "a checkpoint was incomplete"),
        Err(error) => tracing::warn!(%error, "a checkpoint failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_makes_the_checkpoint_without_the_checkpointer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let mut writer = SqliteConnection::open_for_writing(&path).unwrap();
        writer.execute("CREATE TABLE a (b TEXT)", &[]).unwrap();
        let wal = Wal::open(&path, &mut writer, true).unwrap();
        let (mut scheduler, checkpointer) = pair(&wal);
        drop(checkpointer);
        let bytes = || std::fs::metadata(&path).unwrap().len();
        let before = bytes();
        scheduler.between_commits(&writer);
        assert_eq!(bytes(), before, "the log is too short yet");
        wal.pages().store(CHECKPOINT_PAGES, Ordering::Relaxed);
        scheduler.between_commits(&writer);
        assert!(bytes() > before && !scheduler.is_running);
    }
}
