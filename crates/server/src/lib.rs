//! Composes the parts. Only this crate knows whether the store is SQLite or PostgreSQL, and how the parts of
//! a node start and stop. [`node::Node`] is a running node. The binary and the tests start the same one.

pub mod cli;
mod client;
pub mod config;
mod connections;
mod descriptors;
pub mod dev;
pub mod drops;
pub mod hosts;
mod inbound;
pub mod listen;
mod listener;
mod malformed;
pub mod metrics;
pub mod node;
mod proxies;
mod secrets;
mod telemetry;
mod webhooks;

pub use config::{BusSettings, Settings, StoreSettings};
pub use node::{Environment, Node};
pub use telemetry::init as init_telemetry;
