//! The only SQL: SQLite and PostgreSQL behind one transaction type.
//!
//! One SQL text runs on both engines. It holds to what they share:
//!
//! - columns are `TEXT`, `BIGINT` (epoch milliseconds, counts) and `BOOLEAN`; parameters are `$1..$n`;
//! - `ON CONFLICT … DO UPDATE`, `RETURNING` and partial unique indexes work on both; `FOR UPDATE` does not: lock by
//!   updating the parent row first (`queries/locks.rs` has the only statements that run on one engine); single use is one `UPDATE … WHERE used_at IS NULL RETURNING …`;
//! - `SUM` over BIGINT is NUMERIC on PostgreSQL: write `CAST(SUM(x) AS BIGINT)`; a parameter that no column gives a
//!   type is written `CAST($1 AS BIGINT)`;
//! - constraints are never deferred (one request's violation would fail the whole batch it shares a commit with), and
//!   unique indexes are over plain columns, so that [`StoreError::Unique`] reads the same on both engines;
//! - text is ordered and compared by its bytes: SQLite does so by itself, and on PostgreSQL every text column gets the
//!   collation `C` behind each migration.
//!
//! A write is one closure over a [`Tx`]: all or nothing, answered after the sync. The closure awaits only its `Tx`,
//! because on SQLite it runs to completion on the writer's thread and shares its commit with all waiting writes
//! (group commit).
//!
//! Modules depend on each other in one direction: `value` and `error`; `migrate`, `options` and `stats`; the connections
//! (`sqlite/connection.rs`, `postgres/connection.rs`); `tx` and `work`; the engines (`sqlite`, `postgres`); `store`. Queries
//! use `tx`, `value` and `error` alone, and the driver knows none of them.

mod disk;
mod error;
pub mod migrate;
mod notes;
mod options;
mod postgres;
pub mod queries;
mod sqlite;
mod stats;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod tx;
mod value;
mod work;

pub use disk::Disk;
pub use error::{Contention, StoreError};
pub use migrate::Migration;
pub use options::{DEADLINE, DatabaseUrl, Options, Target};
pub use stats::Stats;
pub use store::Store;
pub use tx::{BoxFuture, Tx};
pub use value::{FromValue, Row, Value};
