//! Events that may be lost between nodes.

use domain::MessageId;
use domain::channel::UserRoleCode;
use domain::chat::{DonationType, Emojis};
use domain::event::{ChatEvent, DonationEvent, SubscriptionEvent};
use store::queries::chats::NewMessage;
use store::queries::lost_events::LostEvents;
use store::{StoreError, Tx};

use crate::{at, channel, in_seeded, node};

fn lost(ms: i64, id: &str, by: &str) -> LostEvents {
    LostEvents { lost_at: at(ms), channel_id: channel(id), node_id: node(by) }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_events_are_found_by_their_time() {
    in_seeded(async move |tx: &mut Tx| {
        let all = [lost(5, "a", "n"), lost(6, "a", "n"), lost(6, "b", "n"), lost(6, "b", "other")];
        for one in all.iter().chain(&all) {
            tx.record_lost_events(one).await?;
        }
        for (since, expected) in [(0, &all[..]), (5, &all[..]), (6, &all[1..]), (7, &[])] {
            let mut found = tx.lost_events_since(at(since), 10).await?;
            found.sort();
            assert_eq!(found, expected, "{since}");
        }
        let newest = [lost(6, "b", "other"), lost(6, "b", "n"), lost(6, "a", "n")];
        assert_eq!(tx.lost_events_since(at(0), 3).await?, newest);
        Ok(())
    })
    .await;
}

async fn say(tx: &mut Tx, id: &str, ms: i64) -> Result<(), StoreError> {
    let chat = ChatEvent {
        sender_channel_id: channel(id),
        nickname: "n".into(),
        badges: Vec::new(),
        verified_mark: false,
        user_role_code: UserRoleCode::Streamer,
        chat_channel_id: format!("chat-{id}"),
        content: "c".into(),
        emojis: Emojis::new(),
        message_time: at(ms),
    };
    let message_id = MessageId::generate(at(ms), [7; 10]);
    let message = NewMessage { id: &message_id, channel: &channel(id), chat: &chat, emojis: "{}".into() };
    tx.insert_chat_messages(&[message]).await
}

async fn give(tx: &mut Tx, id: &str, ms: i64) -> Result<(), StoreError> {
    let donation = DonationEvent {
        donation_type: DonationType::Chat,
        donator: None,
        pay_amount: "1".into(),
        donation_text: String::new(),
        emojis: Emojis::new(),
    };
    tx.insert_donation(&MessageId::generate(at(ms), [7; 10]), &channel(id), &donation, "{}", at(ms)).await
}

async fn pay(tx: &mut Tx, id: &str, ms: i64) -> Result<(), StoreError> {
    let paid = SubscriptionEvent {
        subscriber_channel_id: channel("b"),
        subscriber_nickname: "b".into(),
        tier_no: 1,
        tier_name: "t".into(),
        month: 1,
    };
    tx.put_subscriber(&channel(id), &paid, at(ms)).await?;
    tx.record_subscription_event(&channel(id), &channel("b"), at(ms)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_with_events_of_each_kind_are_found_once() {
    in_seeded(async move |tx: &mut Tx| {
        say(tx, "a", 1_000).await?;
        say(tx, "a", 2_000).await?;
        give(tx, "a", 2_000).await?;
        give(tx, "b", 3_000).await?;
        pay(tx, "c", 4_000).await?;
        let cases =
            [(0, "a b c"), (2_000, "a b c"), (2_001, "b c"), (3_000, "b c"), (3_001, "c"), (4_001, "")];
        for (since, expected) in cases {
            let mut found = tx.channels_with_events_since(at(since), 10).await?;
            found.sort();
            let found: Vec<_> = found.iter().map(|channel| channel.as_str()).collect();
            assert_eq!(found.join(" "), expected, "{since}");
        }
        pay(tx, "c", 9_000).await?;
        assert_eq!(tx.channels_with_events_since(at(9_000), 10).await?, [channel("c")]);
        assert_eq!(tx.channels_with_events_since(at(0), 2).await?.len(), 2);
        Ok(())
    })
    .await;
}
