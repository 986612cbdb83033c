//! Misbehaviour on a websocket, and the close reason of the session.

use testkit::{CLOSE, Connection, Setup, World, both, frame, patiently, text, websocket_request};

use super::crowd::Crowd;
use super::sessions::{opened, reason, session, session_queries};

/// Number of peers with the same misbehaviour.
const PEERS: usize = 4;

const ALL: &[u8] = &[2, 3, 4];
const OLD: &[u8] = &[2, 3];
const NEW: &[u8] = &[4];

/// One kind of misbehaviour.
struct Act {
    name: &'static str,
    revisions: &'static [u8],
    bytes: Vec<u8>,
    reason: &'static str,
}

fn act(name: &'static str, revisions: &'static [u8], bytes: Vec<u8>, reason: &'static str) -> Act {
    Act { name, revisions, bytes, reason }
}

fn acts() -> Vec<Act> {
    let half = "한".as_bytes();
    let deflated = frame(0xc1, b"\xaa\x56\x4a");
    let unmasked = b"\x81\x012".to_vec();
    let join = |frames: &[Vec<u8>]| frames.concat();
    let mut acts = vec![
        act("an unmasked frame", ALL, unmasked, "protocol_error"),
        act("a deflated frame", ALL, deflated, "protocol_error"),
        act("a continuation of nothing", ALL, frame(0x80, b"2"), "protocol_error"),
        act("a message within another", ALL, join(&[frame(0x01, b"4"), frame(0x81, b"2")]), "protocol_error"),
        act("a fragmented ping", ALL, frame(0x09, b""), "protocol_error"),
        act("a ping of 126 bytes", ALL, frame(0x89, &[0; 126]), "protocol_error"),
        act(
            "a length in a longer form",
            ALL,
            b"\x81\xfe\x00\x01\x00\x00\x00\x002".to_vec(),
            "protocol_error",
        ),
        act(
            "a thousand fragments",
            ALL,
            join(&[frame(0x01, b"4"), frame(0x00, b"2").repeat(1_000)]),
            "packet_flood",
        ),
        act("16 MiB announced", ALL, b"\x81\xff\0\0\0\0\x01\0\0\0".to_vec(), "message_too_big"),
        act("2^63 bytes announced", ALL, b"\x82\xff\x80\0\0\0\0\0\0\0".to_vec(), "protocol_error"),
        act("a message of 17 KiB", ALL, frame(0x81, &[b'4'; 17 * 1_024]), "message_too_big"),
        act(
            "17 KiB in fragments",
            ALL,
            join(&[frame(0x01, &[b'4'; 9_000]), frame(0x80, &[b'4'; 9_000])]),
            "message_too_big",
        ),
        act("half a character", ALL, join(&[frame(0x01, &half[..2]), frame(0x80, b"x")]), "invalid_utf8"),
        act("a close frame", ALL, frame(CLOSE, &1_000_u16.to_be_bytes()), "client_goodbye"),
        act("a close frame without a code", ALL, frame(CLOSE, b""), "client_goodbye"),
        act("a close frame of one byte", ALL, frame(CLOSE, b"\x03"), "protocol_error"),
        act("a close frame that says 1005", ALL, frame(CLOSE, &1_005_u16.to_be_bytes()), "protocol_error"),
        act("a close frame that says 0", ALL, frame(CLOSE, &[0, 0]), "protocol_error"),
        act("a close frame with broken text", ALL, frame(CLOSE, b"\x03\xe8\xff"), "invalid_utf8"),
        act("101 websocket pings", ALL, frame(0x89, b"").repeat(101), "packet_flood"),
        act("101 websocket pongs", ALL, frame(0x8a, b"").repeat(101), "packet_flood"),
        act("101 packets", ALL, text("6").repeat(101), "packet_flood"),
        act("101 pings", OLD, text("2").repeat(101), "packet_flood"),
        act("a client's ping", NEW, text("2"), "protocol_error"),
        act("a second connect", NEW, text("40"), "protocol_error"),
        act("nine unknown namespaces", ALL, text("40/admin,").repeat(9), "namespace_flood"),
        act("a namespace of 200 characters", ALL, text(&format!("40/{}", "n".repeat(200))), "protocol_error"),
        act("an attachment that was not announced", NEW, frame(0x82, b"\x04x"), "protocol_error"),
        act(
            "a text where an attachment is due",
            NEW,
            join(&[text("451-[\"x\"]"), text("42[\"x\"]")]),
            "protocol_error",
        ),
        act("eleven attachments", ALL, text("4511-[\"x\"]"), "protocol_error"),
        act("an event that is no array", NEW, text("42{}"), "protocol_error"),
        act("an empty message", ALL, text(""), "protocol_error"),
        act("an unknown packet", ALL, text("9"), "protocol_error"),
        act("an open packet", NEW, text("0{}"), "protocol_error"),
        act("an upgrade of nothing", NEW, text("5"), "protocol_error"),
        act("a refusal", NEW, text("44\"no\""), "protocol_error"),
        act("a goodbye", ALL, text("41"), "client_goodbye"),
        act("an Engine.IO goodbye", ALL, text("1"), "client_goodbye"),
        act("HTTP on a websocket", ALL, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), "protocol_error"),
    ];
    for opcode in [3, 7, 11, 15] {
        acts.push(act("an unknown opcode", NEW, frame(0x80 | opcode, b""), "protocol_error"));
    }
    for bit in [0x40, 0x20, 0x10] {
        acts.push(act("a reserved bit", OLD, frame(0x81 | bit, b"2"), "protocol_error"));
    }
    acts
}

