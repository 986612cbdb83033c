//! Several nodes, and engines that fail.

mod database_outages;
mod node_failures;
mod nodes;
mod rolling_restart;
mod shared_store;
