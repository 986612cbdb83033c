//! A world as one object, for a bug report: database, clock, seed, secrets and version.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sandbox::{WorldError, WorldResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use service::SeedState;

use super::snapshot::{ClockState, Snapshot};
use super::world::World;

/// The kind of the object.
const FORMAT: &str = "stagedoor-world";
/// The version of its fields.
const VERSION: u32 = 1;
/// The beginning of every SQLite file.
const SQLITE_HEADER: &[u8] = b"SQLite format 3\0";

/// A world as one object.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Archive {
    format: String,
    version: u32,
    /// The version of the program that wrote it.
    program: String,
    world_id: String,
    clock: ClockState,
    seed: Option<SeedState>,
    client_secrets: BTreeMap<String, String>,
    description: World,
    /// The SQLite file in base64.
    database: String,
}

/// The object of a snapshot.
pub(super) fn write(snapshot: &Snapshot) -> WorldResult<Value> {
    let failed = |error: &dyn std::fmt::Display| WorldError::Failed(format!("failed to export: {error}"));
    let database = std::fs::read(&snapshot.file).map_err(|error| failed(&error))?;
    let archive = Archive {
        format: FORMAT.to_owned(),
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        world_id: snapshot.world_id.clone(),
        clock: snapshot.clock,
        seed: snapshot.seed.clone(),
        client_secrets: snapshot.client_secrets.clone(),
        description: snapshot.description.clone(),
        database: STANDARD.encode(database),
    };
    serde_json::to_value(archive).map_err(|error| failed(&error))
}

/// The snapshot of an object. Its database is written to `file`.
pub(super) fn read(object: Value, file: PathBuf) -> WorldResult<Snapshot> {
    let of = |name: &str| object.get(name).cloned().unwrap_or_default();
    if of("format") != FORMAT {
        return Err(WorldError::invalid("format", format!("must be {FORMAT}")));
    }
    if of("version") != VERSION {
        let rule = format!("must be {VERSION}: this file was written by stagedoor {}", of("program"));
        return Err(WorldError::invalid("version", rule));
    }
    let archive: Archive =
        serde_json::from_value(object).map_err(|error| WorldError::invalid("body", error))?;
    let database = STANDARD.decode(archive.database.as_bytes()).ok();
    let database = database.filter(|bytes| bytes.starts_with(SQLITE_HEADER));
    let database =
        database.ok_or_else(|| WorldError::invalid("database", "must be a SQLite file in base64"))?;
    std::fs::write(&file, database)
        .map_err(|error| WorldError::Failed(format!("failed to write the database: {error}")))?;
    Ok(Snapshot {
        world_id: archive.world_id,
        file,
        clock: archive.clock,
        seed: archive.seed,
        client_secrets: archive.client_secrets,
        description: archive.description,
    })
}
