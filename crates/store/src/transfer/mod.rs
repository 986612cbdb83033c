//! Whole stores: consistent snapshots, checksums by table, and copies from one engine to the other. The
//! commands `backup`, `restore` and `migrate` use this module beside a running service.
//!
//! Modules depend on each other in one direction: `catalog`, `structure` and `sum`; `sqlite_source` and
//! `postgres_source`; `snapshot`; `sqlite_copy` and `postgres_copy`; `copying`.

mod catalog;
mod copying;
mod postgres_copy;
mod postgres_source;
mod snapshot;
mod sqlite_copy;
mod sqlite_source;
mod structure;
mod sum;

pub use catalog::Catalog;
pub use copying::{copy_to_postgres, copy_to_sqlite};
pub use postgres_copy::{CopyBegin, Restart};
pub use snapshot::Snapshot;
pub use sqlite_source::{HeldFile, check_file, count_rows, file_identity};
pub use sum::TableSum;

use crate::{Row, StoreError};

/// Rows of a chunk: of one transaction of a copy.
const CHUNK_ROWS: usize = 5_000;
/// Chunks that wait between a reader and a writer.
const CHUNKS_WAITING: usize = 4;

/// Rows of one table, in the order of a source.
type Chunk = Vec<Row>;

/// The chunks of a table. The source ends them, or gives its error.
type Chunks = tokio::sync::mpsc::Receiver<Result<Chunk, StoreError>>;

/// The sending end of [`Chunks`].
type ChunkSender = tokio::sync::mpsc::Sender<Result<Chunk, StoreError>>;

/// How far a pass over a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The work.
    pub step: Step,
    /// The table, or empty for the whole file.
    pub table: &'a str,
    /// Rows, or pages of the file, that are done.
    pub done: u64,
}

/// The work of a pass over a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Pages of the file are copied.
    CopyFile,
    /// Rows are copied.
    CopyRows,
    /// Rows are read and added up.
    Sum,
}

/// Is called with the progress of a pass.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);
