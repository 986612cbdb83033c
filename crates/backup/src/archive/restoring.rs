//! Builds a data file from an archive as it was at a time, and proves that this works.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use domain::seal::ServiceKey;
use domain::{StoreId, Timestamp};
use store::Target;
use store::log_archive::{SegmentHead, SegmentName, apply_segment};
use store::transfer::{Snapshot, check_file, file_identity};
use temporary_folder::TemporaryFolder;

use super::catalog::{Base, FOLDER, of_store, problems, read_catalog};
use super::place::{ArchivePlace, OpenPlace};
use super::plan::{Hole, Plan, plan, stretches, whole_bases};
use crate::inspect::inspect_snapshot;
use crate::key::check_service_key;
use crate::new_file::NewDataFile;
use crate::report::{OnReport, Phase};
use crate::restore::migrate_file;
use crate::take::sums;
use crate::{BackupError, DATA_FILE, WORK_PREFIX, files};

/// What is restored from an archive.
#[derive(Clone, Default)]
pub struct Wanted {
    /// The time; `None` for the last one that can be reached.
    pub at: Option<Timestamp>,
    /// The store; `None` for the only one of the archive.
    pub store: Option<StoreId>,
    /// The service key, which is compared with the one that has sealed the secrets; `None` compares nothing.
    pub key: Option<ServiceKey>,
}

/// A data file that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredArchive {
    /// The generation.
    pub generation: String,
    /// It has no commit after this time.
    pub until: Timestamp,
    /// Everything that was acknowledged before this time is in it.
    pub complete_until: Timestamp,
    /// The base.
    pub base: Base,
    /// The number of segments that were applied.
    pub segments: usize,
    /// The size of the data file, in bytes.
    pub bytes: u64,
    /// The wanted time is in a hole, which begins at the end of the data.
    pub hole: Option<Hole>,
    /// Why parts of the archive cannot be used.
    pub problems: Vec<String>,
}

/// What a drill of an archive has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveDrill {
    /// What was built.
    pub restored: RestoredArchive,
    /// Rows that were read.
    pub rows: u64,
    /// The number of the latest migration after the start of this program on it.
    pub migrated_to: i64,
}

/// A generation, and the times that can be reached with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGeneration {
    /// Its name.
    pub name: String,
    /// The store; `None` if it is not known.
    pub store_id: Option<String>,
    /// The bases that can be used, oldest first.
    pub bases: Vec<Base>,
    /// The number of bases that cannot be used, because segments or the copy are missing.
    pub broken_bases: usize,
    /// The number of its segments.
    pub segments: usize,
    /// The stretches of time that can be reached, in their order.
    pub reaches: Vec<(Timestamp, Timestamp)>,
    /// Why its description, or that of a base, cannot be used.
    pub problems: Vec<String>,
}

/// The generations of an archive, oldest first.
///
/// # Errors
/// [`BackupError`] if the place cannot be read.
pub async fn list_archive(place: &ArchivePlace) -> Result<Vec<ListedGeneration>, BackupError> {
    let found = read_catalog(&mut place.open()?, FOLDER).await?;
    let listed = found.into_iter().map(|generation| {
        let bases: Vec<_> = whole_bases(&generation).map(|(_, base)| base.clone()).collect();
        ListedGeneration {
            reaches: stretches(&generation),
            broken_bases: generation.bases.len() - bases.len(),
            problems: generation.problems,
            bases,
            segments: generation.segments.len(),
            store_id: generation.store_id,
            name: generation.name,
        }
    });
    Ok(listed.collect())
}

/// Builds a new data file as it was at a time, or at the last time of the archive. A time in a hole is
/// restored as far as it can be reached.
///
/// # Errors
/// [`BackupError::Refused`] if the time cannot be reached, the file is there already, or the service key is
/// not the store's, [`BackupError::Damaged`] if a file of the archive is missing or not as it was written.
/// The place of the data file is then as before.
pub async fn restore_archive(
    place: &ArchivePlace,
    wanted: &Wanted,
    to: &Path,
    on_report: OnReport<'_>,
) -> Result<RestoredArchive, BackupError> {
    let new = NewDataFile::begin(to)?;
    let restored = build(place, wanted, new.partial(), on_report).await?;
    if let Some(key) = &wanted.key {
        let identity = tokio::task::block_in_place(|| file_identity(new.partial()));
        let (store_id, key_test) = identity.map_err(BackupError::of("the restored file"))?.unzip();
        check_service_key(store_id.as_ref(), key_test.flatten().as_deref(), key)?;
    }
    new.complete()?;
    Ok(restored)
}

/// Builds the data file in a temporary folder within `folder` (or the system's), checks it, brings its schema
/// up to date, and deletes the folder.
///
/// # Errors
/// As [`restore_archive`], and [`BackupError::Damaged`] if the rows contradict each other.
pub async fn drill_archive(
    place: &ArchivePlace,
    wanted: &Wanted,
    folder: Option<&Path>,
    on_report: OnReport<'_>,
) -> Result<ArchiveDrill, BackupError> {
    let parent = folder.map_or_else(std::env::temp_dir, Path::to_owned);
    let work = TemporaryFolder::create_in(&parent, WORK_PREFIX)
        .map_err(|error| BackupError::file("cannot make a folder in", &parent, &error))?;
    let path = work.path().join(DATA_FILE);
    let restored = restore_archive(place, wanted, &path, on_report).await?;
    migrate_file(&path).await?;
    let target = Target::Sqlite { path };
    let snapshot = Snapshot::open(&target).await.map_err(BackupError::of("the archive"))?;
    let rows = sums(&snapshot, on_report).await?.iter().map(|table| table.rows).sum();
    let findings = inspect_snapshot(&snapshot, restored.until).await?;
    if let Some(finding) = findings.iter().find(|finding| !finding.contradictions.is_empty()) {
        return Err(BackupError::Damaged(format!(
            "{}: not true of {}. The store was so at that time: stagedoor doctor --deep says how to mend it",
            finding.sentence,
            finding.contradictions.join(", ")
        )));
    }
    Ok(ArchiveDrill { restored, rows, migrated_to: snapshot.schema_version() })
}

