//! The partitions of sessions, messages to webhooks, changes of claims and counted requests on PostgreSQL:
//! what is dropped when, and what stays. On SQLite the same rows are deleted by the sweeps.

use std::time::Duration;

use domain::event::EventType;
use domain::limits::DAY_MS;
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::{ClaimId, DeliveryId, SessionKey, Timestamp};
use store::migrate::MIGRATIONS;
use store::queries::deliveries::{AttemptRecord, NewDelivery};
use store::testing::engines;
use store::{Options, PartitionUpkeep, PartitionedTable, Store, StoreError, Tx, params};

use crate::webhooks::plant;
use crate::{both, caller, channel, node, number, of_client, of_user, seed, tx};

const KEPT_MS: i64 = 30 * DAY_MS;
/// A tenth of it.
const PERIOD_MS: i64 = 3 * DAY_MS;
const LONGEST: Duration = Duration::from_secs(10);

/// A time at which periods begin, and so many milliseconds.
fn after(ms: i64) -> Timestamp {
    let begin = 1_795_665_600_000_i64.div_euclid(PERIOD_MS) * PERIOD_MS;
    Timestamp::from_millis(begin + ms)
}

async fn keep(store: &Store, table: PartitionedTable, now: Timestamp) -> PartitionUpkeep {
    store.keep_partitions(table, now, KEPT_MS, LONGEST).await.unwrap().unwrap_or_default()
}

async fn count(store: &Store, table: &'static str) -> i64 {
    let sql: &'static str = Box::leak(format!("SELECT COUNT(*) FROM {table}").into_boxed_str());
    tx!(store, tx => { number(tx, sql).await }).unwrap()
}

/// A session with a subscription and a change, from one time to another.
async fn run_session(
    tx: &mut Tx,
    n: u8,
    from: Timestamp,
    until: Option<Timestamp>,
) -> Result<SessionKey, StoreError> {
    let key = SessionKey::generate(from, [n; 10]);
    tx.insert_session(&key, &of_user("app", "a"), None, &node("n"), from).await?;
    tx.put_subscription(&key, EventType::Chat, &caller("app", "a", "f"), from).await?;
    let subscription = Subscription { event_type: EventType::Chat, channel_id: channel("a") };
    let change = SessionChange { version: 1, kind: ChangeKind::Subscribed, subscription };
    tx.insert_session_change(&key, &node("n"), &change).await?;
    if let Some(until) = until {
        tx.disconnect_session(&key, until, "client_goodbye").await?;
    }
    Ok(key)
}

/// A row of `at` that is over then.
async fn insert(tx: &mut Tx, table: PartitionedTable, n: u8, at: Timestamp) -> Result<(), StoreError> {
    match table {
        PartitionedTable::Sessions => run_session(tx, n, at, Some(at)).await.map(drop),
        PartitionedTable::WebhookDeliveries => deliver(tx, n, at).await.map(drop),
        PartitionedTable::ClaimChanges => {
            let change = "INSERT INTO claim_changes VALUES ('c', 'CLAIMED', 'FULFILLED', 'app', $1)";
            tx.execute(change, params![at]).await.map(drop)
        }
        PartitionedTable::ApplicationUsage => {
            let usage = "INSERT INTO application_usage VALUES ('app', $1, $2, 1, 0)";
            tx.execute(usage, params![at, n.to_string()]).await.map(drop)
        }
        PartitionedTable::ChatMessages | PartitionedTable::Donations => Ok(()),
    }
}

/// A message to a webhook with an attempt.
async fn deliver(tx: &mut Tx, n: u8, at: Timestamp) -> Result<DeliveryId, StoreError> {
    let webhook_id = crate::webhooks::webhook_id("hook");
    let message_id = DeliveryId::generate(at, [n; 10]);
    let new = NewDelivery {
        webhook_id: webhook_id.clone(),
        message_id: message_id.clone(),
        claim_id: Some(ClaimId::stored("c".to_owned())),
        data: "{}".to_owned(),
        failures: 0,
        waiting: false,
    };
    tx.insert_delivery(&new, at).await?;
    let attempt = AttemptRecord {
        number: 1,
        began_at: at,
        duration_ms: 1,
        status: Some(200),
        failure: None,
        excerpt: String::new(),
        signed_at: None,
    };
    tx.insert_attempt(&webhook_id, &message_id, &attempt).await?;
    Ok(message_id)
}

