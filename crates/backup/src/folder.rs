//! The folder of the backups: their names, its lock, and the deletion of old ones.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use domain::Timestamp;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use crate::listing::{BrokenBackup, ListedBackup, Listing, OtherStore};
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::{BackupError, DATA_FILE, WORK_PREFIX, files};

/// The beginning of the name of a backup.
pub(crate) const PREFIX: &str = "stagedoor-";
/// The end of the name of a backup that is being taken.
const PARTIAL: &str = ".partial";
/// The file whose lock a taker holds.
const LOCK_FILE: &str = ".stagedoor-backup.lock";

/// The time in a name: it sorts as the time does.
const NAME_TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year][month][day]T[hour][minute][second].[subsecond digits:3]Z");

/// A complete backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Its folder.
    pub folder: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
}

/// The name of a backup that is taken now.
pub(crate) fn name(now: Timestamp) -> String {
    let nanos = i128::from(now.as_millis()) * 1_000_000;
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let text = time.format(NAME_TIME).unwrap_or_else(|_| now.as_millis().to_string());
    format!("{PREFIX}{text}")
}

/// The backups of a folder.
///
/// # Errors
/// The folder cannot be read.
pub fn list(folder: &Path) -> Result<Listing, BackupError> {
    let mut listing = Listing::default();
    for name in names(folder)? {
        let path = folder.join(&name);
        // Without a manifest there is no backup. It is unknown where the folder cannot be read.
        if name.ends_with(PARTIAL) || matches!(path.join(MANIFEST_FILE).try_exists(), Ok(false)) {
            continue;
        }
        let data_file = path.join(DATA_FILE);
        let bytes = std::fs::metadata(&data_file).ok().map(|file| file.len());
        let address = path.display().to_string();
        listing.add((name, address), Manifest::read(&path), (&data_file.display().to_string(), bytes));
    }
    Ok(listing)
}

/// The backup of a path: the backup itself, or the latest one in a folder of backups, with those that cannot
/// be used.
///
/// # Errors
/// [`BackupError::Refused`] if there is none, or if the folder has those of several stores;
/// [`BackupError::Damaged`] if a newer one cannot be used.
pub fn find(path: &Path, other: OtherStore) -> Result<(Backup, Vec<BrokenBackup>), BackupError> {
    if path.join(MANIFEST_FILE).is_file() {
        return Ok((Backup { folder: path.to_owned(), manifest: Manifest::read(path)? }, Vec::new()));
    }
    if !path.is_dir() {
        return Err(BackupError::Refused(format!("{} is not there", path.display())));
    }
    let listing = list(path)?;
    let latest = listing.latest(&path.display().to_string(), other)?;
    let backup = Backup { folder: path.join(&latest.name), manifest: latest.manifest.clone() };
    Ok((backup, listing.broken))
}

/// The names that backups have in a folder, in the order of their times.
fn names(folder: &Path) -> Result<Vec<String>, BackupError> {
    let failed = |error: &dyn std::fmt::Display| BackupError::file("cannot read the folder", folder, error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(&error))? {
        let name = entry.map_err(|error| failed(&error))?.file_name();
        let is_backup = |name: &&str| name.starts_with(PREFIX) && !name.starts_with(WORK_PREFIX);
        if let Some(name) = name.to_str().filter(is_backup) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A folder in which this process alone takes backups.
pub(crate) struct Locked {
    folder: PathBuf,
    _lock: File,
}

impl Locked {
    /// Makes the folder if it is missing, locks it, and deletes what an interrupted backup left.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        files::make_folder(folder)?;
        let path = folder.join(LOCK_FILE);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = opened.map_err(|error| BackupError::file("cannot write", &path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(BackupError::Refused(format!(
                    "another backup to {} is running",
                    folder.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(BackupError::file("cannot lock", &path, &error)),
        }
        for name in names(folder)?.iter().filter(|name| name.ends_with(PARTIAL)) {
            delete(&folder.join(name))?;
        }
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// A new folder for the files of a backup that is being taken, and its name when it is complete.
    pub fn begin(&self, name: &str) -> Result<(PathBuf, PathBuf), BackupError> {
        let complete = self.folder.join(name);
        if complete.exists() {
            return Err(BackupError::Refused(format!("{} is there already", complete.display())));
        }
        let partial = self.folder.join(format!("{name}{PARTIAL}"));
        files::make_folder(&partial)?;
        Ok((partial, complete))
    }

    /// Deletes a backup.
    pub fn delete(&self, backup: &ListedBackup) -> Result<(), BackupError> {
        let folder = self.folder.join(&backup.name);
        // A backup without its manifest is no backup, so a deletion that is interrupted leaves none.
        let manifest = folder.join(MANIFEST_FILE);
        let deleted = std::fs::remove_file(&manifest);
        deleted.map_err(|error| BackupError::file("cannot delete", &manifest, &error))?;
        delete(&folder)
    }
}

pub(crate) fn delete(folder: &Path) -> Result<(), BackupError> {
    std::fs::remove_dir_all(folder).map_err(|error| BackupError::file("cannot delete", folder, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_times_do() {
        let at = |ms| name(Timestamp::from_millis(ms));
        assert_eq!(at(1_764_118_800_007), "stagedoor-20251126T010000.007Z");
        assert!(at(999) < at(1_000) && at(1_000) < at(1_764_118_800_007));
    }
}
