//! A segment: the pages that a stretch of the write-ahead log changed, each as its last commit left it.
//!
//! A file of a segment is, with its numbers in big-endian order: [`MAGIC`]; the size of a page and the pages
//! of the database after the last commit, of 4 bytes each; the first and the last number of the stretch and
//! the times before and after it was read, of 8 bytes each; the length of the name of the generation, of 4
//! bytes, and the name; the number of pages, of 4 bytes; for each page its number, of 4 bytes, and its
//! content; the SHA-256 of everything before.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use domain::Timestamp;
use sha2::{Digest, Sha256};

/// The first bytes of a segment. The last one is the number of the format.
const MAGIC: &[u8; 8] = b"stdrseg1";
/// The end of the name of a segment.
const SUFFIX: &str = ".segment";
/// The longest name of a generation, in bytes.
const GENERATION_BYTES_MAX: u32 = 100;
/// The largest page of SQLite, in bytes.
const PAGE_BYTES_MAX: u32 = 1 << 16;
/// Bytes that are read or written at once.
const BUFFER_BYTES: usize = 1 << 18;
/// The number of a page, in bytes.
pub(super) const NUMBER_BYTES: u64 = 4;
/// The SHA-256 at the end, in bytes.
pub(super) const SUM_BYTES: u64 = 32;

/// The name of a segment: its place in the generation and its time. Names sort as the segments follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentName {
    /// The number of its first stretch of the log, from 1.
    pub first: u64,
    /// The number of its last stretch.
    pub last: u64,
    /// When its log was read: it has no later commit.
    pub until: Timestamp,
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, until } = self;
        write!(f, "{first:012}-{last:012}-{}{SUFFIX}", name_time(*until))
    }
}

impl SegmentName {
    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_suffix(SUFFIX)?.splitn(3, '-');
        let (first, last) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let until = parse_name_time(parts.next()?)?;
        (first <= last).then_some(Self { first, last, until })
    }
}

/// A time as it is in names: `20261126T100000.000Z`.
pub fn name_time(at: Timestamp) -> String {
    at.rfc3339().replace(['-', ':'], "")
}

/// Reads a time of a name.
pub fn parse_name_time(text: &str) -> Option<Timestamp> {
    let is_plain = text.is_ascii() && text.len() > 15;
    let (date, time) = is_plain.then(|| text.split_at(9))?;
    let (hour, rest) = time.split_at(2);
    let (minute, second) = rest.split_at(2);
    let (year, day) = date.split_at(4);
    let (month, day) = day.split_at(2);
    Timestamp::parse_rfc3339(&format!("{year}-{month}-{day}{hour}:{minute}:{second}"))
}

/// What a segment says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentHead {
    /// The generation.
    pub generation: String,
    /// Its place in the generation, and its time.
    pub name: SegmentName,
    /// Everything that was committed before this time, and is in the generation, is in this segment or an
    /// earlier one.
    pub from: Timestamp,
    /// The size of a page, in bytes.
    pub page_bytes: u32,
    /// The pages of the database after the last commit.
    pub database_pages: u32,
    /// The number of pages in the segment.
    pub pages: u32,
}

/// Writes a segment to a new file, which the caller syncs. `next` gives the number of each page, and fills
/// the buffer with its content.
pub(super) fn write_segment(
    file: &File,
    head: &SegmentHead,
    mut next: impl FnMut(&mut [u8]) -> io::Result<u32>,
) -> io::Result<()> {
    let mut out = Hashing { inner: io::BufWriter::with_capacity(BUFFER_BYTES, file), hash: Sha256::new() };
    out.write_all(&encode_head(head))?;
    let mut page = vec![0; head.page_bytes as usize];
    for _ in 0..head.pages {
        let number = next(&mut page)?;
        out.write_all(&number.to_be_bytes())?;
        out.write_all(&page)?;
    }
    let Hashing { mut inner, hash } = out;
    inner.write_all(&hash.finalize())?;
    inner.flush()
}

