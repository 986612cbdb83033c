//! The spool: a folder beside the data file with the segments that the archive does not have yet, and with
//! how far the log was read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::frames::{Checksum, LogPosition, Salts};
use super::segment::SegmentName;

/// The name of the folder.
const FOLDER: &str = "archive-spool";
/// How far the log was read.
const PROGRESS_FILE: &str = "progress";
/// What the archiver notes about its place.
const NOTE_FILE: &str = "place";
/// The end of the name of a file that is not complete.
const PARTIAL: &str = ".partial";
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// A segment that the archive does not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpooledSegment {
    /// The generation.
    pub generation: String,
    /// Its name.
    pub name: SegmentName,
    /// The file.
    pub path: PathBuf,
    /// The size of the file.
    pub bytes: u64,
}

/// How far the log was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogProgress {
    /// The generation.
    pub generation: String,
    /// The number of the next segment.
    pub next: u64,
    /// The number of the first segment with frames of the current run of the log.
    pub log_first: u64,
    /// The end of the last segment in the log; `None` if the log had no frame yet.
    pub position: Option<LogPosition>,
}

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct Spool(PathBuf);

impl Spool {
    /// The folder beside a data file.
    pub fn beside(database: &Path) -> Self {
        Self(database.parent().unwrap_or(Path::new(".")).join(FOLDER))
    }

    /// Makes the folder if it is missing.
    pub fn make(&self) -> io::Result<()> {
        make_folder(&self.0)
    }

    /// How far the log was read; `None` if that is not known.
    pub fn progress(&self) -> io::Result<Option<LogProgress>> {
        Ok(self.read(PROGRESS_FILE)?.as_deref().and_then(parse))
    }

    /// Records how far the log was read.
    pub fn record(&self, progress: &LogProgress, syncs: bool) -> io::Result<()> {
        self.replace(PROGRESS_FILE, &text_of(progress), syncs)
    }

    /// What the archiver noted; `None` if nothing.
    pub fn note(&self) -> io::Result<Option<String>> {
        self.read(NOTE_FILE)
    }

    /// Records what the archiver notes.
    pub fn record_note(&self, note: &str, syncs: bool) -> io::Result<()> {
        self.replace(NOTE_FILE, note, syncs)
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match std::fs::read_to_string(self.0.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, name: &str, text: &str, syncs: bool) -> io::Result<()> {
        let path = self.0.join(name);
        let partial = self.0.join(format!("{name}{PARTIAL}"));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE_FILE).open(&partial)?;
        file.write_all(text.as_bytes())?;
        if syncs {
            file.sync_data()?;
        }
        std::fs::rename(&partial, &path)?;
        if syncs { sync(&self.0) } else { Ok(()) }
    }

    /// Forgets how far the log was read: the next segment begins a new generation.
    pub fn forget(&self) -> io::Result<()> {
        match std::fs::remove_file(self.0.join(PROGRESS_FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// A new file for a segment that is being written. It has no name yet.
    pub fn create(&self, generation: &str) -> io::Result<(File, PathBuf)> {
        let folder = self.0.join(generation);
        make_folder(&folder)?;
        let partial = folder.join(PARTIAL);
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE_FILE).open(&partial)?;
        Ok((file, partial))
    }

    /// Gives a complete segment its name.
    pub fn complete(&self, partial: &Path, name: SegmentName) -> io::Result<()> {
        let folder = partial.parent().unwrap_or(&self.0);
        std::fs::rename(partial, folder.join(name.to_string()))?;
        sync(folder)
    }

    /// The segments of all generations, in their order. Folders of generations without a segment are deleted,
    /// except that of `current`.
    pub fn segments(&self, current: Option<&str>) -> io::Result<Vec<SpooledSegment>> {
        let mut found = Vec::new();
        let mut generations = names(&self.0)?;
        generations.sort();
        for generation in generations {
            let folder = self.0.join(&generation);
            if !folder.is_dir() {
                continue;
            }
            let before = found.len();
            let mut segments: Vec<_> =
                names(&folder)?.iter().filter_map(|name| SegmentName::parse(name)).collect();
            segments.sort();
            for name in segments {
                let path = folder.join(name.to_string());
                let bytes = std::fs::metadata(&path)?.len();
                found.push(SpooledSegment { generation: generation.clone(), name, path, bytes });
            }
            if found.len() == before && current != Some(generation.as_str()) {
                std::fs::remove_dir_all(&folder)?;
            }
        }
        Ok(found)
    }
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(folder)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// One line: the generation, the next number, the first number of the log, and the place in the log.
fn text_of(progress: &LogProgress) -> String {
    let LogProgress { generation, next, log_first, position } = progress;
    let place = position.map_or_else(
        || "-".to_owned(),
        |LogPosition { salts, frames, sum }| format!("{} {} {frames} {} {}", salts.0, salts.1, sum.0, sum.1),
    );
    format!("{generation} {next} {log_first} {place}\n")
}

fn parse(text: &str) -> Option<LogProgress> {
    let words: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
    let (generation, next, log_first, place) = match words.as_slice() {
        [generation, next, log_first, place @ ..] => (*generation, next, log_first, place),
        _ => return None,
    };
    let position = match place {
        ["-"] => None,
        [first, second, frames, a, b] => Some(LogPosition {
            salts: Salts(first.parse().ok()?, second.parse().ok()?),
            frames: frames.parse().ok()?,
            sum: Checksum(a.parse().ok()?, b.parse().ok()?),
        }),
        _ => return None,
    };
    let (next, log_first) = (next.parse().ok()?, log_first.parse().ok()?);
    Some(LogProgress { generation: generation.to_owned(), next, log_first, position })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_as_it_was_recorded_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::beside(&folder.path().join("a.db"));
        spool.make().unwrap();
        assert_eq!(spool.progress().unwrap(), None);
        let position = Some(LogPosition { salts: Salts(1, 2), frames: 3, sum: Checksum(4, 5) });
        for position in [None, position] {
            let progress = LogProgress { generation: "g".to_owned(), next: 8, log_first: 7, position };
            spool.record(&progress, true).unwrap();
            assert_eq!(spool.progress().unwrap(), Some(progress));
        }
        for wrong in ["", "g 1 1\n", "g 1 1 -", "g 1 x -\n", "g 1 1 2 3 4 5\n"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        spool.record_note("a place", false).unwrap();
        spool.forget().unwrap();
        assert_eq!(spool.progress().unwrap(), None);
        assert_eq!(spool.note().unwrap().as_deref(), Some("a place"));
    }
}
