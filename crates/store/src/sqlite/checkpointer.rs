//! Checkpoints, in parallel with the writer (`docs/adr/0016-what-a-writer-waits-for.md`).
//!
//! A checkpoint of 16 MiB takes tens of milliseconds. If the writer made it between two commits, every write
//! would wait. So a thread with its own connection makes it. SQLite restarts the log only when all of it is
//! in the data file, which this thread never reaches beside a busy writer. So afterwards the writer
//! checkpoints the few pages that came meanwhile.
//!
//! While the log is archived, the log is only overwritten when all of it is in segments: see
//! [`Checkpointer`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};

use super::connection::SqliteConnection;
use super::wal::Wal;
use crate::StoreError;
use crate::log_archive::{LogArchive, LogWatch};

/// Pages in the log that start a checkpoint: 16 MiB.
const CHECKPOINT_PAGES: u32 = 4_000;

/// Decides on the writer's thread when a checkpoint is due.
pub(super) struct CheckpointScheduler {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    /// Requests a checkpoint. `None` at the end.
    requests: Option<SyncSender<()>>,
    /// Receives the end of a checkpoint.
    done: Receiver<()>,
    /// A checkpoint was requested and is not done.
    is_running: bool,
    /// Pages in the log that start the next checkpoint.
    next_at: u32,
    /// While the log is archived.
    watch: Option<LogWatch>,
}

/// Makes checkpoints on its own thread. While the log is archived, it also writes the segments.
///
/// An archived log is pinned during a checkpoint by a connection that reads. So the checkpoint does not pass
/// what was committed before the pin, and SQLite does not overwrite the log. What was committed before the
/// pin is in segments when the pin ends. So whenever SQLite may overwrite the log, all of it is in segments.
pub(super) struct Checkpointer {
    requests: Receiver<()>,
    done: SyncSender<()>,
    archived: Option<ArchivedLog>,
}

/// The archive of the log, and the connection that pins it.
pub(super) struct ArchivedLog {
    pub archive: Arc<LogArchive>,
    pub pin: SqliteConnection,
}

/// A scheduler for the writer's log, and its checkpointer.
pub(super) fn pair(
    wal: &Wal,
    watch: Option<LogWatch>,
    archived: Option<ArchivedLog>,
) -> (CheckpointScheduler, Checkpointer) {
    // At most one request or one end is in a channel, so no sender waits.
    let ((requests, requested), (ended, done)) = (sync_channel(1), sync_channel(1));
    let scheduler = CheckpointScheduler {
        pages: wal.pages(),
        requests: Some(requests),
        done,
        is_running: false,
        next_at: CHECKPOINT_PAGES,
        watch,
    };
    (scheduler, Checkpointer { requests: requested, done: ended, archived })
}

impl CheckpointScheduler {
    /// Runs right after a commit, before its sync: a new run of the log is recorded at once, because
    /// without the record a start after a kill takes it for a gap.
    pub(super) fn note_commit(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.after_commit(self.pages.load(Ordering::Relaxed));
        }
    }

    /// Runs between two commits, when the callers of the last one are answered.
    pub(super) fn between_commits(&mut self, writer: &SqliteConnection) {
        let pages = self.pages.load(Ordering::Relaxed);
        let is_writers_turn = if self.is_running {
            !matches!(self.done.try_recv(), Err(TryRecvError::Empty))
        } else if pages >= self.next_at {
            self.is_running = self.requests.as_ref().is_some_and(|requests| requests.try_send(()).is_ok());
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
            self.archive_rest();
            log_failure(writer.checkpoint());
        }
    }

    /// Puts all of the log into segments, before a checkpoint by the writer or at the end.
    pub(super) fn archive_rest(&self) {
        if let Some(watch) = &self.watch {
            watch.archive().copy_to(self.pages.load(Ordering::Relaxed));
        }
    }

    /// Ends the checkpoint thread.
    pub(super) fn end(&mut self) {
        self.requests = None;
    }

    /// Whether the log is archived.
    pub(super) fn is_archived(&self) -> bool {
        self.watch.is_some()
    }
}

impl Checkpointer {
    /// Makes checkpoints until the writer has ended.
    pub(super) fn run(self, connection: &SqliteConnection) {
        while let Some(is_requested) = self.next() {
            match &self.archived {
                Some(archived) if !is_requested => archived.archive.copy(),
                Some(archived) => archived.checkpoint(connection),
                None => log_failure(connection.checkpoint()),
            }
            if is_requested {
                // The channel is only full or closed when the writer has ended.
                let _ = self.done.try_send(());
            }
        }
    }

    /// Waits for a request, or until a segment is due. `None` when the writer has ended.
    fn next(&self) -> Option<bool> {
        let Some(archived) = &self.archived else {
            return self.requests.recv().ok().map(|()| true);
        };
        match self.requests.recv_timeout(archived.archive.every()) {
            Ok(()) => Some(true),
            Err(RecvTimeoutError::Timeout) => Some(false),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl ArchivedLog {
    fn checkpoint(&self, connection: &SqliteConnection) {
        if let Err(error) = self.pin.pin() {
            let _ = self.pin.unpin();
            return log_failure(Err(error));
        }
        self.archive.copy();
        log_failure(connection.checkpoint());
        // What came meanwhile, so that little is left for the writer.
        self.archive.copy();
        log_failure(self.pin.unpin());
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
        let (mut scheduler, checkpointer) = pair(&wal, None, None);
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
