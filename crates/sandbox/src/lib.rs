//! What only a sandbox has. `stagedoor dev` holds a [`Sandbox`] and serves its API, `/sandbox/v1`, beside the
//! service. `stagedoor serve` has neither.
//!
//! The sandbox steers the real service: through its clock, through its operations, and through its fault
//! points. It stands in for nothing.
//!
//! | Module | What it does |
//! |---|---|
//! | `sandbox` | the handle: the parts of a sandbox |
//! | `clock` | moves the clock, and runs what becomes due |
//! | `log` | the bounded record of what happened |
//! | `time_text` | times and durations as text |
//! | `http` | the sandbox API |

mod clock;
mod http;
mod log;
mod sandbox;
mod time_text;

pub use http::Api;
pub use log::{Log, NewRecord, Record, RecordKind};
pub use sandbox::{Parts, Sandbox};
