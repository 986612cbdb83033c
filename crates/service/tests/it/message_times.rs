//! Chat, sender and time identify one message, also when many messages are posted at once on several
//! nodes.

use std::collections::BTreeSet;

use domain::ChannelId;
use domain::chat::{Emojis, MessageText, chat_channel_id};
use domain::event::EventKind;
use service::Service;
use service::bulk::{ChannelEvent, Entry, KeyedEntry};
use service::chats::{ChatMessage, MessagePlace};

use crate::world::{START_MS, World, both, events_among, received};

const HIDDEN: &str = "SELECT COUNT(*) FROM chat_messages WHERE hidden_at IS NOT NULL";
const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";

fn text() -> MessageText {
    MessageText::parse("안녕".to_owned()).expect("a text")
}

async fn post(service: &Service, channel: &ChannelId, sender: &ChannelId) -> i64 {
    let posted = service.post_chat(channel, sender, text(), Emojis::new(), None).await.expect("it is posted");
    assert!(posted.message_id.as_str().starts_with(&format!("{:012x}", posted.message_time.as_millis())));
    posted.message_time.as_millis()
}

fn batch(channel: &ChannelId, sender: &ChannelId, size: usize) -> Vec<KeyedEntry> {
    let message = ChatMessage { sender: sender.clone(), text: text(), emojis: Emojis::new(), badges: None };
    let entry = KeyedEntry { entry: Entry::Event(channel.clone(), ChannelEvent::Chat(message)), key: None };
    vec![entry; size]
}

/// Hides the messages of some times. There must be one message of each time.
async fn hide_each(world: &World, channel: &ChannelId, sender: &ChannelId, times: &BTreeSet<i64>) {
    for (count, ms) in times.iter().enumerate() {
        let place = MessagePlace {
            chat_channel_id: chat_channel_id(channel),
            message_time: domain::Timestamp::from_millis(*ms),
            sender: sender.clone(),
        };
        world.service.hide_message(channel, place).await.expect("it is there");
        assert_eq!(world.count(HIDDEN).await, 1 + count as i64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_posted_on_one_node_in_one_millisecond_get_consecutive_times() {
    both(|world| async move {
        let (channel, other) = (world.user("channel").await, world.user("other").await);
        let mut times = Vec::new();
        for sender in [&channel, &channel, &other, &channel] {
            times.push(post(&world.service, &channel, sender).await - START_MS);
        }
        assert_eq!(times, [0, 1, 0, 2]);
        world.advance_ms(1);
        assert_eq!(post(&world.service, &channel, &channel).await - START_MS, 3);
        assert_eq!(post(&world.service, &channel, &other).await - START_MS, 1);
        world.advance_ms(1_000);
        assert_eq!(post(&world.service, &channel, &channel).await - START_MS, 1_001);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_posted_on_two_nodes_at_once_share_no_time() {
    const EACH: usize = 50;
    both(|world| async move {
        let channel = world.user("channel").await;
        let nodes = [world.service.clone(), world.node("node-b")];
        let posts = (0..2 * EACH).map(|number| {
            let (service, channel) = (nodes[number % 2].clone(), channel.clone());
            tokio::spawn(async move { post(&service, &channel, &channel).await })
        });
        let mut times = BTreeSet::new();
        for posted in posts.collect::<Vec<_>>() {
            times.insert(posted.await.expect("no panic"));
        }
        assert_eq!((times.len(), world.count(MESSAGES).await), (2 * EACH, 2 * EACH as i64));
        hide_each(&world, &channel, &channel, &times).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_on_two_nodes_share_no_time() {
    const EACH: usize = 40;
    both(|world| async move {
        let channel = world.user("channel").await;
        let mut bus = world.service.subscribe_to_bus();
        let nodes = [world.service.clone(), world.node("node-b")];
        let reports = (0..4).map(|number| {
            let (service, batch) = (nodes[number % 2].clone(), batch(&channel, &channel, EACH));
            tokio::spawn(async move { service.report(batch).await })
        });
        for reported in reports.collect::<Vec<_>>() {
            assert_eq!(reported.await.expect("no panic"), Ok(vec![None; EACH]));
        }
        let messages = received(&mut bus).await;
        let time = |event: &std::sync::Arc<domain::event::Event>| match &event.kind {
            EventKind::Chat(chat) => chat.message_time.as_millis(),
            _ => panic!("only messages were posted"),
        };
        let times: BTreeSet<_> = events_among(&messages).iter().map(time).collect();
        assert_eq!((times.len(), world.count(MESSAGES).await), (4 * EACH, 4 * EACH as i64));
        hide_each(&world, &channel, &channel, &times).await;
    })
    .await;
}
