//! Files: private ones, hashes, copies and syncs.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::report::{OnReport, Phase};
use crate::{BackupError, DATA_FILE};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Read and written by the owner alone, because the rows hold hashes of secrets and names of people.
pub(crate) const PRIVATE_FILE: u32 = 0o600;
pub(crate) const PRIVATE_FOLDER: u32 = 0o700;

/// Makes a folder that its owner alone can read, and the folders above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), BackupError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER)
        .create(path)
        .map_err(|error| BackupError::file("cannot make the folder", path, &error))
}

/// Writes a new private file, and syncs it.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> Result<(), BackupError> {
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    written().map_err(|error| BackupError::file("cannot write", path, &error))
}

/// Makes a file private, and syncs it.
pub(crate) fn settle(path: &Path) -> Result<(), BackupError> {
    let settle = || -> std::io::Result<()> {
        let file = File::open(path)?;
        file.set_permissions(std::fs::Permissions::from_mode(PRIVATE_FILE))?;
        file.sync_all()
    };
    settle().map_err(|error| BackupError::file("cannot sync", path, &error))
}

/// A data file, and the files that SQLite keeps beside it.
pub(crate) fn of_data_file(path: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-journal"].map(|suffix| with_suffix(path, suffix))
}

/// The name of a data file that is not complete.
pub(crate) fn partial_of(path: &Path) -> PathBuf {
    with_suffix(path, ".partial")
}

/// The name of a segment beside a data file that is being built.
pub(crate) fn segment_of(path: &Path) -> PathBuf {
    with_suffix(path, ".segment")
}

/// A path with a longer name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Deletes a data file and the files beside it, as far as they exist.
pub(crate) fn delete_data_file(path: &Path) -> Result<(), BackupError> {
    for file in of_data_file(path) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(BackupError::file("cannot delete", &file, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Syncs the names in a folder.
pub(crate) fn sync_folder(path: &Path) -> Result<(), BackupError> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(|error| BackupError::file("cannot sync the folder", path, &error))
}

/// Renames, and syncs the folder of the new name.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    std::fs::rename(from, to).map_err(|error| BackupError::file("cannot rename to", to, &error))?;
    to.parent().map_or(Ok(()), sync_folder)
}

/// The size and the SHA-256 of a file.
pub(crate) fn hash(path: &Path, on_report: OnReport<'_>) -> Result<(u64, String), BackupError> {
    read_through(path, on_report, |_| Ok(()))
}

/// Copies a file into a new private one, which is synced, and gives the size and the SHA-256 of the bytes.
pub(crate) fn copy(from: &Path, to: &Path, on_report: OnReport<'_>) -> Result<(u64, String), BackupError> {
    let failed = |error| BackupError::file("cannot write", to, &error);
    let created = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(to);
    let mut copy = created.map_err(failed)?;
    let copied = read_through(from, on_report, |bytes| copy.write_all(bytes).map_err(failed))?;
    copy.sync_all().map_err(failed)?;
    Ok(copied)
}

fn read_through(
    path: &Path,
    on_report: OnReport<'_>,
    mut use_bytes: impl FnMut(&[u8]) -> Result<(), BackupError>,
) -> Result<(u64, String), BackupError> {
    let failed = |error| BackupError::file("cannot read", path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; BUFFER_BYTES]);
    loop {
        let read = file.read(&mut buffer).map_err(failed)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        use_bytes(&buffer[..read])?;
        bytes += read as u64;
        on_report(Phase::Bytes, DATA_FILE, bytes);
    }
    Ok((bytes, hex(hash)))
}

/// A hash in lower-case hex.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses to read a data file of another user: a reader may have to make the log's index, which the service
/// could then not open.
pub(crate) fn check_owner(path: &Path) -> Result<(), BackupError> {
    let file = std::fs::metadata(path).map_err(|error| BackupError::file("cannot open", path, &error))?;
    let own = rustix::process::geteuid().as_raw();
    if file.uid() == own {
        return Ok(());
    }
    Err(BackupError::Refused(format!(
        "{} belongs to the user {}, and this command runs as {}: run it as the user of the service",
        path.display(),
        file.uid(),
        own
    )))
}
