//! Nodes and background work.

pub mod due;
pub mod expire;
pub mod health;
pub mod housekeeping;
pub(crate) mod job_metrics;
pub mod measures;
pub(crate) mod node_state;
pub mod nodes;
pub mod overview;
mod partitions;