async fn build(
    place: &ArchivePlace,
    wanted: &Wanted,
    path: &Path,
    on_report: OnReport<'_>,
) -> Result<RestoredArchive, BackupError> {
    let mut open = place.open()?;
    let found = read_catalog(&mut open, FOLDER).await?;
    let problems = problems(&found);
    let planned = of_store(found, wanted.store.as_ref()).and_then(|catalog| plan(&catalog, wanted.at));
    let plan = planned.map_err(|error| match problems.first() {
        Some(problem) => {
            BackupError::Damaged(format!("{error}. A part of the archive is skipped: {problem}"))
        }
        None => error,
    })?;
    fetch_base(&mut open, &plan, path, on_report).await?;
    let data = OpenOptions::new().write(true).open(path);
    let data = data.map_err(|error| BackupError::file("cannot write", path, &error))?;
    let mut reached = plan.base.completed();
    let mut last = None::<SegmentHead>;
    for (done, name) in plan.segments.iter().enumerate() {
        let is_whole =
            last.as_ref().map_or(plan.base.redo_from - 1, |last| last.name.last) >= plan.base.redo_to;
        let head = apply(&mut open, &plan, *name, (path, &data)).await.map_err(|error| match error {
            BackupError::Damaged(why) if is_whole => BackupError::Damaged(format!(
                "{why}: the last time that can be reached before it is {}",
                reached.rfc3339()
            )),
            error => error,
        })?;
        reached = reached.max(name.until);
        last = Some(head);
        on_report(Phase::Segments, "", done as u64 + 1);
    }
    let complete = plan.base.complete_until();
    let complete_until = last.as_ref().map_or(complete, |head| head.from.max(complete));
    finish(path, &data, last.as_ref(), on_report)?;
    let bytes =
        std::fs::metadata(path).map_err(|error| BackupError::file("cannot read", path, &error))?.len();
    Ok(RestoredArchive {
        generation: plan.generation,
        until: plan.until,
        complete_until,
        base: plan.base,
        segments: plan.segments.len(),
        bytes,
        hole: plan.hole,
        problems,
    })
}

async fn fetch_base(
    open: &mut OpenPlace,
    plan: &Plan,
    path: &Path,
    on_report: OnReport<'_>,
) -> Result<(), BackupError> {
    let name = format!("{FOLDER}/{}/bases/{}/{DATA_FILE}", plan.generation, plan.base_name);
    let (bytes, sha256) = open.fetch(&name, path, on_report).await?;
    if (bytes, &sha256) == (plan.base.bytes, &plan.base.sha256) {
        return Ok(());
    }
    Err(BackupError::Damaged(format!(
        "{name} is damaged: it has {bytes} bytes and the SHA-256 {sha256}, and its description says {} bytes and {}",
        plan.base.bytes, plan.base.sha256
    )))
}

/// Checks a segment, and writes its pages into the data file.
async fn apply(
    open: &mut OpenPlace,
    plan: &Plan,
    name: SegmentName,
    (path, data): (&Path, &File),
) -> Result<SegmentHead, BackupError> {
    let key = format!("{FOLDER}/{}/segments/{name}", plan.generation);
    let (file, _copy) = match open.path(&key) {
        Some(file) => (file, None),
        None => {
            let copy = Temporary(files::segment_of(path));
            let _ = std::fs::remove_file(&copy.0);
            open.fetch(&key, &copy.0, &mut |_, _, _| {}).await?;
            (copy.0.clone(), Some(copy))
        }
    };
    let applied = tokio::task::block_in_place(|| apply_segment(&file, data));
    let head = applied.map_err(|error| BackupError::Damaged(format!("{key} is damaged: {error}")))?;
    if head.name == name && head.generation == plan.generation {
        return Ok(head);
    }
    Err(BackupError::Damaged(format!("{key} is another segment than its name says")))
}

/// A file that is deleted with the value.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Cuts the data file to the size of its last commit, syncs it, and checks it.
fn finish(
    path: &Path,
    data: &File,
    last: Option<&SegmentHead>,
    on_report: OnReport<'_>,
) -> Result<(), BackupError> {
    let settled = || -> std::io::Result<()> {
        if let Some(SegmentHead { page_bytes, database_pages, .. }) = last {
            data.set_len(u64::from(*page_bytes) * u64::from(*database_pages))?;
        }
        data.sync_all()
    };
    settled().map_err(|error| BackupError::file("cannot write", path, &error))?;
    on_report(Phase::Check, DATA_FILE, 0);
    tokio::task::block_in_place(|| check_file(path)).map_err(BackupError::of("the restored file"))
}