const CLAIM: [&str; 5] = [
    "INSERT INTO organizations (organization_id, organization_name, verified) VALUES ('o', 'o', TRUE)",
    "INSERT INTO categories (category_id, category_type, category_value) VALUES ('g', 'GAME', 'g')",
    "INSERT INTO drops_campaigns (campaign_id, campaign_name, organization_id, category_id) VALUES ('k', 'k', 'o', 'g')",
    "INSERT INTO drops_rewards (campaign_id, reward_id, reward_name, claimable) VALUES ('k', 'r', 'r', TRUE)",
    "INSERT INTO reward_claims (claim_id, organization_id, campaign_id, reward_id, category_id, channel_id,
         fulfillment_state, claimed_at, updated_at) VALUES ('c', 'o', 'k', 'r', 'g', 'a', 'CLAIMED', 1, 1)",
];

async fn prepare(store: &Store) {
    tx!(store, tx => {
        seed(tx).await?;
        for sql in CLAIM {
            tx.execute(sql, &[]).await?;
        }
        plant(tx, "hook").await.map(drop)
    })
    .unwrap();
}

const TABLES: [(PartitionedTable, &[&str]); 4] = [
    (PartitionedTable::Sessions, &["sessions", "session_subscriptions"]),
    (PartitionedTable::WebhookDeliveries, &["webhook_deliveries", "webhook_attempts"]),
    (PartitionedTable::ClaimChanges, &["claim_changes"]),
    (PartitionedTable::ApplicationUsage, &["application_usage"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_dropped_when_its_last_row_is_old_and_not_earlier() {
    both(|store| async move {
        if !store.is_remote() {
            return;
        }
        prepare(&store).await;
        for (table, names) in TABLES {
            assert_eq!(
                keep(&store, table, after(0)).await,
                PartitionUpkeep { made: 2, dropped: 0 },
                "{table:?}"
            );
            assert_eq!(keep(&store, table, after(0)).await, PartitionUpkeep::default(), "again {table:?}");
            // Before all periods, at both edges of the first one, in the next one, behind all.
            let times = [-KEPT_MS, 0, PERIOD_MS - 1, PERIOD_MS, 40 * PERIOD_MS];
            tx!(store, tx => {
                for (n, ms) in (0..).zip(times) {
                    insert(tx, table, n, after(ms)).await?;
                }
                Ok(())
            })
            .unwrap();
            let old = after(PERIOD_MS - 1 + KEPT_MS);
            keep(&store, table, old.plus_ms(-1)).await;
            for name in names {
                assert_eq!(count(&store, name).await, 5, "{name}: nothing goes a millisecond too early");
            }
            assert!(keep(&store, table, old).await.dropped > 0, "{table:?}");
            for name in names {
                assert_eq!(count(&store, name).await, 2, "{name}");
            }
            assert_eq!(keep(&store, table, old).await, PartitionUpkeep::default(), "again {table:?}");
            // Nothing ran for a year: the row behind all partitions is in time, and goes in time.
            keep(&store, table, after(40 * PERIOD_MS)).await;
            tx!(store, tx => { insert(tx, table, 9, after(40 * PERIOD_MS + 1)).await }).unwrap();
            for name in names {
                assert_eq!(count(&store, name).await, 2, "{name}");
            }
            assert!(keep(&store, table, after(400 * PERIOD_MS)).await.dropped > 0, "{table:?}");
            for name in names {
                assert_eq!(count(&store, name).await, 0, "{name}");
            }
        }
        assert_eq!(count(&store, "session_changes").await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_still_needed_are_moved_with_what_hangs_on_them() {
    both(|store| async move {
        if !store.is_remote() {
            return;
        }
        prepare(&store).await;
        for table in [PartitionedTable::Sessions, PartitionedTable::WebhookDeliveries] {
            keep(&store, table, after(0)).await;
        }
        let now = after(KEPT_MS + PERIOD_MS);
        let oldest = now.plus_ms(-KEPT_MS);
        let (open, sent_again) = tx!(store, tx => {
            let old = run_session(tx, 1, after(0), None).await?;
            let needed = run_session(tx, 2, after(0), None).await?;
            let open = run_session(tx, 3, after(0), None).await?;
            tx.disconnect_session(&old, oldest, "client_goodbye").await?;
            tx.disconnect_session(&needed, oldest.plus_ms(1), "client_goodbye").await?;
            deliver(tx, 1, after(0)).await?;
            let sent_again = deliver(tx, 2, after(0)).await?;
            let hook = crate::webhooks::webhook_id("hook");
            tx.resend_delivery(&hook, &sent_again, now).await?;
            Ok((open, sent_again))
        })
        .unwrap();
        for table in [PartitionedTable::Sessions, PartitionedTable::WebhookDeliveries] {
            assert!(keep(&store, table, now).await.dropped > 0, "{table:?}");
            assert_eq!(keep(&store, table, now).await, PartitionUpkeep::default(), "once {table:?}");
        }
        for (name, rows) in [
            ("sessions", 2),
            ("session_subscriptions", 2),
            ("session_changes", 2),
            ("webhook_deliveries", 1),
            ("webhook_attempts", 1),
        ] {
            assert_eq!(count(&store, name).await, rows, "{name}");
        }
        // Statements find them where they are.
        tx!(store, tx => {
            assert!(tx.disconnect_session(&open, now, "client_goodbye").await?);
            let hook = crate::webhooks::webhook_id("hook");
            assert!(tx.delivery(&hook, &sent_again).await?.is_some());
            assert_eq!(tx.count_sessions_of(&of_user("app", "a"), oldest).await?, 2);
            Ok(())
        })
        .unwrap();
        // A millisecond later the first of the two is old, and a period later so is the other.
        assert_eq!(keep(&store, PartitionedTable::Sessions, now.plus_ms(1)).await.dropped, 1);
        assert_eq!(count(&store, "sessions").await, 1);
        assert!(keep(&store, PartitionedTable::Sessions, now.plus_ms(KEPT_MS + PERIOD_MS)).await.dropped > 0);
        assert_eq!(count(&store, "sessions").await, 0);
        assert_eq!(count(&store, "session_subscriptions").await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_begin_and_end_while_several_nodes_keep_the_partitions() {
    both(|store| async move {
        prepare(&store).await;
        let running = (1..=4_u8).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                for step in 0..120 {
                    let from = after(step * PERIOD_MS / 4);
                    let until = (step % 10 > 0).then(|| from.plus_ms(60_000));
                    tx!(store, tx => {
                        tx.lock_session_owner(&of_client("app")).await?;
                        run_session(tx, n, from, until).await
                    })
                    .unwrap();
                }
            })
        });
        let running: Vec<_> = running.collect();
        let keepers = (0..3).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for period in 0..40 {
                    let now = after(period * PERIOD_MS);
                    let kept =
                        store.keep_partitions(PartitionedTable::Sessions, now, 400 * DAY_MS, LONGEST).await;
                    assert!(matches!(kept, Ok(_) | Err(StoreError::Contention(_))), "{kept:?}");
                }
            })
        });
        for task in keepers.collect::<Vec<_>>().into_iter().chain(running) {
            task.await.unwrap();
        }
        for (name, rows) in [("sessions", 480), ("session_subscriptions", 480), ("session_changes", 480)] {
            assert_eq!(count(&store, name).await, rows, "{name}");
        }
        if store.is_remote() {
            // On a slow machine every upkeep gave way to the sessions. Their partitions have an end now.
            let behind_all = after(40 * PERIOD_MS);
            store
                .keep_partitions(PartitionedTable::Sessions, behind_all, 400 * DAY_MS, LONGEST)
                .await
                .unwrap();
            // Two at once, long after: those that are connected stay.
            let now = after(2_000 * PERIOD_MS);
            let at_once = tokio::join!(
                store.keep_partitions(PartitionedTable::Sessions, now, KEPT_MS, LONGEST),
                store.keep_partitions(PartitionedTable::Sessions, now, KEPT_MS, LONGEST)
            );
            let dropped = |kept: Result<Option<PartitionUpkeep>, StoreError>| {
                kept.ok().flatten().map_or(0, |upkeep| upkeep.dropped)
            };
            assert!((dropped(at_once.0) > 0) != (dropped(at_once.1) > 0), "one of them");
            for name in ["sessions", "session_subscriptions", "session_changes"] {
                assert_eq!(count(&store, name).await, 48, "{name}");
            }
        }
    })
    .await;
}

/// What foreign keys did before partitions, triggers do.
#[tokio::test(flavor = "multi_thread")]
async fn what_hangs_on_a_deleted_row_goes_with_it() {
    both(|store| async move {
        prepare(&store).await;
        for table in [PartitionedTable::Sessions, PartitionedTable::WebhookDeliveries] {
            keep(&store, table, after(0)).await;
        }
        tx!(store, tx => {
            for (n, ms) in [(1, -KEPT_MS), (2, 1), (3, PERIOD_MS)] {
                run_session(tx, n, after(ms), None).await?;
                deliver(tx, n, after(ms)).await?;
            }
            assert_eq!(number(tx, "SELECT COUNT(*) FROM session_subscriptions").await?, 3);
            tx.execute("DELETE FROM applications WHERE client_id = 'app'", &[]).await?;
            tx.execute("DELETE FROM webhooks WHERE webhook_id = 'hook'", &[]).await.map(drop)
        })
        .unwrap();
        for name in
            ["sessions", "session_subscriptions", "session_changes", "webhook_deliveries", "webhook_attempts"]
        {
            assert_eq!(count(&store, name).await, 0, "{name}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_the_release_before_stay_with_their_keys_and_indexes() {
    let before = MIGRATIONS.iter().position(|migration| migration.name == "session_ordinals").unwrap();
    for engine in engines().await {
        let store = engine.open(Options { migrations: &MIGRATIONS[..before], ..Options::default() }).await;
        prepare(&store).await;
        const OLD_SESSION: &str = "
            INSERT INTO sessions (session_key, counted_as, client_id, channel_id, node_id, version, connected_at,
                disconnected_at)
            VALUES ($1, 'user:a', 'app', 'a', 'n', 0, $2, $3)";
        tx!(store, tx => {
            for n in 0..60_u8 {
                let (from, is_open) = (after(i64::from(n) * 1_000), n % 20 == 0);
                let until = (!is_open).then(|| from.plus_ms(500));
                tx.execute(OLD_SESSION, params![&SessionKey::generate(from, [n; 10]), from, until]).await?;
                for table in [PartitionedTable::WebhookDeliveries, PartitionedTable::ClaimChanges, PartitionedTable::ApplicationUsage] {
                    insert(tx, table, n, from).await?;
                }
            }
            Ok(())
        })
        .unwrap();
        store.close().await;
        let store = engine.open(Options::default()).await;
        for (_, names) in TABLES {
            assert_eq!(count(&store, names[0]).await, 60, "{names:?}");
        }
        tx!(store, tx => {
            assert_eq!(number(tx, "SELECT MAX(ordinal) FROM sessions").await?, 60);
            assert_eq!(number(tx, "SELECT COUNT(DISTINCT ordinal) FROM sessions").await?, 60);
            // All are older than the span: those that are connected are listed.
            assert_eq!(tx.count_sessions_of(&of_user("app", "a"), after(60_000)).await?, 3);
            assert_eq!(tx.count_sessions_of(&of_user("app", "a"), after(29_499)).await?, 33);
            Ok(())
        })
        .unwrap();
        // The keys are there.
        let again =
            tx!(store, tx => { insert(tx, PartitionedTable::ApplicationUsage, 7, after(7_000)).await });
        assert!(matches!(again, Err(StoreError::Unique { .. })), "{again:?}");
        if store.is_remote() {
            const INDEXES: &str = "
                SELECT COUNT(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                WHERE i.indrelid = to_regclass('sessions') AND i.indisvalid AND c.relkind = 'I'";
            assert_eq!(tx!(store, tx => { number(tx, INDEXES).await }), Ok(10));
            for (table, _) in TABLES {
                assert!(keep(&store, table, after(60_000)).await.made > 0, "{table:?}");
            }
        }
        for (_, names) in TABLES {
            assert_eq!(count(&store, names[0]).await, 60, "{names:?}");
        }
        store.close().await;
        engine.remove().await;
    }
}
