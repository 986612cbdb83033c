//! Messages to webhooks: leases, their results, and the cost of a large backlog for other webhooks.

use std::collections::HashSet;
use std::time::Duration;

use domain::delivery::{DeliveryState, DisabledReason};
use domain::member::MemberRole;
use domain::outbound::SendFailure;
use domain::{ClaimId, DeliveryId, Timestamp, WebhookId};
use store::queries::deliveries::{
    AttemptRecord, Delivery, DeliverySpan, DeliveryTarget, DueDelivery, LeaseKey, LeasedDelivery,
    NewDelivery, Recorded,
};
use store::queries::sweeps::Sweep;
use store::queries::webhooks::Disabled;
use store::{Store, StoreError, Tx, params};

use crate::webhooks::{plant, publisher, webhook_id};
use crate::{at, both, channel, client, in_seeded, number, organization, tx};

use DeliveryState::{Dead, Delivered, Waiting};

/// The message of a claim that was made at `ms`.
async fn insert(tx: &mut Tx, webhook: &WebhookId, claim: &str, ms: i64) -> Result<DeliveryId, StoreError> {
    put(tx, webhook, claim, ms, true).await
}

pub async fn put(
    tx: &mut Tx,
    webhook: &WebhookId,
    claim: &str,
    ms: i64,
    waiting: bool,
) -> Result<DeliveryId, StoreError> {
    let claim_id = ClaimId::stored(claim.to_owned());
    let message_id = DeliveryId::of_claim(at(ms), &claim_id, webhook);
    let data = format!("{{\"claimId\":\"{claim}\"}}");
    let new = NewDelivery {
        webhook_id: webhook.clone(),
        message_id: message_id.clone(),
        claim_id: Some(claim_id),
        data,
        failures: 0,
        waiting,
    };
    tx.insert_delivery(&new, at(ms)).await?;
    Ok(message_id)
}

fn key(webhook: &WebhookId, taken: &LeasedDelivery) -> LeaseKey {
    LeaseKey { webhook_id: webhook.clone(), message_id: taken.message_id.clone(), number: taken.number }
}

fn result(state: DeliveryState, due: i64, failures: i64) -> Recorded {
    Recorded { state, due_at: at(due), failures, failed: state != Delivered }
}

async fn show(tx: &mut Tx, webhook: &WebhookId, id: &DeliveryId) -> Result<Delivery, StoreError> {
    Ok(tx.delivery(webhook, id).await?.unwrap())
}

const EVER: Option<Timestamp> = None;

fn claim(delivery: &Delivery) -> &str {
    delivery.claim_id.as_ref().map_or("-", ClaimId::as_str)
}

