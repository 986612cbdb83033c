//! The worlds of a process, as the sandbox API sees them. The server has them.

use std::fmt;

use domain::Timestamp;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::time_text;
use crate::world_file::WorldFile;

/// The id of the world that `stagedoor dev` started.
pub const MAIN_WORLD: &str = "main";

/// What a new world begins with.
#[derive(Clone, Debug, Default)]
pub struct NewWorld {
    /// Its id. Without it the world gets one.
    pub name: Option<String>,
    /// The seed of its ids, secrets and tokens.
    pub seed: Option<u64>,
    /// The time at which its clock stands still. Without it the clock shows the system's time and runs.
    pub clock: Option<Timestamp>,
    /// Its content. Without it and without `from`: that of the world file of `stagedoor dev`.
    pub world: Option<WorldFile>,
    /// A snapshot or a world whose state it begins with.
    pub from: Option<String>,
}

/// A world of the process.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorldSummary {
    /// Its id.
    pub world_id: String,
    /// Its address.
    pub base_url: String,
    /// The key of its platform API and its sandbox API.
    pub operator_key: String,
    /// The time of its clock.
    #[serde(serialize_with = "time_text::rfc3339")]
    #[schemars(with = "String")]
    pub now: Timestamp,
    /// Its seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A snapshot of a world.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotSummary {
    /// Its name.
    pub name: String,
    /// The world that it was taken of.
    pub world_id: String,
    /// The time of the world.
    #[serde(serialize_with = "time_text::rfc3339")]
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// Why a call about worlds was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldError {
    /// There is no such world or snapshot.
    Unknown {
        /// The field that names it.
        field: &'static str,
        /// The rule.
        rule: String,
    },
    /// A wrong value.
    Invalid {
        /// The field.
        field: String,
        /// The rule.
        rule: String,
    },
    /// There are as many as there can be.
    Full(String),
    /// The world failed.
    Failed(String),
}

impl WorldError {
    /// A wrong value of a field.
    pub fn invalid(field: impl Into<String>, rule: impl fmt::Display) -> Self {
        Self::Invalid { field: field.into(), rule: rule.to_string() }
    }
}

/// The result of a call about worlds.
pub type WorldResult<T> = Result<T, WorldError>;

/// The worlds of a process. Each has its own service, database, clock, faults, log and address.
pub trait WorldHost: fmt::Debug + Send + Sync {
    /// The worlds, `main` first.
    fn list(&self) -> BoxFuture<'_, Vec<WorldSummary>>;

    /// Starts a world. Returns its description, as `stagedoor dev --json` prints it, with `worldId`.
    fn create(&self, new: NewWorld) -> BoxFuture<'_, WorldResult<Value>>;

    /// Ends a world and deletes its data.
    fn delete(&self, id: String) -> BoxFuture<'_, WorldResult<()>>;

    /// Puts a world back to its beginning. Returns its description.
    fn reset(&self, id: String) -> BoxFuture<'_, WorldResult<Value>>;

    /// Takes a snapshot of a world. It replaces one of the same name.
    fn snapshot(&self, id: String, name: String) -> BoxFuture<'_, WorldResult<SnapshotSummary>>;

    /// Puts a world into the state of a snapshot. Returns its description.
    fn restore(&self, id: String, snapshot: String) -> BoxFuture<'_, WorldResult<Value>>;

    /// The snapshots, by name.
    fn snapshots(&self) -> Vec<SnapshotSummary>;

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// There is no such snapshot.
    fn delete_snapshot(&self, name: &str) -> WorldResult<()>;

    /// The world as one object: its database, its clock, its seed and its secrets.
    fn export(&self, id: String) -> BoxFuture<'_, WorldResult<Value>>;

    /// The world as a world file.
    fn world_file(&self, id: String) -> BoxFuture<'_, WorldResult<WorldFile>>;

    /// Starts a world from an exported object. Returns its description.
    fn import(&self, name: Option<String>, file: Value) -> BoxFuture<'_, WorldResult<Value>>;
}
