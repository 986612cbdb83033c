//! The begin and the end of the transactions of a SQLite thread.

use crate::StoreError;
use crate::tx::{Link, Tx};

/// Begins, ends or nests the transaction of a thread's `tx`.
pub(super) fn control(tx: &mut Tx, sql: &'static str) -> Result<(), StoreError> {
    match &mut tx.link {
        Link::Sqlite(connection) => connection.execute(sql, &[]).map(drop),
        Link::Postgres(_) => Err(StoreError::Misuse("a SQLite thread holds another engine's connection")),
    }
}

/// Whether the transaction has begun and not ended.
pub(super) fn in_transaction(tx: &Tx) -> bool {
    matches!(&tx.link, Link::Sqlite(connection) if connection.in_transaction())
}
