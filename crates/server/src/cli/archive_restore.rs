//! `stagedoor restore --at`: restores from the archive of `serve --archive`, or proves it.

use std::path::Path;

use backup::BackupError;
use backup::archive::{ArchivePlace, ListedGeneration, RestoredArchive, drill_archive, restore_archive};
use domain::Timestamp;
use serde_json::{Value, json};

use super::progress::ProgressLines;

/// Restores an archive into a new data file.
pub(super) async fn run(
    place: &ArchivePlace,
    at: Option<Timestamp>,
    to: &Path,
    is_json: bool,
) -> Result<(), BackupError> {
    let mut progress = ProgressLines::new(is_json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let restored = restore_archive(place, at, to, &mut report).await;
    drop(progress);
    let restored = restored?;
    match is_json {
        true => println!("{}", restored_json(place, &restored)),
        false => println!("Restored {} MiB from {}. {}", mib(restored.bytes), place, reach(&restored)),
    }
    Ok(())
}

/// Restores an archive into a temporary folder, and checks everything.
pub(super) async fn prove(
    place: &ArchivePlace,
    at: Option<Timestamp>,
    work: Option<&Path>,
    is_json: bool,
) -> Result<(), BackupError> {
    let mut progress = ProgressLines::new(is_json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let drill = drill_archive(place, at, work, &mut report).await;
    drop(progress);
    let drill = drill?;
    if is_json {
        let mut value = restored_json(place, &drill.restored);
        value["ok"] = json!(true);
        value["rows"] = json!(drill.rows);
        value["migratedTo"] = json!(drill.migrated_to);
        println!("{value}");
        return Ok(());
    }
    println!("{place}: {} rows. {}", drill.rows, reach(&drill.restored));
    println!("The archive is good: a service of this version can start on it.");
    Ok(())
}

fn reach(restored: &RestoredArchive) -> String {
    format!(
        "The data reach {}: everything until {}, nothing later than {}. A base of {} and {} segments were read.",
        restored.until.rfc3339(),
        restored.complete_until.rfc3339(),
        restored.until.rfc3339(),
        restored.base.until,
        restored.segments
    )
}

fn restored_json(place: &ArchivePlace, restored: &RestoredArchive) -> Value {
    let RestoredArchive { generation, until, complete_until, base, segments, bytes } = restored;
    json!({ "archive": place.to_string(), "generation": generation, "until": until.rfc3339(),
        "completeUntil": complete_until.rfc3339(), "base": base.until, "segments": segments, "bytes": bytes })
}

/// A generation as one JSON object.
pub(super) fn as_json(generation: &ListedGeneration) -> Value {
    let bases = generation.bases.iter().map(|base| {
        json!({ "startedAt": base.started_at, "until": base.until, "bytes": base.bytes, "version": base.version })
    });
    let (from, until) = generation.reaches.unzip();
    json!({ "generation": generation.name, "bases": bases.collect::<Vec<_>>(), "segments": generation.segments,
        "from": from.map(Timestamp::rfc3339), "until": until.map(Timestamp::rfc3339) })
}

/// A generation as one line.
pub(super) fn as_line(generation: &ListedGeneration) -> String {
    let reaches = match generation.reaches {
        None => "no time can be reached: it has no complete base".to_owned(),
        Some((from, until)) => format!("reaches {} to {}", from.rfc3339(), until.rfc3339()),
    };
    let ListedGeneration { name, bases, segments, .. } = generation;
    format!("archive {name}  {reaches}, {} bases, {segments} segments", bases.len())
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
