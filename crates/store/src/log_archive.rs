//! The write-ahead log of a SQLite file in segments, for an archive from which the file can be built as it
//! was at a time (`docs/adr/0028-the-log-is-archived.md`).
//!
//! | Module | What it does |
//! |---|---|
//! | `frames` | reads the log |
//! | `segment` | the file of a segment |
//! | `merge` | segments that follow each other as one |
//! | `spool` | the folder of the segments that the archive does not have yet |
//! | `copier` | copies the log into segments |

mod copier;
mod frames;
mod merge;
mod segment;
mod spool;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::Timestamp;

use copier::{Break, LogCopier};
use frames::{Salts, open_log, read_salts};

pub use copier::Now;
pub use merge::{MERGED_PARTS_MAX, MergedSegment};
pub use segment::{SegmentHead, SegmentName, apply_segment, name_time, parse_name_time, read_segment_head};
pub use spool::SpooledSegment;

/// How the log is archived.
#[derive(Clone)]
pub struct LogArchiving {
    /// The longest time between two segments.
    pub every: Duration,
    /// Maximum number of bytes of the segments that wait for the archive. Beyond it the generation ends.
    pub spool_bytes_max: u64,
    /// Gives the time.
    pub now: Now,
}

impl std::fmt::Debug for LogArchiving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { every, spool_bytes_max, .. } = self;
        f.debug_struct("LogArchiving")
            .field("every", every)
            .field("spool_bytes_max", spool_bytes_max)
            .finish()
    }
}

/// The log of an open data file, and the segments of it that the archive does not have yet.
pub struct LogArchive {
    copier: Mutex<LogCopier>,
    /// Read beside SQLite. Closing the data file would release the locks of its connections, so this one is
    /// closed after them.
    data: File,
    every: Duration,
}

impl std::fmt::Debug for LogArchive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogArchive").finish_non_exhaustive()
    }
}

/// How far a generation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationState {
    /// Its name.
    pub generation: String,
    /// The number of its last segment, 0 before the first.
    pub last: u64,
    /// A data file that is read from now on, and to which the segments from this one on are applied, is
    /// whole.
    pub redo_from: u64,
    /// Everything that was committed before this time is in the segments; `None` before the first look at the
    /// log.
    pub copied_until: Option<Timestamp>,
}

impl LogArchive {
    /// The log of a data file that a connection has open.
    pub(crate) fn open(
        database: &Path,
        options: &LogArchiving,
        syncs: bool,
    ) -> io::Result<(Arc<Self>, LogWatch)> {
        let opened = LogCopier::open(database, options.now.clone(), options.spool_bytes_max, syncs)?;
        if let Some(broken) = opened.broken {
            tracing::warn!(why = %broken, "the archive begins a new generation");
        }
        let data = File::open(database)?;
        let archive = Arc::new(Self { copier: Mutex::new(opened.copier), data, every: options.every });
        let log = open_log(database)?;
        let watch = LogWatch { archive: archive.clone(), log, salts: opened.salts, frames: opened.frames };
        Ok((archive, watch))
    }

    /// The longest time between two segments.
    pub fn every(&self) -> Duration {
        self.every
    }

    fn lock(&self) -> MutexGuard<'_, LogCopier> {
        self.copier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a step. A generation that misses something ends, and the service goes on.
    fn or_give_up(&self, step: impl FnOnce(&mut LogCopier) -> Result<(), Break>) {
        let mut copier = self.lock();
        if let Err(broken) = step(&mut copier) {
            tracing::error!(why = %broken, "the archive cannot go on with its generation, and begins a new one with a new base");
            if let Err(error) = copier.give_up() {
                tracing::error!(%error, "failed to end the generation of the archive");
            }
        }
    }

    /// Writes the commits since the last segment into a new one, if there are any. Blocks.
    pub fn copy(&self) {
        self.or_give_up(LogCopier::copy);
    }

    /// Like [`copy`](Self::copy), before a checkpoint of a log of this many frames.
    pub(crate) fn copy_to(&self, frames: u32) {
        self.or_give_up(|copier| copier.copy_to(frames.into()));
    }

    /// Begins a generation with the first frame of the log. Blocks.
    pub fn begin(&self, generation: &str) {
        self.or_give_up(|copier| copier.begin(generation));
    }

    /// Ends the generation, because the archive has lost what belongs to it. Its segments stay in the spool.
    /// Blocks.
    pub fn end(&self, why: &str) {
        self.or_give_up(|_| Err(Break::Lost(why.to_owned())));
    }

    /// What the archiver noted about its place; `None` if nothing. Blocks.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn note(&self) -> io::Result<Option<String>> {
        self.lock().note()
    }

    /// Records what the archiver notes about its place. Blocks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_note(&self, note: &str) -> io::Result<()> {
        self.lock().record_note(note)
    }

    /// How far the generation is; `None` between two generations. Blocks.
    pub fn state(&self) -> Option<GenerationState> {
        let copier = self.lock();
        let (last, redo_from) = copier.numbers()?;
        let generation = copier.generation()?.to_owned();
        Some(GenerationState { generation, last, redo_from, copied_until: copier.copied_until() })
    }

    /// Bytes in the spool. Blocks.
    pub fn spool_bytes(&self) -> u64 {
        self.lock().spool_bytes()
    }

    /// The segments of the spool, in their order. Blocks.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn segments(&self) -> io::Result<Vec<SpooledSegment>> {
        self.lock().segments()
    }

    /// Deletes a segment that the archive has. Blocks.
    ///
    /// # Errors
    /// The file cannot be deleted.
    pub fn remove(&self, segment: &SpooledSegment) -> io::Result<()> {
        self.lock().remove(segment)
    }

    /// The size of the data file, in bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn data_bytes(&self) -> io::Result<u64> {
        Ok(self.data.metadata()?.len())
    }

    /// The device of the data file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn data_device(&self) -> io::Result<u64> {
        Ok(self.data.metadata()?.dev())
    }

    /// Reads bytes of the data file, and gives their number: 0 at its end. A page may be older than the last
    /// commit, or be torn: see [`GenerationState::redo_from`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_data(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.data.read_at(buffer, offset)
    }
}

/// Notices on the writer's thread that SQLite begins to overwrite the log.
pub(crate) struct LogWatch {
    archive: Arc<LogArchive>,
    log: File,
    salts: Option<Salts>,
    /// Frames in the log after the last commit.
    frames: u64,
}

impl LogWatch {
    /// Runs after a commit, with the frames of the log after it; 0 if nothing was committed since the start.
    pub fn after_commit(&mut self, frames: u32) {
        let salts = match read_salts(&self.log) {
            Ok(salts) => salts,
            Err(error) => return self.archive.or_give_up(|_| Err(error.into())),
        };
        if salts != self.salts {
            self.archive.or_give_up(|copier| copier.restarted(self.salts, self.frames));
            self.salts = salts;
        }
        if frames > 0 {
            self.frames = frames.into();
        }
    }

    /// The archive of the log.
    pub fn archive(&self) -> &LogArchive {
        &self.archive
    }
}

/// Ends the generation of a data file that is opened without archiving: the log may be overwritten unseen.
pub(crate) fn stop_archiving(database: &Path) -> io::Result<()> {
    spool::Spool::beside(database).forget()
}
