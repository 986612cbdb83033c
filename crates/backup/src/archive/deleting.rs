//! Deletes what of an archive is old. It is many objects, so it runs beside the segments that are brought.

use std::time::Duration;

use domain::Timestamp;
use store::log_archive::Now;

use super::catalog::{BASE_FILE, FOLDER, read_catalog, surplus};
use super::place::ArchivePlace;
use crate::{BackupError, DATA_FILE};

/// Deletes what is not needed to reach the times of the last days. What fails is tried again after the next
/// base.
pub(super) async fn delete_old(place: ArchivePlace, keep: Duration, now: Now) {
    let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    if let Err(error) = delete_before(&place, now().plus_ms(-keep_ms)).await {
        tracing::error!(%error, %place, "the archive keeps what is old");
    }
}

async fn delete_before(place: &ArchivePlace, oldest: Timestamp) -> Result<(), BackupError> {
    let mut open = place.open()?;
    let catalog = read_catalog(&mut open, FOLDER).await?;
    let old = surplus(&catalog, oldest);
    if !old.bases.is_empty() {
        let (bases, segments) = (old.bases.len(), old.segments.len());
        tracing::info!(bases, segments, "the archive deletes what is old");
    }
    for (generation, base) in old.bases {
        let folder = format!("{FOLDER}/{generation}/bases/{base}");
        for file in [BASE_FILE.to_owned(), DATA_FILE.to_owned(), format!("{DATA_FILE}.partial")] {
            open.delete(&format!("{folder}/{file}")).await?;
        }
    }
    for (generation, segment) in old.segments {
        open.delete(&format!("{FOLDER}/{generation}/segments/{segment}")).await?;
    }
    Ok(())
}
