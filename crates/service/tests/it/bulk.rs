//! Events in bulk.

use bus::Message;
use domain::chat::{DonationType, Emojis, MessageText};
use domain::event::EventKind;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, Refusal, Rule};
use service::bulk::{BATCH_MAX, ChannelEvent, Entry, KeyedEntry};
use service::channel_events::{Donation, PaidSubscription};
use service::chats::ChatMessage;
use service::idempotency::IdempotencyKey;

use crate::world::{World, both, events_among, received};

const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";
const KEYS: &str = "SELECT COUNT(*) FROM idempotency_keys";

fn id(id: &str) -> ChannelId {
    ChannelId::stored(id.to_owned())
}

fn chat(channel: &str, sender: &str, text: impl Into<String>) -> KeyedEntry {
    let text = MessageText::parse(text.into()).unwrap();
    let kind =
        ChannelEvent::Chat(ChatMessage { sender: id(sender), text, emojis: Emojis::new(), badges: None });
    KeyedEntry { entry: Entry::Event(id(channel), kind), key: None }
}

fn paid(channel: &str, subscriber: &str) -> KeyedEntry {
    let paid = PaidSubscription {
        subscriber: id(subscriber),
        tier_no: 1,
        tier_name: "팬".into(),
        month: 1,
        created: None,
    };
    KeyedEntry { entry: Entry::Event(id(channel), ChannelEvent::Subscription(paid)), key: None }
}

fn donation(channel: &str, pay_amount: &str) -> KeyedEntry {
    let donation = Donation {
        donation_type: DonationType::Chat,
        donator: None,
        pay_amount: pay_amount.into(),
        donation_text: String::new(),
        emojis: Emojis::new(),
    };
    KeyedEntry { entry: Entry::Event(id(channel), ChannelEvent::Donation(donation)), key: None }
}

fn keyed(reported: KeyedEntry, key: &str) -> KeyedEntry {
    let body = format!("{reported:?}");
    KeyedEntry { key: Some(IdempotencyKey::parse("event".to_owned(), key, &body).unwrap()), ..reported }
}

fn unknown(field: &'static str) -> Option<Refusal> {
    Some(Invalid::new(field, Rule::KnownChannel).into())
}

/// One word for each published message.
fn published_words(messages: &[Message]) -> Vec<String> {
    let word = |event: &std::sync::Arc<domain::event::Event>| match &event.kind {
        EventKind::Chat(chat) => chat.content.clone(),
        EventKind::Donation(donation) => donation.pay_amount.clone(),
        EventKind::Subscription(subscription) => subscription.subscriber_channel_id.to_string(),
    };
    events_among(messages).iter().map(word).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_needs_one_commit_and_is_published_in_order() {
    both(|world| async move {
        world.user("channel").await;
        let mut bus = world.service.subscribe_to_bus();
        let before = world.store.stats();
        let texts: Vec<_> = (0..BATCH_MAX).map(|n| format!("message {n}")).collect();
        let batch = texts.iter().map(|text| chat("channel", "channel", text)).collect();
        assert_eq!(world.service.report(batch).await, Ok(vec![None; BATCH_MAX]));
        assert_eq!(world.service.report(Vec::new()).await, Ok(Vec::new()));
        assert_eq!(world.store.stats().syncs - before.syncs, 1);
        assert_eq!(published_words(&received(&mut bus).await), texts);
        assert_eq!(world.count(MESSAGES).await, BATCH_MAX as i64);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_entry_leaves_no_rows_and_does_not_stop_other_entries() {
    both(|world| async move {
        for user in ["channel", "viewer"] {
            world.user(user).await;
        }
        let mut bus = world.service.subscribe_to_bus();
        let batch = vec![
            chat("channel", "viewer", "one"),
            keyed(chat("channel", "missing", "refused"), "a"),
            keyed(donation("channel", "2"), "b"),
            keyed(donation("channel", "not an amount"), "c"),
            keyed(chat("nowhere", "viewer", "refused"), "d"),
            paid("channel", "viewer"),
            paid("channel", "missing"),
            chat("channel", "viewer", "four"),
        ];
        let amount: Refusal = Invalid::new("payAmount", Rule::Amount).into();
        let expected = vec![
            None,
            unknown("senderChannelId"),
            None,
            Some(amount),
            Some(Refusal::NotFound(Resource::Channel)),
            None,
            unknown("subscriberChannelId"),
            None,
        ];
        let before = world.store.stats();
        assert_eq!(world.service.report(batch).await.unwrap(), expected);
        assert_eq!(world.store.stats().syncs - before.syncs, 1);
        assert_eq!(published_words(&received(&mut bus).await), ["one", "2", "viewer", "four"]);
        assert_eq!((world.count(MESSAGES).await, world.count(KEYS).await), (2, 1));

        // The key of a refused entry can be used again.
        world.user("missing").await;
        let again = vec![keyed(chat("channel", "missing", "refused"), "a")];
        assert_eq!(world.service.report(again).await, Ok(vec![None]));
        assert_eq!(published_words(&received(&mut bus).await), ["refused"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_has_no_second_effect_in_the_same_or_a_later_batch() {
    both(|world| async move {
        world.user("channel").await;
        let mut bus = world.service.subscribe_to_bus();
        let once = || keyed(chat("channel", "channel", "once"), "key");
        let other = keyed(chat("channel", "channel", "other"), "key");
        assert_eq!(world.service.report(vec![once(), once()]).await, Ok(vec![None, None]));
        let taken = Some(Invalid::new("Idempotency-Key", Rule::Taken).into());
        assert_eq!(world.service.report(vec![other, once()]).await, Ok(vec![taken, None]));
        assert_eq!(published_words(&received(&mut bus).await), ["once"]);
        assert_eq!(world.count(MESSAGES).await, 1);
    })
    .await;
}

/// Two batches that touch the same rows in opposite orders wait for each other on PostgreSQL, which ends one
/// of them.
#[tokio::test(flavor = "multi_thread")]
async fn deadlocked_batches_all_succeed() {
    both(|world: World| async move {
        world.user("channel").await;
        let fans: Vec<_> = (0..BATCH_MAX).map(|n| format!("fan-{n}")).collect();
        for fan in &fans {
            world.user(fan).await;
        }
        let forth: Vec<_> = fans.iter().map(|fan| paid("channel", fan)).collect();
        let back: Vec<_> = forth.iter().rev().cloned().collect();
        let report = |batch: Vec<KeyedEntry>| {
            let service = world.service.clone();
            tokio::spawn(async move { service.report(batch).await })
        };
        let both = [report(forth), report(back)];
        for outcome in both {
            assert_eq!(outcome.await.unwrap(), Ok(vec![None; BATCH_MAX]));
        }
        assert_eq!(world.count("SELECT COUNT(*) FROM subscribers").await, BATCH_MAX as i64);
    })
    .await;
}
