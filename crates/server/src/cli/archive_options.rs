//! The options of the archive of `serve`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backup::archive::ArchivePlace;
use clap::Args;

use super::backup_place::S3AccessOptions;
use super::common::STORE;
use super::store_options::check_folder;
use crate::archiving::ArchiveConfig;
use crate::config::StoreSettings;

/// The archive.
#[derive(Debug, Args)]
pub struct ArchiveOptions {
    /// Archives the log of the SQLite store, so that `stagedoor restore --at` can restore any time of the
    /// last days: a folder on another disk, or s3://BUCKET/PREFIX. One service for each place.
    #[arg(long, value_name = "PLACE", env = "STAGEDOOR_ARCHIVE", help_heading = STORE)]
    archive: Option<String>,

    /// Seconds between two segments of the archive: what is acknowledged is in the archive two seconds later
    /// than that, if the place is reached.
    #[arg(long, value_name = "SECONDS", env = "STAGEDOOR_ARCHIVE_EVERY", default_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=ARCHIVE_EVERY_MAX_S), help_heading = STORE)]
    archive_every: u64,

    /// Hours between two bases of the archive: copies of the whole data file. A restore reads one, and the
    /// segments after it.
    #[arg(long, value_name = "HOURS", env = "STAGEDOOR_ARCHIVE_BASE_HOURS", default_value = "24",
        value_parser = clap::value_parser!(u64).range(1..=ARCHIVE_BASE_HOURS_MAX), help_heading = STORE)]
    archive_base_hours: u64,

    /// Days that the archive reaches back. Older bases and segments are deleted, never the newest base.
    #[arg(long, value_name = "DAYS", env = "STAGEDOOR_ARCHIVE_DAYS", default_value = "7",
        value_parser = clap::value_parser!(u64).range(1..=ARCHIVE_DAYS_MAX), help_heading = STORE)]
    archive_days: u64,

    /// MiB beside the data file for segments while the archive is not reached. Beyond it the archive begins
    /// anew, with a new base, when it is reached again.
    #[arg(long, value_name = "MIB", env = "STAGEDOOR_ARCHIVE_SPOOL_MIB", default_value = "4096",
        value_parser = clap::value_parser!(u64).range(ARCHIVE_SPOOL_MIB_MIN..=ARCHIVE_SPOOL_MIB_MAX),
        help_heading = STORE)]
    archive_spool_mib: u64,

    /// The place of the archive may hold that of another store, too. Without this the start is refused.
    #[arg(long, env = "STAGEDOOR_OTHER_STORE", help_heading = STORE)]
    other_store: bool,

    /// The object store.
    #[command(flatten, next_help_heading = STORE)]
    s3: S3AccessOptions,
}

/// Maximum of `--archive-every`, in seconds: with the way to the archive, nothing older than 10 seconds is
/// lost.
const ARCHIVE_EVERY_MAX_S: u64 = 8;
/// Maximum of `--archive-base-hours`.
const ARCHIVE_BASE_HOURS_MAX: u64 = 24 * 31;
/// Maximum of `--archive-days`.
const ARCHIVE_DAYS_MAX: u64 = 3_650;
/// Minimum of `--archive-spool-mib`: several times the log between two checkpoints.
const ARCHIVE_SPOOL_MIB_MIN: u64 = 64;
/// Maximum of `--archive-spool-mib`: 1 PiB.
const ARCHIVE_SPOOL_MIB_MAX: u64 = 1 << 30;

impl ArchiveOptions {
    /// How the log is archived.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn config(&self, store: &StoreSettings, data: &Path) -> Result<Option<ArchiveConfig>, String> {
        let Some(place) = &self.archive else { return Ok(None) };
        if let StoreSettings::Postgres { .. } = store {
            return Err("--archive is for the SQLite store: PostgreSQL archives its own log, with archive_command and \
                        pg_basebackup"
                .to_owned());
        }
        let place = self.s3.place(place)?.archive();
        if let ArchivePlace::Folder(folder) = &place
            && whole(folder).starts_with(whole(data))
        {
            return Err(format!(
                "--archive {}: choose a folder outside of --data, on another disk",
                folder.display()
            ));
        }
        Ok(Some(ArchiveConfig {
            place,
            every: Duration::from_secs(self.archive_every),
            base_every: Duration::from_secs(self.archive_base_hours * 3_600),
            keep: Duration::from_secs(self.archive_days * 24 * 3_600),
            spool_bytes_max: self.archive_spool_mib << 20,
            other_store: self.other_store,
        }))
    }
}

/// Refuses a folder of an archive that cannot be made or written.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn check_place(archive: Option<&ArchiveConfig>) -> Result<(), String> {
    match archive.map(|archive| &archive.place) {
        Some(ArchivePlace::Folder(folder)) => check_folder("--archive", folder),
        _ => Ok(()),
    }
}

/// The path without links and relative parts, as far as it exists.
fn whole(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = absolute.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    match existing {
        Some((folder, whole)) => whole.join(absolute.strip_prefix(folder).unwrap_or(Path::new(""))),
        None => absolute,
    }
}
