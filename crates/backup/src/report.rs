//! The progress of long work.

use store::transfer::{Progress, Step};

/// A part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Pages of the data file are copied.
    Pages,
    /// Rows are copied.
    Rows,
    /// Rows are read, and compared by their checksums.
    Compare,
    /// The pages, indexes and foreign keys of a file are checked.
    Check,
    /// The bytes of a file are hashed or copied.
    Bytes,
    /// Bytes of a file are written to an object store.
    Upload,
    /// Bytes of an object are read.
    Download,
    /// Segments of an archive are applied.
    Segments,
}

/// Is called with the part of the work, the table or file, and how much of it is done.
pub type OnReport<'a> = &'a mut (dyn FnMut(Phase, &str, u64) + Send);

/// Passes the progress of the store on.
pub(crate) fn forward(on_report: OnReport<'_>) -> impl FnMut(Progress<'_>) + Send {
    move |progress| {
        let phase = match progress.step {
            Step::CopyFile => Phase::Pages,
            Step::CopyRows => Phase::Rows,
            Step::Sum => Phase::Compare,
        };
        on_report(phase, progress.table, progress.done);
    }
}
