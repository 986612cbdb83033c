//! Where an archive is: its files by their names, in a folder or an object store.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::task::block_in_place;

use crate::report::OnReport;
use crate::s3::{Objects, PartedObject, Source};
use crate::s3_client::{PART_BYTES, PARTS_MAX};
use crate::{BackupError, S3Place, files};

/// The end of the name of a file that is not complete.
const PARTIAL: &str = ".partial";
/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Where an archive is.
#[derive(Debug, Clone)]
pub enum ArchivePlace {
    /// A folder.
    Folder(PathBuf),
    /// An S3-like object store.
    S3(Box<S3Place>),
}

/// An open place.
pub(super) enum OpenPlace {
    Folder(PathBuf),
    S3(Box<Objects>),
}

/// A file that is being written from beginning to end.
pub(super) enum NewFile {
    Folder { file: File, partial: PathBuf, path: PathBuf },
    S3(PartedObject),
}

impl std::fmt::Display for ArchivePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::S3(place) => place.fmt(f),
        }
    }
}

impl ArchivePlace {
    pub(super) fn open(&self) -> Result<OpenPlace, BackupError> {
        Ok(match self {
            Self::Folder(folder) => OpenPlace::Folder(folder.clone()),
            Self::S3(place) => OpenPlace::S3(Box::new(place.objects()?)),
        })
    }
}

impl OpenPlace {
    /// The names that begin with the name of a folder.
    pub async fn names(&mut self, folder: &str) -> Result<Vec<String>, BackupError> {
        match self {
            Self::Folder(root) => block_in_place(|| {
                let mut names = Vec::new();
                walk(root, folder, &mut names)?;
                Ok(names)
            }),
            Self::S3(objects) => objects.names(&format!("{folder}/")).await,
        }
    }

    /// Checks that a folder is there, and gives its device; `None` for an object store, whose requests fail
    /// by themselves. A folder is made only if it `may_be_made`: one whose disk is away is missing, too.
    pub fn device(&self, may_be_made: bool) -> Result<Option<u64>, BackupError> {
        let Self::Folder(root) = self else { return Ok(None) };
        if may_be_made {
            files::make_folder(root)?;
        }
        let found = std::fs::metadata(root).map_err(|error| match error.kind() {
            ErrorKind::NotFound => BackupError::File(format!(
                "the folder {} is not there, and is not made again: if its disk is away, it is waited for. If it is to \
                 be a new one, make the folder",
                root.display()
            )),
            _ => BackupError::file("cannot reach the folder", root, &error),
        })?;
        match found.is_dir() {
            true => Ok(Some(found.dev())),
            false => Err(BackupError::File(format!("{} is no folder", root.display()))),
        }
    }

    /// Whether a small file is there.
    pub async fn has(&mut self, name: &str) -> Result<bool, BackupError> {
        Ok(self.get(name).await?.is_some())
    }

    /// Writes what is read under a name.
    pub async fn put_all(&mut self, name: &str, from: Source<'_>) -> Result<(), BackupError> {
        match self {
            Self::Folder(root) => block_in_place(|| {
                let (file, partial, path) = create(root, name)?;
                let mut writer = BufWriter::with_capacity(BUFFER_BYTES, &file);
                let copied = io::copy(from.content, &mut writer).and_then(|_| writer.flush());
                copied.map_err(|error| BackupError::file("cannot write", &partial, &error))?;
                drop(writer);
                complete(&file, &partial, &path)
            }),
            Self::S3(objects) => objects.put_all(name, from).await,
        }
    }

    /// Writes a small file.
    pub async fn put(&mut self, name: &str, content: Vec<u8>) -> Result<(), BackupError> {
        match self {
            Self::Folder(root) => block_in_place(|| {
                let (mut file, partial, path) = create(root, name)?;
                let written = file.write_all(&content);
                written.map_err(|error| BackupError::file("cannot write", &partial, &error))?;
                complete(&file, &partial, &path)
            }),
            Self::S3(objects) => objects.put(name, content.into()).await,
        }
    }

