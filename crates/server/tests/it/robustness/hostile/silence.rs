//! Peers that disappear at each step, by closing, resetting or silence; and peers that never read.

use std::net::SocketAddr;

use serde_json::json;
use testkit::{Connection, Request, Setup, World, both, handshake, patiently, text};

use super::acts::until_closed;
use super::crowd::Crowd;
use super::sessions::{candidate, introduced, opened, session, session_queries};

/// Number of peers that disappear at the same step.
const PEERS: usize = 4;

/// The way in which a peer disappears.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Finish,
    Reset,
    Silence,
}

/// The step at which a peer disappears.
#[derive(Clone, Copy, Debug)]
enum Step {
    Connected,
    HalfAHead,
    Asked { websocket: bool },
    Opened,
    Introduced,
    HalfAFrame,
    HalfAMessage,
    PollingOpened,
    Polled,
    HalfAPost,
    UpgradeBegun,
    Probed,
}

const STEPS: [Step; 13] = [
    Step::Connected,
    Step::HalfAHead,
    Step::Asked { websocket: true },
    Step::Asked { websocket: false },
    Step::Opened,
    Step::Introduced,
    Step::HalfAFrame,
    Step::HalfAMessage,
    Step::PollingOpened,
    Step::Polled,
    Step::HalfAPost,
    Step::UpgradeBegun,
    Step::Probed,
];

/// Opens a polling session, and returns the query of its later requests.
pub async fn open_polling(address: SocketAddr, query: &str, revision: u8) -> String {
    let query = format!("{query}&EIO={revision}&transport=polling&b64=1");
    let answer = Connection::open(address).await.send(&Request::get(format!("/socket.io/?{query}"))).await;
    let answer = answer.text();
    let (_, rest) = answer.split_once(r#""sid":""#).unwrap_or_else(|| panic!("no sid: {answer}"));
    let (sid, _) = rest.split_once('"').expect("the sid ends");
    format!("{query}&sid={sid}")
}

/// All open connections of a peer at this step.
async fn up_to(step: Step, address: SocketAddr, query: &str, revision: u8) -> Vec<Connection> {
    let head = |websocket: bool, query: &str| {
        let transport = if websocket { "websocket" } else { "polling" };
        handshake("localhost", &format!("/socket.io/?{query}&EIO={revision}&transport={transport}"), "")
    };
    let request = |method: &str, query: &str, more: &str| {
        format!("{method} /socket.io/?{query} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
    };
    let polling = async || open_polling(address, query, revision).await;
    let asked = async |request: String| {
        let mut peer = Connection::open(address).await;
        peer.write(request.as_bytes()).await;
        peer
    };
    let session = async |bytes: &[u8]| {
        let mut peer = session(address, query, revision).await;
        peer.write(bytes).await;
        peer.connection
    };
    vec![match step {
        Step::Connected => Connection::open(address).await,
        Step::HalfAHead => asked(head(true, query)[..40].to_owned()).await,
        Step::Asked { websocket } => asked(head(websocket, query)).await,
        Step::Opened => opened(Connection::open(address).await, query, revision).await.connection,
        Step::Introduced => session(b"").await,
        Step::HalfAFrame => session(&text("42[\"never finished\"]")[..9]).await,
        Step::HalfAMessage => session(b"\x01\x81\0\0\0\x004\x00\x81\0").await,
        Step::PollingOpened => {
            polling().await;
            return Vec::new();
        }
        Step::Polled => asked(request("GET", &polling().await, "")).await,
        Step::HalfAPost => asked(request("POST", &polling().await, "Content-Length: 100\r\n") + "1:2").await,
        Step::UpgradeBegun | Step::Probed => {
            let mut peer = candidate(address, &polling().await).await.expect("it is let in");
            if let Step::Probed = step {
                peer.send("2probe").await;
                assert_eq!(peer.packet().await, "3probe");
            }
            peer.connection
        }
    }]
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_disappear_at_any_step_free_all_resources() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 10).await;
        let mut silent = Vec::new();
        for (number, step) in STEPS.into_iter().enumerate() {
            for way in [Way::Finish, Way::Reset, Way::Silence] {
                let queries = session_queries(&world, &format!("step-{number}-{way:?}"), PEERS).await;
                for (query, revision) in queries.iter().zip([2, 3, 4].iter().cycle()) {
                    for mut peer in up_to(step, world.address(), query, *revision).await {
                        match way {
                            Way::Finish => peer.finish_writing().await,
                            Way::Reset => peer.reset(),
                            Way::Silence => silent.push(peer),
                        }
                    }
                }
            }
        }
        // Longer than the longest silence of a session: ping interval, timeout, and the shard's check.
        crowd.live_through(&world, 25 + 60 + 5).await;
        let sockets = crowd.alone(&world, 1).await;
        let named = ["transport_closed", "ping_timeout", "connect_timeout"];
        assert_eq!(sockets.all_closed(), named.iter().map(|reason| sockets.closed(reason)).sum::<u64>());
        assert!(named.iter().all(|reason| sockets.closed(reason) > 0), "{sockets:?}");
        drop(silent);
        crowd.disperse().await;
    })
    .await;
}

/// Peers that are subscribed to a busy channel, and do not read.
async fn deaf(world: &World) -> Vec<Connection> {
    let app = world.application("deaf").create().await;
    let person = world.person("loud").create().await;
    let tokens = world.sign_in(&app, &person).await;
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        let url = world.client_session_url(&app).await.content()["url"].clone();
        let (_, query) = url.as_str().and_then(|url| url.split_once('?')).expect("an address with a query");
        let connection = Connection::open_narrow(world.address()).await;
        let (peer, key) = introduced(connection, query, 3).await;
        world.subscribe(&tokens.access, "chat", &key).await.content();
        peers.push(peer.connection);
    }
    peers
}

/// Sends this many messages, of some 18 KB each.
async fn shout(world: &World, messages: usize) {
    let emoji = |n: usize| (format!("emoji-{n}"), json!(format!("https://e.example/{}", "x".repeat(1_800))));
    let emojis: serde_json::Map<_, _> = (0..10).map(emoji).collect();
    let line = json!({
        "kind": "chat", "channelId": "loud", "senderChannelId": "loud", "message": "loud", "emojis": emojis,
    });
    let body = format!("{line}\n").repeat(messages);
    world.operator(Request::post("/platform/v1/events").body(body)).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_never_read_are_closed_when_their_queue_is_full() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 5).await;
        let peers = deaf(&world).await;
        patiently("all of them are closed", async {
            while world.sockets().await.all_closed() < peers.len() as u64 {
                shout(&world, 40).await;
            }
        })
        .await;
        until_closed(&world, "slow_consumer", peers.len() as u64).await;
        crowd.disperse().await;
        assert_eq!(world.sockets().await.queued_bytes, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_never_read_are_closed_after_ten_seconds_without_progress() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 5).await;
        let mut peers = deaf(&world).await;
        patiently("all of them are closed", async {
            while world.sockets().await.all_closed() < PEERS as u64 {
                for peer in &mut peers {
                    peer.write(&text("2")).await;
                }
                // First less than a queue holds, then the write deadline passes.
                shout(&world, 7).await;
                crowd.live_through(&world, 12).await;
            }
        })
        .await;
        until_closed(&world, "write_timeout", peers.len() as u64).await;
        crowd.disperse().await;
        assert_eq!(world.sockets().await.queued_bytes, 0);
    })
    .await;
}
