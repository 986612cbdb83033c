//! The bus of many nodes against a real NATS server.

mod moves;
mod rights;
mod secure;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bus::testing::NatsServer;
use bus::{Address, Bus, Delivery, Message, NatsBus, Options, Prefix, Subscriber};
use domain::chat::Emojis;
use domain::event::{DonationEvent, Event, EventKind, EventType};
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::{ChannelId, NodeId, SessionKey, Timestamp};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(60);
/// The environment variable with the NATS release to test, such as `2.9`.
const VERSION: &str = "STAGEDOOR_TEST_NATS_VERSION";

#[allow(clippy::disallowed_methods, reason = "a test's own clock")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    Timestamp::from_millis(since.as_millis() as i64)
}

fn options(url: &str, node: &str) -> Options {
    let seed = node.bytes().fold(7, |id: u64, byte| id * 31 + u64::from(byte));
    let numbers = AtomicU64::new(seed << 32);
    Options {
        access: Address::parse(url).expect("a good address").into(),
        prefix: Prefix::default(),
        node: NodeId::stored(node.into()),
        now: Box::new(now),
        random: Box::new(move || numbers.fetch_add(1, Relaxed)),
    }
}

async fn connect(server: &NatsServer, node: &str) -> NatsBus {
    NatsBus::connect(options(&server.url(), node)).await.expect("the server answers")
}

fn channel(id: &str) -> ChannelId {
    ChannelId::stored(id.into())
}

fn donation(channel_id: &str, text: &str) -> Message {
    let donation = DonationEvent {
        donation_type: domain::chat::DonationType::Chat,
        donator: None,
        pay_amount: "1".into(),
        donation_text: text.into(),
        emojis: Emojis::new(),
    };
    let kind = EventKind::Donation(donation);
    Message::Event(Arc::new(Event { channel_id: channel(channel_id), sent_at: now(), kind }))
}

fn changed(node: &str, version: i64) -> Message {
    let subscription = Subscription { event_type: EventType::Chat, channel_id: channel("c") };
    Message::SessionChanged {
        node: NodeId::stored(node.into()),
        session_key: SessionKey::stored("s".into()),
        change: SessionChange { version, kind: ChangeKind::Subscribed, subscription },
    }
}

async fn next(subscriber: &mut Subscriber) -> String {
    let next = tokio::time::timeout(PATIENCE, subscriber.next()).await.expect("something comes");
    match next.expect("the bus is there") {
        Delivery::Message(Message::Event(event)) => match &event.kind {
            EventKind::Donation(donation) => format!("{} {}", event.channel_id, donation.donation_text),
            other => panic!("{other:?}"),
        },
        Delivery::Message(Message::SessionChanged { node, change, .. }) => {
            format!("{node} {}", change.version)
        }
        Delivery::Message(Message::SessionEvicted { node, session_key }) => {
            format!("{node} {session_key} evicted")
        }
        Delivery::Message(Message::NodeDeclaredDead { node }) => format!("{node} declared dead"),
        Delivery::Lost(channel) => format!("lost {channel}"),
        Delivery::Gap { .. } => "gap".to_owned(),
    }
}

async fn ready(interest: &bus::Interest) {
    tokio::time::timeout(PATIENCE, interest.ready()).await.expect("it is confirmed");
}

/// Waits until the receiving connection is up. A loss before that is not a gap.
async fn is_up(bus: &NatsBus) {
    ready(&bus.interest(&channel("probe"))).await;
}

