//! A crowd of hostile peers of every kind, against the program in a separate process. Within a minute all
//! their descriptors are free, and all their memory but 20 MiB.

use std::time::Duration;

use testkit::{Api, Connection, Request, frame, text, while_running};

use super::crowd::Crowd;
use super::sessions::{session, session_queries, upgrade_request};
use super::silence::open_polling;
use crate::cli::process::Sandbox;

/// Number of peers of each kind without a session.
const MANY: usize = 200;
/// Number of peers of each kind with a session.
const SOME: usize = 60;
/// Deadline for closing HTTP connections that send or read nothing: 30 s, and some seconds more.
const LET_GO_WITHIN: Duration = Duration::from_secs(36);
/// Descriptors for the calls of the crowd's streamer.
const SPARE: usize = 4;
/// Deadline for freeing all resources.
const FREE_WITHIN: Duration = Duration::from_secs(60);
/// Maximum of the crowd's p99 from call to arrival. It is some 10 ms on an idle machine; tests share theirs.
const P99_MAX: Duration = Duration::from_secs(2);
/// Maximum growth of the memory, in bytes.
const MEMORY_MAX: u64 = 20 * 1024 * 1024;

/// Peers that keep their connections until the server closes them, or until they are dropped.
async fn attack(api: &Api, round: &str) -> Vec<Connection> {
    let address = api.address();
    let mut peers = Vec::new();
    for _ in 0..MANY {
        // An idle connection, half a head, half a body, and answers that are never read.
        peers.push(Connection::open(address).await);
        let mut slow = Connection::open(address).await;
        slow.write(b"GET /socket.io/?EIO=3 HTTP/1.1\r\nHost: localhost\r\nA: ").await;
        peers.push(slow);
        let mut half = Connection::open(address).await;
        half.write(b"POST /auth/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{").await;
        peers.push(half);
    }
    let pipelined = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200);
    for _ in 0..SOME {
        let unread = Connection::open_narrow(address).await;
        unread.try_write(pipelined.as_bytes());
        peers.push(unread);
    }
    let flood = text("6").repeat(500);
    let kinds: [&[u8]; 6] = [
        &flood,
        b"\x81\xfe\x3f\x00\0\0\0\0half of a frame of 16 KiB",
        b"\x81\x012",
        &frame(0x89, b"").repeat(500),
        &frame(0x01, &[b'4'; 9_000]),
        b"",
    ];
    for (number, query) in
        session_queries(api, &format!("{round}-ws"), SOME * kinds.len()).await.iter().enumerate()
    {
        let mut peer = session(address, query, [2, 3, 4][number % 3]).await;
        peer.write(kinds[number % kinds.len()]).await;
        peers.push(peer.connection);
    }
    for query in session_queries(api, &format!("{round}-poll"), SOME).await {
        let query = open_polling(address, &query, 3).await;
        let mut peer = Connection::open(address).await;
        peer.begin(&upgrade_request(&query)).await;
        peers.push(peer);
        let mut poll = Connection::open(address).await;
        poll.begin(&Request::get(format!("/socket.io/?{query}"))).await;
        peers.push(poll);
    }
    peers
}

#[tokio::test(flavor = "multi_thread")]
async fn all_resources_are_freed_within_a_minute() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--no-quota"]).await;
    let crowd = Crowd::gather(&sandbox.api, "haneul", 10).await;
    // A first round, so that permanent memory (allocator, caches, connections to the store) exists before the
    // measurement.
    drop(attack(&sandbox.api, "first").await);
    crowd.ping().await;
    wait_until_free(&sandbox, sandbox_baseline(&crowd)).await;
    crowd.ping().await;
    let (descriptors, memory) = (sandbox.descriptors(), sandbox.memory());

    let peers = attack(&sandbox.api, "second").await;
    assert!(sandbox.descriptors() > descriptors + MANY, "they were all there at once");
    crowd.ping().await;
    // The server has closed peers that send no request or read no answer. Three kinds of silent websockets
    // and polls remain, which have longer deadlines.
    tokio::time::sleep(LET_GO_WITHIN).await;
    let held = sandbox.descriptors() - descriptors;
    assert!(held <= 4 * SOME + SPARE, "{held} descriptors are held after {LET_GO_WITHIN:?}");
    crowd.ping().await;
    // These peers disconnect, half of them with a reset.
    for (number, peer) in peers.into_iter().enumerate() {
        if number % 2 == 0 {
            peer.reset();
        }
    }
    wait_until_free(&sandbox, descriptors).await;
    let grown = sandbox.memory().saturating_sub(memory);
    assert!(grown <= MEMORY_MAX, "the memory has grown by {grown} bytes");
    let p99 = crowd.disperse().await;
    println!("99 of 100 messages reached the crowd within {p99:?}; the memory has grown by {grown} bytes");
    assert!(p99 < P99_MAX, "the crowd noticed: {p99:?}");
    let log = std::fs::read_to_string(sandbox.log_path()).expect("the log");
    assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
    sandbox.signal("TERM").await;
    assert_eq!(sandbox.end().await.0.code(), Some(0));
}

/// More descriptors than a node with only the crowd uses.
fn sandbox_baseline(crowd: &Crowd) -> usize {
    60 + crowd.size() as usize
}

async fn wait_until_free(sandbox: &Sandbox, descriptors: usize) {
    let free = async {
        while sandbox.descriptors() > descriptors + SPARE {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = while_running(FREE_WITHIN, free).await;
    assert!(waited.is_some(), "{} descriptors are open instead of {descriptors}", sandbox.descriptors());
}
