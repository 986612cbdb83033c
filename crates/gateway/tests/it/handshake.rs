//! Handshakes: the conditions for a session, and the cleanup after peers that disconnect.

use std::time::Duration;

use domain::event::EventType;
use socketio::CloseReason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire_client::handshake;

use testkit::{Request, Response};

use super::client::{connected_key, target};
use super::world::{World, eventually, settle};

fn check(answer: &Response, status: u16, message: &str) {
    let envelope: serde_json::Value = answer.json();
    assert_eq!((answer.status, envelope["code"].as_u64()), (status, Some(status.into())), "{answer:?}");
    let message_text = envelope["message"].as_str().expect("a message");
    assert!(message_text.contains(message), "{message_text}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_used_and_expired_urls_are_refused_before_any_upgrade() {
    let world = World::new().await;
    let used = world.client_url().await;
    let _client = world.address.session(&used).await;
    let expired = world.client_url().await;
    world.pass(31).await;
    for auth in ["", "unknown", &used, &expired, &"x".repeat(600)] {
        for transport in ["polling", "websocket"] {
            let query = format!("auth={auth}&EIO=3&transport={transport}");
            let answer = match transport {
                "polling" => world.address.get(&query).await,
                _ => world.address.websocket(&query).await.expect_err("refused"),
            };
            check(&answer, 401, "UNAUTHORIZED");
        }
    }
    assert_eq!((world.stats().opened, world.stats().refused, world.connected().await), (1, 10, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fourth_session_of_a_user_is_refused_however_many_urls_there_are() {
    let world = World::new().await;
    let me = world.person("me").await;
    let mut urls = Vec::new();
    for _ in 0..5 {
        urls.push(world.user_url(&me).await);
    }
    let mut clients = Vec::new();
    for url in &urls[..3] {
        clients.push(world.address.session(url).await);
    }
    let query = |url: &str| format!("auth={url}&EIO=3&transport=websocket");
    let answer = world.address.websocket(&query(&urls[3])).await.expect_err("refused");
    check(&answer, 429, "TOO_MANY_REQUESTS");
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(answer.header("stagedoor-reason"), Some("cap; name=user-sessions; limit=3"));
    // The URL stays valid until a place is free.
    let (mut client, _) = clients.pop().expect("there is one");
    client.send("1").await;
    world.closed(CloseReason::ClientGoodbye, 1).await;
    eventually("a slot is free", async || world.connected().await == 2).await;
    world.address.session(&urls[3]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_handshakes_are_refused() {
    let world = World::new().await;
    let auth = world.client_url().await;
    let sid = "AAAAAAAAAAAAAAAAAAAA";
    for (method, query, status, message) in [
        ("GET", format!("auth={auth}&EIO=5&transport=polling"), 400, "EIO"),
        ("GET", format!("auth={auth}&transport=polling"), 400, "EIO"),
        ("GET", format!("auth={auth}&EIO=3&transport=x"), 400, "transport"),
        ("GET", format!("auth={auth}&EIO=3&transport=polling&j=1"), 400, "JSONP"),
        ("GET", format!("auth={auth}&EIO=3&transport=websocket"), 400, "transport"),
        ("POST", format!("auth={auth}&EIO=3&transport=polling"), 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", format!("auth={auth}&EIO=3&transport=polling"), 405, "METHOD_NOT_ALLOWED"),
        ("GET", format!("auth={auth}&EIO=3&transport=polling&sid={sid}"), 400, "sid"),
        ("POST", format!("auth={auth}&EIO=3&transport=polling&sid={sid}"), 400, "sid"),
        ("GET", format!("auth={auth}&EIO=3&transport=polling&sid=가"), 400, "sid"),
    ] {
        check(&world.address.send(Request::new(method, target(&query))).await, status, message);
    }
    // No request consumed the URL.
    world.address.session(&auth).await;
    assert_eq!(world.stats().opened, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_every_origin_may_read_the_answers() {
    let world = World::new().await;
    let query = "EIO=3&transport=polling&auth=x";
    let answer = world
        .address
        .send(Request::new("OPTIONS", target(query)).header("Origin", "https://overlay.example"))
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://overlay.example"));
    assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(answer.header("access-control-allow-headers"), Some("Content-Type"));
    let refused = world.address.send(Request::get(target(query)).header("Origin", "null")).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some("null")));
    assert_eq!(world.address.get(query).await.header("access-control-allow-origin"), Some("*"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_opens_one_session_in_a_race_of_fifty() {
    let world = World::new().await;
    let query = format!("auth={}&EIO=3&transport=websocket", world.client_url().await);
    let address = world.address;
    let tries: Vec<_> = (0..50)
        .map(|_| {
            let query = query.clone();
            tokio::spawn(async move { address.websocket(&query).await.map_err(|answer| answer.status) })
        })
        .collect();
    let mut winners = Vec::new();
    for one in tries {
        match one.await.expect("it ends") {
            Ok(client) => winners.push(client),
            Err(status) => assert_eq!(status, 401),
        }
    }
    assert_eq!((winners.len(), world.connected().await), (1, 1));
}

/// Cuts the connection after some bytes of the handshake, and after the handshake.
#[tokio::test(flavor = "multi_thread")]
async fn a_disconnect_during_the_handshake_frees_every_resource() {
    let world = World::new().await;
    for cut in [1, 40, 100, usize::MAX] {
        for waits in [false, true] {
            let query = format!("auth={}&EIO=3&transport=websocket", world.client_url().await);
            let request = handshake("test", &target(&query), "");
            let mut peer = world.address.connect().await;
            peer.write(&request.as_bytes()[..cut.min(request.len())]).await;
            if waits {
                settle().await;
            }
            drop(peer);
        }
    }
    world.empty().await;
    // After a polling handshake, only the missing ping reveals the disconnect.
    let query = format!("auth={}&EIO=3&transport=polling", world.client_url().await);
    let waiting = world.address.poll(&query).await;
    eventually("the session is open", async || world.stats().polling_sessions == 1).await;
    drop(waiting);
    world.pass(87).await;
    world.empty().await;
    let closes = world.stats().closes;
    assert!(
        closes
            .iter()
            .all(|(reason, _)| { matches!(reason, CloseReason::TransportClosed | CloseReason::PingTimeout) })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_packets_come_with_the_answer_to_the_handshake() {
    let world = World::new().await;
    for (revision, last) in [(3, "connected"), (4, "maxPayload")] {
        let query = format!("auth={}&EIO={revision}&transport=websocket", world.client_url().await);
        let mut stream = TcpStream::connect(world.address.0).await.expect("connects");
        let request = handshake("test", &target(&query), "");
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut bytes = vec![0; 2_048];
        // One read returns the bytes of one write.
        let read = stream.read(&mut bytes).await.expect("it is answered");
        let text = String::from_utf8_lossy(&bytes[..read]);
        assert!(text.starts_with("HTTP/1.1 101 ") && text.contains(last), "{text}");
    }
    eventually("nothing waits", async || world.stats().queued_bytes == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_between_the_handshake_and_the_introduction_is_not_lost() {
    let world = World::new().await;
    let me = world.person("me").await;
    let query = format!("auth={}&EIO=3&transport=polling", world.client_url().await);
    let mut waiting = world.address.poll(&query).await;
    // Another client subscribes the session as soon as it is listed.
    eventually("it is listed", async || world.connected().await == 1).await;
    let key = world.listed_key().await;
    world.subscribe(&me, &key, EventType::Chat).await;
    world.subscribe(&me, &key, EventType::Donation).await;
    let first = super::client::read_answer(&mut waiting).await;
    let sid = super::polling::sid(&first);
    let poll = format!("{query}&b64=1&sid={sid}");
    let mut packets = Vec::new();
    while packets.len() < 3 {
        packets.extend(super::polling::text_packets(&world.address.get(&poll).await));
    }
    assert_eq!(connected_key(&packets[0]), key);
    assert_eq!(super::client::change(&packets[1]), "subscribed CHAT");
    assert_eq!(super::client::change(&packets[2]), "subscribed DONATION");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_closes_its_sessions_in_waves_and_takes_no_new_ones() {
    let world = World::new().await;
    let mut clients = Vec::new();
    for person in 0..10 {
        let person = world.person(&format!("p{person}")).await;
        for _ in 0..3 {
            clients.push(world.address.session(&world.user_url(&person).await).await.0);
        }
    }
    let late = world.client_url().await;
    let draining = tokio::spawn({
        let gateway = world.gateway.clone();
        async move { gateway.drain(Duration::from_secs(20)).await }
    });
    eventually("the first wave", async || world.stats().closed(CloseReason::ServerShutdown) > 0).await;
    assert!(world.stats().sessions() > 20, "not all at once");
    let query = format!("auth={late}&EIO=3&transport=websocket");
    let answer = world.address.websocket(&query).await.expect_err("refused");
    check(&answer, 503, "SERVICE_UNAVAILABLE");
    for _ in 0..100 {
        world.manual_clock.advance(Duration::from_millis(100));
        settle().await;
    }
    tokio::time::timeout(testkit::PATIENCE, draining).await.expect("it ends").expect("it works");
    for mut client in clients {
        assert_eq!(client.closed().await, (1001, "server_shutdown".into()));
    }
    world.empty().await;
    assert_eq!(world.close_reasons().await, vec!["server_shutdown"; 30]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_declared_dead_closes_its_sessions_and_continues() {
    let world = World::new().await;
    let (mut client, _) = world.address.session(&world.client_url().await).await;
    world.gateway.on_declared_dead().await;
    assert_eq!(client.closed().await, (1001, "node_dead".into()));
    world.empty().await;
    world.address.session(&world.client_url().await).await;
}
