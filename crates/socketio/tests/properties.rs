//! Property tests: encoded packets decode to the same packets, the cut of a stream does not matter, and no
//! input makes a parser panic.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::*;

use socketio::packet::{self, SocketPacketRef};
use socketio::payload::{self, Framing, Item, PayloadError};
use socketio::websocket::{Decoder, Event, WsError};
use socketio::{CloseReason, Frame, Open, Revision, Session, Timing};
use wire_client::frame_with_mask;

const MAX_BODY: usize = 1 << 20;

fn text_packet() -> impl Strategy<Value = String> {
    ("[0-6]", prop_oneof![".{0,40}", "[a-z\u{80}-\u{ff}가-힣😀-😎:0-9]{0,20}"])
        .prop_map(|(kind, data)| format!("{kind}{data}"))
}

/// Whether a text may be treated as the double encoding of old clients, see `payload`.
fn may_be_double_encoded(packet: &str) -> bool {
    let bytes: Option<Vec<u8>> = packet.chars().map(|ch| u8::try_from(u32::from(ch)).ok()).collect();
    !packet.is_ascii() && bytes.is_some_and(|bytes| std::str::from_utf8(&bytes).is_ok())
}

/// Frames that are mostly valid, so that the decoder accepts their headers.
fn client_frame() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        8 => Just(0x81_u8), 2 => Just(0x82), 3 => Just(0x01), 3 => Just(0x00), 3 => Just(0x80),
        2 => Just(0x89), 1 => Just(0x8a), 1 => Just(0x88), 1 => any::<u8>(),
    ];
    let payload = prop_oneof![
        text_packet().prop_map(String::into_bytes),
        vec(any::<u8>(), 0..140),
        Just(vec![0x03, 0xe8]),
    ];
    (first, any::<[u8; 4]>(), payload)
        .prop_map(|(first, mask, payload)| frame_with_mask(first, mask, &payload))
}

type Outcome = (Vec<String>, Result<(), WsError>);

fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let (mut decoder, mut log) = (Decoder::new(300), Vec::new());
    for piece in pieces {
        let end = decoder.decode(&mut piece.to_vec(), |event| {
            log.push(format!("{event:?}"));
            Ok(())
        });
        if end.is_err() {
            return (log, end);
        }
    }
    (log, Ok(()))
}

