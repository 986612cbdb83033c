//! The format of SQLite's write-ahead log: a header, and frames of one page each. The checksum of a frame
//! covers all frames before it, so a valid frame proves the log up to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The size of the header of the log, in bytes.
const HEADER_BYTES: usize = 32;
/// The size of the header of a frame, in bytes.
const FRAME_HEADER_BYTES: usize = 24;
/// The first four bytes of a log; the last bit says in which byte order its checksums are.
const MAGIC: u32 = 0x377f_0682;
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// The two numbers that tell one run of the log from the next: SQLite changes them when it begins to
/// overwrite the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Salts(pub u32, pub u32);

/// A checksum over the log up to some frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checksum(pub u32, pub u32);

/// A place between two frames of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogPosition {
    /// Which run of the log.
    pub salts: Salts,
    /// The number of frames before the place.
    pub frames: u64,
    /// The checksum over them.
    pub sum: Checksum,
}

/// The header of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogHeader {
    /// The size of a page, in bytes.
    pub page_bytes: u32,
    /// The checksums are over words in big-endian order.
    is_big_endian: bool,
    /// The place before the first frame.
    pub start: LogPosition,
}

/// What a stretch of a log holds, up to its last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The last frame of each page, by the page's number. Frames count from 0.
    pub pages: BTreeMap<u32, u64>,
    /// The pages of the database after the last commit.
    pub database_pages: u32,
    /// The place after the last commit.
    pub end: LogPosition,
}

impl Checksum {
    /// The checksum over more bytes: whole pairs of words.
    fn over(self, bytes: &[u8], is_big_endian: bool) -> Self {
        let word = |bytes: [u8; 4]| match is_big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        };
        let (pairs, _) = bytes.as_chunks::<8>();
        pairs.iter().fold(self, |Self(first, second), &[a, b, c, d, e, f, g, h]| {
            let first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
            let second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
            Self(first, second)
        })
    }
}

/// Opens the log of a data file.
pub(super) fn open_log(database: &Path) -> io::Result<File> {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    File::open(name)
}

/// The number in big-endian order at an offset within `bytes`.
fn number(bytes: &[u8], offset: usize) -> u32 {
    let word = bytes.get(offset..offset + 4).and_then(|word| word.try_into().ok());
    u32::from_be_bytes(word.unwrap_or_default())
}

/// Reads the salts of a log without checking its header; `None` if the log is empty.
pub(super) fn read_salts(log: &File) -> io::Result<Option<Salts>> {
    let mut bytes = [0; 8];
    let read = read_whole(log, &mut bytes, 16)?;
    Ok(read.then(|| Salts(number(&bytes, 0), number(&bytes, 4))))
}

/// Reads the header of a log; `None` if the log is empty or the header is not complete.
pub(super) fn read_header(log: &File) -> io::Result<Option<LogHeader>> {
    let mut bytes = [0; HEADER_BYTES];
    if !read_whole(log, &mut bytes, 0)? || number(&bytes, 0) & !1 != MAGIC {
        return Ok(None);
    }
    let is_big_endian = number(&bytes, 0) & 1 == 1;
    let sum = Checksum(0, 0).over(&bytes[..24], is_big_endian);
    if sum != Checksum(number(&bytes, 24), number(&bytes, 28)) {
        return Ok(None);
    }
    let salts = Salts(number(&bytes, 16), number(&bytes, 20));
    let start = LogPosition { salts, frames: 0, sum };
    Ok(Some(LogHeader { page_bytes: number(&bytes, 8), is_big_endian, start }))
}

/// Fills `bytes` from an offset. `false` if the file ends before.
fn read_whole(log: &File, bytes: &mut [u8], offset: u64) -> io::Result<bool> {
    match log.read_exact_at(bytes, offset) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

impl LogHeader {
    fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.page_bytes as usize
    }

    fn offset(&self, frame: u64) -> u64 {
        HEADER_BYTES as u64 + frame * self.frame_bytes() as u64
    }

    /// Reads the page of a frame. The caller knows that the frame is valid.
    pub fn read_page(&self, log: &File, frame: u64, page: &mut [u8]) -> io::Result<()> {
        log.read_exact_at(page, self.offset(frame) + FRAME_HEADER_BYTES as u64)
    }

    /// Reads the valid frames from a place on, up to the last one that commits, or up to `frames_max` frames
    /// of the log if they are given. A frame that is being written, or is of an earlier run of the log, ends
    /// the stretch.
    pub fn scan(&self, log: &File, from: LogPosition, frames_max: Option<u64>) -> io::Result<Stretch> {
        let mut stretch = Stretch { pages: BTreeMap::new(), database_pages: 0, end: from };
        let mut uncommitted = BTreeMap::new();
        let (frame_bytes, mut at) = (self.frame_bytes(), from);
        let mut buffer = vec![0; (READ_BYTES / frame_bytes).max(1) * frame_bytes];
        loop {
            let read = read_some(log, &mut buffer, self.offset(at.frames))?;
            let (frames, is_last) = (read / frame_bytes, read < buffer.len());
            for frame in buffer.chunks_exact(frame_bytes).take(frames) {
                if frames_max.is_some_and(|most| at.frames >= most) {
                    return Ok(stretch);
                }
                let Some(sum) = self.valid(frame, at) else { return Ok(stretch) };
                uncommitted.insert(number(frame, 0), at.frames);
                at = LogPosition { frames: at.frames + 1, sum, ..at };
                let database_pages = number(frame, 4);
                if database_pages > 0 {
                    stretch.pages.append(&mut uncommitted);
                    (stretch.database_pages, stretch.end) = (database_pages, at);
                }
            }
            if is_last {
                return Ok(stretch);
            }
        }
    }

    /// The checksum after a frame at a place, if the frame is valid there.
    fn valid(&self, frame: &[u8], at: LogPosition) -> Option<Checksum> {
        let salts = Salts(number(frame, 8), number(frame, 12));
        if number(frame, 0) == 0 || salts != at.salts {
            return None;
        }
        let sum = at.sum.over(&frame[..8], self.is_big_endian);
        let sum = sum.over(&frame[FRAME_HEADER_BYTES..], self.is_big_endian);
        (sum == Checksum(number(frame, 16), number(frame, 20))).then_some(sum)
    }
}

/// Reads until the buffer is full or the file ends, and gives the number of bytes.
fn read_some(log: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match log.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
