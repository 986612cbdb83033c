//! Temporary folders. A process that was killed leaves its folder behind, and a later call for the same
//! purpose deletes it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The beginning of the name of a folder that is not locked yet.
const NEW: &str = ".stagedoor-new-";
/// The mode of a folder, whatever the umask of the process is.
const FOLDER_MODE: u32 = 0o700;
/// A file in the folder, locked as long as the process lives.
const LOCK: &str = "lock";

/// Makes a folder that stays, and those above it. New ones are for this user alone.
///
/// # Errors
/// It cannot be made.
pub fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// A folder that is deleted when this value is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    _lock: File,
}

impl TemporaryFolder {
    /// A new folder in the system's folder for temporary files; see [`create_in`](Self::create_in).
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub fn create(prefix: &str) -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), prefix)
    }

    /// A new folder in `parent`, for this user alone. Its name begins with `prefix`, which names the purpose.
    /// Folders of the same purpose whose processes have ended are deleted.
    ///
    /// # Errors
    /// The parent cannot be written.
    pub fn create_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        // The folder gets its name when it is locked, so that no other process takes it for a left one.
        let for_user = fs::Permissions::from_mode(FOLDER_MODE);
        let made = tempfile::Builder::new().prefix(NEW).permissions(for_user).tempdir_in(parent)?;
        let lock = File::create(made.path().join(LOCK))?;
        lock.try_lock().map_err(io::Error::other)?;
        sweep(parent, prefix, fs::metadata(made.path())?.uid());
        let made = made.keep();
        let name = made.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let path = parent.join(format!("{prefix}{}", name.trim_start_matches(NEW)));
        fs::rename(&made, &path).inspect_err(|_| drop(fs::remove_dir_all(&made)))?;
        Ok(Self { path, _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, folder = %self.path.display(), "failed to delete a temporary folder");
        }
    }
}

/// Deletes the user's folders whose processes have ended. A folder of another user could hold a lock that
/// never opens, such as a pipe.
fn sweep(parent: &Path, prefix: &str, user: u32) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for folder in entries.filter_map(Result::ok) {
        let is_own = || folder.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
        if !folder.file_name().to_string_lossy().starts_with(prefix) || !is_own() {
            continue;
        }
        let lock = fs::OpenOptions::new().write(true).open(folder.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // The next start tries it again.
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_left_folder_is_deleted_and_a_used_one_is_kept() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).expect("a folder");
            (File::create(path.join(LOCK)).expect("a file"), path)
        };
        let (used, used_path) = folder("stagedoor-world-used");
        used.try_lock().expect("a lock");
        let (_, left_path) = folder("stagedoor-world-left");
        let (_, other_path) = folder("stagedoor-other-left");
        let user = fs::metadata(parent.path()).expect("its owner").uid();
        sweep(parent.path(), "stagedoor-world-", user + 1);
        assert!(left_path.exists(), "the folder of another user");
        sweep(parent.path(), "stagedoor-world-", user);
        assert!(used_path.exists() && other_path.exists() && !left_path.exists());
    }

    #[test]
    fn a_folder_ends_with_its_value() {
        let folder = TemporaryFolder::create("stagedoor-test-").expect("a folder");
        let path = folder.path().to_owned();
        assert!(path.join(LOCK).exists());
        let mode = fs::metadata(&path).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, FOLDER_MODE, "others read nothing in it");
        drop(folder);
        assert!(!path.exists());
    }
}
