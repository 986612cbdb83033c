//! The rules of a session: pings, deadlines, floods, and the packets that a client may send.

use socketio::session::{
    CONNECT_TIMEOUT_MS, FLOOD_PACKETS, FLOOD_WINDOW_MS, MAX_PING_BYTES, MAX_REFUSED_NAMESPACES,
};
use socketio::{CloseReason, Open, Revision, Session, Signal, Timing};

const TIMING: Timing = Timing { ping_interval_ms: 25_000, ping_timeout_ms: 60_000 };
const START: u64 = 1_000;

struct Peer {
    session: Session,
    frames: Vec<String>,
}

impl Peer {
    fn open(revision: Revision) -> Self {
        let open = Open { revision, sid: "sid", may_upgrade: false, timing: TIMING, max_payload: 16_384 };
        let mut frames = Vec::new();
        let session =
            Session::open(&open, START, |frame| frames.push(String::from_utf8_lossy(frame.packet()).into()));
        Self { session, frames }
    }

    /// An open session without any packet of the client.
    fn connected(revision: Revision) -> Self {
        let mut peer = Self::open(revision);
        if revision == Revision::V4 {
            assert_eq!(peer.packet(START, "40"), Ok(Signal::Connected));
        }
        peer.frames.clear();
        peer
    }

    fn packet(&mut self, now: u64, text: &str) -> Result<Signal, CloseReason> {
        let frames = &mut self.frames;
        self.session
            .on_packet(now, "sid", text, |frame| frames.push(String::from_utf8_lossy(frame.packet()).into()))
    }

    fn binary(&mut self, now: u64, data: &[u8]) -> Result<(), CloseReason> {
        let frames = &mut self.frames;
        self.session.on_binary(now, "sid", data, |frame| {
            frames.push(String::from_utf8_lossy(frame.packet()).into());
        })
    }

    fn tick(&mut self, now: u64) -> Result<(), CloseReason> {
        let frames = &mut self.frames;
        self.session.on_tick(now, |frame| frames.push(String::from_utf8_lossy(frame.packet()).into()))
    }
}

#[test]
fn revisions_2_and_3_are_connected_as_soon_as_they_are_open() {
    for revision in [Revision::V2, Revision::V3] {
        let peer = Peer::open(revision);
        assert!(peer.session.is_connected());
        assert_eq!(peer.frames[1], "40");
    }
}

#[test]
fn revision_4_is_connected_once_it_asked() {
    let mut peer = Peer::open(Revision::V4);
    assert!(!peer.session.is_connected());
    assert_eq!(peer.frames.len(), 1, "no 40 unasked");
    assert_eq!(peer.packet(START, "40{\"token\":\"t\"}"), Ok(Signal::Connected));
    assert!(peer.session.is_connected());
    assert_eq!(peer.frames[1], "40{\"sid\":\"sid\"}");
    assert_eq!(peer.packet(START, "40"), Err(CloseReason::ProtocolError));
}

#[test]
fn an_extra_connect_of_an_old_client_is_ignored() {
    for text in ["40", "40/", "40/?a=1"] {
        let mut peer = Peer::connected(Revision::V3);
        assert_eq!(peer.packet(START, text), Ok(Signal::Nothing));
        assert_eq!(peer.frames, [""; 0]);
    }
}

#[test]
fn a_silent_client_of_revision_3_is_closed_after_interval_and_timeout() {
    let mut peer = Peer::connected(Revision::V3);
    assert_eq!(peer.session.deadline(), START + 85_000);
    assert_eq!(peer.tick(START + 84_999), Ok(()));
    // Any packet is a sign of life, not only a ping.
    assert_eq!(peer.packet(START + 84_999, "42[\"x\"]"), Ok(Signal::Nothing));
    assert_eq!(peer.session.deadline(), START + 84_999 + 85_000);
    assert_eq!(peer.tick(START + 85_000), Ok(()));
    assert_eq!(peer.tick(peer.session.deadline()), Err(CloseReason::PingTimeout));
}

