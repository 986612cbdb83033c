//! The log of a process on stderr, and its traces and logs for an OpenTelemetry collector.
//!
//! Other crates use `tracing` and know nothing of a collector. Spans and events with the target `traces` are
//! for it alone: the spans of a request and of its parts, and events that add facts to a span. Without a
//! collector they are disabled, and cost one load of an atomic.
//!
//! | Module | What it does |
//! |---|---|
//! | `log` | starts the log |
//! | `sources` | time and randomness |
//! | `collector` | the settings of the collector |
//! | `trace_context` | ids of traces and spans, and the header `traceparent` |
//! | `record` | what is exported: spans, lines of the log |
//! | `sampler` | which requests are traced |
//! | `layer` | makes records of spans and events |
//! | `queue` | the bounded queue between requests and the exporter, and its counters |
//! | `otlp` | the JSON of OTLP |
//! | `exporter` | sends batches to the collector |

mod collector;
mod exporter;
mod layer;
mod log;
mod otlp;
mod queue;
mod record;
mod sampler;
mod sources;
mod trace_context;

pub use collector::{Collector, SampleRatio};
pub use log::{LogFormat, RunningTelemetry, Telemetry, is_tracing};
pub use queue::{ExportFigures, Signal};
pub use sources::Sources;

/// The target of spans and events that are for a collector alone.
pub const TRACES: &str = "traces";
