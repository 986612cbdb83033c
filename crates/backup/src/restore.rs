//! Restores a backup into an empty place.

use std::path::Path;

use store::transfer::{CopyBegin, Restart, Snapshot, copy_to_postgres, count_rows};
use store::{DatabaseUrl, Options, Store, Target};
use temporary_folder::TemporaryFolder;

use crate::listing::OtherStore;
use crate::manifest::{Manifest, compare, compare_rows};
use crate::new_file::NewDataFile;
use crate::report::{OnReport, Phase, forward};
use crate::take::sums;
use crate::{Backup, BackupError, DATA_FILE, WORK_PREFIX, files};

/// A store that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The rows that were counted in what was written.
    pub rows: u64,
    /// The size of the backup's data file, in bytes.
    pub bytes: u64,
}

/// Restores a backup: into a new SQLite file, or into an empty schema of PostgreSQL. A restore to PostgreSQL
/// that was interrupted goes on when it is called again. A part of another store there begins anew only if
/// `other` says so.
///
/// # Errors
/// [`BackupError::Refused`] if the place is not empty or the backup is newer than this program,
/// [`BackupError::Damaged`] if the backup is not what its manifest says. The place is then as before, or, on
/// PostgreSQL, a schema on which no node starts.
pub async fn restore(
    backup: &Backup,
    to: &Target,
    other: OtherStore,
    on_report: OnReport<'_>,
) -> Result<Restored, BackupError> {
    let rows = match to {
        Target::Sqlite { path } => restore_file(backup, path, on_report)?,
        Target::Postgres { url } => restore_rows(backup, url, other, on_report).await?,
    };
    Ok(Restored { rows, bytes: backup.manifest.bytes })
}

fn restore_file(backup: &Backup, path: &Path, on_report: OnReport<'_>) -> Result<u64, BackupError> {
    let new = NewDataFile::begin(path)?;
    let rows = tokio::task::block_in_place(|| copy_checked(backup, new.partial(), on_report))?;
    new.complete()?;
    Ok(rows)
}

/// Copies the data file of a backup, checks its bytes, and counts its rows.
pub(crate) fn copy_checked(backup: &Backup, to: &Path, on_report: OnReport<'_>) -> Result<u64, BackupError> {
    let from = backup.folder.join(DATA_FILE);
    let (bytes, sha256) = files::copy(&from, to, on_report)?;
    check_bytes(&from, &backup.manifest, bytes, &sha256)?;
    on_report(Phase::Check, DATA_FILE, 0);
    let counted = count_rows(to).map_err(BackupError::of("the backup"))?;
    compare_rows(&backup.manifest, &counted)
}

fn check_bytes(path: &Path, manifest: &Manifest, bytes: u64, sha256: &str) -> Result<(), BackupError> {
    if bytes == manifest.bytes && sha256 == manifest.sha256 {
        return Ok(());
    }
    Err(BackupError::Damaged(format!(
        "{} is damaged: it has {bytes} bytes and the SHA-256 {sha256}, and its manifest says {} bytes and {}",
        path.display(),
        manifest.bytes,
        manifest.sha256
    )))
}

async fn restore_rows(
    backup: &Backup,
    url: &DatabaseUrl,
    other: OtherStore,
    on_report: OnReport<'_>,
) -> Result<u64, BackupError> {
    // The backup is never opened itself: opening a file can change files beside it.
    let work = TemporaryFolder::create(WORK_PREFIX)
        .map_err(|error| BackupError::file("cannot make a folder in", &std::env::temp_dir(), &error))?;
    let path = work.path().join(DATA_FILE);
    let rows = tokio::task::block_in_place(|| copy_checked(backup, &path, on_report))?;
    migrate_file(&path).await?;
    let source = Target::Sqlite { path };
    let snapshot = Snapshot::open(&source).await.map_err(BackupError::of("the backup"))?;
    let expected = sums(&snapshot, on_report).await?;
    let name = format!("the backup {}", backup.manifest.sha256);
    let begin = CopyBegin { restart: Restart::Never, other: other == OtherStore::Meant };
    let copied = copy_to_postgres(&snapshot, url, &name, begin, &mut forward(on_report)).await;
    copied.map_err(BackupError::of("the database"))?;
    let database = Target::Postgres { url: url.clone() };
    let restored = Snapshot::open(&database).await.map_err(BackupError::of("the database"))?;
    compare(&expected, &sums(&restored, on_report).await?)?;
    Ok(rows)
}

/// Brings the schema of a data file up to date, as the start of the service does.
pub(crate) async fn migrate_file(path: &Path) -> Result<(), BackupError> {
    let target = Target::Sqlite { path: path.to_owned() };
    let opened = Store::open(target, Options::default()).await.map_err(BackupError::of("the backup"))?;
    opened.close().await;
    Ok(())
}