#[test]
fn the_server_pings_revision_4_and_closes_without_a_timely_pong() {
    let mut peer = Peer::connected(Revision::V4);
    assert_eq!(peer.session.deadline(), START + 25_000);
    assert_eq!(peer.tick(START + 24_999), Ok(()));
    assert_eq!(peer.frames, [""; 0]);
    assert_eq!(peer.tick(START + 25_000), Ok(()));
    assert_eq!(peer.frames, ["2"]);
    assert_eq!(peer.session.deadline(), START + 85_000);
    assert_eq!(peer.tick(START + 84_999), Ok(()));
    assert_eq!(peer.frames, ["2"], "one ping at a time");
    // Only a pong counts.
    assert_eq!(peer.packet(START + 84_999, "42[\"x\"]"), Ok(Signal::Nothing));
    assert_eq!(peer.session.deadline(), START + 85_000);

    assert_eq!(peer.packet(START + 84_999, "3"), Ok(Signal::Nothing));
    assert_eq!(peer.session.deadline(), START + 84_999 + 25_000);
    assert_eq!(peer.tick(peer.session.deadline()), Ok(()));
    assert_eq!(peer.tick(peer.session.deadline()), Err(CloseReason::PingTimeout));
}

#[test]
fn a_client_of_revision_4_that_never_connects_is_closed() {
    let mut peer = Peer::open(Revision::V4);
    assert_eq!(peer.tick(START + 25_000), Ok(()));
    assert_eq!(peer.packet(START + 25_010, "3"), Ok(Signal::Nothing));
    assert_eq!(peer.session.deadline(), START + CONNECT_TIMEOUT_MS);
    assert_eq!(peer.tick(START + CONNECT_TIMEOUT_MS - 1), Ok(()));
    assert_eq!(peer.tick(START + CONNECT_TIMEOUT_MS), Err(CloseReason::ConnectTimeout));
}

#[test]
fn a_ping_is_echoed_with_its_data() {
    let longest = "x".repeat(MAX_PING_BYTES);
    for data in ["", "probe", "한", &longest] {
        let mut peer = Peer::connected(Revision::V3);
        assert_eq!(peer.packet(START, &format!("2{data}")), Ok(Signal::Nothing));
        assert_eq!(peer.frames, [format!("3{data}")]);
    }
    let mut peer = Peer::connected(Revision::V3);
    assert_eq!(peer.packet(START, &format!("2x{longest}")), Ok(Signal::Nothing));
    assert_eq!(peer.frames, ["3"], "data that is too long is not echoed");
}

#[test]
fn each_client_packet_ends_the_session_or_is_accepted() {
    use CloseReason::{ClientGoodbye, ProtocolError};
    use Revision::{V3, V4};
    let cases: &[(Revision, &str, Result<Signal, CloseReason>)] = &[
        (V3, "1", Err(ClientGoodbye)),
        (V4, "1", Err(ClientGoodbye)),
        (V3, "41", Err(ClientGoodbye)),
        (V4, "41", Err(ClientGoodbye)),
        (V3, "41/nope", Ok(Signal::Nothing)),
        (V4, "41/nope,", Ok(Signal::Nothing)),
        (V3, "3", Ok(Signal::Nothing)),
        (V4, "3", Ok(Signal::Nothing)),
        (V4, "2", Err(ProtocolError)),
        (V4, "2probe", Err(ProtocolError)),
        (V3, "6", Ok(Signal::Nothing)),
        (V3, "7", Err(ProtocolError)),
        (V3, "", Err(ProtocolError)),
        (V3, "4", Err(ProtocolError)),
        (V3, "45[\"chat\"]", Err(ProtocolError)),
        (V3, "42[\"chat\",{}]", Ok(Signal::Nothing)),
        (V4, "427[\"chat\",{}]", Ok(Signal::Nothing)),
        (V3, "42/nope,[\"chat\"]", Ok(Signal::Nothing)),
        (V3, "433[]", Ok(Signal::Nothing)),
    ];
    for (revision, text, expected) in cases {
        let mut peer = Peer::connected(*revision);
        assert_eq!(peer.packet(START, text), *expected, "{revision:?} {text:?}");
        assert_eq!(peer.frames, [""; 0], "{revision:?} {text:?}");
    }
}

