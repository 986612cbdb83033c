//! Upgrades that are not finished, or finished in violation of the protocol.

use std::net::SocketAddr;

use testkit::{Connection, Request, Response, Setup, World, both, frame, patiently, text};

use super::acts::until_closed;
use super::crowd::Crowd;
use super::sessions::{candidate, reason, session_queries, upgrade_request};
use super::silence::open_polling;

async fn request(address: SocketAddr, request: Request) -> Response {
    Connection::open(address).await.send(&request).await
}

/// The answer to a poll.
pub async fn poll(address: SocketAddr, query: &str) -> Response {
    request(address, Request::get(format!("/socket.io/?{query}"))).await
}

/// The answer to a post.
pub async fn post(address: SocketAddr, query: &str, body: impl Into<Vec<u8>>) -> Response {
    request(address, Request::post(format!("/socket.io/?{query}")).body(body)).await
}

/// A polling session whose first packets were read.
pub async fn polling(world: &World, query: &str) -> String {
    let query = open_polling(world.address(), query, 3).await;
    assert!(poll(world.address(), &query).await.text().contains("connected"));
    query
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_probe_is_closed_and_the_session_continues_polling() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 5).await;
        let probed = || text("2probe");
        let cases = [
            (text("5"), "upgrade_failed"),
            (text("2"), "upgrade_failed"),
            (text("42[\"early\"]"), "upgrade_failed"),
            ([probed(), probed()].concat(), "upgrade_failed"),
            (frame(0x82, b"\x04x"), "upgrade_failed"),
            (b"\x81\x012".to_vec(), "protocol_error"),
            (frame(0x81, b"\xff"), "invalid_utf8"),
            (frame(0x81, &[b'2'; 20_000]), "message_too_big"),
            (frame(0x89, b"").repeat(17), "packet_flood"),
            (frame(0x8a, b"").repeat(2_000), "packet_flood"),
            (frame(0x88, b"\x03\xe8"), "client_goodbye"),
        ];
        let queries = session_queries(&world, "probe", cases.len()).await;
        for (query, (bytes, reason)) in queries.iter().zip(cases) {
            let query = polling(&world, query).await;
            let mut peer = candidate(world.address(), &query).await.expect("it is let in");
            peer.write(&bytes).await;
            assert_eq!(super::sessions::reason(&mut peer).await.as_deref(), Some(reason));
            // Another websocket may try at once, and the session still works.
            patiently("the next websocket may try", async {
                loop {
                    let answer = poll_with_ping(&world, &query).await;
                    assert_eq!(answer, "1:3");
                    if candidate(world.address(), &query).await.is_ok() {
                        break;
                    }
                }
            })
            .await;
        }
        assert_eq!(world.sockets().await.all_closed(), 0);
        crowd.disperse().await;
    })
    .await;
}

async fn poll_with_ping(world: &World, query: &str) -> String {
    assert_eq!(post(world.address(), query, "1:2").await.text(), "ok");
    poll(world.address(), query).await.text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_upgrade_ends_after_ten_seconds_and_frees_its_socket() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 5).await;
        let queries = session_queries(&world, "unfinished", 20).await;
        let (mut sessions, mut peers) = (Vec::new(), Vec::new());
        for (number, query) in queries.iter().enumerate() {
            let query = polling(&world, query).await;
            let mut peer = candidate(world.address(), &query).await.expect("it is let in");
            if number % 2 == 1 {
                peer.write(&text("2probe")).await;
                assert_eq!(peer.packet().await, "3probe");
            }
            let second = request(world.address(), upgrade_request(&query)).await;
            assert_eq!(second.status, 400, "one at a time: {}", second.text());
            sessions.push(query);
            peers.push(peer);
        }
        crowd.live_through(&world, 11).await;
        for mut peer in peers {
            assert_eq!(peer.rest().await, b"");
        }
        for query in &sessions {
            assert_eq!(poll_with_ping(&world, query).await, "1:3");
        }
        assert_eq!(world.sockets().await.all_closed(), 0);
        crowd.disperse().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_session_accepts_no_polls() {
    both(Setup::default(), |world| async move {
        let queries = session_queries(&world, "upgraded", 2).await;
        for (query, confirmed_twice) in queries.iter().zip([true, false]) {
            let query = polling(&world, query).await;
            let mut peer = candidate(world.address(), &query).await.expect("it is let in");
            peer.write(&[text("2probe"), text("5"), text("2")].concat()).await;
            assert_eq!(peer.packet().await, "3probe");
            assert_eq!(peer.packet().await, "3");
            for answer in [
                poll(world.address(), &query).await,
                post(world.address(), &query, "1:2").await,
                request(world.address(), upgrade_request(&query)).await,
            ] {
                assert_eq!(answer.status, 400, "{}", answer.text());
                answer.message();
            }
            peer.write(&text("2")).await;
            assert_eq!(peer.packet().await, "3", "the websocket did not notice");
            if confirmed_twice {
                peer.write(&[text("5"), text("2")].concat()).await;
                assert_eq!(peer.packet().await, "3", "a second one is ignored");
                peer.write(&text("9")).await;
                assert_eq!(reason(&mut peer).await.as_deref(), Some("protocol_error"));
            } else {
                peer.connection.reset();
            }
        }
        until_closed(&world, "protocol_error", 1).await;
        until_closed(&world, "transport_closed", 1).await;
    })
    .await;
}