/// A test message that was written at `ms`.
async fn insert_test(tx: &mut Tx, webhook: &WebhookId, ms: i64) -> Result<DeliveryId, StoreError> {
    let message_id = DeliveryId::generate(at(ms), [7; 10]);
    let new = NewDelivery {
        webhook_id: webhook.clone(),
        message_id: message_id.clone(),
        claim_id: None,
        data: "{}".to_owned(),
        failures: 7,
        waiting: true,
    };
    tx.insert_delivery(&new, at(ms)).await?;
    Ok(message_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_leads_to_the_application_of_its_owner_and_of_members() {
    in_seeded(async move |tx: &mut Tx| {
        let (shared, own) = (plant(tx, "drops").await?, plant(tx, "other").await?);
        let games = organization("games", true).organization_id;
        tx.put_organization_member(&games, &channel("a"), MemberRole::Viewer, at(3)).await?;
        tx.set_application_owner(&client("other"), Some(&channel("b")), None).await?;
        let (of_games, of_b) = (insert_test(tx, &shared, 10).await?, insert_test(tx, &own, 11).await?);
        for (person, message, found) in [
            ("a", &of_games, Some("drops")),
            ("b", &of_b, Some("other")),
            ("a", &of_b, None),
            ("b", &of_games, None),
        ] {
            let application = tx.application_with_delivery(&channel(person), message).await?;
            assert_eq!(application, found.map(client), "{person}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn test_messages_report_no_claim_and_are_listed_and_counted_alone() {
    in_seeded(async move |tx: &mut Tx| {
        let (webhook, other) = (plant(tx, "drops").await?, plant(tx, "other").await?);
        let first = insert_test(tx, &webhook, 10).await?;
        insert(tx, &webhook, "c", 15).await?;
        insert_test(tx, &other, 15).await?;
        let second = insert_test(tx, &webhook, 20).await?;
        let list = tx.test_deliveries(&webhook, &DeliverySpan::of(EVER, EVER), 9).await?;
        assert_eq!(list.iter().map(|test| &test.message_id).collect::<Vec<_>>(), [&second, &first]);
        assert_eq!((&list[0].claim_id, list[0].failures), (&None, 7));
        let below = DeliverySpan { below: second, ..DeliverySpan::of(EVER, EVER) };
        assert_eq!(tx.test_deliveries(&webhook, &below, 9).await?.len(), 1);
        assert_eq!(tx.test_deliveries(&webhook, &DeliverySpan::of(EVER, EVER), 1).await?.len(), 1);
        for (since, count) in [(0, 2), (10, 2), (11, 1), (21, 0)] {
            assert_eq!(tx.count_test_deliveries(&webhook, at(since)).await?, count, "{since}");
        }
        let taken = tx.lease_deliveries(&webhook, at(30), at(45), 9).await?;
        assert_eq!(
            taken.iter().map(|each| each.claim_id.is_some()).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert_eq!(taken[0].failures, 7);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_taken_once_until_its_lease_ends_and_only_the_last_result_counts() {
    in_seeded(async move |tx: &mut Tx| {
        let webhook = plant(tx, "drops").await?;
        let id = insert(tx, &webhook, "c", 100).await?;
        tx.lock_webhook(&webhook).await?;
        assert_eq!(tx.lease_deliveries(&webhook, at(99), at(114), 9).await?, [], "it is not due");
        let first = tx.lease_deliveries(&webhook, at(100), at(115), 9).await?.remove(0);
        let data = "{\"claimId\":\"c\"}".to_owned();
        let claim_id = show(tx, &webhook, &id).await?.claim_id;
        assert_eq!(first, LeasedDelivery { message_id: id.clone(), claim_id, number: 1, failures: 0, data });
        assert_eq!(tx.lease_deliveries(&webhook, at(114), at(129), 9).await?, [], "its lease holds");
        assert_eq!(tx.failures_in_flight(&key(&webhook, &first)).await?, Some(0));

        let second = tx.lease_deliveries(&webhook, at(115), at(130), 9).await?.remove(0);
        assert_eq!((second.number, second.failures), (2, 0), "a lost attempt is none that failed");
        let late = key(&webhook, &first);
        assert_eq!(tx.failures_in_flight(&late).await?, None);
        assert!(!tx.record_delivery(&late, result(Delivered, 0, 0), at(116)).await?);
        assert_eq!(show(tx, &webhook, &id).await?.state, Waiting);

        let key = key(&webhook, &second);
        assert!(tx.record_delivery(&key, result(Waiting, 200, 0), at(117)).await?);
        assert!(!tx.record_delivery(&key, result(Delivered, 0, 1), at(118)).await?, "once");
        assert_eq!(tx.failures_in_flight(&key).await?, None);
        let shown = show(tx, &webhook, &id).await?;
        assert_eq!((shown.state, shown.due_at, shown.in_flight), (Waiting, at(200), false));
        assert_eq!((shown.attempts, shown.created_at, shown.changed_at), (2, at(100), at(100)));

        let third = tx.lease_deliveries(&webhook, at(200), at(215), 9).await?.remove(0);
        assert_eq!((third.number, third.failures), (3, 1));
        let third = crate::deliveries::key(&webhook, &third);
        assert!(tx.record_delivery(&third, result(Delivered, 0, 1), at(201)).await?);
        let shown = show(tx, &webhook, &id).await?;
        assert_eq!((shown.state, shown.changed_at), (Delivered, at(201)));
        assert_eq!(tx.lease_deliveries(&webhook, at(9_999), at(9_999), 9).await?, []);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn due_messages_show_whether_their_lease_ended_without_a_result() {
    in_seeded(async move |tx: &mut Tx| {
        let webhook = plant(tx, "drops").await?;
        let left = insert(tx, &webhook, "left", 100).await?;
        tx.lease_deliveries(&webhook, at(100), at(115), 9).await?;
        let fresh = insert(tx, &webhook, "fresh", 110).await?;
        let due = |message_id: &DeliveryId, number, in_flight, due| DueDelivery {
            message_id: message_id.clone(),
            number,
            in_flight,
            due_at: at(due),
        };
        let fresh = due(&fresh, 0, false, 110);
        let left = due(&left, 1, true, 115);
        assert_eq!(tx.due_deliveries(&webhook, at(109), 9).await?, []);
        assert_eq!(tx.due_deliveries(&webhook, at(114), 9).await?, std::slice::from_ref(&fresh));
        assert_eq!(tx.due_deliveries(&webhook, at(115), 1).await?, std::slice::from_ref(&fresh));
        assert_eq!(tx.due_deliveries(&webhook, at(115), 9).await?, [fresh, left]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_result_counts_until_another_lease() {
    in_seeded(async move |tx: &mut Tx| {
        let webhook = plant(tx, "drops").await?;
        insert(tx, &webhook, "c", 100).await?;
        let taken = tx.lease_deliveries(&webhook, at(100), at(115), 9).await?.remove(0);
        assert!(tx.record_delivery(&key(&webhook, &taken), result(Delivered, 0, 0), at(500)).await?);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resent_message_has_the_whole_schedule_and_is_not_sent_twice_at_once() {
    in_seeded(async move |tx: &mut Tx| {
        let webhook = plant(tx, "drops").await?;
        let id = insert(tx, &webhook, "c", 100).await?;
        let unknown = DeliveryId::bound_at(at(1));
        assert!(!tx.resend_delivery(&webhook, &unknown, at(100)).await?);

        let taken = tx.lease_deliveries(&webhook, at(100), at(115), 9).await?.remove(0);
        assert!(tx.resend_delivery(&webhook, &id, at(110)).await?);
        assert_eq!(tx.lease_deliveries(&webhook, at(114), at(129), 9).await?, [], "it is in flight");
        let first = key(&webhook, &taken);
        assert!(tx.record_delivery(&first, result(Dead, 0, 0), at(114)).await?);
        assert_eq!(show(tx, &webhook, &id).await?.state, Dead);

        assert!(tx.resend_delivery(&webhook, &id, at(200)).await?);
        let shown = show(tx, &webhook, &id).await?;
        assert_eq!((shown.state, shown.due_at, shown.changed_at), (Waiting, at(200), at(200)));
        let taken = tx.lease_deliveries(&webhook, at(200), at(215), 9).await?.remove(0);
        assert_eq!((taken.number, taken.failures), (2, 0));
        // A failure that was counted meanwhile is not forgotten, and one that was forgotten is not
        // counted.
        let counted = result(Waiting, 300, 5);
        assert!(!tx.record_delivery(&key(&webhook, &taken), counted, at(201)).await?);

        assert!(tx.resend_delivery(&webhook, &id, at(215)).await?, "its lease is over");
        assert_eq!(tx.failures_in_flight(&key(&webhook, &taken)).await?, None);
        assert!(!tx.record_delivery(&key(&webhook, &taken), result(Delivered, 0, 0), at(216)).await?);
        assert_eq!(tx.lease_deliveries(&webhook, at(216), at(231), 9).await?.len(), 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_of_messages_is_resent_in_batches() {
    in_seeded(async move |tx: &mut Tx| {
        let (webhook, other) = (plant(tx, "drops").await?, plant(tx, "other").await?);
        for (claim, ms) in [("a", 99), ("b", 100), ("c", 150), ("d", 199), ("e", 200)] {
            put(tx, &webhook, claim, ms, false).await?;
            put(tx, &other, claim, ms, false).await?;
        }
        insert(tx, &webhook, "waiting", 150).await?;
        let span = DeliverySpan::of(Some(at(100)), Some(at(200)));
        let found: HashSet<_> = tx.claims_with_messages(&webhook, &span).await?.into_iter().collect();
        assert_eq!(found, ["b", "c", "d", "waiting"].map(|id| ClaimId::stored(id.to_owned())).into());
        for sent in [2, 1, 0] {
            assert_eq!(tx.resend_deliveries(&webhook, Dead, &span, at(300), 2).await?, sent);
        }
        let left = tx.deliveries(&webhook, Some(Dead), &DeliverySpan::of(EVER, EVER), 9).await?;
        let left: Vec<_> = left.iter().map(claim).collect();
        assert_eq!(left, ["e", "a"]);
        assert_eq!(tx.lease_deliveries(&webhook, at(300), at(315), 9).await?.len(), 4);
        assert_eq!(tx.lease_deliveries(&other, at(300), at(315), 9).await?, []);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_listed_newest_first_and_within_a_span() {
    in_seeded(async move |tx: &mut Tx| {
        let webhook = plant(tx, "drops").await?;
        for (claim, ms, waiting) in [("a", 1, true), ("b", 2, false), ("c", 3, true), ("d", 4, false)] {
            put(tx, &webhook, claim, ms, waiting).await?;
        }
        let list = async |tx: &mut Tx, state, from: Option<i64>, until: Option<i64>, limit| {
            let span = DeliverySpan::of(from.map(at), until.map(at));
            let found = tx.deliveries(&webhook_id("drops"), state, &span, limit).await?;
            let claims: Vec<_> = found.iter().map(claim).collect();
            Ok::<_, StoreError>(claims.join(""))
        };
        assert_eq!(list(tx, None, None, None, 9).await?, "dcba");
        assert_eq!(list(tx, None, None, None, 2).await?, "dc");
        assert_eq!(list(tx, None, Some(2), Some(4), 9).await?, "cb");
        assert_eq!(list(tx, Some(Dead), None, None, 9).await?, "db");
        assert_eq!(list(tx, Some(Waiting), None, Some(3), 9).await?, "a");
        assert_eq!(list(tx, Some(Delivered), None, None, 9).await?, "");
        let below = tx.deliveries(&webhook, None, &DeliverySpan::of(EVER, EVER), 1).await?.remove(0);
        let span = DeliverySpan { below: below.message_id, ..DeliverySpan::of(EVER, EVER) };
        assert_eq!(tx.deliveries(&webhook, None, &span, 9).await?.len(), 3, "a cursor is a bound");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_stored_with_their_message() {
    in_seeded(async move |tx: &mut Tx| {
        let webhook = plant(tx, "drops").await?;
        let id = insert(tx, &webhook, "c", 1).await?;
        let answered = AttemptRecord {
            number: 1,
            began_at: at(5),
            duration_ms: 12,
            status: Some(503),
            failure: None,
            excerpt: "점검 중".to_owned(),
            signed_at: Some(at(4)),
        };
        let failure = Some(SendFailure::Timeout);
        let failed = AttemptRecord { number: 2, status: None, failure, signed_at: None, ..answered.clone() };
        tx.insert_attempt(&webhook, &id, &answered).await?;
        tx.insert_attempt(&webhook, &id, &failed).await?;
        assert_eq!(tx.attempts(&webhook, &id, 9).await?, [failed.clone(), answered]);
        assert_eq!(tx.attempts(&webhook, &id, 1).await?, [failed]);
        assert_eq!(tx.sweep(Sweep::WebhookDeliveries, at(1)).await?, 1);
        assert_eq!(number(tx, "SELECT COUNT(*) FROM webhook_attempts").await?, 0);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_webhooks_that_may_receive_now_are_due() {
    in_seeded(async move |tx: &mut Tx| {
        for (id, ms) in [("due", 10), ("later", 11), ("off", 1), ("deleted", 1), ("mute", 1), ("gone", 1)] {
            let webhook = plant(tx, id).await?;
            insert(tx, &webhook, "c", ms).await?;
        }
        let listener = webhook_id("listener");
        publisher(tx, "listener").await?;
        tx.insert_webhook(&listener, &client("listener"), None, None, at(1)).await?;
        insert(tx, &listener, "c", 1).await?;
        let off = Disabled { reason: DisabledReason::Gone, since: at(2) };
        tx.disable_webhook(&webhook_id("off"), off).await?;
        tx.delete_webhook(&client("gone"), at(2)).await?;
        tx.execute("UPDATE applications SET deleted_at = $1 WHERE client_id = 'deleted'", params![3]).await?;
        tx.execute("UPDATE applications SET scopes = 0 WHERE client_id = 'mute'", params![]).await?;

        assert_eq!(tx.webhooks_due(at(10), None, 9).await?, [webhook_id("due")]);
        let both = tx.webhooks_due(at(11), None, 9).await?;
        assert_eq!(both, [webhook_id("due"), webhook_id("later")]);
        assert_eq!(tx.webhooks_due(at(11), None, 1).await?, both[..1]);
        assert_eq!(tx.webhooks_due(at(11), Some(&both[0]), 9).await?, both[1..]);
        let target = tx.delivery_target(&both[0]).await?.unwrap();
        let url = Some("https://games.example/hook".to_owned());
        assert_eq!(target, DeliveryTarget { client_id: client("due"), url });
        assert_eq!(tx.delivery_target(&listener).await?.unwrap().url, None);
        for id in ["off", "deleted", "mute", "gone", "nothing"] {
            assert_eq!(tx.delivery_target(&webhook_id(id)).await?, None, "{id}");
        }
        tx.put_organization(&organization("games", false)).await?;
        assert_eq!(tx.webhooks_due(at(99), None, 9).await?, []);
        Ok(())
    })
    .await;
}

/// Leases one batch of a webhook, as a node does.
async fn take(store: &Store, webhook: &WebhookId, now: i64, limit: i64) -> Vec<LeasedDelivery> {
    let webhook = webhook.clone();
    tx!(store, tx => {
        tx.lock_webhook(&webhook).await?;
        tx.lease_deliveries(&webhook, at(now), at(now + 15), limit).await
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_leases_take_each_message_once() {
    both(|store| async move {
        const MESSAGES: usize = 300;
        let webhook = tx!(store, tx => {
            let webhook = plant(tx, "drops").await?;
            for n in 0..MESSAGES {
                insert(tx, &webhook, &n.to_string(), 1).await?;
            }
            Ok(webhook)
        })
        .unwrap();
        for round in 1..=3 {
            let takers: Vec<_> = (0..16)
                .map(|_| {
                    let (store, webhook) = (store.clone(), webhook.clone());
                    tokio::spawn(async move {
                        let mut taken = Vec::new();
                        for _ in 0..5 {
                            taken.extend(take(&store, &webhook, round * 100, 7).await);
                        }
                        taken
                    })
                })
                .collect();
            let mut ids = HashSet::new();
            for taker in takers {
                for taken in taker.await.unwrap() {
                    assert_eq!(taken.number, round);
                    assert!(ids.insert(taken.message_id), "taken twice under one lease");
                }
            }
            assert_eq!(ids.len(), MESSAGES, "nothing is left behind");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_results_of_a_lease_counts() {
    both(|store| async move {
        let (webhook, taken) = tx!(store, tx => {
            let webhook = plant(tx, "drops").await?;
            insert(tx, &webhook, "c", 1).await?;
            let taken = tx.lease_deliveries(&webhook, at(1), at(16), 1).await?.remove(0);
            Ok((webhook, taken))
        })
        .unwrap();
        let results: Vec<_> = (0..20)
            .map(|n| {
                let (store, key) = (store.clone(), key(&webhook, &taken));
                let state = [Delivered, Waiting, Dead][n % 3];
                tokio::spawn(async move {
                    tx!(store, tx => { tx.record_delivery(&key, result(state, 50, 0), at(2)).await })
                })
            })
            .collect();
        let mut counted = 0;
        for result in results {
            counted += usize::from(result.await.unwrap().unwrap());
        }
        assert_eq!(counted, 1);
    })
    .await;
}

/// Writes 5,000 waiting messages of one webhook, numbered from `$2` on.
const HEAP: &str = "
    INSERT INTO webhook_deliveries (webhook_id, message_id, claim_id, data, state, due_at, created_at, changed_at)
    WITH RECURSIVE n (n) AS (SELECT CAST($2 AS BIGINT) UNION ALL SELECT n + 1 FROM n WHERE n % 5000 < 4999)
    SELECT CAST($1 AS TEXT), CAST(n AS TEXT), 'c', '{}', 'WAITING', CAST($3 AS BIGINT), 1, 1 FROM n";

#[tokio::test(flavor = "multi_thread")]
async fn the_backlog_of_one_webhook_delays_no_other() {
    const ROWS: i64 = 30_000;
    both(|store| async move {
        let good = tx!(store, tx => {
            // Before, between and behind the good one in every order.
            for id in ["a-done", "a-off", "c-late", "z-dead"] {
                plant(tx, id).await?;
            }
            let good = plant(tx, "b-good").await?;
            let off = Disabled { reason: DisabledReason::Gone, since: at(2) };
            tx.disable_webhook(&webhook_id("a-off"), off).await?;
            Ok(good)
        })
        .unwrap();
        for (id, due) in [("a-done", 1), ("a-off", 1), ("c-late", 999_999), ("z-dead", 1)] {
            for load in 0..ROWS / 5_000 {
                tx!(store, tx => { tx.execute(HEAP, params![id, load * 5_000, due]).await }).unwrap();
            }
        }
        // What the engine believes of the table is no longer true: nearly everything waited, and now little
        // does.
        // Not of every table: other tests drop theirs meanwhile.
        for analyze in ["ANALYZE webhooks", "ANALYZE webhook_deliveries"] {
            tx!(store, tx => { tx.execute(analyze, &[]).await }).unwrap();
        }
        let delivered = "UPDATE webhook_deliveries SET state = 'DELIVERED' WHERE webhook_id = 'a-done'";
        tx!(store, tx => { tx.execute(delivered, &[]).await }).unwrap();
        let looks = async {
            for n in 0..50 {
                let (webhook, claim) = (good.clone(), format!("c{n}"));
                tx!(store, tx => { insert(tx, &webhook, &claim, 5).await }).unwrap();
                let due = tx!(store, tx => { tx.webhooks_due(at(10), None, 9).await }).unwrap();
                assert_eq!(due, [webhook_id("b-good"), webhook_id("z-dead")]);
                let taken = take(&store, &good, 10, 9).await.remove(0);
                let key = key(&good, &taken);
                assert!(
                    tx!(store, tx => { tx.record_delivery(&key, result(Delivered, 0, 0), at(11)).await })
                        .unwrap()
                );
            }
        };
        // Row by row for each row, the steps through the heap would take minutes. A busy machine takes
        // seconds even without a heap.
        store::testing::while_running(Duration::from_secs(20), looks).await.expect("the heap costs nothing");
    })
    .await;
}
