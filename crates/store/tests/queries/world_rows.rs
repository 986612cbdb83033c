//! Rows of world files: what was written is read again, with its times, and once.

use domain::delivery::DeliveryState;
use domain::{CampaignId, DeliveryId, MessageId, MessageSeries};
use store::Tx;
use store::queries::deliveries::Delivery;
use store::queries::world_rows::MessageRow;

use crate::drops::{claim_id, new};
use crate::webhooks::plant;
use crate::{at, channel, in_seeded, live, number};

fn message(of: &str, sender: &str, ms: i64, hidden: Option<i64>) -> MessageRow {
    MessageRow {
        message_id: MessageSeries::of(&channel(of), &channel(sender)).id_at(at(ms)),
        channel_id: channel(of),
        sender: channel(sender),
        content: format!("at {ms}"),
        emojis: "{}".to_owned(),
        message_time: at(ms),
        hidden_at: hidden.map(at),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_read_in_the_order_of_their_times_and_written_once() {
    in_seeded(async move |tx: &mut Tx| {
        let start = MessageId::stored(String::new());
        assert_eq!(tx.message_rows(&start, 9).await?, []);
        let rows: Vec<_> = (0..40).map(|n| message("a", "b", 100 + n, (n == 3).then_some(200))).collect();
        tx.insert_message_rows(&rows).await?;
        tx.insert_message_rows(&[message("a", "b", 103, None), message("b", "b", 99, None)]).await?;
        let first = tx.message_rows(&start, 5).await?;
        assert_eq!(first[0], message("b", "b", 99, None));
        assert_eq!(first[1..], rows[..4]);
        assert_eq!(tx.message_rows(&first[4].message_id, 99).await?, rows[4..]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_restrictions_are_listed_while_they_run() {
    in_seeded(async move |tx: &mut Tx| {
        let (a, b, c) = (channel("a"), channel("b"), channel("c"));
        let start = channel("");
        tx.restrict_temporarily(&a, &c, at(100), at(40)).await?;
        tx.restrict_temporarily(&a, &b, at(90), at(40)).await?;
        tx.restrict_temporarily(&b, &a, at(90), at(40)).await?;
        let running = [(b.clone(), at(90)), (c.clone(), at(100))];
        assert_eq!(tx.temporary_restrictions(&a, &start, at(89), 9).await?, running);
        assert_eq!(tx.temporary_restrictions(&a, &start, at(89), 1).await?, running[..1]);
        assert_eq!(tx.temporary_restrictions(&a, &b, at(89), 9).await?, running[1..]);
        assert_eq!(tx.temporary_restrictions(&a, &start, at(90), 9).await?, running[1..], "one is over");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minutes_and_the_times_of_claims_are_set() {
    in_seeded(async move |tx: &mut Tx| {
        crate::drops::plant(tx).await?;
        let (campaign, claim) = (CampaignId::stored("ours-sea".to_owned()), claim_id("claim"));
        assert_eq!(tx.insert_claim(&new("claim", "ours-sea", "sword", "a"), at(10)).await?, None);
        let start = channel("");
        for (viewer, minutes) in [("b", 7), ("a", 9), ("b", 30)] {
            tx.put_watched_row(&campaign, &channel(viewer), minutes).await?;
        }
        let all = [(channel("a"), 9), (channel("b"), 30)];
        assert_eq!(tx.watched_rows(&campaign, &start, 9).await?, all);
        assert_eq!(tx.watched_rows(&campaign, &start, 1).await?, all[..1]);
        assert_eq!(tx.watched_rows(&campaign, &channel("a"), 9).await?, all[1..]);
        tx.set_claim_times(&claim, at(5), at(6)).await?;
        let found = tx.claim(&claim).await?.unwrap();
        assert_eq!((found.claimed_at, found.updated_at), (at(5), at(6)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_live_has_a_number_above_those_of_a_file() {
    in_seeded(async move |tx: &mut Tx| {
        tx.raise_last_live_id(7).await?;
        tx.begin_live(&channel("a"), &live(7, 0, 1), at(1)).await?;
        tx.raise_last_live_id(3).await?;
        assert_eq!(tx.next_live_id().await?, 8);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_webhook_is_written_once_with_what_became_of_it() {
    in_seeded(async move |tx: &mut Tx| {
        let webhook = plant(tx, "drops").await?;
        let claim_id = claim_id("claim");
        let delivery = Delivery {
            message_id: DeliveryId::of_claim(at(5), &claim_id, &webhook),
            claim_id: Some(claim_id),
            data: "{}".to_owned(),
            state: DeliveryState::Waiting,
            due_at: at(99),
            in_flight: false,
            attempts: 3,
            failures: 2,
            created_at: at(5),
            changed_at: at(6),
        };
        assert!(tx.insert_delivery_row(&webhook, &delivery).await?);
        assert!(!tx.insert_delivery_row(&webhook, &Delivery { attempts: 9, ..delivery.clone() }).await?);
        assert_eq!(tx.delivery(&webhook, &delivery.message_id).await?, Some(delivery));
        assert_eq!(number(tx, "SELECT COUNT(*) FROM webhook_deliveries").await?, 1);
        let leased = tx.lease_deliveries(&webhook, at(99), at(114), 9).await?;
        assert_eq!((leased[0].number, leased[0].failures), (4, 2), "the retries go on");
        Ok(())
    })
    .await;
}
