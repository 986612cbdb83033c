//! Sessions over websocket from the start.

use domain::Profile;
use domain::event::EventType;
use socketio::CloseReason;

use testkit::{BINARY, CLOSE, PING, PONG, TEXT, frame, text};

use super::client::{change, connected_key, payload};
use super::world::{World, eventually, put_application, settle};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_revision_3_from_handshake_to_goodbye() {
    let world = World::new().await;
    let me = world.person("me").await;
    let query = format!("auth={}&EIO=3&transport=websocket", world.client_url().await);
    let mut client = world.address.websocket(&query).await.expect("it is let in");
    let open: serde_json::Value =
        serde_json::from_str(client.packet().await.strip_prefix('0').expect("open")).expect("JSON");
    assert_eq!(open["upgrades"], serde_json::json!([]));
    assert_eq!((open["pingInterval"].as_u64(), open["pingTimeout"].as_u64()), (Some(25_000), Some(60_000)));
    assert_eq!(client.packet().await, "40");
    let key = connected_key(&client.packet().await);
    assert_eq!(key, world.listed_key().await);

    for event in EventType::ALL {
        world.subscribe(&me, &key, event).await;
        assert_eq!(change(&client.packet().await), format!("subscribed {}", event.name()));
    }
    world.chat(&me, "안녕하세요 👋 \"hi\" \\").await;
    let chat = payload("CHAT", &client.packet().await);
    assert_eq!(chat["content"], "안녕하세요 👋 \"hi\" \\");
    assert_eq!(chat["profile"]["nickname"], "me's channel");
    world.unsubscribe(&me, &key, EventType::Chat).await;
    assert_eq!(change(&client.packet().await), "unsubscribed CHAT");
    world.chat(&me, "not subscribed any more").await;
    world.service.donate(&me.channel, donation(), None).await.expect("donates");
    assert_eq!(payload("DONATION", &client.packet().await)["payAmount"], "1000");

    client.send("2").await;
    assert_eq!(client.packet().await, "3");
    client.send("41").await;
    assert_eq!(client.closed().await, (1000, "client_goodbye".into()));
    world.empty().await;
    assert_eq!(world.close_reasons().await, ["client_goodbye"]);
    let stats = world.stats();
    assert_eq!((stats.opened, stats.events_encoded, stats.deliveries), (1, 2, 2));
}