proptest! {
    #[test]
    fn bodies_of_text_packets_decode_to_themselves(packets in vec(text_packet(), 1..20)) {
        prop_assume!(!packets.iter().any(|packet| may_be_double_encoded(packet)));
        for framing in [Framing::Text, Framing::Binary, Framing::Records] {
            if framing == Framing::Records && packets.iter().any(|packet| packet.contains('\u{1e}')) {
                continue;
            }
            let body = payload::encode(framing, packets.iter().map(|packet| packet.as_bytes()));
            let items: Vec<_> = packets.iter().map(|packet| Item::Text(Cow::from(packet))).collect();
            prop_assert_eq!(payload::decode(framing, &body, MAX_BODY), Ok(items));
        }
    }

    #[test]
    fn text_encoded_twice_by_old_clients_decodes_to_the_original(data in "[ -~가-힣😀-😎é]{0,40}") {
        let packet = format!("4{data}");
        let twice: String = packet.bytes().map(char::from).collect();
        let body = format!("{}:{twice}", packet.len());
        let items = vec![Item::Text(packet.into())];
        prop_assert_eq!(payload::decode(Framing::Text, body.as_bytes(), MAX_BODY), Ok(items));
    }

    #[test]
    fn binary_messages_decode_to_themselves(data in vec(any::<u8>(), 0..300)) {
        let encoded = {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(&data)
        };
        let length: Vec<u8> = (data.len() + 1).to_string().bytes().map(|digit| digit - b'0').collect();
        let binary = [&[1][..], &length, &[0xff, 4], &data].concat();
        for (framing, body) in [
            (Framing::Text, format!("{}:b4{encoded}", encoded.len() + 2).into_bytes()),
            (Framing::Binary, binary),
            (Framing::Records, format!("b{encoded}").into_bytes()),
        ] {
            let kind = if framing == Framing::Records { &[][..] } else { &[4] };
            let items = vec![Item::Binary([kind, &data].concat().into())];
            prop_assert_eq!(payload::decode(framing, &body, MAX_BODY), Ok(items));
        }
    }

    #[test]
    fn no_body_makes_the_payload_decoder_panic(body in prop_oneof![
        vec(any::<u8>(), 0..200),
        vec(prop::sample::select(vec![0, 1, 4, 9, 0xff, 0x1e, b'0', b'1', b'2', b':', b'b', b'4', 0xea, 0xb0]), 0..60),
        "([0-9]{1,2}:[0-6b:가é😀]{0,5}){1,4}".prop_map(String::into_bytes),
    ]) {
        for framing in [Framing::Text, Framing::Binary, Framing::Records] {
            match payload::decode(framing, &body, 150) {
                Ok(items) => prop_assert!(items.len() <= payload::MAX_PACKETS && body.len() <= 150),
                Err(error) => prop_assert_eq!(error == PayloadError::TooBig, body.len() > 150),
            }
        }
    }

    #[test]
    fn a_stream_of_frames_decodes_the_same_for_any_cut(
        frames in vec(client_frame(), 1..8),
        sizes in vec(1_usize..40, 1..8),
    ) {
        let stream = frames.concat();
        let mut pieces = Vec::new();
        let mut rest = &stream[..];
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, tail) = rest.split_at(rest.len().min(*size));
            pieces.push(piece);
            rest = tail;
        }
        prop_assert_eq!(run(pieces), run([&stream[..]]));
    }

    #[test]
    fn random_bytes_never_make_the_websocket_decoder_panic_or_keep_more_than_the_limit(
        bytes in vec(any::<u8>(), 0..600),
        cut in 0_usize..600,
    ) {
        let (head, tail) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(run([head, tail]), run([&bytes[..]]));
        let mut decoder = Decoder::new(300);
        let _ = decoder.decode(&mut bytes.clone(), |_: Event<'_>| Ok::<(), WsError>(()));
        prop_assert!(decoder.heap_bytes() <= 2 * (300 + 14) + 300 + 64);
    }

    #[test]
    fn a_frame_returns_its_packet(packet in ".{1,300}") {
        let frame = Frame::text(&packet);
        prop_assert_eq!(frame.packet(), packet.as_bytes());
    }

    #[test]
    fn the_argument_of_an_event_is_ascii_and_parses_to_the_original(text in "\\PC{0,80}|[\u{0}-\u{ff}]{0,80}|.{0,80}") {
        let frame = packet::event("CHAT", &text);
        let encoded = std::str::from_utf8(frame.packet()).unwrap();
        prop_assert!(encoded.is_ascii());
        prop_assert!(!encoded.bytes().any(|byte| byte < 0x20));
        let argument = encoded.strip_prefix("42[\"CHAT\",\"").and_then(|rest| rest.strip_suffix("\"]")).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(&unescape(argument)).unwrap(), text);
    }

    #[test]
    fn no_text_makes_a_session_panic(
        revision in prop::sample::select(vec![Revision::V2, Revision::V3, Revision::V4]),
        packets in vec(prop_oneof![text_packet(), "4[0-6][/a-z?,0-9\\-\\[\\]{}\"한]{0,12}", ".{0,20}"], 0..30),
    ) {
        let open = Open { revision, sid: "s", may_upgrade: true, timing: Timing::default(), max_payload: 1 };
        let mut emitted = 0_usize;
        let mut session = Session::open(&open, 0, |_| emitted += 1);
        for (now, packet) in packets.iter().enumerate() {
            let _ = SocketPacketRef::parse(packet);
            let before = emitted;
            let end: Result<_, CloseReason> = session.on_packet(now as u64, "s", packet, |_| emitted += 1);
            prop_assert!(emitted <= before + 1, "at most one answer to a packet");
            if end.is_err() {
                break;
            }
        }
    }
}

/// The reverse of JSON's string escapes, written down independently of the crate.
fn unescape(json: &str) -> String {
    let mut units = Vec::new();
    let mut chars = json.chars();
    while let Some(ch) = chars.next() {
        let unit = match ch {
            '\\' => match chars.next().expect("an escape has a letter") {
                'n' => 10,
                'r' => 13,
                't' => 9,
                'u' => {
                    let hex: String = chars.by_ref().take(4).collect();
                    u16::from_str_radix(&hex, 16).expect("four hex digits")
                }
                other => {
                    assert!(matches!(other, '"' | '\\'), "{other}");
                    other as u16
                }
            },
            '"' => panic!("a quote that is not escaped"),
            other => other as u16,
        };
        units.push(unit);
    }
    String::from_utf16(&units).expect("surrogates in pairs")
}
