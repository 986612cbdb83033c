//! Whether the disk of the database has room, according to failed and successful writes. The free space is
//! not measured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The state of the disk since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disk {
    /// A write found the disk full, and no write has succeeded since.
    pub is_full: bool,
    /// Writes that found the disk full.
    pub times_full: u64,
}

/// The counters behind [`Disk`].
#[derive(Debug, Default)]
pub(crate) struct DiskWatch {
    is_full: AtomicBool,
    times_full: AtomicU64,
}

impl DiskWatch {
    /// Records the end of a transaction: whether it found the disk full, and whether it wrote something.
    pub fn note(&self, was_full: bool, has_written: bool) {
        if was_full {
            self.times_full.fetch_add(1, Ordering::Relaxed);
            self.is_full.store(true, Ordering::Relaxed);
        } else if has_written {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }

    pub fn state(&self) -> Disk {
        Disk {
            is_full: self.is_full.load(Ordering::Relaxed),
            times_full: self.times_full.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_shows_that_there_is_room_again() {
        let watch = DiskWatch::default();
        watch.note(false, false);
        assert_eq!(watch.state(), Disk::default());
        watch.note(true, false);
        watch.note(false, false);
        assert_eq!(watch.state(), Disk { is_full: true, times_full: 1 });
        watch.note(true, true);
        assert_eq!(watch.state(), Disk { is_full: true, times_full: 2 }, "a part of it was not written");
        watch.note(false, true);
        assert_eq!(watch.state(), Disk { is_full: false, times_full: 2 });
    }
}
