//! Folding the log into the data file, beside the writer. A pass over 16 MiB of log takes tens of milliseconds, for which
//! everybody who writes would have to wait if the writer did it between two commits.
//!
//! The log begins anew only when all of it is folded, which never happens beside a writer that is always busy. So what
//! was written during a pass, which is little, the writer folds itself when the pass is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use super::connection::Connection;
use super::log::Log;
use crate::StoreError;

/// Pages of log that are worth a pass: 16 MiB.
const PASS_PAGES: u32 = 4_000;

/// The writer's end.
pub(super) struct Checkpoints {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    /// Asks for a pass.
    ask: SyncSender<()>,
    /// Hears that it is over.
    passed: Receiver<()>,
    /// A pass is under way.
    is_passing: bool,
    /// Pages in the log that are worth the next pass.
    next_at: u32,
}

/// The other thread's end.
pub(super) struct Passes {
    asked: Receiver<()>,
    passed: SyncSender<()>,
}

/// Watches the length of the writer's log.
pub(super) fn watch(log: &Log) -> (Checkpoints, Passes) {
    // At most one pass is asked for or reported, so nobody waits for room.
    let ((ask, asked), (tell, passed)) = (sync_channel(1), sync_channel(1));
    let checkpoints = Checkpoints { pages: log.pages(), ask, passed, is_passing: false, next_at: PASS_PAGES };
    (checkpoints, Passes { asked, passed: tell })
}

impl Checkpoints {
    /// Between two commits of the writer, when nobody waits for the last one any more.
    pub(super) fn between_commits(&mut self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        let is_over = if self.is_passing {
            !matches!(self.passed.try_recv(), Err(TryRecvError::Empty))
        } else if pages >= self.next_at {
            self.is_passing = self.ask.try_send(()).is_ok();
            // The channel is only closed if the checkpoint thread panicked; then the writer checkpoints itself.
            !self.is_passing
        } else {
            if pages < PASS_PAGES {
                // It has begun anew.
                self.next_at = PASS_PAGES;
            }
            false
        };
        if is_over {
            self.is_passing = false;
            self.next_at = pages.saturating_add(PASS_PAGES);
            report(writer.fold_log());
        }
    }
}

impl Passes {
    /// Makes passes until the writer has ended.
    pub(super) fn run(self, connection: &Connection) {
        while self.asked.recv().is_ok() {
            report(connection.fold_log());
            // Only full when the writer has ended.
            let _ = self.passed.try_send(());
        }
    }
}

/// Nothing is lost by a pass that was not made: the log is longer until the next one.
fn report(pass: Result<(), StoreError>) {
    match pass {
        Ok(()) => {}
        Err(StoreError::Busy(why)) => tracing::debug!(why, "the log was not folded into the data file"),
        Err(error) => tracing::warn!(%error, "the log was not folded into the data file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_other_thread_the_writer_folds_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let mut writer = Connection::open_for_writing(&path).unwrap();
        writer.execute("CREATE TABLE a (b TEXT)", &[]).unwrap();
        let log = Log::open(&path, &mut writer).unwrap();
        let (mut checkpoints, passes) = watch(&log);
        drop(passes);
        let bytes = || std::fs::metadata(&path).unwrap().len();
        let before = bytes();
        checkpoints.between_commits(&writer);
        assert_eq!(bytes(), before, "it is too short yet");
        log.pages().store(PASS_PAGES, Ordering::Relaxed);
        checkpoints.between_commits(&writer);
        assert!(bytes() > before && !checkpoints.is_passing);
    }
}
