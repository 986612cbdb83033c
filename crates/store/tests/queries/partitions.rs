//! The partitions of chat messages and donations on PostgreSQL, and what is the same on both engines.

use std::time::Duration;

use domain::limits::DAY_MS;
use domain::{MessageId, Timestamp};
use store::migrate::MIGRATIONS;
use store::queries::chats::{HIDE_MESSAGES, is_time_taken};
use store::testing::engines;
use store::{Options, PartitionUpkeep, PartitionedTable, Store, StoreError, Tx, params};

use crate::{both, number, tx};

const KEPT_MS: i64 = 7 * DAY_MS;
const LONGEST: Duration = Duration::from_secs(10);

/// 2026-11-26T04:00:00Z and so many hours.
fn hour(hours: i64) -> Timestamp {
    Timestamp::from_millis(1_795_665_600_000 + hours * 3_600_000)
}

async fn keep(store: &Store, now: Timestamp) -> Option<PartitionUpkeep> {
    store.keep_partitions(PartitionedTable::ChatMessages, now, KEPT_MS, LONGEST).await.unwrap()
}

fn message_id(time: Timestamp, n: u8) -> MessageId {
    MessageId::generate(time, [n; 10])
}

async fn insert(tx: &mut Tx, id: &MessageId) -> Result<(), StoreError> {
    let insert = "
        INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
        VALUES ($1, 'a', 'b', 'hello', '{}', 0)";
    tx.execute(insert, params![id]).await.map(drop)
}

