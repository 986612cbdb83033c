//! Makes a base: copies the data file while it is written to. A page may be old or torn in the copy; every
//! page that was written meanwhile is in a segment.

use std::sync::Arc;

use bytes::Bytes;
use domain::StoreId;
use sha2::{Digest, Sha256};
use store::log_archive::{LogArchive, Now, name_time};

use super::catalog::{BASE_FILE, Base, FOLDER, FORMAT, description_of};
use super::place::{ArchivePlace, NewFile, OpenPlace};
use crate::{BackupError, DATA_FILE, files};

/// Copies the data file into the archive, and describes the copy when the archive has what belongs to it.
/// `None` if the generation ended meanwhile.
pub(super) async fn make_base(
    archive: Arc<LogArchive>,
    place: ArchivePlace,
    store: StoreId,
    now: Now,
    version: &'static str,
) -> Result<Option<Base>, BackupError> {
    let Some(before) = state(&archive).await else { return Ok(None) };
    let mut open = place.open()?;
    check_place(&mut open, &before.generation).await?;
    let started_at = now();
    let folder = format!("{FOLDER}/{}/bases/{}", before.generation, name_time(started_at));
    let (bytes, sha256) = copy_data(&archive, &mut open, &format!("{folder}/{DATA_FILE}")).await?;
    // Every page that a checkpoint has written into the copied file is in the log by now.
    let copying = archive.clone();
    blocking(move || copying.copy()).await;
    let Some(after) = state(&archive).await.filter(|after| after.generation == before.generation) else {
        return Ok(None);
    };
    wait_until_archived(&archive, &after.generation, after.last).await?;
    // The object with the last of these segments may have later ones, too, whose commits are before now.
    let until = now();
    let base = Base {
        format: FORMAT,
        version: version.to_owned(),
        started_at: started_at.rfc3339(),
        complete_until: after.copied_until.unwrap_or(started_at).rfc3339(),
        until: until.rfc3339(),
        redo_from: before.redo_from,
        redo_to: after.last,
        bytes,
        sha256,
        store_id: Some(store.to_string()),
    };
    let text = serde_json::to_vec_pretty(&base)
        .map_err(|error| BackupError::Damaged(format!("the base cannot be described: {error}")))?;
    check_place(&mut open, &after.generation).await?;
    open.put(&format!("{folder}/{BASE_FILE}"), text).await?;
    Ok(Some(base))
}

/// The place may be another one by now.
async fn check_place(open: &mut OpenPlace, generation: &str) -> Result<(), BackupError> {
    match open.has(&description_of(generation)).await? {
        true => Ok(()),
        false => Err(BackupError::File(format!("the place does not have the generation {generation}"))),
    }
}

/// Waits until no segment up to this number is in the spool.
async fn wait_until_archived(
    archive: &Arc<LogArchive>,
    generation: &str,
    last: u64,
) -> Result<(), BackupError> {
    loop {
        let reading = archive.clone();
        let segments = blocking(move || reading.segments()).await;
        let segments =
            segments.map_err(|error| BackupError::File(format!("cannot read the spool: {error}")))?;
        let waits = |name: u64, of: &str| of == generation && name <= last;
        if !segments.iter().any(|segment| waits(segment.name.first, &segment.generation)) {
            return Ok(());
        }
        tokio::time::sleep(super::LOOK_EVERY).await;
    }
}

async fn copy_data(
    archive: &Arc<LogArchive>,
    place: &mut OpenPlace,
    name: &str,
) -> Result<(u64, String), BackupError> {
    let size = archive.data_bytes().map_err(|error| unread(&error))?;
    let (mut new, part_bytes) = place.begin(name, size).await?;
    match copy_parts(archive, place, &mut new, part_bytes).await {
        Ok(copied) => {
            place.end(new).await?;
            Ok(copied)
        }
        Err(error) => {
            place.abort(new).await;
            Err(error)
        }
    }
}

async fn copy_parts(
    archive: &Arc<LogArchive>,
    place: &mut OpenPlace,
    new: &mut NewFile,
    part_bytes: usize,
) -> Result<(u64, String), BackupError> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    loop {
        let reading = archive.clone();
        let part = blocking(move || -> std::io::Result<Bytes> {
            let (mut part, mut filled) = (vec![0; part_bytes], 0);
            while filled < part_bytes {
                match reading.read_data(&mut part[filled..], bytes + filled as u64)? {
                    0 => break,
                    read => filled += read,
                }
            }
            part.truncate(filled);
            Ok(part.into())
        });
        let part = part.await.map_err(|error| unread(&error))?;
        let is_last = part.len() < part_bytes;
        hash.update(&part);
        bytes += part.len() as u64;
        if !part.is_empty() {
            place.add(new, part).await?;
        }
        if is_last {
            return Ok((bytes, files::hex(hash)));
        }
    }
}

fn unread(error: &std::io::Error) -> BackupError {
    BackupError::File(format!("cannot read the data file: {error}"))
}

/// How far the generation is.
pub(super) async fn state(archive: &Arc<LogArchive>) -> Option<store::log_archive::GenerationState> {
    let archive = archive.clone();
    blocking(move || archive.state()).await
}

/// Runs what blocks. A panic of it is one of the caller.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends.
            Err(_) => std::future::pending().await,
        },
    }
}
