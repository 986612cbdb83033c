//! Whether a place is the right one. Segments and bases go nowhere else: not to the empty folder where a disk
//! was, and not to the archive of another store.

use domain::{StoreId, Timestamp};
use serde::{Deserialize, Serialize};
use store::log_archive::LogArchive;

use super::catalog::described_stores;
use super::place::{ArchivePlace, OpenPlace};
use crate::BackupError;

/// What is known of the place, beside the data file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlaceNote {
    /// The place.
    pub place: String,
    /// Whether it was on another disk than the data file.
    pub other_disk: bool,
    /// Everything that was committed before can be restored from it (epoch milliseconds); 0 if nothing can.
    pub archived_until: i64,
}

impl PlaceNote {
    /// The note about a place; `None` if nothing was archived there from this data file. Blocks.
    pub fn of(archive: &LogArchive, place: &ArchivePlace) -> Option<Self> {
        let text = archive.note().ok().flatten()?;
        let note: Self = serde_json::from_str(&text).ok()?;
        (note.place == place.to_string()).then_some(note)
    }

    /// Writes the note. Blocks.
    pub fn record(&self, archive: &LogArchive) -> Result<(), BackupError> {
        let text = serde_json::to_string(self).unwrap_or_default();
        let recorded = archive.record_note(&text);
        recorded.map_err(|error| BackupError::File(format!("the spool failed: {error}")))
    }
}

/// Checks that a place is there, and gives whether it is on another disk than the data file. A folder is made
/// only if nothing was archived there before. Blocks.
pub(super) fn arrive(
    open: &OpenPlace,
    place: &ArchivePlace,
    note: Option<&PlaceNote>,
    data_device: u64,
) -> Result<bool, BackupError> {
    let Some(device) = open.device(note.is_none())? else { return Ok(true) };
    let is_other_disk = device != data_device;
    if note.is_some_and(|note| note.other_disk) && !is_other_disk {
        return Err(BackupError::File(format!(
            "{place} was on another disk, and now is on that of the data: its disk is not mounted"
        )));
    }
    Ok(is_other_disk)
}

/// Refuses a place that holds the archive of another store.
pub(super) async fn check_stores(
    open: &mut OpenPlace,
    place: &ArchivePlace,
    store: &StoreId,
) -> Result<(), BackupError> {
    let mut others = described_stores(open).await?.into_iter().filter(|other| other != store.as_str());
    match others.next() {
        None => Ok(()),
        Some(other) => Err(BackupError::Refused(format!(
            "{place} holds the archive of another store ({other}; this one is {store}): choose another place, or give \
             --other-store if both are meant to be there"
        ))),
    }
}

/// Checks before a start that a place can be the archive of a store. A place that is not reached is waited
/// for later; one whose folder cannot be made is refused.
///
/// # Errors
/// [`BackupError::Refused`] with a sentence for the operator.
pub async fn check_archive(
    archive: &LogArchive,
    place: &ArchivePlace,
    store: &StoreId,
    other_store: bool,
) -> Result<(), BackupError> {
    let mut open = place.open()?;
    if PlaceNote::of(archive, place).is_none()
        && let Err(error) = open.device(true)
    {
        return Err(BackupError::Refused(format!("--archive {place}: {error}")));
    }
    if other_store {
        return Ok(());
    }
    match check_stores(&mut open, place, store).await {
        Err(refused @ BackupError::Refused(_)) => Err(refused),
        _ => Ok(()),
    }
}

/// A time of a note.
pub(super) fn noted_time(ms: i64) -> Option<Timestamp> {
    (ms != 0).then_some(Timestamp::from_millis(ms))
}
