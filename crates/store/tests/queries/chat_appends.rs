//! Chat messages that are appended together, on PostgreSQL.

use domain::{BatchId, ChannelId, MessageSeries};
use store::queries::chat_appends::MessageAppend;
use store::queries::chats::is_time_taken;
use store::queries::event_outbox::OpenBatch;
use store::testing::postgres;
use store::{Options, Store, StoreError, Tx};

use crate::{at, channel, node, seed, tx};

async fn count(store: &Store, sql: &'static str) -> i64 {
    let found: Result<i64, StoreError> =
        store.read(async move |tx: &mut Tx| tx.query_one(sql, &[]).await?.get(0)).await;
    found.unwrap()
}

const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";
const BATCHES: &str = "SELECT COUNT(*) FROM event_outbox";

/// Appends a message of each sender to a channel, and gives the senders of the written ones.
async fn append(
    store: &Store,
    ms: i64,
    pairs: &'static [(&'static str, &'static str)],
    are_viewers: bool,
) -> Result<Vec<Option<String>>, StoreError> {
    tx!(*store, tx => {
        let batch_id = BatchId::generate(at(ms), [pairs.len() as u8; 10]);
        tx.begin_event_batch(OpenBatch { batch_id, node_id: node("n"), created_at: at(ms) });
        let rows: Vec<(ChannelId, ChannelId)> =
            pairs.iter().map(|(of, who)| (channel(of), channel(who))).collect();
        let ids: Vec<_> = rows.iter().map(|(of, who)| MessageSeries::of(of, who).id_at(at(ms))).collect();
        let messages: Vec<_> = rows
            .iter()
            .zip(&ids)
            .map(|((channel, sender), id)| MessageAppend {
                id,
                channel,
                sender,
                content: "안녕",
                emojis: "{}".to_owned(),
                message_time: at(ms),
                is_viewer: are_viewers,
            })
            .collect();
        let senders = tx.append_chat_messages(&messages).await?;
        Ok(senders.into_iter().map(|sender| sender.map(|sender| sender.name)).collect())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_known_and_unrestricted_senders_are_written_with_one_batch_of_events() {
    let fresh = postgres().await;
    let store = fresh.open(Options::default()).await;
    tx!(store, tx => {
        seed(tx).await?;
        tx.restrict(&channel("a"), &channel("b"), at(1)).await?;
        tx.restrict_temporarily(&channel("a"), &channel("c"), at(50), at(1)).await?;
        Ok(())
    })
    .unwrap();
    const PAIRS: &[(&str, &str)] =
        &[("a", "a"), ("a", "nobody"), ("a", "b"), ("b", "a"), ("a", "c"), ("nobody", "a")];
    let name = |id: &str| Some(format!("channel {id}"));
    // Of `a`, `b` is restricted, and `c` until 50.
    assert_eq!(append(&store, 10, PAIRS, true).await, Ok(vec![name("a"), None, None, name("a"), None, None]));
    assert_eq!((count(&store, MESSAGES).await, count(&store, BATCHES).await), (2, 1));
    assert_eq!(append(&store, 50, &[("a", "c")], true).await, Ok(vec![name("c")]));
    // Restrictions do not apply to managers.
    assert_eq!(append(&store, 60, &[("a", "b")], false).await, Ok(vec![name("b")]));
    assert_eq!(append(&store, 70, &[("nobody", "nobody")], true).await, Ok(vec![None]));
    assert_eq!((count(&store, MESSAGES).await, count(&store, BATCHES).await), (4, 3));
    store.close().await;
    fresh.remove().await;
}

/// PostgreSQL would plan a statement anew for its first five arrays, and then for each that is shorter than
/// ten.
#[tokio::test(flavor = "multi_thread")]
async fn appends_and_the_facts_before_them_are_planned_once() {
    const PLANS: &str = "
        SELECT custom_plans FROM pg_prepared_statements WHERE statement LIKE '%unnest(%' AND generic_plans > 5";
    let fresh = postgres().await;
    // One after the other, the look-ups have one connection, and the transactions have another one.
    let store = fresh.open(Options::default()).await;
    tx!(store, tx => { seed(tx).await }).unwrap();
    for ms in 1..10 {
        let facts =
            store.read(async move |tx: &mut Tx| tx.chat_facts(&[(&channel("a"), &channel("b"))]).await);
        assert!(facts.await.unwrap()[0].is_some());
        append(&store, ms, &[("a", "b")], true).await.unwrap();
    }
    let appended = tx!(store, tx => { tx.query(PLANS, &[]).await }).unwrap();
    let read: Result<_, StoreError> = store.read(async |tx: &mut Tx| tx.query(PLANS, &[]).await).await;
    for planned in [appended, read.unwrap()] {
        let custom: Vec<i64> = planned.iter().map(|row| row.get(0).unwrap()).collect();
        assert_eq!(custom, [0]);
    }
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_time_is_taken_undoes_the_whole_append() {
    let fresh = postgres().await;
    let store = fresh.open(Options::default()).await;
    tx!(store, tx => { seed(tx).await }).unwrap();
    append(&store, 5, &[("a", "b")], true).await.unwrap();
    let second = append(&store, 5, &[("a", "a"), ("a", "b")], true).await;
    assert!(second.as_ref().is_err_and(is_time_taken), "{second:?}");
    assert_eq!((count(&store, MESSAGES).await, count(&store, BATCHES).await), (1, 1));
    store.close().await;
    fresh.remove().await;
}
