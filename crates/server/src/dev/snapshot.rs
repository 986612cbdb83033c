//! The whole state of a world at one time: its database, its clock, its seed, its secrets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::Timestamp;
use serde::{Deserialize, Serialize};
use service::{Clock, ClockMode, Entropy, SandboxClock, SeedState};

use super::world::World;
use crate::Environment;

/// How far a clock may be from the system's and still follow it, in milliseconds.
const FOLLOWS_MS: i64 = 1_000;

/// The state of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClockState {
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    /// Seconds of the clock in a second of real time; 0 for a clock that stands still.
    pub rate: f64,
    /// Whether the clock is the system's: then it stays the system's.
    pub follows_system: bool,
}

impl ClockState {
    pub fn of(clock: &SandboxClock) -> Self {
        Self::at(clock.now(), clock.mode())
    }

    /// A clock that shows this time, and runs so from now on.
    pub fn at(time: Timestamp, mode: ClockMode) -> Self {
        let now_ms = time.as_millis();
        let from_system_ms = now_ms.saturating_sub(Clock::system().now().as_millis()).saturating_abs();
        let follows_system = mode == ClockMode::Real && from_system_ms < FOLLOWS_MS;
        Self { now_ms, rate: mode.rate(), follows_system }
    }

    /// The time, and how the clock runs.
    pub fn time_and_mode(self) -> (Timestamp, ClockMode) {
        let time = Timestamp::from_millis(self.now_ms);
        match self {
            Self { follows_system: true, .. } => (time.max(Clock::system().now()), ClockMode::Real),
            Self { rate: 0.0, .. } => (time, ClockMode::Frozen),
            Self { rate: 1.0, .. } => (time, ClockMode::Real),
            Self { rate, .. } => (time, ClockMode::Scaled(rate)),
        }
    }

    /// A clock that stands still.
    pub fn frozen_at(time: Timestamp) -> Self {
        Self { now_ms: time.as_millis(), rate: 0.0, follows_system: false }
    }

    /// A clock that goes on from this state.
    pub fn clock(self) -> SandboxClock {
        let (time, mode) = self.time_and_mode();
        SandboxClock::new(time, mode)
    }
}

/// The state of a world. Its file is deleted with this value.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The world that it was taken of.
    pub world_id: String,
    /// A copy of the database, which never changes.
    pub file: PathBuf,
    pub clock: ClockState,
    pub seed: Option<SeedState>,
    /// The client secrets that the sandbox knew, by client id.
    pub client_secrets: BTreeMap<String, String>,
    /// The description of the world. Its addresses and its operator key are those of the world itself.
    pub description: World,
}

impl Snapshot {
    /// The sources of time and randomness of a world that goes on from this state.
    pub fn environment(&self) -> Environment {
        let entropy = self.seed.as_ref().map_or_else(Entropy::system, Entropy::resumed);
        Environment::sandbox(self.clock.clock(), entropy)
    }

    /// Copies the database to `path`.
    pub fn copy_to(&self, path: &Path) -> Result<(), String> {
        std::fs::copy(&self.file, path).map(drop).map_err(|error| not_copied(&error))
    }
}

/// The files of a database, by what follows the name of the first one.
const DATABASE_FILES: [&str; 3] = ["db", "db-wal", "db-shm"];

/// The former database of a world that does not run. It lies beside the new one.
pub(super) struct Former {
    database: PathBuf,
}

impl Former {
    /// Replaces the database by the file `next`.
    pub fn replaced_by(database: &Path, next: &Path) -> Result<Self, String> {
        let former = Self { database: database.to_owned() };
        let moved = former.each(|file, aside| std::fs::rename(file, aside));
        let moved = moved.and_then(|()| std::fs::rename(next, database));
        match moved {
            Ok(()) => Ok(former),
            Err(error) => {
                former.put_back()?;
                Err(not_copied(&error))
            }
        }
    }

    /// Replaces the new database by the former one.
    pub fn put_back(self) -> Result<(), String> {
        let has_former = self.database.with_extension("db.former").exists();
        let put_back = self.each(|file, aside| {
            if has_former {
                ignore_missing(std::fs::remove_file(file))?;
            }
            std::fs::rename(aside, file)
        });
        put_back.map_err(|error| not_copied(&error))
    }

    /// Deletes the former database.
    pub fn delete(self) {
        if let Err(error) = self.each(|_, aside| std::fs::remove_file(aside)) {
            tracing::warn!(%error, "failed to delete the former database of a world");
        }
    }

    /// Runs `step` with each file and its place aside. A missing file is no error.
    fn each(&self, step: impl Fn(&Path, &Path) -> std::io::Result<()>) -> std::io::Result<()> {
        DATABASE_FILES.iter().try_for_each(|part| {
            let file = self.database.with_extension(part);
            let aside = self.database.with_extension(format!("{part}.former"));
            ignore_missing(step(&file, &aside))
        })
    }
}

fn ignore_missing(outcome: std::io::Result<()>) -> std::io::Result<()> {
    match outcome {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

fn not_copied(error: &std::io::Error) -> String {
    format!("failed to copy the database: {error}")
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // The folder is deleted at the end anyway.
        let _ = std::fs::remove_file(&self.file);
    }
}
