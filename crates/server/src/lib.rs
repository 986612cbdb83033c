//! Composes the parts of a node. Only this crate depends on whether the store is SQLite or PostgreSQL, and on
//! how the parts start and stop. [`node::Node`] is a running node. The binary and the tests start the same
//! type.

pub mod archiving;
pub mod cli;
pub mod config;
mod connections;
mod descriptors;
pub mod dev;
pub mod entry;
mod front;
pub mod hosts;
mod inbound;
mod listener;
mod mail;
mod malformed;
pub mod metrics;
pub mod node;
mod proxies;
mod reserved;
mod store_checks;
mod store_start;
pub mod tls;
mod unix_socket;
mod webhooks;

pub use config::{BusSettings, Footprint, Settings, StoreSettings};
pub use node::{Environment, Node};