#[test]
fn revision_4_may_not_send_events_before_it_is_connected() {
    for (text, reason) in [
        ("42[\"x\"]", CloseReason::ProtocolError),
        ("430[]", CloseReason::ProtocolError),
        ("41", CloseReason::ClientGoodbye),
    ] {
        assert_eq!(Peer::open(Revision::V4).packet(START, text), Err(reason), "{text}");
    }
}

/// Stray packets that socket.io 2.0.3 ignores and socket.io 4 does not.
#[test]
fn stray_packets_are_ignored_in_revisions_2_and_3_and_end_a_session_of_revision_4() {
    for text in [
        "0{}",
        "0",
        "5",
        "b",
        "b4AAAA",
        "b0AA",
        "47",
        "4x",
        "42",
        "42[]",
        "42{}",
        "42{",
        "42[\"a\"",
        "43",
        "43[]",
        "44\"oops\"",
        "40[]",
        "401",
        "41{}",
    ] {
        for revision in [Revision::V2, Revision::V3] {
            let mut peer = Peer::connected(revision);
            assert_eq!(peer.packet(START, text), Ok(Signal::Nothing), "{text}");
            assert_eq!(peer.frames, [""; 0], "{text}");
            for _ in 1..FLOOD_PACKETS {
                assert_eq!(peer.packet(START, text), Ok(Signal::Nothing), "{text}");
            }
            assert_eq!(peer.packet(START, text), Err(CloseReason::PacketFlood), "{text}");
        }
        let mut peer = Peer::connected(Revision::V4);
        assert_eq!(peer.packet(START, text), Err(CloseReason::ProtocolError), "{text}");
    }
}

#[test]
fn binary_packets_of_revisions_2_and_3_are_ignored_except_a_ping() {
    for data in [
        &b""[..],
        b"\0",
        b"\0\x01\xff",
        b"\0\x01\xff9",
        b"\x01",
        b"\x03",
        b"\x04",
        b"\x04ab",
        b"\x05",
        b"2",
        b"\xff",
    ] {
        let mut peer = Peer::connected(Revision::V3);
        for _ in 0..FLOOD_PACKETS {
            assert_eq!(peer.binary(START, data), Ok(()), "{data:?}");
        }
        assert_eq!(peer.frames, [""; 0], "{data:?}");
        assert_eq!(peer.binary(START, data), Err(CloseReason::PacketFlood), "{data:?}");
    }
    let mut peer = Peer::connected(Revision::V2);
    assert_eq!(peer.binary(START, b"\x02x"), Ok(()));
    assert_eq!(peer.frames, ["3"]);
}

/// chzzkpy 2.1.0 encodes its packets as for polling, and sends them as a binary websocket message.
#[test]
fn a_polling_payload_in_a_binary_message_is_split_into_packets() {
    let mut peer = Peer::connected(Revision::V3);
    assert_eq!(peer.binary(START + 80_000, b"\0\x01\xff2"), Ok(()));
    assert_eq!(peer.frames, ["3"]);
    assert_eq!(peer.session.deadline(), START + 80_000 + 85_000);
    assert_eq!(peer.binary(START, b"\0\x06\xff2probe\x01\x01\xff\x04\0\x01\xff2"), Ok(()));
    assert_eq!(peer.frames, ["3", "3probe", "3"]);
    assert_eq!(peer.binary(START, b"\0\x02\xff41\0\x01\xff1"), Err(CloseReason::ClientGoodbye));

    let mut peer = Peer::connected(Revision::V3);
    let many = b"\0\x01\xff2".repeat(usize::from(FLOOD_PACKETS) + 1);
    assert_eq!(peer.binary(START, &many), Err(CloseReason::PacketFlood));
    assert_eq!(peer.frames.len(), usize::from(FLOOD_PACKETS), "each packet of a payload counts");
}

