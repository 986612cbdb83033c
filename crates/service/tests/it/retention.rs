//! Old rows of the tables that grow are deleted, and requests do not wait for the deletion.

use std::time::Duration;

use domain::chat::{Emojis, MessageText};
use domain::limits::{CHAT_MESSAGES_KEPT_MS, DAY_MS, DONATIONS_KEPT_MS};
use domain::{ChannelId, MessageId};
use service::Clock;
use service::housekeeping::SWEEP_ROWS_MAX;
use store::{StoreError, Tx, params};

use crate::world::{World, both};

const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";

async fn post(world: &World, channel: &ChannelId) {
    let text = MessageText::parse("hello".to_owned()).unwrap();
    world.service.post_chat(channel, channel, text, Emojis::new(), None).await.unwrap();
}

/// Sweeps until nothing is left to do.
async fn sweep_all(world: &World) {
    while world.service.sweep().await.unwrap() >= SWEEP_ROWS_MAX.unsigned_abs() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_donations_go_when_they_are_old() {
    both(|world| async move {
        world.service.prepare_partitions().await;
        let channel = world.user("streamer").await;
        post(&world, &channel).await;
        const DONATION: &str = "INSERT INTO donations VALUES ($1, 'a', NULL, 'CHAT', '1', '', '{}', 1)";
        let id = MessageId::bound_at(world.service.clock().now());
        let given =
            world.store.write(async move |tx: &mut Tx| tx.execute(DONATION, params![&id]).await).await;
        given.unwrap_or_else(|error: StoreError| panic!("{error}"));
        world.advance_ms(CHAT_MESSAGES_KEPT_MS as u64 - 1);
        sweep_all(&world).await;
        assert_eq!(world.count(MESSAGES).await, 1, "it is not old yet");
        post(&world, &channel).await;
        // On PostgreSQL a day goes as a whole.
        world.advance_ms(DAY_MS as u64 + 1);
        sweep_all(&world).await;
        assert_eq!(world.count(MESSAGES).await, 1, "the newer one stays");
        post(&world, &channel).await;
        assert_eq!(world.count(MESSAGES).await, 2);
        assert_eq!(world.count("SELECT COUNT(*) FROM donations").await, 1);
        // A partition of donations is 40 days.
        world.advance_ms((DONATIONS_KEPT_MS + 40 * DAY_MS) as u64);
        sweep_all(&world).await;
        assert_eq!(world.count("SELECT COUNT(*) FROM donations").await, 0);
        assert_eq!(world.count(MESSAGES).await, 0);
        assert_eq!(world.service.sweep().await, Ok(0));
    })
    .await;
}

/// 30,000 messages of this time.
const FILL: &str = "
    INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
    WITH RECURSIVE n(i) AS (SELECT CAST(100000 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 129999)
    SELECT CAST($1 AS TEXT) || CAST(i AS TEXT), 'a', 'a', 'hello', '{}', $2 FROM n";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_message_waits_for_a_backlog_of_old_rows() {
    both(|world| async move {
        let channel = world.user("streamer").await;
        world.service.prepare_partitions().await;
        let old = world.service.clock().now();
        let id = MessageId::bound_at(old);
        let filled = world.store.write(async move |tx: &mut Tx| tx.execute(FILL, params![&id, old]).await);
        filled.await.unwrap_or_else(|error: StoreError| panic!("{error}"));
        world.advance_ms((CHAT_MESSAGES_KEPT_MS + DAY_MS) as u64);
        let sweeping = {
            let world = world.clone();
            tokio::spawn(async move { sweep_all(&world).await })
        };
        let mut waits = Vec::new();
        while !sweeping.is_finished() || waits.is_empty() {
            let began = Clock::system();
            post(&world, &channel).await;
            waits.push(began.monotonic());
        }
        sweeping.await.unwrap();
        waits.sort();
        let median = waits[waits.len() / 2];
        // The machine of the tests is busy. A message that waited for all of it would wait for seconds.
        assert!(median < Duration::from_millis(100), "{median:?} of {}", waits.len());
        assert_eq!(world.count(MESSAGES).await, waits.len() as i64, "the old ones are gone, and no other");
    })
    .await;
}
