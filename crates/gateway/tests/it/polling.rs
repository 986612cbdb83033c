//! Sessions over long polling.

use domain::event::EventType;
use socketio::CloseReason;
use testkit::{Request, Response};

use super::client::{change, connected_key, payload, read_answer, target};
use super::world::{World, eventually, settle};

/// The sid in the answer to a handshake.
pub fn sid(answer: &Response) -> String {
    let body = String::from_utf8_lossy(&answer.body);
    let (_, rest) = body.split_once("\"sid\":\"").expect("an open packet");
    rest.split_once('"').expect("it ends").0.to_owned()
}

/// Packets of a body in the text framing.
pub fn text_packets(answer: &Response) -> Vec<String> {
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; charset=UTF-8")));
    let (text, mut packets) = (answer.text(), Vec::new());
    let mut rest = text;
    while let Some((length, behind)) = rest.split_once(':') {
        let (packet, next) = behind.split_at(length.parse().expect("a length"));
        packets.push(packet.to_owned());
        rest = next;
    }
    packets
}

/// Packets of a body in the binary framing.
fn binary_packets(answer: &Response) -> Vec<String> {
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/octet-stream")));
    let (mut rest, mut packets) = (&answer.body[..], Vec::new());
    while let Some((0, behind)) = rest.split_first() {
        let end = behind.iter().position(|byte| *byte == 0xff).expect("the length ends");
        let length = behind[..end].iter().fold(0, |length, digit| length * 10 + usize::from(*digit));
        let (packet, next) = behind[end + 1..].split_at(length);
        packets.push(String::from_utf8(packet.to_vec()).expect("text"));
        rest = next;
    }
    assert!(rest.is_empty());
    packets
}