#[tokio::test]
async fn the_nats_server_has_the_requested_release() {
    let version = NatsServer::start().await.version().await;
    println!("engine: NATS {version}");
    if let Ok(release) = std::env::var(VERSION) {
        assert!(version.starts_with(&format!("{release}.")), "{version} instead of {release}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_in_order_at_interested_nodes() {
    let server = NatsServer::start().await;
    let (one, two) = (connect(&server, "one").await, connect(&server, "two").await);
    let (mut at_one, mut at_two) = (one.subscribe(), two.subscribe());
    is_up(&one).await;
    let (a, b) = (two.interest(&channel("a.1")), two.interest(&channel("b")));
    ready(&a).await;
    ready(&b).await;
    for n in 0..100 {
        let messages = vec![
            donation("a.1", &n.to_string()),
            donation("no-subscriber", "x"),
            donation("b", &n.to_string()),
        ];
        assert!(one.publish_all(messages).await.is_empty());
    }
    one.publish(changed("two", 7)).await;
    two.publish(changed("one", 8)).await;
    for n in 0..100 {
        assert_eq!(next(&mut at_two).await, format!("a.1 {n}"));
        assert_eq!(next(&mut at_two).await, format!("b {n}"));
    }
    assert_eq!(next(&mut at_two).await, "two 7");
    assert_eq!(next(&mut at_one).await, "one 8");
    drop(b);
    drop(two.interest(&channel("unrelated")));
    is_up(&two).await;
    one.publish_all(vec![donation("b", "no more"), donation("a.1", "on")]).await;
    assert_eq!(next(&mut at_two).await, "a.1 on");
    let stats = two.stats();
    assert_eq!((stats.interests, stats.disconnects, stats.malformed, stats.lost), (1, 0, 0, 0));
    assert_eq!(one.stats().published, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_publishers_are_confirmed_and_keep_their_order() {
    let server = NatsServer::start().await;
    let one = Arc::new(connect(&server, "one").await);
    let mut subscriber = one.subscribe();
    let interest = one.interest(&channel("c"));
    ready(&interest).await;
    let publishers: Vec<_> = (0..20)
        .map(|publisher| {
            let one = one.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    assert!(one.publish(donation("c", &format!("{publisher}:{n}"))).await.is_empty());
                }
            })
        })
        .collect();
    let mut last = [None; 20];
    for _ in 0..2_000 {
        let delivery = next(&mut subscriber).await;
        let (publisher, n) =
            delivery.strip_prefix("c ").and_then(|text| text.split_once(':')).expect("two numbers");
        let (publisher, n): (usize, usize) = (publisher.parse().expect("one"), n.parse().expect("one"));
        assert_eq!(last[publisher].map_or(0, |last| last + 1), n);
        last[publisher] = Some(n);
    }
    for publisher in publishers {
        publisher.await.expect("it is confirmed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_a_gap_and_restores_interests() {
    let mut server = NatsServer::start().await;
    let one = Arc::new(connect(&server, "one").await);
    let mut subscriber = one.subscribe();
    let interest = one.interest(&channel("c"));
    ready(&interest).await;
    let before = now();
    server.stop().await;
    // The event is given up after 2 s; the interest continues to wait.
    assert_eq!(one.publish_all(vec![donation("c", "lost"), changed("one", 1)]).await, [channel("c")]);
    let late = one.interest(&channel("late"));
    assert!(!late.is_ready());
    server.restart().await;
    let gap = tokio::time::timeout(PATIENCE, subscriber.next()).await.expect("the gap is reported");
    let Some(Delivery::Gap { since }) = gap else { panic!("{gap:?}") };
    assert!(since <= before.plus_ms(1_000), "{since:?} {before:?}");
    ready(&late).await;
    // The publisher may reconnect later than the receiver.
    let back = async {
        while one.stats().connections < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, back).await.expect("both connections are back");
    assert!(one.publish(donation("c", "after")).await.is_empty());
    assert_eq!(next(&mut subscriber).await, "c after");
    one.publish(donation("late", "too")).await;
    assert_eq!(next(&mut subscriber).await, "late too");
    assert_eq!(one.stats().disconnects, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_subscriber_receives_the_gap_after_its_last_message() {
    let small = "max_payload: 65536\nmax_pending: 131072\nwrite_deadline: \"500ms\"";
    let server = NatsServer::configured(small).await;
    let (one, two) = (connect(&server, "one").await, connect(&server, "two").await);
    let mut slow = two.subscribe();
    let interest = two.interest(&channel("c"));
    ready(&interest).await;
    // More bytes than the subscriber's queue and the socket buffers hold: the server drops the rest, and
    // closes the connection.
    let (padding, sent) = ("x".repeat(1_000), 60_000);
    for begin in (0..sent).step_by(100) {
        let batch = (begin..begin + 100).map(|n| donation("c", &format!("{n} {padding}"))).collect();
        assert!(one.publish_all(batch).await.is_empty(), "publishers are not held up");
    }
    let mut expected = 0;
    loop {
        let delivery = next(&mut slow).await;
        if delivery == "gap" {
            break;
        }
        let number = delivery.strip_prefix("c ").and_then(|text| text.split(' ').next()).expect("a number");
        assert_eq!(number.parse::<usize>().expect("a number"), expected);
        expected += 1;
    }
    assert!(expected < sent, "something was dropped");
    one.publish(donation("c", "after")).await;
    assert_eq!(next(&mut slow).await, "c after");
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_messages_count_as_lost() {
    let server = NatsServer::start().await;
    let one = connect(&server, "one").await;
    let mut subscriber = one.subscribe();
    let interest = one.interest(&channel("a.b"));
    ready(&interest).await;
    let mut raw = TcpStream::connect(server.address()).await.expect("it listens");
    let junk = "CONNECT {}\r\nPUB stagedoor.node.one 4\r\njunk\r\nPUB stagedoor.event.a~2Eb 4\r\njunk\r\n";
    raw.write_all(junk.as_bytes()).await.expect("it takes it");
    assert_eq!(next(&mut subscriber).await, "lost a.b");
    assert_eq!(one.stats().malformed, 2);
    one.publish(donation("a.b", "good")).await;
    assert_eq!(next(&mut subscriber).await, "a.b good");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_checked() {
    let server =
        NatsServer::configured("authorization { user: me, password: \"s@cret:\", timeout: 1 }").await;
    let url = |login: &str| server.url().replace("nats://", &format!("nats://{login}@"));
    let good = NatsBus::connect(options(&url("me:s%40cret%3A"), "one")).await.expect("it is let in");
    assert!(good.publish(donation("c", "x")).await.is_empty());
    let refused = NatsBus::connect(options(&url("me:guess"), "one")).await.expect_err("it is refused");
    let error = refused.to_string();
    assert!(error.contains("Authorization Violation") && error.contains("10 s"), "{error}");
    assert!(!error.contains("guess"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_bus_does_not_start() {
    let mut server = NatsServer::start().await;
    server.stop().await;
    let refused = NatsBus::connect(options(&server.url(), "one")).await.expect_err("no server is there");
    let error = refused.to_string();
    let begin = format!("the bus at {} was not reached within 10 s: ", server.url());
    assert!(error.starts_with(&begin) && error.to_lowercase().contains("refused"), "{error}");
}
