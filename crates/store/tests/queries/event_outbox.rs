//! Batches of events: recorded with their commit, settled by their publisher, taken over once.

use std::sync::Arc;

use domain::BatchId;
use store::queries::event_outbox::{BatchesOf, EventBatch, OpenBatch};
use store::{Store, StoreError, Tx};
use tokio::sync::Barrier;

use crate::{at, both, channel, hash, in_seeded, node, tx};

fn batch(ms: i64, by: &str, channels: &[&str]) -> EventBatch {
    let random = [by.len() as u8; 10];
    EventBatch {
        batch_id: BatchId::generate(at(ms), random),
        node_id: node(by),
        channels: channels.iter().map(|id| channel(id)).collect(),
        is_taken_over: false,
    }
}

async fn record(store: &Store, batch: &EventBatch, ms: i64) -> Result<(), StoreError> {
    let batch = batch.clone();
    tx!(store, tx => { tx.record_event_batch(&batch, at(ms)).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_found_by_their_time_and_node_until_they_are_settled_or_taken_over() {
    both(|store| async move {
        let [old, other, new] =
            [batch(5, "n", &["a", "b"]), batch(6, "other", &["c"]), batch(9, "n", &["a"])];
        for (batch, ms) in [(&old, 5), (&other, 6), (&new, 9)] {
            record(&store, batch, ms).await.unwrap();
        }
        let all = [old.clone(), other.clone(), new.clone()];
        tx!(store, tx => {
            let n = node("n");
            for (before, of, expected) in [
                (5, BatchesOf::All, &all[..0]),
                (6, BatchesOf::All, &all[..1]),
                (9, BatchesOf::All, &all[..2]),
                (10, BatchesOf::All, &all[..]),
                (9, BatchesOf::Node(&n), &all[..1]),
            ] {
                assert_eq!(tx.overdue_event_batches(at(before), of, 10).await?, expected, "{before}");
            }
            assert_eq!(tx.overdue_event_batches(at(10), BatchesOf::All, 2).await?, all[..2]);
            assert!(tx.take_over_event_batch(&all[0].batch_id, at(20)).await?);
            assert!(!tx.take_over_event_batch(&all[0].batch_id, at(21)).await?);
            let found = tx.unsettled_event_batch(&all[0].batch_id).await?;
            assert_eq!(found, Some(EventBatch { is_taken_over: true, ..all[0].clone() }));
            tx.settle_event_batches(&[all[2].batch_id.clone(), BatchId::stored("unknown".into())]).await?;
            assert_eq!(tx.unsettled_event_batch(&all[2].batch_id).await?, None);
            assert!(!tx.take_over_event_batch(&all[2].batch_id, at(20)).await?);
            assert_eq!(tx.overdue_event_batches(at(10), BatchesOf::All, 10).await?, all[1..2]);
            Ok(())
        })
        .unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_last_statement_fails_its_transaction() {
    both(|store| async move {
        let batch = batch(5, "n", &["a"]);
        record(&store, &batch, 5).await.unwrap();
        let again = batch.clone();
        let outcome: Result<(), _> = tx!(store, tx => {
            tx.record_event_batch(&again, at(6)).await?;
            tx.claim_idempotency_key("POST /a", "k", &hash("r"), "", at(6)).await.map(drop)
        });
        assert!(outcome.is_err_and(|error| error.is_unique("event_outbox(batch_id)")));
        let keys = tx!(store, tx => {
            tx.query_one("SELECT COUNT(*) FROM idempotency_keys", &[]).await?.get::<i64>(0)
        });
        assert_eq!(keys, Ok(0));
        // The connection is good for the next one.
        tx!(store, tx => { tx.settle_event_batches(std::slice::from_ref(&batch.batch_id)).await }).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_settles_or_takes_over_a_batch() {
    const TAKERS: usize = 6;
    both(|store| async move {
        for round in 0..8 {
            let batch = batch(round, "n", &["a"]);
            record(&store, &batch, round).await.unwrap();
            let start = Arc::new(Barrier::new(TAKERS));
            let takers = (0..TAKERS).map(|taker| {
                let (store, id, start) = (store.clone(), batch.batch_id.clone(), start.clone());
                tokio::spawn(async move {
                    start.wait().await;
                    tx!(store, tx => {
                        if taker == 0 {
                            return tx.settle_event_batches(&[id]).await.map(|()| false);
                        }
                        tx.take_over_event_batch(&id, at(9)).await
                    })
                    .unwrap()
                })
            });
            let mut taken = 0;
            for taker in takers.collect::<Vec<_>>() {
                taken += usize::from(taker.await.unwrap());
            }
            assert!(taken <= 1, "{taken}");
            tx!(store, tx => { tx.settle_event_batches(std::slice::from_ref(&batch.batch_id)).await })
                .unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_refers_to_the_batch_of_the_request_that_had_it_first() {
    both(|store| async move {
        let (first, second) = (batch(1, "n", &["a"]).batch_id, batch(2, "n", &["a"]).batch_id);
        for (batch, expected) in [(&first, vec![]), (&second, vec![first.clone()])] {
            let batch = batch.clone();
            let earlier = tx!(store, tx => {
                tx.begin_event_batch(OpenBatch { batch_id: batch, node_id: node("n"), created_at: at(1) });
                // A key that stands twice among those of one transaction does not wait for itself.
                for _ in 0..2 {
                    tx.claim_idempotency_key("POST /a", "k", &hash("r"), "", at(1)).await?;
                }
                Ok(tx.take_earlier_event_batches())
            });
            assert_eq!(earlier, Ok(expected));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_without_a_batch_refers_to_none() {
    in_seeded(async move |tx: &mut Tx| {
        for _ in 0..2 {
            tx.claim_idempotency_key("POST /a", "k", &hash("r"), "", at(1)).await?;
        }
        assert!(tx.take_earlier_event_batches().is_empty());
        Ok(())
    })
    .await;
}
