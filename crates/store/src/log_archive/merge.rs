//! Merges segments that follow each other into one: of each page the content of the latest. The bytes are
//! made while they are read, so neither memory nor a file holds the pages.

use std::collections::{BTreeMap, btree_map};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::segment::{NUMBER_BYTES, SUM_BYTES, SegmentHead, SegmentName, encode_head, invalid, read_segment};
use super::spool::SpooledSegment;

/// Maximum number of segments that are merged: so many files are open meanwhile.
pub const MERGED_PARTS_MAX: usize = 64;

/// Segments of a spool as one. Reading it gives the bytes of its file.
#[derive(Debug)]
pub struct MergedSegment {
    head: SegmentHead,
    bytes: u64,
    parts: Vec<File>,
    /// The pages that were not read yet: the part of each, and the offset of its content there.
    pages: btree_map::IntoIter<u32, (usize, u64)>,
    /// Over the bytes so far; `None` after the end.
    hash: Option<Sha256>,
    /// Bytes that were made, and how many of them were read.
    made: (Vec<u8>, usize),
}

impl MergedSegment {
    /// Checks every byte of segments that follow each other, and merges them. Blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] or [`io::ErrorKind::UnexpectedEof`] if a segment is damaged or does not
    /// follow the one before it.
    pub fn open(segments: &[SpooledSegment]) -> io::Result<Self> {
        let (mut parts, mut pages, mut merged) = (Vec::new(), BTreeMap::new(), None);
        if segments.len() > MERGED_PARTS_MAX {
            return Err(invalid("there are too many segments"));
        }
        for segment in segments {
            let (file, mut at) = (File::open(&segment.path)?, None);
            let head = read_segment(&file, |head, number, content| {
                let offset = at.unwrap_or_else(|| encode_head(head).len() as u64) + NUMBER_BYTES;
                pages.insert(number, (parts.len(), offset));
                at = Some(offset + content.len() as u64);
                Ok(())
            })?;
            if (&head.name, &head.generation) != (&segment.name, &segment.generation) {
                return Err(invalid("it is another segment than its name says"));
            }
            merged = Some(followed(merged, head)?);
            parts.push(file);
        }
        let head = merged.ok_or_else(|| invalid("there is no segment"))?;
        let head = SegmentHead { pages: u32::try_from(pages.len()).unwrap_or(u32::MAX), ..head };
        let beginning = encode_head(&head);
        let of_pages = pages.len() as u64 * (NUMBER_BYTES + u64::from(head.page_bytes));
        Ok(Self {
            bytes: beginning.len() as u64 + of_pages + SUM_BYTES,
            head,
            parts,
            pages: pages.into_iter(),
            hash: Some(Sha256::new_with_prefix(&beginning)),
            made: (beginning, 0),
        })
    }

    /// What the segment says of itself. Its name, and up to when it is complete, are those of its last part.
    pub fn head(&self) -> &SegmentHead {
        &self.head
    }

    /// The number of its bytes.
    pub fn size(&self) -> u64 {
        self.bytes
    }

    /// Makes the next bytes; none at the end.
    fn make(&mut self) -> io::Result<()> {
        let (bytes, read) = &mut self.made;
        bytes.clear();
        *read = 0;
        match (self.pages.next(), &mut self.hash) {
            (Some((number, (part, offset))), Some(hash)) => {
                bytes.extend_from_slice(&number.to_be_bytes());
                let content = bytes.len();
                bytes.resize(content + self.head.page_bytes as usize, 0);
                self.parts[part].read_exact_at(&mut bytes[content..], offset)?;
                hash.update(&bytes);
            }
            (_, hash) => bytes.extend(hash.take().into_iter().flat_map(Sha256::finalize)),
        }
        Ok(())
    }
}

