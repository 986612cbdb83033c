//! The latest runs of scenarios, as those who ran them have reported them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of runs that are kept. The oldest is dropped first.
const RUNS_MAX: usize = 50;

/// A run of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ScenarioRun {
    /// The name of the scenario.
    pub name: String,
    /// Whether every step was done.
    pub passed: bool,
    /// The number of steps that ran.
    pub steps: u64,
    /// How long it took, in milliseconds of real time.
    pub duration_ms: u64,
    /// The step that failed, and why.
    pub failure: Option<String>,
}

/// The latest runs.
#[derive(Debug, Default)]
pub(crate) struct ScenarioRuns(Mutex<VecDeque<ScenarioRun>>);

impl ScenarioRuns {
    /// Adds a run.
    pub fn add(&self, run: ScenarioRun) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push_front(run);
        runs.truncate(RUNS_MAX);
    }

    /// The runs, the latest first.
    pub fn list(&self) -> Vec<ScenarioRun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