/// The bytes of a segment before its first page.
pub(super) fn encode_head(head: &SegmentHead) -> Vec<u8> {
    let SegmentHead { generation, name, from, page_bytes, database_pages, pages } = head;
    let length = u32::try_from(generation.len()).unwrap_or(u32::MAX);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(page_bytes.to_be_bytes());
    bytes.extend(database_pages.to_be_bytes());
    bytes.extend(name.first.to_be_bytes());
    bytes.extend(name.last.to_be_bytes());
    bytes.extend(from.as_millis().to_be_bytes());
    bytes.extend(name.until.as_millis().to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(generation.as_bytes());
    bytes.extend(pages.to_be_bytes());
    bytes
}

/// Reads a segment from the beginning, and calls `on_page` for each page. Gives what the segment says of
/// itself.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if the bytes are not those that were written. Pages were passed on by then.
pub fn read_segment(
    file: &File,
    mut on_page: impl FnMut(&SegmentHead, u32, &[u8]) -> io::Result<()>,
) -> io::Result<SegmentHead> {
    let mut input = Hashing { inner: BufReader::with_capacity(BUFFER_BYTES, file), hash: Sha256::new() };
    let head = read_head(&mut input)?;
    let mut page = vec![0; head.page_bytes as usize];
    for _ in 0..head.pages {
        let number = u32::from_be_bytes(array(&mut input)?);
        input.read_exact(&mut page)?;
        on_page(&head, number, &page)?;
    }
    let Hashing { mut inner, hash } = input;
    let mut sum = [0; 32];
    inner.read_exact(&mut sum)?;
    if hash.finalize().as_slice() != sum || inner.read(&mut [0])? > 0 {
        return Err(invalid("its bytes are not those that were written"));
    }
    Ok(head)
}

/// Checks every byte of a segment, and then writes its pages into a data file.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if the segment is damaged. Nothing was written then.
pub fn apply_segment(path: &Path, data: &File) -> io::Result<SegmentHead> {
    let head = read_segment(&File::open(path)?, |_, _, _| Ok(()))?;
    read_segment(&File::open(path)?, |head, number, page| {
        let index = u64::from(number).checked_sub(1).ok_or_else(|| invalid("it has a page 0"))?;
        data.write_all_at(page, index * u64::from(head.page_bytes))
    })?;
    Ok(head)
}

/// Reads what a segment says of itself, and does not check its pages.
///
/// # Errors
/// The file cannot be read, or its beginning is damaged.
pub fn read_segment_head(path: &Path) -> io::Result<SegmentHead> {
    read_head(&mut BufReader::new(File::open(path)?))
}

fn read_head(input: &mut impl Read) -> io::Result<SegmentHead> {
    if &array(input)? != MAGIC {
        return Err(invalid("it is not a segment of this format"));
    }
    let page_bytes = u32::from_be_bytes(array(input)?);
    let database_pages = u32::from_be_bytes(array(input)?);
    let (first, last) = (u64::from_be_bytes(array(input)?), u64::from_be_bytes(array(input)?));
    let from = Timestamp::from_millis(i64::from_be_bytes(array(input)?));
    let until = Timestamp::from_millis(i64::from_be_bytes(array(input)?));
    let length = u32::from_be_bytes(array(input)?);
    if page_bytes > PAGE_BYTES_MAX || length > GENERATION_BYTES_MAX {
        return Err(invalid("its beginning is damaged"));
    }
    let mut generation = vec![0; length as usize];
    input.read_exact(&mut generation)?;
    let generation = String::from_utf8(generation).map_err(|_| invalid("its beginning is damaged"))?;
    let pages = u32::from_be_bytes(array(input)?);
    let name = SegmentName { first, last, until };
    Ok(SegmentHead { generation, name, from, page_bytes, database_pages, pages })
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Hashes the bytes that pass.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<T: Write> Write for Hashing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Hashing<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hash.update(&bytes[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let name = SegmentName { first: 3, last: 12, until: Timestamp::from_millis(1_795_687_200_123) };
        let text = name.to_string();
        assert_eq!(SegmentName::parse(&text), Some(name), "{text}");
        for wrong in ["", "3-4.segment", "a-b-c.segment", "5-4-20261126T100000.000Z.segment", "3-4-Ü.segment"]
        {
            assert_eq!(SegmentName::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_changed_byte_of_a_segment_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, data) = (folder.path().join("a"), folder.path().join("b"));
        let name = SegmentName { first: 1, last: 1, until: Timestamp::from_millis(5) };
        let head = SegmentHead {
            generation: "g".to_owned(),
            name,
            from: Timestamp::from_millis(4),
            page_bytes: 512,
            database_pages: 2,
            pages: 1,
        };
        write_segment(&File::create(&path).unwrap(), &head, |page| {
            page.fill(7);
            Ok(2)
        })
        .unwrap();
        let data = File::create_new(&data).unwrap();
        assert_eq!(apply_segment(&path, &data).unwrap(), head);
        assert_eq!(data.metadata().unwrap().len(), 1_024);
        let whole = std::fs::read(&path).unwrap();
        data.set_len(0).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            apply_segment(&path, &data).expect_err("a changed byte");
        }
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        apply_segment(&path, &data).expect_err("the end is missing");
        assert_eq!(data.metadata().unwrap().len(), 0, "nothing was written");
    }
}
