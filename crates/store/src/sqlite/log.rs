//! The writer's log, and its sync. SQLite commits by writing to the log, and would sync it before the commit can be read.
//! Synced here instead, just after, a commit can be told to whoever may hear of it while the disk is still busy; the one
//! who asked for it is answered when the disk is done.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::connection::Connection;
use crate::StoreError;

/// The log's file, and what is not synced of it.
pub(super) struct Log {
    file: File,
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    /// Something was written to it since its last sync.
    is_ahead: Arc<AtomicBool>,
    /// A sync failed, and what it was for may be on the disk or not.
    is_torn: bool,
}

impl Log {
    /// The log of the writer's connection, which must have read or written by now. SQLite keeps the file for as long as
    /// anybody has the database open, and its locks are on other files, so that opening this one takes none away.
    pub fn open(database: &Path, writer: &mut Connection) -> Result<Self, StoreError> {
        let mut name = database.as_os_str().to_owned();
        name.push("-wal");
        let file = File::open(&name)
            .map_err(|error| StoreError::Open(format!("cannot open {}: {error}", name.display())))?;
        let (pages, is_ahead) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, ahead) = (pages.clone(), is_ahead.clone());
        writer.watch_log(move |in_log| {
            counted.store(in_log, Ordering::Relaxed);
            ahead.store(true, Ordering::Relaxed);
        })?;
        Ok(Self { file, pages, is_ahead, is_torn: false })
    }

    /// Where the number of pages in the log can be read.
    pub fn pages(&self) -> Arc<AtomicU32> {
        self.pages.clone()
    }

    /// Syncs what was committed since the last time, if anything was.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if !self.is_ahead.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| {
            tracing::error!(%error, "a sync of the log failed");
            self.is_torn = true;
            StoreError::CommitUnknown
        })
    }

    /// After a failed sync the system may think clean what never reached the disk, and the next sync would vouch for
    /// commits behind a hole. So nothing is written before all of the log is in the data file, by a sync of that.
    pub fn mend(&mut self, writer: &Connection) -> Result<(), StoreError> {
        if self.is_torn {
            writer.fold_whole_log()?;
            tracing::warn!("what the log may have lost is in the data file now");
            self.is_torn = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_sync_is_no_commit_and_is_mended_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let mut writer = Connection::open_for_writing(&path).unwrap();
        writer.execute("CREATE TABLE a (b TEXT)", &[]).unwrap();
        let mut log = Log::open(&path, &mut writer).unwrap();
        // Nothing there can be synced.
        log.file = File::open("/dev/full").unwrap();
        log.sync().expect("nothing was written");
        writer.execute("INSERT INTO a VALUES ('b')", &[]).unwrap();
        assert_eq!(log.sync(), Err(StoreError::CommitUnknown));
        let log_bytes = || std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
        assert!(log_bytes() > 0);
        log.mend(&writer).unwrap();
        assert_eq!(log_bytes(), 0, "all of it is in the data file");
        writer.execute("INSERT INTO a VALUES ('c')", &[]).unwrap();
        log.mend(&writer).unwrap();
        assert!(log_bytes() > 0, "it is mended once");
    }
}
