//! The storage parameters of partitions. PostgreSQL refuses them on a table that has partitions, so each
//! partition has its own.

/// Rows are updated or deleted. By default the server vacuums after a fifth of the rows of a partition has
/// changed, and analyzes after a tenth. A partition has the rows of up to 40 days: a fiftieth keeps the
/// indexes of connected sessions and of waiting messages small, of which every change leaves a dead entry.
const CHANGED: &str = "autovacuum_vacuum_scale_factor=0.02,autovacuum_analyze_scale_factor=0.02";

/// Rows are only inserted, apart from few. The server vacuums what was inserted while it is still in
/// memory, and freezes it at once. So it need not read the partition again, neither for a vacuum after a
/// fifth of its rows nor for one against the wraparound of transaction ids.
const INSERTED: &str = "autovacuum_vacuum_insert_scale_factor=0.02,autovacuum_freeze_min_age=0";

/// Selects the partitions of a table that lack some of these storage parameters. The second parameter is a
/// list of them in braces.
pub(crate) const LACKING: &str = "
    SELECT CAST(c.relname AS TEXT) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(CAST($1 AS TEXT))
        AND NOT COALESCE(c.reloptions, '{}') @> CAST(CAST($2 AS TEXT) AS TEXT[])";

/// The storage parameters of the partitions of a table.
pub(crate) fn storage_of(table: &str) -> &'static str {
    match table {
        "chat_messages" | "donations" | "claim_changes" | "webhook_attempts" => INSERTED,
        _ => CHANGED,
    }
}

/// Sets the storage parameters of a partition. The lock that it takes lets others read and write.
pub(crate) fn set_storage(table: &str, partition: &str) -> String {
    format!("ALTER TABLE {partition} SET ({})", storage_of(table))
}
