//! Moves the clock of a sandbox.

use domain::Timestamp;
use serde_json::{Value, json};
use service::ClockMode;
use service::due::{Due, DueKind};

use crate::log::{NewRecord, RecordKind};
use crate::sandbox::Sandbox;
use crate::timeline::{Passed, Timeline};

/// Where the clock is moved.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// Forward by a span, in milliseconds.
    By(i64),
    /// To a time. An earlier one than the clock's changes nothing.
    At(Timestamp),
    /// To the next time at which something of this kind becomes due.
    Next(DueKind),
}

/// Why the clock was not moved, or not to the end.
#[derive(Debug)]
pub(crate) enum MoveError {
    /// Nothing of the kind becomes due.
    NothingAhead,
    /// The service failed. The clock shows how far it was moved.
    Service(service::Error),
}

impl From<service::Error> for MoveError {
    fn from(error: service::Error) -> Self {
        Self::Service(error)
    }
}

impl Sandbox {
    /// Lets the clock run in another mode.
    pub(crate) fn set_clock_mode(&self, mode: ClockMode) {
        self.clock().set_mode(mode);
        self.keep_clock(self.clock().now());
        let name = match mode {
            ClockMode::Real => "real",
            ClockMode::Frozen => "frozen",
            ClockMode::Scaled(_) => "scaled",
        };
        self.record_clock(json!({ "mode": name, "rate": mode.rate() }));
    }

    fn record_clock(&self, fields: Value) {
        let fields = fields.as_object().cloned().unwrap_or_default();
        self.log().add(NewRecord { at: self.clock().now(), kind: RecordKind::Clock, fields });
    }

    /// What becomes due next, in the order of the due times: up to `limit` of each kind.
    pub(crate) async fn next_due(&self, limit: i64) -> Result<Vec<Due>, service::Error> {
        let Some(parts) = self.parts() else { return Ok(Vec::new()) };
        let kinds: Vec<DueKind> = DueKind::all().collect();
        parts.service.due(&kinds, self.clock().now(), Timestamp::LAST, limit).await
    }

    /// Moves the clock forward. Runs what becomes due, in the order of the due times, and returns it. One
    /// move runs at a time.
    pub(crate) async fn advance(&self, destination: Destination) -> Result<Passed, MoveError> {
        let _moving = self.moving().await;
        let now = self.clock().now();
        let Some(parts) = self.parts() else { return Err(MoveError::NothingAhead) };
        let (target, until) = match destination {
            Destination::By(span_ms) => (now.plus_ms(span_ms), None),
            Destination::At(time) => (time, None),
            Destination::Next(kind) => {
                let next = parts.service.due(&[kind], now, Timestamp::LAST, 1).await?;
                (next.first().ok_or(MoveError::NothingAhead)?.at, Some(kind.name()))
            }
        };
        // Before the move: what it writes has times up to the target.
        self.keep_clock(target.max(now));
        let passed = Timeline::new(self, parts).run(now, target).await;
        let mut fields =
            json!({ "what": "moved", "from": now.rfc3339(), "to": self.clock().now().rfc3339() });
        if let Some(until) = until {
            fields["until"] = until.into();
        }
        self.record_clock(fields);
        Ok(passed?)
    }
}