    /// Reads a small file; `None` if there is no such file.
    pub async fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
        match self {
            Self::Folder(root) => {
                let path = root.join(name);
                match std::fs::read(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    read => read.map(Some).map_err(|error| BackupError::file("cannot read", &path, &error)),
                }
            }
            Self::S3(objects) => objects.get(name).await,
        }
    }

    /// Copies a file of the place into a new file, which is synced, and gives the size and the SHA-256.
    pub async fn fetch(
        &mut self,
        name: &str,
        to: &Path,
        on_report: OnReport<'_>,
    ) -> Result<(u64, String), BackupError> {
        match self {
            Self::Folder(root) => block_in_place(|| files::copy(&root.join(name), to, on_report)),
            Self::S3(objects) => {
                let failed = |error: io::Error| BackupError::file("cannot write", to, &error);
                let created =
                    OpenOptions::new().write(true).create_new(true).mode(files::PRIVATE_FILE).open(to);
                let mut file = created.map_err(failed)?;
                objects.read(name, on_report, |part| file.write_all(part).map_err(failed)).await?;
                file.sync_all().map_err(failed)?;
                block_in_place(|| files::hash(to, &mut |_, _, _| {}))
            }
        }
    }

    /// The path of a file, if the place is a folder.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        match self {
            Self::Folder(root) => Some(root.join(name)),
            Self::S3(_) => None,
        }
    }

    /// Deletes a file, if it is there, and the folders that it leaves empty.
    pub async fn delete(&mut self, name: &str) -> Result<(), BackupError> {
        match self {
            Self::Folder(root) => {
                let path = root.join(name);
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(BackupError::file("cannot delete", &path, &error));
                    }
                    _ => {}
                }
                // A folder that is not empty stays.
                let above = path.ancestors().skip(1).take_while(|folder| *folder != root.as_path());
                above.take(2).for_each(|folder| _ = std::fs::remove_dir(folder));
                Ok(())
            }
            Self::S3(objects) => objects.delete(name).await,
        }
    }

    /// Ends the uploads below a folder that were begun and not completed, by a process that was killed. No
    /// other one may be uploading there.
    pub async fn end_interrupted(&mut self, folder: &str) {
        if let Self::S3(objects) = self {
            objects.abort_uploads(folder).await;
        }
    }

    /// Begins a large file, and gives the size of its parts.
    pub async fn begin(&mut self, name: &str, bytes: u64) -> Result<(NewFile, usize), BackupError> {
        match self {
            Self::Folder(root) => {
                let (file, partial, path) = create(root, name)?;
                Ok((NewFile::Folder { file, partial, path }, PART_BYTES))
            }
            Self::S3(objects) => {
                // The file may grow to twice its size meanwhile.
                let part = usize::try_from((2 * bytes).div_ceil(PARTS_MAX)).unwrap_or(usize::MAX);
                Ok((NewFile::S3(objects.begin(name).await?), part.max(PART_BYTES)))
            }
        }
    }

    /// Writes the next part. Every part but the last one has the size that [`begin`](Self::begin) gave.
    pub async fn add(&mut self, new: &mut NewFile, part: Bytes) -> Result<(), BackupError> {
        match (self, new) {
            (_, NewFile::Folder { file, partial, .. }) => block_in_place(|| file.write_all(&part))
                .map_err(|error| BackupError::file("cannot write", partial, &error)),
            (Self::S3(objects), NewFile::S3(object)) => objects.add(object, part).await,
            (Self::Folder(_), NewFile::S3(_)) => Ok(()),
        }
    }

    /// Completes the file.
    pub async fn end(&mut self, new: NewFile) -> Result<(), BackupError> {
        match (self, new) {
            (_, NewFile::Folder { file, partial, path }) => {
                block_in_place(|| complete(&file, &partial, &path))
            }
            (Self::S3(objects), NewFile::S3(object)) => objects.end(object).await,
            (Self::Folder(_), NewFile::S3(_)) => Ok(()),
        }
    }

    /// Gives the file up.
    pub async fn abort(&mut self, new: NewFile) {
        match (self, new) {
            (_, NewFile::Folder { partial, .. }) => _ = std::fs::remove_file(partial),
            (Self::S3(objects), NewFile::S3(object)) => objects.abort(object).await,
            (Self::Folder(_), NewFile::S3(_)) => {}
        }
    }
}

fn create(root: &Path, name: &str) -> Result<(File, PathBuf, PathBuf), BackupError> {
    let path = root.join(name);
    make_below(root, Path::new(name).parent().unwrap_or(Path::new("")))?;
    let mut partial = path.clone().into_os_string();
    partial.push(PARTIAL);
    let partial = PathBuf::from(partial);
    let options =
        OpenOptions::new().write(true).create(true).truncate(true).mode(files::PRIVATE_FILE).clone();
    let file = options.open(&partial).map_err(|error| BackupError::file("cannot write", &partial, &error))?;
    Ok((file, partial, path))
}

/// Makes folders within one that is there. That one is never made here: it may be where a disk was.
fn make_below(root: &Path, folders: &Path) -> Result<(), BackupError> {
    let mut folder = root.to_owned();
    for name in folders {
        folder.push(name);
        match std::fs::DirBuilder::new().mode(files::PRIVATE_FOLDER).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(BackupError::file("cannot make the folder", &folder, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn complete(file: &File, partial: &Path, path: &Path) -> Result<(), BackupError> {
    file.sync_all().map_err(|error| BackupError::file("cannot sync", partial, &error))?;
    files::rename(partial, path)
}

fn walk(root: &Path, folder: &str, names: &mut Vec<String>) -> Result<(), BackupError> {
    let path = root.join(folder);
    let failed = |error: io::Error| BackupError::file("cannot read the folder", &path, &error);
    let entries = match std::fs::read_dir(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let name = format!("{folder}/{name}");
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(root, &name, names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}
