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

mod disk;
mod engine;
mod error;
pub mod migrate;
mod postgres;
pub mod queries;
mod sqlite;
#[cfg(feature = "testing")]
pub mod testing;
mod value;

pub use disk::Disk;
pub use engine::{BoxFuture, DEADLINE, DatabaseUrl, Options, Stats, Store, Target, Tx};
pub use error::StoreError;
pub use migrate::Migration;
pub use value::{FromValue, Row, Value};
