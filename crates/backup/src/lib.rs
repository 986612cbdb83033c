//! Backups of a whole store, restored to either engine, and moves between the engines.
//!
//! A backup is a folder of two files, whatever the engine of the store:
//!
//! - `stagedoor.db`: all rows, as a SQLite file. `stagedoor serve --data` can start on it.
//! - `manifest.json`: when the backup was taken and by which version, the SHA-256 of the file, and the rows
//!   and the checksum of each table.
//!
//! The folder gets its name when both files are complete, checked against the store and synced.
//!
//! | Module | What it does |
//! |---|---|
//! | `error` | why a backup failed |
//! | `report` | the progress of long work |
//! | `manifest` | `manifest.json` |
//! | `files` | hashes, private files, syncs |
//! | `keep` | which old backups stay |
//! | `listing` | the backups of a place, and which store they are of |
//! | `key` | whether a service key is that of a store or a backup |
//! | `folder` | the folder of the backups: names, the lock, old backups |
//! | `take` | takes a backup |
//! | `restore` | restores a backup |
//! | `drill` | proves a backup by a restore |
//! | `inspect` | checks the invariants of a store |
//! | `s3` | backups in an S3-like object store |
//! | `s3_client` | requests to an object store |
//! | `new_file` | the place of a data file that is being built |
//! | `moving` | moves a store to another engine |
//! | `archive` | the log of a running service, for a restore as of a time |

pub mod archive;
mod drill;
mod error;
mod files;
mod folder;
mod inspect;
mod keep;
mod key;
mod listing;
mod manifest;
mod moving;
mod new_file;
mod report;
mod restore;
mod s3;
mod s3_client;
mod take;

pub use drill::{Drill, drill};
pub use error::BackupError;
pub use folder::{Backup, find, list};
pub use inspect::{Finding, inspect, living_nodes};
pub use keep::KeepRules;
pub use key::{check_service_key, inspect_service_key};
pub use listing::{BrokenBackup, ListedBackup, Listing, OtherStore};
pub use manifest::{Manifest, TableEntry};
pub use moving::{Move, Moved, move_store};
pub use new_file::interrupted_restore;
pub use report::{OnReport, Phase};
pub use restore::{Restored, restore};
pub use s3::{S3_SCHEME, S3Access, S3Place};
pub use take::{TakeOptions, Taken, take, take_to_s3};

/// The data file of a backup, and of a store that `stagedoor serve --data` uses.
pub const DATA_FILE: &str = "stagedoor.db";

/// The beginning of the names of the temporary folders in which a backup is made, fetched or tried. A later
/// call with the same parent deletes those of killed processes.
pub const WORK_PREFIX: &str = "stagedoor-backup-";
