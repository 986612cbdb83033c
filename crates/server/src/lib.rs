//! Composes the parts of a node. Only this crate depends on whether the store is SQLite or PostgreSQL, and on
//! how the parts start and stop. [`node::Node`] is a running node. The binary and the tests start the same
//! type.

pub mod archiving;
pub mod cli;
pub mod config;
mod descriptors;
pub mod dev;
pub mod entry;
mod front;
mod mail;
pub mod metrics;
pub mod node;
mod reserved;
mod store_checks;
mod store_start;
pub mod tls;
mod webhooks;

pub use config::{BusSettings, Footprint, Settings, StoreSettings};
pub use node::{Environment, Node};
