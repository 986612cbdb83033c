//! A session against a server that plays a transcript.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::clock::Clock;
use crate::http::Origin;

const OPEN: &str = r#"0{"sid":"s","upgrades":[],"pingInterval":25000,"pingTimeout":60000}"#;
const CONNECTED: &str = r#"42["SYSTEM","{\"type\":\"connected\",\"data\":{\"sessionKey\":\"k\"}}"]"#;
const SUBSCRIBED: &str =
    r#"42["SYSTEM","{\"type\":\"subscribed\",\"data\":{\"eventType\":\"CHAT\",\"channelId\":\"c1\"}}"]"#;

fn escape(text: &str) -> String {
    let escaped = serde_json::to_string(text).unwrap();
    let ascii = |unit: char| match unit.is_ascii() {
        true => unit.to_string(),
        false => unit.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    escaped.chars().map(ascii).collect()
}

fn chat(channel: u32, stream: u32, number: u32) -> String {
    let content = Mark { channel, stream, number, called: 0 }.text();
    let payload = serde_json::json!({
        "channelId": "c1", "senderChannelId": "v", "chatChannelId": "chat", "content": content, "emojis": {},
        "profile": {"nickname": "n", "badges": [], "verifiedMark": false}, "userRoleCode": "common_user",
        "messageTime": 5,
    });
    format!(r#"42["CHAT",{}]"#, escape(&payload.to_string()))
}

fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u8::try_from(text.len()) {
        Ok(length @ 0..126) => frame.push(length),
        _ => {
            frame.push(126);
            frame.extend((text.len() as u16).to_be_bytes());
        }
    }
    frame.extend(text.as_bytes());
    frame
}

struct Seen {
    shared: Arc<Shared>,
    end: End,
}

impl Seen {
    fn violations(&self) -> BTreeMap<String, u64> {
        self.shared.violations.kinds()
    }
}

const SUBSCRIBES: Entry = Entry::Subscribes { kinds: &EventKind::ALL, channels_each: 1 };

/// Plays the packets to a session on channel 1 with two streams, then closes with 1000.
async fn play(packets: &[&str]) -> Seen {
    play_to(SUBSCRIBES, packets).await
}

async fn play_to(entry: Entry, packets: &[&str]) -> Seen {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let origin = Origin { address, host: address.to_string() };
    let channels = vec!["c0".to_owned(), "c1".to_owned()];
    let shared = Arc::new(Shared::new((Clock::start(), origin), Vec::new(), channels, 2, entry, 1));
    let mut bytes: Vec<u8> = packets.iter().flat_map(|packet| frame(packet)).collect();
    bytes.extend([0x88, 2, 3, 232]);
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let _ = stream.read(&mut [0; 64]).await;
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let plan = SessionPlan { number: 0, application: 0, channel: 1 };
    let mut session = Session::new(Rc::new(Thread::new(shared.clone())), plan, stream);
    let end = poll_fn(|cx| session.poll_end(cx)).await;
    session.peer().end(&shared, Some(end));
    drop(session);
    server.await.unwrap();
    Seen { shared, end }
}

async fn check(packets: &[&str], violations: &[(&str, u64)]) {
    let seen = play(&[&[OPEN, "40", CONNECTED], packets].concat()).await;
    let expected: BTreeMap<_, _> =
        violations.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
    assert_eq!(seen.violations(), expected, "{packets:?}");
    assert_eq!(seen.end, End::CloseFrame(Some(1_000)));
}

#[tokio::test]
async fn a_correct_session_has_no_violations() {
    let seen =
        play(&[OPEN, "40", CONNECTED, SUBSCRIBED, &chat(1, 0, 0), &chat(1, 1, 0), &chat(1, 0, 1), "6"]).await;
    assert_eq!(seen.violations(), BTreeMap::new());
    assert_eq!((seen.shared.deliveries.get(), seen.shared.subscribed.get()), (3, 1));
    assert_eq!(lock(&seen.shared.opened)[0].key, "k");
    assert_eq!(seen.shared.lost.kinds().keys().collect::<Vec<_>>(), ["closed by the server with 1000"]);
    assert_eq!(seen.shared.audience(1), 0, "a session that ended is no audience");
}

#[tokio::test]
async fn a_session_detects_missing_duplicate_and_misplaced_messages() {
    let (first, second, fourth) = (chat(1, 0, 0), chat(1, 0, 1), chat(1, 0, 3));
    check(&[SUBSCRIBED, &first, &fourth], &[("events missing before a later one", 2)]).await;
    check(&[SUBSCRIBED, &first, &first], &[("events doubled or out of order", 1)]).await;
    check(
        &[SUBSCRIBED, &second, &first],
        &[("events doubled or out of order", 1), ("events missing before a later one", 1)],
    )
    .await;
    check(&[SUBSCRIBED, &first, &chat(0, 0, 0)], &[("events of another channel", 1)]).await;
    check(&[&first], &[("CHAT before its SYSTEM subscribed", 1)]).await;
}

#[tokio::test]
async fn a_session_detects_unexpected_packets() {
    let other = |text: &str, from: &str, to: &str| text.replace(from, to);
    check(&["2"], &[("an unexpected packet", 1)]).await;
    check(&["3"], &[("a pong without a ping", 1)]).await;
    check(&["40"], &[("a connect packet out of place", 1)]).await;
    check(&[OPEN], &[("a second open packet", 1)]).await;
    check(&[CONNECTED], &[("an unexpected SYSTEM message", 1)]).await;
    check(&[SUBSCRIBED, SUBSCRIBED], &[("an unexpected SYSTEM message", 1)]).await;
    check(&[&other(SUBSCRIBED, "c1", "c0")], &[("an unexpected SYSTEM message", 1)]).await;
    check(&[&other(SUBSCRIBED, "subscribed", "revoked")], &[("an unexpected SYSTEM message", 1)]).await;
    check(&[&other(SUBSCRIBED, "SYSTEM", "NEWS")], &[("an unexpected event", 1)]).await;
    let chat = chat(1, 0, 0);
    check(&[SUBSCRIBED, &other(&chat, "c1", "c0")], &[("CHAT with a wrong payload", 1)]).await;
    check(&[SUBSCRIBED, &other(&chat, r"\uc548", r"\uc549")], &[("CHAT with a wrong payload", 1)]).await;
    check(&[SUBSCRIBED, &other(&chat, r"\uc548", "안")], &[("JSON that is not escaped to ASCII", 1)]).await;
    check(&[SUBSCRIBED, &other(&chat, "@", "#")], &[("CHAT without the load's mark", 1)]).await;
}

#[tokio::test]
async fn a_session_may_be_subscribed_to_the_next_channels_too() {
    let both = Entry::Subscribes { kinds: &EventKind::ALL, channels_each: 2 };
    let other = SUBSCRIBED.replace("c1", "c0");
    let seen = play_to(both, &[OPEN, "40", CONNECTED, SUBSCRIBED, &other]).await;
    assert_eq!((seen.violations(), seen.shared.subscribed.get()), (BTreeMap::new(), 2));
    let seen = play_to(both, &[OPEN, "40", CONNECTED, &other, &other]).await;
    assert_eq!(seen.shared.violations.total(), 1);
    assert_eq!(seen.shared.audience(0), 0, "events are only counted on a session's own channel");
}

#[tokio::test]
async fn a_session_of_a_peer_is_connected_by_joining_the_namespace() {
    let seen = play_to(Entry::Joins, &[OPEN, "40", &chat(1, 0, 0)]).await;
    assert_eq!(seen.violations(), BTreeMap::new());
    assert_eq!((seen.shared.connected.get(), seen.shared.deliveries.get()), (1, 1));
    assert_eq!(play_to(Entry::Joins, &[OPEN]).await.shared.connected.get(), 0);
}

#[tokio::test]
async fn a_session_only_counts_as_connected_in_the_right_order() {
    let seen = play(&["40", CONNECTED, OPEN]).await;
    assert_eq!(seen.shared.connected.get(), 0);
    assert_eq!(seen.shared.violations.total(), 2);
    assert_eq!(play(&[OPEN, "40", "41"]).await.end, End::Goodbye);
}
