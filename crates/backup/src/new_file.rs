//! The place of a data file that is being built: one restore or move at a time holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{BackupError, files};

/// The end of the name of the lock file.
const LOCK: &str = ".restoring";

/// What a restore or a move into a folder has left beside the place of the data file, as a sentence that says
/// what to do; `None` if there is nothing.
pub fn interrupted_restore(path: &Path) -> Option<String> {
    let left = [files::partial_of(path), files::with_suffix(path, LOCK)];
    let left: Vec<String> =
        left.iter().filter(|file| file.exists()).map(|file| file.display().to_string()).collect();
    if left.is_empty() {
        return None;
    }
    let (folder, left) = (path.parent().unwrap_or(path).display(), left.join(" and "));
    let happened =
        format!("a restore or a move into {folder} runs, or was interrupted, and has left {left}.");
    Some(if path.exists() {
        let path = path.display();
        format!(
            "{happened} To serve {path} as it is, delete {left}. To complete the restore, move {path} away and call it again"
        )
    } else {
        format!(
            "{happened} To complete it, call it again. To begin with an empty store instead, delete {left}"
        )
    })
}

/// A data file that is being built under a temporary name. Dropping the value deletes what is not complete.
pub(crate) struct NewDataFile {
    path: PathBuf,
    partial: PathBuf,
    lock_path: PathBuf,
    _lock: File,
    /// The folder, if it was made for the file.
    made_folder: Option<PathBuf>,
}

impl NewDataFile {
    /// Holds an empty place, makes its folder, and deletes what an interrupted one left there.
    ///
    /// # Errors
    /// [`BackupError::Refused`] if the place has a data file, or the log of one, which SQLite would apply to
    /// the new file, or if another restore or move holds the place.
    pub fn begin(path: &Path) -> Result<Self, BackupError> {
        refuse_leftovers(path)?;
        let made_folder = path.parent().filter(|folder| !folder.exists()).map(Path::to_owned);
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        let lock_path = files::with_suffix(path, LOCK);
        let lock = lock(path, &lock_path)?;
        let partial = files::partial_of(path);
        let new = Self { path: path.to_owned(), partial, lock_path, _lock: lock, made_folder };
        // Another one may have ended before the lock was free.
        refuse_leftovers(path)?;
        files::delete_data_file(&new.partial)?;
        Ok(new)
    }

    /// The temporary name.
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// [`BackupError::Refused`] if a service has made a data file in the place meanwhile.
    pub fn complete(self) -> Result<(), BackupError> {
        refuse_leftovers(&self.path)?;
        files::rename(&self.partial, &self.path)
    }
}

impl Drop for NewDataFile {
    fn drop(&mut self) {
        let _ = files::delete_data_file(&self.partial);
        // Deleted while it is locked: see `lock`.
        let _ = std::fs::remove_file(&self.lock_path);
        if let Some(folder) = &self.made_folder {
            // Refused by the system if the complete file is there.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Locks the file of that name. A file that its last holder has deleted meanwhile is no lock.
fn lock(path: &Path, lock_path: &Path) -> Result<File, BackupError> {
    let failed = |error: std::io::Error| BackupError::file("cannot lock", lock_path, &error);
    let busy = || BackupError::Refused(format!("another restore or move to {} is running", path.display()));
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(files::PRIVATE_FILE);
    let file = options.open(lock_path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(busy()),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let held = file.metadata().map_err(failed)?;
    match std::fs::metadata(lock_path) {
        Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => Ok(file),
        _ => Err(busy()),
    }
}

fn refuse_leftovers(path: &Path) -> Result<(), BackupError> {
    for file in files::of_data_file(path) {
        if file.exists() {
            return Err(BackupError::Refused(format!(
                "{} is there already: choose an empty folder, or move the old files away",
                file.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        NewDataFile::begin(path).err().expect("it is refused").to_string()
    }

    #[test]
    fn one_restore_at_a_time_holds_a_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("place/stagedoor.db");
        let first = NewDataFile::begin(&path).expect("an empty place");
        std::fs::write(first.partial(), "one").expect("written");
        assert!(refusal(&path).contains("another restore or move"));
        assert!(first.partial().exists(), "the refused restore has deleted nothing");
        drop(first);
        assert!(!folder.path().join("place").exists(), "a failed restore leaves nothing");
        std::fs::create_dir(folder.path().join("place")).expect("a folder");
        drop(NewDataFile::begin(&path).expect("an empty place"));
        assert!(folder.path().join("place").exists(), "a folder that was there stays");
        let second = NewDataFile::begin(&path).expect("the place is free again");
        std::fs::write(second.partial(), "two").expect("written");
        second.complete().expect("renamed");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "two");
        assert!(refusal(&path).contains("is there already"));
    }

    #[test]
    fn a_data_file_that_a_service_has_made_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stagedoor.db");
        let new = NewDataFile::begin(&path).expect("an empty place");
        std::fs::write(new.partial(), "restored").expect("written");
        std::fs::write(&path, "of the service").expect("written");
        assert!(matches!(new.complete(), Err(BackupError::Refused(_))));
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "of the service");
    }
}