#[test]
fn binary_messages_of_revision_4_have_to_be_announced() {
    for data in [&b""[..], b"\x04\x01", b"\0\x01\xff2"] {
        let mut peer = Peer::connected(Revision::V4);
        assert_eq!(peer.binary(START, data), Err(CloseReason::ProtocolError));
    }
    let mut peer = Peer::connected(Revision::V4);
    assert_eq!(peer.packet(START, "452-[\"b\",{},{}]"), Ok(Signal::Nothing));
    assert_eq!(peer.binary(START, b"1"), Ok(()));
    // A pong may arrive between, a Socket.IO packet may not.
    assert_eq!(peer.packet(START, "3"), Ok(Signal::Nothing));
    assert_eq!(peer.binary(START, b"\x02"), Ok(()));
    assert_eq!(peer.frames, [""; 0]);
    assert_eq!(peer.binary(START, b"1"), Err(CloseReason::ProtocolError));

    let mut peer = Peer::connected(Revision::V4);
    assert_eq!(peer.packet(START, "461-0[{}]"), Ok(Signal::Nothing));
    assert_eq!(peer.packet(START, "42[\"x\"]"), Err(CloseReason::ProtocolError));
    // In revisions 2 and 3 no binary message is expected.
    let mut peer = Peer::connected(Revision::V3);
    assert_eq!(peer.packet(START, "451-[\"b\",{}]"), Ok(Signal::Nothing));
    assert_eq!(peer.packet(START, "42[\"x\"]"), Ok(Signal::Nothing));
}

#[test]
fn too_many_refused_namespaces_end_the_session() {
    for (revision, refusal) in [
        (Revision::V2, "44/n,\"Invalid namespace\""),
        (Revision::V3, "44/n,\"Invalid namespace\""),
        (Revision::V4, "44/n,{\"message\":\"Invalid namespace\"}"),
    ] {
        let mut peer = Peer::connected(revision);
        for _ in 0..MAX_REFUSED_NAMESPACES {
            assert_eq!(peer.packet(START, "40/n?token=x,"), Ok(Signal::Nothing));
        }
        assert_eq!(peer.frames, [refusal; MAX_REFUSED_NAMESPACES as usize]);
        assert_eq!(peer.packet(START, "40/n,"), Err(CloseReason::NamespaceFlood));
    }
}

#[test]
fn the_flood_limit_counts_within_one_window() {
    let mut peer = Peer::connected(Revision::V3);
    for _ in 0..FLOOD_PACKETS {
        assert_eq!(peer.packet(START, "42[\"x\"]"), Ok(Signal::Nothing));
    }
    assert_eq!(peer.packet(START + FLOOD_WINDOW_MS - 1, "2"), Err(CloseReason::PacketFlood));

    let mut peer = Peer::connected(Revision::V3);
    for window in 0..3 {
        for _ in 0..FLOOD_PACKETS {
            assert_eq!(peer.packet(START + window * FLOOD_WINDOW_MS, "2"), Ok(Signal::Nothing));
        }
    }
}

#[test]
fn binary_messages_and_websocket_pings_count_as_packets() {
    let mut peer = Peer::connected(Revision::V3);
    for _ in 0..FLOOD_PACKETS {
        assert_eq!(peer.session.on_websocket_control(START), Ok(()));
    }
    assert_eq!(peer.binary(START, b""), Err(CloseReason::PacketFlood));
    assert_eq!(peer.session.on_websocket_control(START), Err(CloseReason::PacketFlood));
    // They do not extend the deadline of Engine.IO.
    assert_eq!(peer.session.deadline(), START + 85_000);
}

#[test]
fn the_last_sign_of_life_is_a_packet_or_the_answer_to_a_ping() {
    let mut peer = Peer::connected(Revision::V3);
    assert_eq!(peer.session.last_heard(), START);
    assert_eq!(peer.packet(START + 7, "2"), Ok(Signal::Nothing));
    assert_eq!(peer.session.last_heard(), START + 7);

    let mut peer = Peer::connected(Revision::V4);
    let due = peer.session.deadline();
    assert_eq!(peer.session.last_heard(), START);
    peer.tick(due).expect("a ping");
    assert_eq!(peer.session.last_heard(), START, "the ping is not answered");
    assert_eq!(peer.packet(due + 30, "3"), Ok(Signal::Nothing));
    assert_eq!(peer.session.last_heard(), due + 30);
}
