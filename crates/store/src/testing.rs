//! Fresh stores on both engines, for tests (feature `testing`).
//!
//! ```no_run
//! // #[tokio::test(flavor = "multi_thread")]
//! async fn an_empty_store_has_committed_nothing() {
//!     store::testing::both(|store| async move { assert_eq!(store.stats().committed, 0) }).await;
//! }
//! ```
//!
//! PostgreSQL is the server of `STAGEDOOR_TEST_DATABASE_URL`. A test without it fails; none is ever skipped,
//! because both engines have to give the same answer. Each store has its own database there, or its own file.
//! Both are gone afterwards, whether the test passed or not.
//!
//! Tests with a store must not pause tokio's clock: the store's threads do their work in real time, which a
//! paused clock takes for idleness, and jumps to the deadline.

mod damage;
mod databases;
mod engines;
mod running;
mod server;
mod wire;

pub use damage::run_unchecked;
pub use databases::{DATABASE_URL, database_url};
pub use engines::{
    EmptyDatabase, Fresh, Level, UNHURRIED, both, both_with, engines, migrated_postgres, migrated_sqlite,
    postgres, sqlite,
};
pub use running::while_running;
pub use server::PostgresServer;
pub use wire::{Network, Wire};