/// The number of messages.
async fn messages(store: &Store) -> i64 {
    tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM chat_messages").await }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn days_are_made_ahead_and_dropped_when_they_are_old_and_every_id_has_a_place() {
    both(|store| async move {
        let first = keep(&store, hour(0)).await;
        if !store.is_remote() {
            assert_eq!(first, None);
            return;
        }
        assert_eq!(first, Some(PartitionUpkeep { made: 4, dropped: 0 }));
        assert_eq!(keep(&store, hour(0)).await, Some(PartitionUpkeep::default()), "again");
        let ids: Vec<_> = [-1_000_000, -24, 0, 20, 24, 96, 1_000, 100_000].map(hour).map(|time| message_id(time, 1)).into();
        tx!(store, tx => {
            for id in &ids {
                insert(tx, id).await?;
            }
            insert(tx, &MessageId::stored("m1".into())).await
        })
        .unwrap();
        let taken = tx!(store, tx => { insert(tx, &message_id(hour(20), 1)).await }).unwrap_err();
        assert!(is_time_taken(&taken), "{taken:?}");
        assert_eq!(messages(&store).await, 9);
        // Days after an id that is behind all times are not made, and rows go on to find a place.
        assert_eq!(keep(&store, hour(24)).await, Some(PartitionUpkeep::default()));
        tx!(store, tx => {
            tx.execute("DELETE FROM chat_messages WHERE message_id >= $1", params![&MessageId::bound_at(hour(500))]).await
        })
        .unwrap();
        // `next` has the row of hour 96, and gets an end.
        assert_eq!(keep(&store, hour(24)).await, Some(PartitionUpkeep { made: 1, dropped: 0 }));
        assert_eq!(messages(&store).await, 6);
        // A day and seven later the first day is old: its last row is of hour 19.
        let eight = keep(&store, hour(7 * 24 + 20)).await.unwrap();
        assert_eq!(eight.dropped, 2, "with what was before it");
        assert_eq!(messages(&store).await, 3, "hours 20, 24 and 96");
        assert_eq!(keep(&store, hour(7 * 24 + 20)).await, Some(PartitionUpkeep::default()), "again");
        // A copied row that is older than all.
        tx!(store, tx => { insert(tx, &message_id(hour(-5_000), 2)).await }).unwrap();
        assert_eq!(keep(&store, hour(7 * 24 + 20)).await.unwrap().dropped, 1);
        assert_eq!(messages(&store).await, 3);
        // Nothing ran for a year.
        let late = keep(&store, hour(9_000)).await.unwrap();
        assert!(late.made == 4 && late.dropped > 3, "{late:?}");
        assert_eq!(messages(&store).await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_go_on_while_several_nodes_keep_the_partitions() {
    both(|store| async move {
        let writers = (1..=4_u8).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                for minute in 0..300 {
                    let time = hour(0).plus_ms(minute * 20 * 60_000);
                    tx!(store, tx => { insert(tx, &message_id(time, n)).await }).unwrap();
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        let keepers = (0..3).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for day in 0..5 {
                    let kept = store
                        .keep_partitions(PartitionedTable::ChatMessages, hour(day * 24), KEPT_MS, LONGEST)
                        .await;
                    assert!(matches!(kept, Ok(_) | Err(StoreError::Contention(_))), "{kept:?}");
                }
            })
        });
        for keeper in keepers.collect::<Vec<_>>() {
            keeper.await.unwrap();
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(messages(&store).await, 1_200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_an_older_schema_stay_where_they_are() {
    let before = MIGRATIONS.iter().position(|migration| migration.name == "partitions").unwrap();
    for engine in engines().await {
        let store = engine.open(Options { migrations: &MIGRATIONS[..before], ..Options::default() }).await;
        const FILE: &str = "
            SELECT CAST(relfilenode AS BIGINT) FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace
                AND relname IN ('chat_messages__past', 'chat_messages') AND relkind = 'r'";
        let is_postgres = store.is_remote();
        let file = tx!(store, tx => {
            for n in 0..50 {
                insert(tx, &message_id(hour(-n), 1)).await?;
            }
            tx.execute("INSERT INTO donations VALUES ('0d', 'a', NULL, 'CHAT', '1', '', '{}', 1)", &[]).await?;
            if is_postgres { number(tx, FILE).await } else { Ok(0) }
        })
        .unwrap();
        store.close().await;
        let store = engine.open(Options::default()).await;
        assert_eq!(messages(&store).await, 50);
        if is_postgres {
            assert_eq!(tx!(store, tx => { number(tx, FILE).await }), Ok(file), "it was rewritten");
            assert_eq!(keep(&store, hour(0)).await.unwrap().made, 4);
            assert_eq!(keep(&store, hour(7 * 24 - 1)).await.unwrap().dropped, 0, "its newest row is kept");
            assert_eq!(messages(&store).await, 50);
            assert_eq!(keep(&store, hour(7 * 24 + 1)).await.unwrap().dropped, 1);
            assert_eq!(messages(&store).await, 0);
        }
        assert_eq!(tx!(store, tx => { number(tx, "SELECT COUNT(*) FROM donations").await }), Ok(1));
        store.close().await;
        engine.remove().await;
    }
}

/// A text that lives as long as the test.
fn text(sql: String) -> &'static str {
    Box::leak(sql.into_boxed_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn hiding_reads_the_rows_of_the_viewer_on_postgres() {
    both(|store| async move {
        if !store.is_remote() {
            return;
        }
        keep(&store, hour(0)).await;
        // 30,000 messages of the last minute.
        const FILL: &str = "
            INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
            SELECT lpad(to_hex(CAST($1 AS BIGINT) - 2 * n), 12, '0') || lpad(to_hex(n), 20, '0'),
                'a', 'sender-' || n % 1000, 'hello', '{}', 0
            FROM generate_series(CAST(1 AS BIGINT), CAST($2 AS BIGINT)) AS n";
        tx!(store, tx => { tx.execute(FILL, params![hour(0), 30_000]).await }).unwrap();
        tx!(store, tx => { tx.execute("ANALYZE chat_messages", &[]).await }).unwrap();
        let start = hour(0).plus_ms(-60_000);
        let mut literals = vec![
            format!("'{}'", MessageId::bound_at(start)),
            Timestamp::LAST.as_millis().to_string(),
            "'a'".to_owned(),
            "'sender-7'".to_owned(),
            "5".to_owned(),
        ];
        let block = start.as_millis() >> 12;
        literals.extend((block..block + 20).map(|block| format!("'{block:09x}'")));
        let prepare = text(format!("PREPARE hide AS {HIDE_MESSAGES}"));
        let explain = text(format!("EXPLAIN EXECUTE hide({})", literals.join(", ")));
        // The driver's statements get either plan, whichever the server takes for the cheaper one.
        for mode in ["force_generic_plan", "force_custom_plan"] {
            let mode_of_plans = text(format!("SET LOCAL plan_cache_mode = {mode}"));
            let rows = tx!(store, tx => {
                for sql in [mode_of_plans, prepare] {
                    tx.execute(sql, &[]).await?;
                }
                let rows = tx.query(explain, &[]).await?;
                tx.execute("DEALLOCATE hide", &[]).await?;
                Ok(rows)
            })
            .unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get(0).unwrap()).collect();
            let index = "Index Scan using chat_messages__until_20261127_substr";
            assert!(plan.iter().any(|step| step.contains(index)), "{mode}: {plan:#?}");
            assert!(!plan.iter().any(|step| step.contains("20261127_pkey")), "{mode}: {plan:#?}");
        }
    })
    .await;
}