/// Odd but allowed input, which has no answer.
fn oddities() -> Vec<(&'static [u8], Vec<u8>)> {
    let strays = [
        text("0{}"),
        text("5"),
        text("47"),
        text("42{}"),
        text("44\"no\""),
        text("b4AAAA"),
        frame(0x82, b""),
        frame(0x82, b"\x04x"),
        frame(0x82, b"\0\x09\xff2"),
        [text("451-[\"x\"]"), text("42[\"x\"]")].concat(),
    ];
    let allowed = vec![
        text("430[\"not requested\"]"),
        text("42[\"an event\",{\"that\":\"ignored\"}]"),
        text(&format!("42[\"{}\"]", "x".repeat(16_000))),
        [text("452-[\"x\"]"), frame(0x82, b"\x01"), frame(0x82, b"")].concat(),
        [frame(0x01, b""), frame(0x00, b"6"), frame(0x80, b"")].concat(),
        [frame(0x01, b"4"), frame(0x89, b"within"), frame(0x80, b"2[1]")].concat(),
        text("6").repeat(40),
        text("41/elsewhere,"),
    ];
    let strays = strays.into_iter().map(|bytes| (OLD, bytes));
    allowed.into_iter().map(|bytes| (ALL, bytes)).chain(strays).collect()
}

/// Waits until this many more sessions have ended for a reason.
pub async fn until_closed(world: &World, reason: &str, count: u64) {
    patiently(&format!("{count} sessions end as {reason}"), async {
        while world.sockets().await.closed(reason) < count {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(world.sockets().await.closed(reason), count, "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_misbehaviour_ends_its_session_with_its_own_reason() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 10).await;
        for (number, act) in acts().into_iter().enumerate() {
            let queries =
                session_queries(&world, &format!("act-{number}"), PEERS * act.revisions.len()).await;
            let before = world.sockets().await;
            let mut peers = Vec::new();
            for (query, revision) in queries.iter().zip(act.revisions.iter().cycle()) {
                peers.push(session(world.address(), query, *revision).await);
            }
            for peer in &mut peers {
                peer.write(&act.bytes).await;
            }
            for peer in &mut peers {
                assert_eq!(reason(peer).await.as_deref(), Some(act.reason), "{}", act.name);
            }
            until_closed(&world, act.reason, before.closed(act.reason) + peers.len() as u64).await;
        }
        crowd.ping().await;
        assert_eq!(crowd.alone(&world, 0).await.queued_bytes, 0);
        crowd.disperse().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_but_allowed_packets_end_no_session() {
    both(Setup::default(), |world| async move {
        for (number, (revisions, bytes)) in oddities().into_iter().enumerate() {
            let queries = session_queries(&world, &format!("odd-{number}"), revisions.len()).await;
            for (query, revision) in queries.iter().zip(revisions) {
                let mut peer = session(world.address(), query, *revision).await;
                peer.write(&bytes).await;
                peer.write(&frame(0x89, b"still there?")).await;
                loop {
                    match peer.frame().await.expect("the session goes on") {
                        (0x8a, payload) if payload == b"still there?" => break,
                        (0x8a, _) => continue,
                        other => panic!("{other:?} is the answer to oddity {number}"),
                    }
                }
                peer.finish_writing().await;
            }
        }
        let peers: usize = oddities().iter().map(|(revisions, _)| revisions.len()).sum();
        until_closed(&world, "transport_closed", peers as u64).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flood_limit_is_exact() {
    both(Setup::default(), |world| async move {
        let queries = session_queries(&world, "flood", 3).await;
        for (query, revision) in queries.iter().zip(ALL) {
            // A client of revision 4 has already sent its connect packet.
            let packets = if *revision == 4 { 98 } else { 99 };
            let mut peer = session(world.address(), query, *revision).await;
            peer.write(&text("6").repeat(packets)).await;
            peer.write(&frame(0x89, b"the hundredth")).await;
            assert_eq!(peer.frame().await, Some((0x8a, b"the hundredth".to_vec())));
            peer.write(&text("6")).await;
            assert_eq!(reason(&mut peer).await.as_deref(), Some("packet_flood"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compression_is_declined_and_not_used() {
    both(Setup::default(), |world| async move {
        let query = &session_queries(&world, "deflate", 1).await[0];
        let mut peer = Connection::open(world.address()).await;
        let request = websocket_request(&format!("{query}&EIO=3&transport=websocket"))
            .header(
                "Sec-WebSocket-Extensions",
                "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame",
            )
            .header("Sec-WebSocket-Protocol", "mqtt, stomp");
        let answer = peer.send(&request).await;
        assert_eq!(answer.status, 101);
        assert_eq!(answer.header("sec-websocket-extensions"), None);
        assert_eq!(answer.header("sec-websocket-protocol"), None);
        // Frames without the bit of a compressed one.
        let (first, open) = peer.frame().await.expect("a frame");
        assert!(first == 0x81 && open.starts_with(b"0{"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_of_revision_4_comes_first() {
    both(Setup::default(), |world| async move {
        let queries = session_queries(&world, "early", 3).await;
        for (query, bytes) in queries.iter().zip([text("42[\"early\"]"), text("431[]"), text("451-[0]")]) {
            let mut peer = opened(Connection::open(world.address()).await, query, 4).await;
            peer.write(&bytes).await;
            assert_eq!(reason(&mut peer).await.as_deref(), Some("protocol_error"));
        }
    })
    .await;
}
