//! Many events to many sessions, and sessions that cannot keep up.

use std::sync::Arc;

use bus::{Bus, LocalBus, Message};
use domain::event::{DonationEvent, EventKind, EventType};
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::{ChannelId, SessionKey};
use socketio::CloseReason;

use testkit::{CLOSE, TEXT};

use super::client::{self, change, payload};
use super::world::{World, eventually, put_application, settle};

/// Enough events to fill the socket buffers of a peer that is not reading.
const FLOOD: usize = 40_000;

#[tokio::test(flavor = "multi_thread")]
async fn every_session_gets_every_event_of_its_channels_in_order() {
    let world = World::new().await;
    let people = [world.person("a").await, world.person("b").await];
    let mut clients = Vec::new();
    for at in 0..6 {
        let (mut client, key) = world.address.session(&world.client_url().await).await;
        for (channel, person) in people.iter().enumerate() {
            if at % 3 != channel {
                world.subscribe(person, &key, EventType::Chat).await;
                assert_eq!(change(&client.packet().await), "subscribed CHAT");
            }
        }
        clients.push(client);
    }
    let expected: Vec<String> = (0..200).map(|at| at.to_string()).collect();
    let saying = async {
        for text in &expected {
            tokio::join!(world.chat(&people[0], text), world.chat(&people[1], text));
        }
    };
    let reading = async {
        for (at, client) in clients.iter_mut().enumerate() {
            let mut received = [Vec::new(), Vec::new()];
            let channels = if at % 3 == 2 { 2 } else { 1 };
            for _ in 0..channels * expected.len() {
                let chat = payload("CHAT", &client.packet().await);
                let channel = usize::from(chat["channelId"] == "b");
                received[channel].push(chat["content"].as_str().unwrap().to_owned());
            }
            for (channel, received) in received.into_iter().enumerate() {
                assert_eq!(received, if at % 3 == channel { &[][..] } else { &expected[..] });
            }
            client.ping().await;
        }
    };
    tokio::join!(saying, reading);
    assert_eq!(world.stats().events_encoded, 400);
}

/// Publishes events directly to the bus.
async fn flood(world: &World, bus: &dyn Bus, channel: &ChannelId, events: usize) {
    for at in 0..events {
        if world.stats().sessions() == 0 {
            return;
        }
        bus.publish(Message::Event(Arc::new(event(channel, at)))).await;
    }
}

