//! `stagedoor restore --at`: restores from the archive of `serve --archive`, or proves it.

use std::path::Path;

use backup::BackupError;
use backup::archive::{
    ArchivePlace, Hole, ListedGeneration, RestoredArchive, Wanted, drill_archive, restore_archive,
};
use domain::Timestamp;
use serde_json::{Value, json};

use super::progress::ProgressLines;

/// Restores an archive into a new data file.
pub(super) async fn run(
    place: &ArchivePlace,
    wanted: &Wanted,
    to: &Path,
    is_json: bool,
) -> Result<RestoredArchive, BackupError> {
    let mut progress = ProgressLines::new(is_json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let restored = restore_archive(place, wanted, to, &mut report).await;
    drop(progress);
    let restored = restored?;
    match is_json {
        true => commands::out_line!("{}", restored_json(place, &restored)),
        false => {
            commands::out_line!("Restored {} MiB from {}. {}", mib(restored.bytes), place, reach(&restored))
        }
    }
    Ok(restored)
}

/// Restores an archive into a temporary folder, and checks everything.
pub(super) async fn prove(
    place: &ArchivePlace,
    wanted: &Wanted,
    work: Option<&Path>,
    is_json: bool,
) -> Result<RestoredArchive, BackupError> {
    let mut progress = ProgressLines::new(is_json);
    let mut report = |phase, name: &str, done| progress.report(phase, name, done);
    let drill = drill_archive(place, wanted, work, &mut report).await;
    drop(progress);
    let drill = drill?;
    if is_json {
        let mut value = restored_json(place, &drill.restored);
        value["ok"] = json!(drill.restored.hole.is_none());
        value["rows"] = json!(drill.rows);
        value["migratedTo"] = json!(drill.migrated_to);
        commands::out_line!("{value}");
        return Ok(drill.restored);
    }
    commands::out_line!("{place}: {} rows. {}", drill.rows, reach(&drill.restored));
    if drill.restored.hole.is_none() {
        commands::out_line!("The archive is good: a service of this version can start on it.");
    }
    Ok(drill.restored)
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

/// Why the wanted time cannot be reached, if it is in a hole.
pub(super) fn hole(restored: &RestoredArchive) -> Option<String> {
    let Hole { missing, again } = restored.hole.as_ref()?;
    let until = restored.until.rfc3339();
    let why = match missing {
        Some(number) => format!("the segment {number} of the generation {} is missing", restored.generation),
        None => format!("the generation {} has ended", restored.generation),
    };
    let again = match again {
        Some(again) => format!("the first time after the hole that can be reached is {}", again.rfc3339()),
        None => "no later time can be reached".to_owned(),
    };
    Some(format!("the archive has a hole after {until}, because {why}: the data reach {until}, and {again}"))
}

fn restored_json(place: &ArchivePlace, restored: &RestoredArchive) -> Value {
    let RestoredArchive { generation, until, complete_until, base, segments, bytes, hole, problems } =
        restored;
    let hole = hole.as_ref().map(|hole| {
        json!({ "from": until.rfc3339(), "until": hole.again.map(Timestamp::rfc3339), "missingSegment": hole.missing })
    });
    json!({ "archive": place.to_string(), "generation": generation, "until": until.rfc3339(),
        "completeUntil": complete_until.rfc3339(), "base": base.until, "segments": segments, "bytes": bytes,
        "hole": hole, "problems": problems })
}

/// A generation as one JSON object.
pub(super) fn as_json(generation: &ListedGeneration) -> Value {
    let bases = generation.bases.iter().map(|base| {
        json!({ "startedAt": base.started_at, "until": base.until, "bytes": base.bytes, "version": base.version })
    });
    let stretches = generation.reaches.iter();
    let stretches =
        stretches.map(|(from, until)| json!({ "from": from.rfc3339(), "until": until.rfc3339() }));
    let (first, last) = (generation.reaches.first(), generation.reaches.last());
    json!({ "generation": generation.name, "storeId": generation.store_id, "bases": bases.collect::<Vec<_>>(),
        "brokenBases": generation.broken_bases, "problems": generation.problems, "segments": generation.segments,
        "from": first.map(|(from, _)| from.rfc3339()), "until": last.map(|(_, until)| until.rfc3339()),
        "stretches": stretches.collect::<Vec<_>>() })
}

/// A generation as one line.
pub(super) fn as_line(generation: &ListedGeneration) -> String {
    let ListedGeneration { name, store_id, bases, broken_bases, segments, reaches, problems: _ } = generation;
    let stretch =
        |(from, until): &(Timestamp, Timestamp)| format!("{} to {}", from.rfc3339(), until.rfc3339());
    let reaches = match reaches.as_slice() {
        [] => "no time can be reached: it has no whole base".to_owned(),
        stretches => format!("reaches {}", stretches.iter().map(stretch).collect::<Vec<_>>().join(", and ")),
    };
    let broken = match broken_bases {
        0 => String::new(),
        some => format!(", {some} bases that cannot be used"),
    };
    let of = store_id.as_ref().map_or_else(String::new, |id| format!(", of the store {id}"));
    format!("archive {name}  {reaches}, {} bases{broken}, {segments} segments{of}", bases.len())
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