/// Opens a polling session. Returns the query of its later requests, its key, and the packets after SYSTEM
/// `connected`.
pub async fn open(world: &World, auth: &str) -> (String, domain::SessionKey) {
    let query = format!("auth={auth}&EIO=3&transport=polling&b64=1");
    let first = world.address.get(&query).await;
    let query = format!("{query}&sid={}", sid(&first));
    let packets = text_packets(&world.address.get(&query).await);
    assert_eq!(packets.len(), 1);
    (query, connected_key(&packets[0]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_both_framings_from_handshake_to_goodbye() {
    for text in [true, false] {
        let world = World::new().await;
        let me = world.person("me").await;
        let b64 = if text { "&b64=1" } else { "" };
        let packets_of = |answer: &Response| if text { text_packets(answer) } else { binary_packets(answer) };
        let (content_type, ping): (_, &[u8]) = match text {
            true => ("text/plain;charset=UTF-8", b"1:2"),
            false => ("application/octet-stream", b"\0\x01\xff2"),
        };
        let post = async |query: &str, body: &[u8]| {
            let request = Request::post(target(query)).header("Content-Type", content_type);
            world.address.send(request.body(body)).await
        };
        let query = format!("auth={}&EIO=3&transport=polling{b64}&t=x1", world.client_url().await);
        let first = world.address.get(&query).await;
        let packets = packets_of(&first);
        // Some clients lose every packet after these two.
        assert_eq!(packets.len(), 2);
        assert!(packets[0].contains("\"upgrades\":[\"websocket\"]"));
        assert_eq!(packets[1], "40");
        let query = format!("{query}&sid={}", sid(&first));
        let packets = packets_of(&world.address.get(&query).await);
        let key = connected_key(&packets[0]);

        let mut waiting = world.address.poll(&query).await;
        settle().await;
        world.subscribe(&me, &key, EventType::Chat).await;
        assert_eq!(change(&packets_of(&read_answer(&mut waiting).await)[0]), "subscribed CHAT");
        for at in 0..20 {
            world.chat(&me, &format!("한글과 😀 #{at}")).await;
        }
        eventually("all are queued", async || world.stats().deliveries == 20).await;
        let mut contents = Vec::new();
        for count in [16, 4] {
            let packets = packets_of(&world.address.get(&query).await);
            assert_eq!(packets.len(), count);
            contents.extend(packets.iter().map(|packet| payload("CHAT", packet)["content"].clone()));
        }
        let expected: Vec<_> = (0..20).map(|at| format!("한글과 😀 #{at}")).collect();
        assert_eq!(contents, expected);

        let mut waiting = world.address.poll(&query).await;
        settle().await;
        let answer = post(&query, ping).await;
        assert_eq!((answer.status, answer.text()), (200, "ok"));
        assert_eq!(packets_of(&read_answer(&mut waiting).await), ["3"]);

        let mut waiting = world.address.poll(&query).await;
        settle().await;
        let goodbye: &[u8] = if text { b"2:41" } else { b"\0\x02\xff41" };
        assert_eq!(post(&query, goodbye).await.status, 200);
        assert_eq!(packets_of(&read_answer(&mut waiting).await), ["1"]);
        world.empty().await;
        assert_eq!(world.close_reasons().await, ["client_goodbye"]);
        // The place is free, and a second goodbye is still answered. Further polls are refused.
        let goodbye: &[u8] = if text { b"1:1" } else { b"\0\x01\xff1" };
        assert_eq!(post(&query, goodbye).await.text(), "ok");
        assert_eq!(world.address.get(&query).await.status, 400);
        let websocket = query.replace("polling", "websocket");
        assert_eq!(world.address.websocket(&websocket).await.expect_err("refused").status, 400);
        world.pass(6).await;
        eventually("it is forgotten", async || post(&query, goodbye).await.status == 400).await;
        assert_eq!(world.stats().closed(CloseReason::ClientGoodbye), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_alone_may_ask_for_text() {
    let world = World::new().await;
    for revision in ["2", "3"] {
        let query = format!("auth={}&EIO={revision}&transport=polling", world.client_url().await);
        let first = world.address.get(&format!("{query}&b64=1")).await;
        assert_eq!(text_packets(&first).len(), 2);
        let later = world.address.get(&format!("{query}&sid={}", sid(&first))).await;
        connected_key(&text_packets(&later)[0]);
        // The framing of a request also counts on its own.
        let query = format!("auth={}&EIO={revision}&transport=polling", world.client_url().await);
        let first = world.address.get(&query).await;
        assert_eq!(binary_packets(&first).len(), 2);
        let later = world.address.get(&format!("{query}&sid={}&b64=1", sid(&first))).await;
        connected_key(&text_packets(&later)[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_revision_4_is_introduced_when_it_asks_for_its_namespace() {
    let world = World::new().await;
    let query = format!("auth={}&EIO=4&transport=polling", world.client_url().await);
    let first = world.address.get(&query).await;
    assert!(first.text().starts_with("0{") && !first.text().contains('\x1e'));
    let query = format!("{query}&sid={}", sid(&first));
    assert_eq!(world.address.post(&query, b"40").await.text(), "ok");
    let answer = world.address.get(&query).await;
    let answer = answer.text();
    let (connect, system) = answer.split_once('\x1e').expect("two packets");
    assert!(connect.starts_with("40{\"sid\":"));
    connected_key(system);
    // The server's ping comes in a poll; the client's pong goes in a post.
    let mut waiting = world.address.poll(&query).await;
    settle().await;
    world.pass(27).await;
    assert_eq!(read_answer(&mut waiting).await.text(), "2");
    assert_eq!(world.address.post(&query, b"3").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_poll_is_answered_with_a_noop() {
    let world = World::new().await;
    let (query, _) = open(&world, &world.client_url().await).await;
    let mut waiting = world.address.poll(&query).await;
    settle().await;
    world.pass(31).await;
    assert_eq!(text_packets(&read_answer(&mut waiting).await), ["6"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_poll_in_flight_ends_the_session() {
    let world = World::new().await;
    let (query, _) = open(&world, &world.client_url().await).await;
    let mut waiting = world.address.poll(&query).await;
    settle().await;
    assert_eq!(world.address.get(&query).await.status, 400);
    assert_eq!(text_packets(&read_answer(&mut waiting).await), ["1"]);
    world.empty().await;
    assert_eq!(world.close_reasons().await, ["poll_conflict"]);
}

/// The last answers to the polls of a session that the server ends, in each revision.
#[tokio::test(flavor = "multi_thread")]
async fn a_packet_1_ends_the_polls_only_in_revisions_2_and_3() {
    for revision in ["2", "3", "4"] {
        let world = World::new().await;
        let query = format!("auth={}&EIO={revision}&transport=polling&b64=1", world.client_url().await);
        let first = world.address.get(&query).await;
        let query = format!("{query}&sid={}", sid(&first));
        if revision == "4" {
            assert_eq!(world.address.post(&query, b"40").await.status, 200);
        }
        while !world.address.get(&query).await.text().contains("SYSTEM") {}
        let mut waiting = world.address.poll(&query).await;
        settle().await;
        let key = world.listed_key().await;
        assert!(world.gateway.end_session(&key, CloseReason::ServerShutdown).await);
        let last = read_answer(&mut waiting).await;
        match revision {
            "4" => assert_eq!(last.status, 400, "{}", last.text()),
            _ => assert_eq!(text_packets(&last), ["1"], "revision {revision}"),
        }
        assert_eq!(world.address.get(&query).await.status, 400, "revision {revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn posts_at_once_are_answered_when_the_session_is_over() {
    let world = World::new().await;
    let (query, _) = open(&world, &world.client_url().await).await;
    assert_eq!(world.address.post(&query, b"2:41").await.text(), "ok");
    let mut half = world.address.connect().await;
    let head = format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n", target(&query));
    half.write(head.as_bytes()).await;
    settle().await;
    assert_eq!(world.address.post(&query, b"1:1").await.text(), "ok");
    half.write(b"1:1").await;
    assert_eq!(read_answer(&mut half).await.text(), "ok");
    world.empty().await;
    assert_eq!(world.close_reasons().await, ["client_goodbye"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_poll_ends_the_session() {
    let world = World::new().await;
    let (query, _) = open(&world, &world.client_url().await).await;
    let waiting = world.address.poll(&query).await;
    settle().await;
    drop(waiting);
    world.empty().await;
    assert_eq!(world.close_reasons().await, ["transport_closed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_polling_is_closed() {
    let world = World::new().await;
    open(&world, &world.client_url().await).await;
    world.pass(84).await;
    assert_eq!(world.stats().polling_sessions, 1);
    world.pass(3).await;
    world.empty().await;
    assert_eq!(world.close_reasons().await, ["ping_timeout"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_of_the_handshake_reaches_the_session() {
    let world = World::new().await;
    let (query, _) = open(&world, &world.client_url().await).await;
    let (other, _) = open(&world, &world.client_url().await).await;
    let (auth, sid) = (query.split('&').next().unwrap(), other.rsplit('&').next().unwrap());
    for auth in [auth, "auth=", "x=1"] {
        let query = format!("{auth}&EIO=3&transport=polling&b64=1&{sid}");
        for method in ["GET", "POST"] {
            assert_eq!(
                world.address.send(Request::new(method, target(&query)).body("1:2")).await.status,
                401
            );
        }
        let websocket = query.replace("polling", "websocket");
        assert_eq!(world.address.websocket(&websocket).await.expect_err("refused").status, 401);
    }
    assert_eq!(world.address.post(&other, b"1:2").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_posts_end_the_session() {
    let world = World::new().await;
    let big = format!("70000:4{}", "x".repeat(69_999));
    for (body, status, reason) in [
        (&b"nonsense"[..], 400, CloseReason::ProtocolError),
        (b"", 400, CloseReason::ProtocolError),
        (b"1:9", 400, CloseReason::ProtocolError),
        (b"3:4\xff\xff", 400, CloseReason::InvalidUtf8),
        (big.as_bytes(), 413, CloseReason::MessageTooBig),
        (&b"1:2".repeat(257), 400, CloseReason::PacketFlood),
    ] {
        let (query, _) = open(&world, &world.client_url().await).await;
        let before = world.stats().closed(reason);
        assert_eq!(world.address.post(&query, body).await.status, status, "{reason}");
        world.closed(reason, before + 1).await;
    }
    world.empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_poll_is_closed_when_its_queue_is_full() {
    let world = World::with(|config| config.queue_messages_max = 8).await;
    let me = world.person("me").await;
    let (query, key) = open(&world, &world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    for at in 0..8 {
        world.chat(&me, &at.to_string()).await;
    }
    world.closed(CloseReason::SlowConsumer, 1).await;
    world.empty().await;
    // One poll is answered with the end of the session.
    assert_eq!(text_packets(&world.address.get(&query).await), ["1"]);
    assert_eq!(world.address.get(&query).await.status, 400);
}
