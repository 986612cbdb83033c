//! The write-ahead log of the writer, and its sync.
//!
//! SQLite would sync the log as a part of the commit. Here the writer syncs the log right after the commit.
//! In between the commit hook publishes the events of the commit
//! (`docs/adr/0017-listeners-need-not-wait-for-the-sync.md`). Callers are answered after the sync.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::connection::SqliteConnection;
use crate::StoreError;

/// The log's file, and how far it is synced.
pub(super) struct Wal {
    file: File,
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    /// A commit was written after the last sync.
    has_unsynced: Arc<AtomicBool>,
    /// A sync failed, so pages of the log may be missing on the disk.
    needs_repair: bool,
    /// Whether commits are synced.
    syncs: bool,
}

impl Wal {
    /// The log of the writer's connection, which has read or written before. SQLite keeps the file while any
    /// connection to the database is open. Its locks are on other files, so opening and closing this file
    /// releases none of them.
    pub fn open(database: &Path, writer: &mut SqliteConnection, syncs: bool) -> Result<Self, StoreError> {
        let mut name = database.as_os_str().to_owned();
        name.push("-wal");
        let file = File::open(&name)
            .map_err(|error| StoreError::Open(format!("cannot open {}: {error}", name.display())))?;
        let (pages, has_unsynced) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, unsynced) = (pages.clone(), has_unsynced.clone());
        writer.watch_wal(move |pages| {
            counted.store(pages, Ordering::Relaxed);
            unsynced.store(true, Ordering::Relaxed);
        })?;
        Ok(Self { file, pages, has_unsynced, needs_repair: false, syncs })
    }

    /// The number of pages in the log after the last commit.
    pub fn pages(&self) -> Arc<AtomicU32> {
        self.pages.clone()
    }

    /// Syncs the commits since the last sync, if there are any.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if !self.has_unsynced.swap(false, Ordering::Relaxed) || !self.syncs {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| {
            tracing::error!(%error, "failed to sync the write-ahead log");
            self.needs_repair = true;
            StoreError::CommitUnknown
        })
    }

    /// Whether [`repair`](Self::repair) has something to do.
    pub fn needs_repair(&self) -> bool {
        self.needs_repair
    }

    /// Checkpoints the whole log after a failed sync. The system may count pages as clean that never reached
    /// the disk, and a later successful sync would confirm commits behind a hole. So the writer writes
    /// nothing before this has worked.
    pub fn repair(&mut self, writer: &SqliteConnection) -> Result<(), StoreError> {
        if self.needs_repair {
            writer.checkpoint_and_truncate()?;
            tracing::warn!(
                "repaired the write-ahead log after a failed sync: the data file has all of its commits"
            );
            self.needs_repair = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_sync_is_no_commit_and_is_repaired_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let mut writer = SqliteConnection::open_for_writing(&path).unwrap();
        writer.execute("CREATE TABLE a (b TEXT)", &[]).unwrap();
        let mut wal = Wal::open(&path, &mut writer, true).unwrap();
        // This device cannot be synced.
        wal.file = File::open("/dev/full").unwrap();
        wal.sync().expect("nothing was written");
        writer.execute("INSERT INTO a VALUES ('b')", &[]).unwrap();
        assert_eq!(wal.sync(), Err(StoreError::CommitUnknown));
        let wal_bytes = || std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
        assert!(wal_bytes() > 0);
        wal.repair(&writer).unwrap();
        assert_eq!(wal_bytes(), 0, "all of it is in the data file");
        writer.execute("INSERT INTO a VALUES ('c')", &[]).unwrap();
        wal.repair(&writer).unwrap();
        assert!(wal_bytes() > 0, "it is repaired once");
    }
}
