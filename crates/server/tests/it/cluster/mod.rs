//! Several nodes, and failing databases and buses.

mod database_outages;
mod late_database;
mod node_failures;
mod nodes;
mod rolling_restart;
mod routers;
mod shared_store;
