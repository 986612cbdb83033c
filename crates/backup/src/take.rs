//! Takes a backup beside the running service.

use std::path::Path;

use domain::Timestamp;
use store::Target;
use store::queries::store_identity::StoreIdentity;
use store::transfer::{Snapshot, check_file, copy_to_sqlite};

use crate::folder::{self, Locked};
use crate::keep::KeepRules;
use crate::listing::{BrokenBackup, ListedBackup, OtherStore};
use crate::manifest::{MANIFEST_FILE, Manifest, TableEntry, compare};
use crate::report::{OnReport, Phase, forward};
use crate::{Backup, BackupError, DATA_FILE, S3Place, files};

/// How a backup is taken.
#[derive(Debug, Clone, Copy)]
pub struct TakeOptions {
    /// Which older backups of the store stay.
    pub keep: KeepRules,
    /// Whether the place may have backups of other stores alone.
    pub other: OtherStore,
}

/// A backup that was taken.
#[derive(Debug)]
pub struct Taken {
    /// Its folder or address.
    pub address: String,
    /// What it holds.
    pub manifest: Manifest,
    /// The number of old backups that were deleted.
    pub deleted: usize,
    /// Older backups of the place that cannot be used.
    pub broken: Vec<BrokenBackup>,
}

/// Takes a backup into a folder of backups, and deletes old ones that no rule keeps.
///
/// The copy is compared with the store, table by table, and its pages, indexes and foreign keys are checked,
/// before the backup gets its name.
///
/// # Errors
/// [`BackupError`]; [`BackupError::Refused`] if the folder has backups of other stores alone. An incomplete
/// backup is deleted, and old backups stay.
pub async fn take(
    target: &Target,
    to: &Path,
    options: TakeOptions,
    (now, version): (Timestamp, &str),
    on_report: OnReport<'_>,
) -> Result<Taken, BackupError> {
    let (snapshot, identity) = open(target).await?;
    let locked = Locked::open(to)?;
    folder::list(to)?.refuse_other_store(&identity.store_id, &to.display().to_string(), options.other)?;
    let (partial, complete) = locked.begin(&folder::name(now))?;
    let manifest = match fill(&snapshot, &identity, &partial, (now, version), on_report).await {
        Ok(manifest) => manifest,
        Err(error) => {
            folder::delete(&partial)?;
            return Err(error);
        }
    };
    files::rename(&partial, &complete)?;
    let listing = folder::list(to)?;
    let surplus = listing.surplus(&identity.store_id, &options.keep);
    surplus.iter().try_for_each(|backup| locked.delete(backup))?;
    let deleted = surplus.len();
    Ok(Taken { address: complete.display().to_string(), manifest, deleted, broken: listing.broken })
}

/// Takes a backup into an object store, by way of a folder that exists, and deletes old ones that no rule
/// keeps.
///
/// # Errors
/// As [`take`].
pub async fn take_to_s3(
    target: &Target,
    (to, work): (&S3Place, &Path),
    options: TakeOptions,
    (now, version): (Timestamp, &str),
    on_report: OnReport<'_>,
) -> Result<Taken, BackupError> {
    let (snapshot, identity) = open(target).await?;
    let mut listing = to.list().await?;
    listing.refuse_other_store(&identity.store_id, &to.to_string(), options.other)?;
    let name = folder::name(now);
    let folder = work.join(&name);
    files::make_folder(&folder)?;
    let manifest = fill(&snapshot, &identity, &folder, (now, version), on_report).await?;
    drop(snapshot);
    let address = to.store(&Backup { folder, manifest: manifest.clone() }, on_report).await?;
    listing.backups.push(ListedBackup { name, address: address.clone(), manifest: manifest.clone() });
    let surplus = listing.surplus(&identity.store_id, &options.keep);
    if !options.keep.keep_all() {
        to.delete(&surplus).await?;
    }
    Ok(Taken { address, manifest, deleted: surplus.len(), broken: listing.broken })
}

async fn open(target: &Target) -> Result<(Snapshot, StoreIdentity), BackupError> {
    if let Target::Sqlite { path } = target {
        files::check_owner(path)?;
    }
    let snapshot = Snapshot::open(target).await.map_err(BackupError::of("the store"))?;
    let identity = snapshot.identity().await.map_err(BackupError::of("the store"))?;
    Ok((snapshot, identity))
}

async fn fill(
    snapshot: &Snapshot,
    identity: &StoreIdentity,
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
        store_id: Some(identity.store_id.clone()),
        key_test: identity.key_test.clone(),
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
