//! Copies the write-ahead log into segments, so that every commit is in exactly one of them, or is noticed to
//! be missing.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use domain::Timestamp;

use super::frames::{LogHeader, LogPosition, Salts, Stretch, open_log, read_header, read_salts};
use super::segment::{SegmentHead, SegmentName, write_segment};
use super::spool::{LogProgress, Spool, SpooledSegment};

/// Why a generation cannot go on. The next one begins with a new base.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Break {
    /// Commits are missing between the last segment and the log.
    #[error("the write-ahead log does not continue where it was read last: {0}")]
    Gap(&'static str),
    /// The archive was not reached for too long.
    #[error("the spool is full: it has {spooled} bytes, and {more} more do not fit into its {most}")]
    SpoolFull {
        /// Bytes in the spool.
        spooled: u64,
        /// Bytes of the next segment.
        more: u64,
        /// Its limit.
        most: u64,
    },
    /// The archive no longer has what belongs to the generation.
    #[error("{0}")]
    Lost(String),
    /// A file cannot be read or written.
    #[error("the spool or the write-ahead log failed: {0}")]
    File(#[from] io::Error),
}

/// Gives the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Reads the log of one data file.
pub(super) struct LogCopier {
    log: File,
    spool: Spool,
    now: Now,
    /// Maximum number of bytes in the spool.
    spool_bytes_max: u64,
    spool_bytes: u64,
    /// `None` between two generations.
    progress: Option<LogProgress>,
    /// Everything that was committed before is in a segment.
    copied_until: Option<Timestamp>,
    /// Whether files are synced.
    syncs: bool,
}

/// A log as it was when the copier was opened.
pub(super) struct OpenedLog {
    pub copier: LogCopier,
    /// Which run of the log it is; `None` if the log was empty.
    pub salts: Option<Salts>,
    /// Its committed frames.
    pub frames: u64,
    /// Why the generation of the spool does not go on.
    pub broken: Option<Break>,
}

impl LogCopier {
    /// Opens the log of a data file that a connection has open, and goes on with the generation of the spool
    /// if the log proves that nothing is missing.
    pub fn open(database: &Path, now: Now, spool_bytes_max: u64, syncs: bool) -> io::Result<OpenedLog> {
        let log = open_log(database)?;
        let spool = Spool::beside(database);
        spool.make()?;
        let progress = spool.progress()?;
        let header = read_header(&log)?;
        let whole = header.map(|header| header.scan(&log, header.start, None)).transpose()?;
        let continues = match (&progress, header) {
            (None, _) => Ok(()),
            (Some(progress), header) => continues(&log, progress.position, header)?,
        };
        let mut copier =
            Self { log, spool, now, spool_bytes_max, spool_bytes: 0, progress, copied_until: None, syncs };
        let broken = continues.err();
        match (&broken, &copier.progress) {
            (Some(_), _) => copier.give_up()?,
            // Segments that were written and not recorded are written again.
            (None, Some(progress)) => {
                let (generation, next) = (progress.generation.clone(), progress.next);
                for segment in copier.segments()? {
                    if segment.generation == generation && segment.name.first >= next {
                        std::fs::remove_file(&segment.path)?;
                    }
                }
            }
            (None, None) => {}
        }
        copier.spool_bytes = copier.segments()?.iter().map(|segment| segment.bytes).sum();
        let (salts, frames) =
            (header.map(|header| header.start.salts), whole.map_or(0, |all| all.end.frames));
        Ok(OpenedLog { copier, salts, frames, broken })
    }

    /// The generation that is being written.
    pub fn generation(&self) -> Option<&str> {
        self.progress.as_ref().map(|progress| progress.generation.as_str())
    }

    /// Everything that was committed before this time is in a segment.
    pub fn copied_until(&self) -> Option<Timestamp> {
        self.copied_until
    }

    /// Bytes in the spool.
    pub fn spool_bytes(&self) -> u64 {
        self.spool_bytes
    }

    /// The number of the last segment, 0 before the first, and of the first one with frames of the current
    /// run of the log.
    pub fn numbers(&self) -> Option<(u64, u64)> {
        self.progress.as_ref().map(|progress| (progress.next - 1, progress.log_first))
    }

    /// The segments of the spool, in their order.
    pub fn segments(&self) -> io::Result<Vec<SpooledSegment>> {
        self.spool.segments(self.generation())
    }

    /// Deletes a segment that the archive has.
    pub fn remove(&mut self, segment: &SpooledSegment) -> io::Result<()> {
        std::fs::remove_file(&segment.path)?;
        self.spool_bytes = self.spool_bytes.saturating_sub(segment.bytes);
        Ok(())
    }

    /// What the archiver noted; `None` if nothing.
    pub fn note(&self) -> io::Result<Option<String>> {
        self.spool.note()
    }

    /// Records what the archiver notes.
    pub fn record_note(&self, note: &str) -> io::Result<()> {
        self.spool.record_note(note, self.syncs)
    }

    /// Begins a generation with the first frame of the log.
    pub fn begin(&mut self, generation: &str) -> Result<(), Break> {
        let position = read_header(&self.log)?.map(|header| header.start);
        let progress = LogProgress { generation: generation.to_owned(), next: 1, log_first: 1, position };
        self.spool.record(&progress, self.syncs)?;
        self.progress = Some(progress);
        self.copy()
    }

    /// Ends the generation. Its segments stay in the spool for the archive.
    pub fn give_up(&mut self) -> io::Result<()> {
        (self.progress, self.copied_until) = (None, None);
        self.spool.forget()
    }

    /// Writes the commits since the last segment into a new one, if there are any.
    pub fn copy(&mut self) -> Result<(), Break> {
        let Some(progress) = &self.progress else { return Ok(()) };
        let from = (self.now)();
        if let Some(header) = read_header(&self.log)? {
            let position = progress.position.unwrap_or(header.start);
            if position.salts != header.start.salts {
                // The writer has just begun to overwrite the log. Its call of `restarted` follows.
                return Ok(());
            }
            let stretch = header.scan(&self.log, position, None)?;
            if !stretch.pages.is_empty() {
                self.write(&header, &stretch, from)?;
            }
        }
        self.copied_until = Some(from);
        Ok(())
    }

    /// Like [`copy`](Self::copy), and fails if the log has fewer than `frames` frames that can be read.
    pub fn copy_to(&mut self, frames: u64) -> Result<(), Break> {
        self.copy()?;
        match self.progress.as_ref().map(|progress| progress.position.map_or(0, |at| at.frames)) {
            Some(copied) if copied < frames => Err(Break::Gap("a part of it cannot be read")),
            _ => Ok(()),
        }
    }

    /// The writer has begun to overwrite the log, which had `frames` frames under the salts `old`.
    pub fn restarted(&mut self, old: Option<Salts>, frames: u64) -> Result<(), Break> {
        let Some(progress) = &mut self.progress else { return Ok(()) };
        let copied = match progress.position {
            // The log was empty, so nothing of it can be missing.
            None => frames,
            Some(position) if Some(position.salts) == old => position.frames,
            // The generation began with the new run of the log.
            Some(position) if Some(position.salts) == read_salts(&self.log)? => return Ok(()),
            Some(_) => return Err(Break::Gap("another run of it was read")),
        };
        if copied < frames {
            return Err(Break::Gap("it was overwritten before it was read"));
        }
        progress.position = read_header(&self.log)?.map(|header| header.start);
        progress.log_first = progress.next;
        // Not synced: after a power failure the log does not continue this record, which is then noticed.
        self.spool.record(progress, false)?;
        Ok(())
    }

    fn write(&mut self, header: &LogHeader, stretch: &Stretch, from: Timestamp) -> Result<(), Break> {
        let Some(progress) = &self.progress else { return Ok(()) };
        let more = stretch.pages.len() as u64 * u64::from(header.page_bytes);
        if self.spool_bytes + more > self.spool_bytes_max {
            let (spooled, most) = (self.spool_bytes, self.spool_bytes_max);
            return Err(Break::SpoolFull { spooled, more, most });
        }
        let number = progress.next;
        let head = SegmentHead {
            generation: progress.generation.clone(),
            name: SegmentName { first: number, last: number, until: (self.now)() },
            from,
            page_bytes: header.page_bytes,
            database_pages: stretch.database_pages,
            pages: u32::try_from(stretch.pages.len()).unwrap_or(u32::MAX),
        };
        let (file, partial) = self.spool.create(&head.generation)?;
        let mut pages = stretch.pages.iter();
        write_segment(&file, &head, |page| {
            let (number, frame) = pages.next().ok_or(io::ErrorKind::UnexpectedEof)?;
            header.read_page(&self.log, *frame, page)?;
            Ok(*number)
        })?;
        if self.syncs {
            file.sync_data()?;
        }
        let bytes = file.metadata()?.len();
        self.spool.complete(&partial, head.name)?;
        let progress = LogProgress { next: number + 1, position: Some(stretch.end), ..progress.clone() };
        self.spool.record(&progress, self.syncs)?;
        self.spool_bytes += bytes;
        self.progress = Some(progress);
        Ok(())
    }
}

/// Whether the log still has what was read of it, so that everything after it can be read, too.
fn continues(
    log: &File,
    position: Option<LogPosition>,
    header: Option<LogHeader>,
) -> io::Result<Result<(), Break>> {
    let Some(position) = position else {
        return Ok(Err(Break::Gap("nothing of it was read")));
    };
    let Some(header) = header.filter(|header| header.start.salts == position.salts) else {
        return Ok(Err(Break::Gap("it was begun anew while the service did not archive it")));
    };
    let again = header.scan(log, header.start, Some(position.frames))?;
    Ok(match again.end == position {
        true => Ok(()),
        false => Err(Break::Gap("it is not as it was read")),
    })
}
