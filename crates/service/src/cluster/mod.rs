//! Nodes and background work.

pub mod housekeeping;
pub(crate) mod job_metrics;
pub mod nodes;
