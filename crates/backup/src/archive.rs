//! An archive: bases and segments of the write-ahead log of a running service, from which the data file can
//! be built as it was at a time (`docs/adr/0028-the-log-is-archived.md`).
//!
//! The place has `archive/generations/GENERATION.json`, which says of which store a generation is, and below
//! `archive/GENERATION/`: `bases/TIME/stagedoor.db`, a copy of the data file, with `base.json`, and
//! `segments/FIRST-LAST-TIME.segment`. Modules use each other in one direction: `place`; `catalog`; `plan`;
//! `holding`, `gathering`, `base` and `deleting`; `archiver` and `restoring`.

mod archiver;
mod base;
mod catalog;
mod deleting;
mod gathering;
mod holding;
mod place;
mod plan;
mod restoring;

use std::time::Duration;

pub use archiver::{ArchiveSettings, Archiver, ArchiverFigures, FigureReader, OnOutcome};
pub use catalog::{Base, Generation};
pub use holding::check_archive;
pub use place::ArchivePlace;
pub use plan::Hole;
pub use restoring::{
    ArchiveDrill, ListedGeneration, RestoredArchive, Wanted, drill_archive, list_archive, restore_archive,
};

/// The pause between two looks at the spool.
const LOOK_EVERY: Duration = Duration::from_secs(1);
