//! Proves a backup: restores it into a temporary folder, starts a store on it, and checks everything.

use std::path::Path;

use domain::Timestamp;
use store::Target;
use store::transfer::{Snapshot, check_file};
use temporary_folder::TemporaryFolder;

use crate::inspect::inspect_snapshot;
use crate::manifest::compare;
use crate::report::OnReport;
use crate::restore::{copy_checked, migrate_file};
use crate::take::sums;
use crate::{Backup, BackupError, DATA_FILE, WORK_PREFIX};

/// What a drill has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drill {
    /// Rows that were compared with the manifest.
    pub rows: u64,
    /// The number of the latest migration of the backup.
    pub schema_version: i64,
    /// The number of the latest migration after the start of this program on it.
    pub migrated_to: i64,
}

/// Restores a backup into a temporary folder within `folder` (or the system's), and checks it. Then brings
/// its schema up to date, as a start of the service does, and deletes the folder.
///
/// # Errors
/// [`BackupError::Damaged`] names the first thing that is not what the manifest says.
pub async fn drill(
    backup: &Backup,
    folder: Option<&Path>,
    on_report: OnReport<'_>,
) -> Result<Drill, BackupError> {
    let parent = folder.map_or_else(std::env::temp_dir, Path::to_owned);
    let work = TemporaryFolder::create_in(&parent, WORK_PREFIX)
        .map_err(|error| BackupError::file("cannot make a folder in", &parent, &error))?;
    let path = work.path().join(DATA_FILE);
    let rows = tokio::task::block_in_place(|| copy_checked(backup, &path, on_report))?;
    tokio::task::block_in_place(|| check_file(&path)).map_err(BackupError::of("the backup"))?;
    // Tables and columns of an older schema change, so they are compared only when they are this program's.
    migrate_file(&path).await?;
    let target = Target::Sqlite { path: path.clone() };
    let snapshot = Snapshot::open(&target).await.map_err(BackupError::of("the backup"))?;
    let found = sums(&snapshot, on_report).await?;
    let migrated_to = snapshot.schema_version();
    if migrated_to == backup.manifest.schema_version {
        compare(&backup.manifest.tables, &found)?;
    }
    // Everything that runs in time is as it was when the backup was taken.
    let taken_at = Timestamp::parse_rfc3339(&backup.manifest.taken_at).unwrap_or_default();
    let findings = inspect_snapshot(&snapshot, taken_at).await?;
    if let Some(finding) = findings.iter().find(|finding| !finding.contradictions.is_empty()) {
        return Err(BackupError::Damaged(format!(
            "{}: not true of {}. The store was so when the backup was taken: stagedoor doctor --deep says how to mend it",
            finding.sentence,
            finding.contradictions.join(", ")
        )));
    }
    Ok(Drill { rows, schema_version: backup.manifest.schema_version, migrated_to })
}