fn donation() -> service::channel_events::Donation {
    service::channel_events::Donation {
        donation_type: domain::chat::DonationType::Chat,
        donator: None,
        pay_amount: "1000".into(),
        donation_text: "힘내세요".into(),
        emojis: Default::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_revision_4_is_introduced_when_it_asks_for_its_namespace() {
    let world = World::new().await;
    let me = world.person("me").await;
    let query = format!("auth={}&EIO=4&transport=websocket", world.client_url().await);
    let mut client = world.address.websocket(&query).await.expect("it is let in");
    assert!(client.packet().await.contains("\"maxPayload\":65536"));
    // Another client finds the key in the list and subscribes the session before its client sends anything.
    let key = world.listed_key().await;
    world.subscribe(&me, &key, EventType::Chat).await;
    settle().await;
    client.send("40").await;
    assert!(client.packet().await.starts_with("40{\"sid\":"));
    assert_eq!(connected_key(&client.packet().await), key);
    assert_eq!(change(&client.packet().await), "subscribed CHAT");
    world.chat(&me, "one").await;
    assert_eq!(payload("CHAT", &client.packet().await)["content"], "one");
    for _ in 0..3 {
        world.pass(26).await;
        assert_eq!(client.packet().await, "2");
        client.send("3").await;
        settle().await;
    }
    // A client of this revision is closed if it does not answer pings.
    world.pass(26).await;
    assert_eq!(client.packet().await, "2");
    world.pass(61).await;
    assert_eq!(client.closed().await.1, "ping_timeout");
    world.empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_asks_for_its_namespace_is_closed() {
    let world = World::new().await;
    let query = format!("auth={}&EIO=4&transport=websocket", world.client_url().await);
    let mut client = world.address.websocket(&query).await.expect("it is let in");
    for _ in 0..2 {
        world.pass(23).await;
        client.send("3").await;
    }
    assert_eq!(client.closed().await, (1008, "connect_timeout".into()));
    world.empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_client_is_closed_and_its_place_is_free() {
    let world = World::new().await;
    let me = world.person("me").await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(world.address.session(&world.user_url(&me).await).await.0);
    }
    let full = world.service.issue_session_url(owner(&me)).await;
    assert_eq!(full.unwrap_err().refusal(), domain::Refusal::Cap(domain::refusal::Cap::UserSessions));
    world.pass(60).await;
    // One client pings. The others are silent without closing their sockets.
    clients[0].ping().await;
    world.pass(27).await;
    world.closed(CloseReason::PingTimeout, 2).await;
    clients[0].ping().await;
    eventually("the slots are free", async || world.connected().await == 1).await;
    world.address.session(&world.user_url(&me).await).await;
}

fn owner(person: &super::world::Person) -> domain::session::SessionOwner {
    domain::session::SessionOwner::User {
        client_id: person.caller.client_id.clone(),
        channel_id: person.channel.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_frame_is_answered_by_a_close_frame() {
    let world = World::new().await;
    let (mut client, _) = world.address.session(&world.client_url().await).await;
    client.write(&frame(CLOSE, &1001_u16.to_be_bytes())).await;
    assert_eq!(client.closed().await, (1000, "client_goodbye".into()));
    world.empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn websocket_pings_are_answered_and_frames_may_come_in_pieces() {
    let world = World::new().await;
    let (mut client, _) = world.address.session(&world.client_url().await).await;
    client.write(&frame(PING, b"hello")).await;
    assert_eq!(client.frame().await, Some((PONG, b"hello".to_vec())));
    for byte in text("2probe") {
        client.write(&[byte]).await;
        settle().await;
    }
    assert_eq!(client.packet().await, "3probe");
    // A fragmented message, and two frames in one write.
    client.write(&[frame(0x01, b"2a"), frame(0x80, b"b")].concat()).await;
    assert_eq!(client.packet().await, "3ab");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protocol_error_closes_with_its_reason() {
    let world = World::new().await;
    let cases: [(Vec<u8>, u16, &str); 6] = [
        (text("x"), 1002, "protocol_error"),
        (b"\x81\x012".to_vec(), 1002, "protocol_error"),
        (frame(0xc1, b"2"), 1002, "protocol_error"),
        (frame(TEXT, b"42[\"\xff\"]"), 1007, "invalid_utf8"),
        (frame(TEXT, &[b'4'; 20_000]), 1009, "message_too_big"),
        (text("2").repeat(101), 1008, "packet_flood"),
    ];
    for (bytes, code, reason) in cases {
        let (mut client, _) = world.address.session(&world.client_url().await).await;
        client.write(&bytes).await;
        assert_eq!(client.closed().await, (code, reason.into()));
    }
    world.empty().await;
}

/// The reference server of Socket.IO 2 ignores these frames, and the ping of chzzkpy 2.1.0.
#[tokio::test(flavor = "multi_thread")]
async fn stray_frames_of_revision_3_are_ignored() {
    let world = World::new().await;
    let (mut client, _) = world.address.session(&world.client_url().await).await;
    for text in ["0{}", "5", "b4AAAA", "47", "42{}", "44\"x\""] {
        client.send(text).await;
        client.ping().await;
    }
    for data in [&b""[..], b"\x04", b"\x04\x01", b"\x07", b"2"] {
        client.write(&frame(BINARY, data)).await;
        client.ping().await;
    }
    for ping in [&b"\0\x01\xff2"[..], b"\x02"] {
        client.write(&frame(BINARY, ping)).await;
        assert_eq!(client.packet().await, "3");
    }
    client.write(&frame(BINARY, b"").repeat(101)).await;
    assert_eq!(client.closed().await, (1008, "packet_flood".into()));
    let (mut client, _) = world.address.session(&world.client_url().await).await;
    client.write(&frame(BINARY, b"\0\x02\xff41\0\x01\xff1")).await;
    assert_eq!(client.closed().await, (1000, "client_goodbye".into()));
    world.empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_profile_gets_its_own_encoding_of_one_event() {
    let world = World::new().await;
    put_application(&world.service, "app2", Some(Profile::Observed)).await;
    let (me, me2) = (world.person("me").await, world.person_of("app2", "me").await);
    let mut clients = Vec::new();
    for person in [&me, &me, &me2] {
        let (mut client, key) = world.address.session(&world.user_url(person).await).await;
        world.subscribe(person, &key, EventType::Chat).await;
        assert_eq!(change(&client.packet().await), "subscribed CHAT");
        clients.push(client);
    }
    world.chat(&me, "hi").await;
    let mut has_sent_at = Vec::new();
    for client in &mut clients {
        has_sent_at.push(payload("CHAT", &client.packet().await).get("eventSentAt").is_some());
    }
    assert_eq!(has_sent_at, [false, false, true]);
    eventually("all are counted", async || world.stats().deliveries == 3).await;
    assert_eq!(world.stats().events_encoded, 2);
}
