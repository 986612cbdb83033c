//! Takes a backup beside the running service.

use std::num::NonZeroU32;
use std::path::Path;

use domain::Timestamp;
use store::Target;
use store::transfer::{Snapshot, check_file, copy_to_sqlite};

use crate::folder::{self, Locked};
use crate::manifest::{MANIFEST_FILE, Manifest, TableEntry, compare};
use crate::report::{OnReport, Phase, forward};
use crate::{Backup, BackupError, DATA_FILE, files};

/// A backup that was taken.
#[derive(Debug)]
pub struct Taken {
    /// The backup.
    pub backup: Backup,
    /// The number of old backups that were deleted.
    pub deleted: usize,
}

/// Takes a backup into a folder of backups, and deletes old ones if `keep` is given.
///
/// The copy is compared with the store, table by table, and its pages, indexes and foreign keys are checked,
/// before the backup gets its name.
///
/// # Errors
/// [`BackupError`]. An incomplete backup is deleted, and old backups stay.
pub async fn take(
    target: &Target,
    to: &Path,
    keep: Option<NonZeroU32>,
    (now, version): (Timestamp, &str),
    on_report: OnReport<'_>,
) -> Result<Taken, BackupError> {
    if let Target::Sqlite { path } = target {
        files::check_owner(path)?;
    }
    let snapshot = Snapshot::open(target).await.map_err(BackupError::of("the store"))?;
    let locked = Locked::open(to)?;
    let (partial, complete) = locked.begin(&folder::name(now))?;
    let manifest = match fill(&snapshot, &partial, (now, version), on_report).await {
        Ok(manifest) => manifest,
        Err(error) => {
            folder::delete(&partial)?;
            return Err(error);
        }
    };
    files::rename(&partial, &complete)?;
    let deleted = keep.map_or(Ok(0), |keep| locked.delete_old(keep))?;
    Ok(Taken { backup: Backup { folder: complete, manifest }, deleted })
}

async fn fill(
    snapshot: &Snapshot,
    folder: &Path,
    (now, version): (Timestamp, &str),
    on_report: OnReport<'_>,
) -> Result<Manifest, BackupError> {
    let path = folder.join(DATA_FILE);
    if snapshot.engine() == "sqlite" {
        let copied = snapshot.copy_file(path.clone(), &mut forward(on_report));
        copied.map_err(BackupError::of("the copy"))?;
    } else {
        let copied = copy_to_sqlite(snapshot, &path, &mut forward(on_report)).await;
        copied.map_err(BackupError::of("the copy"))?;
    }
    let tables = sums(snapshot, on_report).await?;
    verify(&path, &tables, on_report).await?;
    files::settle(&path)?;
    let (bytes, sha256) = tokio::task::block_in_place(|| files::hash(&path, on_report))?;
    let manifest = Manifest {
        format: Manifest::format(),
        version: version.to_owned(),
        engine: snapshot.engine().to_owned(),
        schema_version: snapshot.schema_version(),
        taken_at: now.rfc3339(),
        bytes,
        sha256,
        tables,
    };
    let text = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| BackupError::Damaged(format!("the manifest cannot be written: {error}")))?;
    files::write_new(&folder.join(MANIFEST_FILE), &text)?;
    files::sync_folder(folder)?;
    Ok(manifest)
}

/// The checksums of the tables of a store.
pub(crate) async fn sums(
    snapshot: &Snapshot,
    on_report: OnReport<'_>,
) -> Result<Vec<TableEntry>, BackupError> {
    let sums = snapshot.sums(&mut forward(on_report)).await.map_err(BackupError::of("the store"))?;
    Ok(sums.into_iter().map(TableEntry::from).collect())
}

/// Checks a data file of this program's schema, and compares its tables with the expected ones.
pub(crate) async fn verify(
    path: &Path,
    expected: &[TableEntry],
    on_report: OnReport<'_>,
) -> Result<(), BackupError> {
    on_report(Phase::Check, DATA_FILE, 0);
    tokio::task::block_in_place(|| check_file(path)).map_err(BackupError::of("the copy"))?;
    let target = Target::Sqlite { path: path.to_owned() };
    let copy = Snapshot::open(&target).await.map_err(BackupError::of("the copy"))?;
    compare(expected, &sums(&copy, on_report).await?)
}