fn event(channel: &ChannelId, at: usize) -> domain::event::Event {
    let now = domain::Timestamp::from_millis(0);
    let chat = domain::event::ChatEvent {
        sender_channel_id: channel.clone(),
        nickname: "n".repeat(100),
        badges: Vec::new(),
        verified_mark: false,
        user_role_code: domain::channel::UserRoleCode::Streamer,
        chat_channel_id: "chat".into(),
        content: format!("{at} {}", "x".repeat(900)),
        emojis: Default::default(),
        message_time: now,
    };
    domain::event::Event {
        channel_id: channel.clone(),
        sent_at: now,
        kind: domain::event::EventKind::Chat(chat),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_session_is_closed_and_others_are_not_delayed() {
    let bus = Arc::new(LocalBus::default());
    let world = World::over(bus.clone(), |_| {}).await;
    let me = world.person("me").await;
    let (mut slow, slow_key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &slow_key, EventType::Chat).await;
    assert_eq!(change(&slow.packet().await), "subscribed CHAT");
    let (mut quick, quick_key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &quick_key, EventType::Chat).await;
    assert_eq!(change(&quick.packet().await), "subscribed CHAT");
    let flooding = async {
        for at in 0..FLOOD {
            if world.stats().closed(CloseReason::SlowConsumer) > 0 {
                return at;
            }
            bus.publish(Message::Event(Arc::new(event(&me.channel, at)))).await;
            // The fast client reads each event.
            let chat = payload("CHAT", &quick.packet().await);
            assert!(chat["content"].as_str().unwrap().starts_with(&format!("{at} ")));
        }
        panic!("the slow one is never closed");
    };
    flooding.await;
    quick.ping().await;
    eventually("its slot is free", async || world.connected().await == 1).await;
    assert_eq!(world.close_reasons().await, ["slow_consumer"]);
    assert_eq!(world.stats().queued_bytes, 0);
    // The slow client reads the first events without a gap, and then the close reason.
    let mut read = 0;
    loop {
        let (kind, frame) = slow.frame().await.expect("the close frame comes first");
        if (kind, &frame[..]) == (TEXT, b"1") {
            break;
        }
        let chat = payload("CHAT", &String::from_utf8(frame).unwrap());
        assert!(chat["content"].as_str().unwrap().starts_with(&format!("{read} ")));
        read += 1;
    }
    assert!(read > 0);
    assert_eq!(slow.frame().await, Some((CLOSE, b"\x03\xf5slow_consumer".to_vec())));
    assert_eq!(slow.frame().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_takes_no_byte_for_ten_seconds_is_closed() {
    let bus = Arc::new(LocalBus::default());
    let world = World::over(bus.clone(), |config| {
        config.queue_messages_max = usize::MAX / 2;
        config.queue_bytes_max = usize::MAX / 2;
    })
    .await;
    let me = world.person("me").await;
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    assert_eq!(change(&client.packet().await), "subscribed CHAT");
    let mut sent = 0;
    // More bytes than the socket buffers hold, even after the peer reads a little.
    while world.stats().queued_bytes < 16_000_000 {
        flood(&world, &*bus, &me.channel, 500).await;
        sent += 500;
        eventually("they are delivered", async || world.stats().deliveries == sent).await;
    }
    world.pass(9).await;
    // A written byte restarts the write deadline.
    let before = world.stats().queued_bytes;
    eventually("the peer reads", async || {
        client.packet().await;
        world.stats().queued_bytes < before
    })
    .await;
    let mut seconds = 0;
    while world.stats().closed(CloseReason::WriteTimeout) == 0 {
        assert!(seconds < 60, "it is never closed");
        world.pass(1).await;
        seconds += 1;
    }
    assert!(seconds >= 9, "closed after {seconds} s");
    world.empty().await;
    // A peer that resumes reading receives the reason.
    while client.frame().await.expect("the close frame comes first") != (TEXT, b"1".to_vec()) {}
    assert_eq!(client.frame().await, Some((CLOSE, b"\x03\xf5write_timeout".to_vec())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_does_not_read_the_close_frame_is_dropped() {
    let bus = Arc::new(LocalBus::default());
    // A socket with free space takes the close frame at once. While this many bytes are queued, the system
    // fills the socket buffers.
    let world = World::over(bus.clone(), |config| {
        config.queue_messages_max = usize::MAX / 2;
        config.queue_bytes_max = 16_000_000;
    })
    .await;
    let me = world.person("me").await;
    let (_deaf, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    while world.stats().closed(CloseReason::SlowConsumer) == 0 {
        flood(&world, &*bus, &me.channel, 500).await;
        settle().await;
    }
    assert_eq!(world.gateway.sockets(), 1, "it is waited for");
    world.pass(6).await;
    eventually("it is gone", async || world.gateway.sockets() == 0).await;
}

/// On the system clock, a channel cools down after its writes and batches events during the cooldown.
#[tokio::test(flavor = "multi_thread")]
async fn a_hot_channel_batches_events_and_keeps_each_once_in_order() {
    let bus = Arc::new(LocalBus::default());
    let world = World::in_real_time(bus.clone()).await;
    let channel = ChannelId::stored("hot".into());
    let change = |key: &SessionKey, version, kind| {
        let subscription = Subscription { event_type: EventType::Chat, channel_id: channel.clone() };
        let change = SessionChange { version, kind, subscription };
        Message::SessionChanged { node: world.service.node().clone(), session_key: key.clone(), change }
    };
    let mut clients = Vec::new();
    for application in 0..10 {
        let application = format!("app{application}");
        put_application(&world.service, &application, None).await;
        for _ in 0..10 {
            let (mut client, key) = world.address.session(&world.client_url_of(&application).await).await;
            // The pong comes after the join. The store does not have these changes.
            client.ping().await;
            bus.publish(change(&key, 1, ChangeKind::Subscribed)).await;
            clients.push((client, key));
        }
    }
    let publishing = async {
        for at in 0..400 {
            bus.publish(Message::Event(Arc::new(event(&channel, at)))).await;
            if at == 199 {
                for (_, key) in clients.iter().step_by(2) {
                    bus.publish(change(key, 2, ChangeKind::Unsubscribed)).await;
                }
            }
            // Some events are published alone, some in quick succession.
            if at % 7 == 0 {
                settle().await;
            }
        }
    };
    publishing.await;
    for (at, (client, _)) in clients.iter_mut().enumerate() {
        assert_eq!(client::change(&client.packet().await), "subscribed CHAT");
        for expected in 0..if at % 2 == 0 { 200 } else { 400 } {
            let chat = payload("CHAT", &client.packet().await);
            assert!(chat["content"].as_str().unwrap().starts_with(&format!("{expected} ")));
        }
        if at % 2 == 0 {
            assert_eq!(client::change(&client.packet().await), "unsubscribed CHAT");
        }
        client.ping().await;
    }
}

#[tokio::test]
async fn kinds_of_events_keep_their_order_within_a_channel_and_reach_their_subscribers_only() {
    let bus = Arc::new(LocalBus::default());
    let world = World::over(bus.clone(), |config| config.shards = 1).await;
    let me = world.person("me").await;
    let (mut chats, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    assert_eq!(change(&chats.packet().await), "subscribed CHAT");
    let (mut both, key) = world.address.session(&world.client_url().await).await;
    for kind in [EventType::Chat, EventType::Donation] {
        world.subscribe(&me, &key, kind).await;
        assert_eq!(change(&both.packet().await), format!("subscribed {}", kind.name()));
    }
    for at in 0..300 {
        let mut event = event(&me.channel, at);
        if at % 3 == 0 {
            event.kind = EventKind::Donation(DonationEvent {
                donation_type: domain::chat::DonationType::Chat,
                donator: None,
                pay_amount: at.to_string(),
                donation_text: String::new(),
                emojis: Default::default(),
            });
        }
        bus.publish(Message::Event(Arc::new(event))).await;
    }
    for at in 0..300 {
        let packet = both.packet().await;
        if at % 3 == 0 {
            assert_eq!(payload("DONATION", &packet)["payAmount"], at.to_string());
            continue;
        }
        for packet in [packet, chats.packet().await] {
            let chat = payload("CHAT", &packet);
            assert!(chat["content"].as_str().unwrap().starts_with(&format!("{at} ")));
        }
    }
    chats.ping().await;
    both.ping().await;
}
