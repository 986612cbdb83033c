//! The storage parameters of partitions on PostgreSQL, and how statements over them run.

use std::time::Duration;

use domain::limits::DAY_MS;
use domain::{SessionKey, Timestamp};
use store::{PartitionUpkeep, PartitionedTable, Store, StoreError, Tx, params};

use crate::{both, node, number, of_client, tx};

const KEPT_MS: i64 = 90 * DAY_MS;
const LONGEST: Duration = Duration::from_secs(10);

fn day(days: i64) -> Timestamp {
    Timestamp::from_millis(1_795_665_600_000 + days * DAY_MS)
}

async fn keep(store: &Store, table: PartitionedTable, now: Timestamp) -> PartitionUpkeep {
    store.keep_partitions(table, now, KEPT_MS, LONGEST).await.unwrap().unwrap_or_default()
}

/// The partitions whose storage parameters contain this text, or, without it, all of them.
async fn with(store: &Store, text: &'static str) -> i64 {
    const PARTITIONS: &str = "
        SELECT COUNT(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
        AND relkind = 'r' AND relispartition
        AND strpos(COALESCE(array_to_string(reloptions, ','), ''), CAST($1 AS TEXT)) > 0";
    let count = async move |tx: &mut Tx| tx.query_one(PARTITIONS, params![text]).await?.get::<i64>(0);
    store.read(count).await.unwrap()
}

async fn all_have_them(store: &Store) {
    const CHANGED: &str = "autovacuum_vacuum_scale_factor=0.02,autovacuum_analyze_scale_factor=0.02";
    const INSERTED: &str = "autovacuum_vacuum_insert_scale_factor=0.02,autovacuum_freeze_min_age=0";
    let (all, changed, inserted) =
        (with(store, "").await, with(store, CHANGED).await, with(store, INSERTED).await);
    assert!(changed > 0 && inserted > 0 && changed + inserted == all, "{changed} and {inserted} of {all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_gets_its_storage_parameters_beside_writes() {
    both(|store| async move {
        if !store.is_remote() {
            return;
        }
        assert_eq!(with(&store, "autovacuum").await, 0, "those of the migrations");
        for table in PartitionedTable::ALL {
            assert!(keep(&store, table, day(0)).await.made > 0, "{table:?}");
        }
        all_have_them(&store).await;
        for sql in [
            "ALTER TABLE session_subscriptions__past RESET (autovacuum_vacuum_scale_factor)",
            "ALTER TABLE sessions__next SET (autovacuum_analyze_scale_factor = 0.5)",
        ] {
            tx!(store, tx => { tx.execute(sql, &[]).await.map(drop) }).unwrap();
        }
        // They are set while a transaction writes the table.
        let keeper = store.clone();
        store
            .write(async move |tx: &mut Tx| {
                let key = SessionKey::generate(day(0), [1; 10]);
                tx.insert_session(&key, &of_client("app"), None, &node("n"), day(0)).await?;
                let kept = keep(&keeper, PartitionedTable::Sessions, day(0)).await;
                assert_eq!(kept, PartitionUpkeep::default());
                Ok::<_, StoreError>(())
            })
            .await
            .unwrap();
        all_have_them(&store).await;
        // The connected session is moved to a new partition.
        assert!(keep(&store, PartitionedTable::Sessions, day(200)).await.dropped > 0);
        assert_eq!(tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM sessions__past").await }), Ok(1));
        keep(&store, PartitionedTable::ChatMessages, day(200)).await;
        all_have_them(&store).await;
    })
    .await;
}

/// The server estimates too many rows for a join of these tables, so it would compile the statement.
#[tokio::test(flavor = "multi_thread")]
async fn no_statement_is_compiled() {
    both(|store| async move {
        if !store.is_remote() {
            return;
        }
        const COMPILES: &str = "SELECT COUNT(*) FROM pg_settings WHERE name = 'jit' AND setting = 'on'";
        let count = async move |tx: &mut Tx| tx.query_one(COMPILES, &[]).await?.get::<i64>(0);
        assert_eq!(store.read(count).await, Ok(0));
        assert_eq!(store.write(count).await, Ok(0));
    })
    .await;
}