impl Read for MergedSegment {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.made.1 == self.made.0.len() {
            self.make()?;
        }
        let (bytes, read) = &mut self.made;
        let count = buffer.len().min(bytes.len() - *read);
        buffer[..count].copy_from_slice(&bytes[*read..*read + count]);
        *read += count;
        Ok(count)
    }
}

/// A segment with the next one: everything but the first number is that of the next one.
fn followed(before: Option<SegmentHead>, next: SegmentHead) -> io::Result<SegmentHead> {
    let Some(before) = before else { return Ok(next) };
    let follows = before.generation == next.generation
        && before.page_bytes == next.page_bytes
        && before.name.last + 1 == next.name.first;
    match follows {
        true => Ok(SegmentHead { name: SegmentName { first: before.name.first, ..next.name }, ..next }),
        false => Err(invalid("it does not follow the segment before it")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use domain::Timestamp;

    use super::super::segment::{apply_segment, write_segment};
    use super::*;

    const PAGE_BYTES: u32 = 512;

    /// A segment of these pages, each filled with one byte.
    fn segment(folder: &Path, number: u64, pages: &[(u32, u8)]) -> SpooledSegment {
        let time = |ms: u64| Timestamp::from_millis(ms as i64);
        let name = SegmentName { first: number, last: number, until: time(number * 10) };
        let head = SegmentHead {
            generation: "g".to_owned(),
            name,
            from: time(number * 10 - 5),
            page_bytes: PAGE_BYTES,
            database_pages: number as u32 + 5,
            pages: pages.len() as u32,
        };
        let path = folder.join(name.to_string());
        let mut rest = pages.iter();
        let written = write_segment(&File::create(&path).unwrap(), &head, |page| {
            let (number, content) = rest.next().unwrap();
            page.fill(*content);
            Ok(*number)
        });
        written.unwrap();
        let bytes = std::fs::metadata(&path).unwrap().len();
        SpooledSegment { generation: "g".to_owned(), name, path, bytes }
    }

    #[test]
    fn the_latest_content_of_each_page_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let parts = [
            segment(folder.path(), 3, &[(1, 31), (2, 32), (6, 36)]),
            segment(folder.path(), 4, &[(2, 42), (3, 43)]),
            segment(folder.path(), 5, &[(1, 51), (4, 54)]),
        ];
        let mut merged = MergedSegment::open(&parts).unwrap();
        let head = merged.head().clone();
        assert_eq!((head.name.first, head.name.last, head.name.until), (3, 5, parts[2].name.until));
        assert_eq!((head.from.as_millis(), head.database_pages, head.pages), (45, 10, 5));
        let mut bytes = Vec::new();
        merged.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, merged.size());
        let (path, data) = (folder.path().join("merged"), folder.path().join("data"));
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(apply_segment(&path, &File::create_new(&data).unwrap()).unwrap(), head);
        let data = std::fs::read(data).unwrap();
        let first = data.chunks(PAGE_BYTES as usize).map(|page| page[0]);
        assert_eq!(first.collect::<Vec<_>>(), [51, 42, 43, 54, 0, 36]);
    }

    #[test]
    fn what_does_not_follow_or_is_damaged_is_not_merged() {
        let folder = tempfile::tempdir().unwrap();
        let parts = [3, 4, 6].map(|number| segment(folder.path(), number, &[(1, 1)]));
        MergedSegment::open(&parts[..2]).unwrap();
        MergedSegment::open(&parts).expect_err("a gap");
        MergedSegment::open(&[]).expect_err("nothing");
        let other = SegmentName { last: 4, ..parts[0].name };
        MergedSegment::open(&[SpooledSegment { name: other, ..parts[0].clone() }]).expect_err("another name");
        let whole = std::fs::read(&parts[1].path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&parts[1].path, bytes).unwrap();
            MergedSegment::open(&parts[..2]).expect_err("a changed byte");
        }
        std::fs::write(&parts[1].path, &whole[..whole.len() - 1]).unwrap();
        MergedSegment::open(&parts[..2]).expect_err("the end is missing");
    }
}
