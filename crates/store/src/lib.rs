//! The only SQL: SQLite and PostgreSQL behind one transaction type.
//!
//! One SQL text runs on both engines. It uses only what they share:
//!
//! - Columns are `TEXT`, `BIGINT` (epoch milliseconds, counts) and `BOOLEAN`. Parameters are `$1..$n`.
//! - `ON CONFLICT … DO UPDATE`, `RETURNING` and partial unique indexes work on both engines. `FOR UPDATE`
//!   does not: a transaction locks a row by updating the parent row first. The only statements that run on
//!   one engine are in `queries/cluster/locks.rs`, `chat_appends.rs`, `live/lives.rs` and
//!   `postgres/upkeep.rs`. A single-use row is consumed by one `UPDATE … WHERE used_at IS NULL RETURNING …`.
//! - `SUM` over BIGINT is NUMERIC on PostgreSQL: write `CAST(SUM(x) AS BIGINT)`. A parameter without a column
//!   that gives its type is written `CAST($1 AS BIGINT)`.
//! - Constraints are never deferred, because a violation by one request would fail the whole batch that
//!   shares its commit. Unique indexes are over plain columns, so that [`StoreError::Unique`] is the same on
//!   both engines.
//! - Text is ordered and compared by its bytes. SQLite does so by itself. On PostgreSQL every text column
//!   gets the collation `C` after each migration.
//!
//! A write is one closure over a [`Tx`]: all or nothing, answered after the sync. The closure awaits only its
//! `Tx`, because on SQLite it runs to completion on the writer's thread and shares its commit with all
//! waiting writes (group commit).
//!
//! Modules depend on each other in one direction: `value`, `error` and `run_to_completion`; `migrate`,
//! `log_archive`, `options`, `partitions` and `stats`; the connections (`sqlite/connection.rs`,
//! `postgres/connection.rs`); `tx` and `work`; the engines (`sqlite`, `postgres`); `store`. Queries use `tx`,
//! `value` and `error` alone, and the driver knows none of them.

mod disk;
mod error;
pub mod log_archive;
mod measure;
pub mod migrate;
mod notes;
mod options;
mod partitions;
mod postgres;
pub mod queries;
mod run_to_completion;
mod sqlite;
mod stats;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transfer;
mod tx;
mod value;
mod work;

pub use disk::Disk;
pub use error::{Contention, StoreError};
pub use measure::{DiskSpace, Measures, record_backup};
pub use migrate::Migration;
pub use options::{DEADLINE, DatabaseUrl, Options, Target};
pub use partitions::{PartitionUpkeep, PartitionedTable};
pub use run_to_completion::run_to_completion;
pub use stats::Stats;
pub use store::Store;
pub use tx::Tx;
pub use value::{FromValue, Row, Value};
pub use work::SendAsyncFnOnce;
