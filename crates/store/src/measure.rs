//! What an operator watches of a store: its size, the room on its disk, and when it was backed up.
//!
//! A command that takes a backup runs beside the service, which has a SQLite file for itself. So the time of
//! a backup is in a file beside the data file, and in a table on a server. The file names its store, so that
//! the time of one store is never taken for that of another in the same folder.

use std::io;
use std::path::{Path, PathBuf};

use domain::{StoreId, Timestamp};

use crate::postgres::connection::failure;
use crate::postgres::connector::connect_alone;
use crate::{StoreError, Target};

/// The name of the file with the time of the last backup.
const LAST_BACKUP_FILE: &str = "last-backup";

const RECORD_BACKUP: &str = "
    INSERT INTO last_backup (only_row, taken_at) VALUES (TRUE, $1)
    ON CONFLICT (only_row) DO UPDATE SET taken_at = excluded.taken_at
        WHERE last_backup.taken_at < excluded.taken_at";

/// What was measured of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measures {
    /// Its size on disk, in bytes: the file with its log, or the database.
    pub bytes: u64,
    /// The disk of the file. `None` for a server, whose disk is another machine's.
    pub disk: Option<DiskSpace>,
    /// When the last completed backup began, as far as it was recorded.
    pub last_backup: Option<Timestamp>,
}

/// The room on a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// What this process may still use.
    pub free: u64,
    /// All of it.
    pub size: u64,
}

/// Measures a SQLite file. Blocks for as long as its disk needs.
pub(crate) fn measure_file(path: &Path, store: &StoreId) -> Result<Measures, StoreError> {
    let failed =
        |error: &dyn std::fmt::Display| StoreError::Unavailable(format!("{}: {error}", path.display()));
    let size = |path: &Path| std::fs::metadata(path).map(|data| data.len());
    let bytes = size(path).map_err(|error| failed(&error))?;
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let folder = rustix::fs::statvfs(path).map_err(|error| failed(&error))?;
    let disk = DiskSpace {
        free: folder.f_bavail.saturating_mul(folder.f_frsize),
        size: folder.f_blocks.saturating_mul(folder.f_frsize),
    };
    Ok(Measures {
        bytes: bytes + size(&log).unwrap_or(0),
        disk: Some(disk),
        last_backup: recorded(&mark_of(path), store),
    })
}

/// Records the time at which a backup began that is complete now.
///
/// # Errors
/// The folder of the file cannot be written, or the server not be reached.
pub async fn record_backup(target: &Target, store: &StoreId, taken_at: Timestamp) -> Result<(), StoreError> {
    match target {
        Target::Sqlite { path } => {
            let mark = mark_of(path);
            let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", mark.display()));
            write_whole(&mark, &format!("{} {store}\n", taken_at.rfc3339())).map_err(failed)
        }
        Target::Postgres { url } => {
            let (client, task) = connect_alone(url).await?;
            let recorded = client.execute(RECORD_BACKUP, &[&taken_at.as_millis()]).await;
            task.abort();
            recorded.map(drop).map_err(|error| failure(&error, ""))
        }
    }
}

fn mark_of(path: &Path) -> PathBuf {
    path.with_file_name(LAST_BACKUP_FILE)
}

/// The time in a file about this store; `None` if the file has none.
fn recorded(mark: &Path, store: &StoreId) -> Option<Timestamp> {
    let text = std::fs::read_to_string(mark).ok()?;
    let (taken_at, of) = text.trim().split_once(' ')?;
    Timestamp::parse_rfc3339(taken_at).filter(|_| of == store.as_str())
}

/// A reader sees the former text or the new one.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, text)?;
    std::fs::rename(&partial, path)
}
