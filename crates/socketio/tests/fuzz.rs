//! Fuzz tests of every decoder of the wire, with mutations of the packets of clients.

use fuzz::Fuzz;
use socketio::engine::PacketRef;
use socketio::packet::{self, Kind, SocketPacketRef};
use socketio::payload::{self, Framing, Item};
use socketio::session::FLOOD_PACKETS;
use socketio::websocket::{Decoder, Event, MAX_FRAGMENTS, WsError};
use socketio::{CloseReason, Frame, Open, Revision, Session, Timing, Upgrade};
use wire_client::frame;

const MESSAGE_MAX: u32 = 300;

/// Packets of clients, as texts.
const PACKETS: &[&str] = &[
    "2",
    "3",
    "2probe",
    "5",
    "6",
    "1",
    "40",
    "41",
    "40{\"token\":\"x\"}",
    "40/chat,",
    "40/chat?a=b,{}",
    "41/chat,",
    "42[\"SYSTEM\",\"{}\"]",
    "42/chat,17[\"a\",{\"b\":[1,2,3]}]",
    "43[]",
    "430[\"ok\"]",
    "44\"no\"",
    "451-[\"x\",{\"_placeholder\":true,\"num\":0}]",
    "461-/n,7[{\"_placeholder\":true,\"num\":0}]",
    "42[\"한글😀\",\"\\ud55c\"]",
];

fn streams() -> Vec<Vec<u8>> {
    let mut streams: Vec<Vec<u8>> = PACKETS.iter().map(|packet| frame(0x81, packet.as_bytes())).collect();
    streams.push([frame(0x01, b"42[\"a"), frame(0x89, b"ping"), frame(0x80, b"\",1]")].concat());
    streams.push([frame(0x02, b"\x01"), frame(0x00, b"\x02"), frame(0x80, b"\x03")].concat());
    streams.push(frame(0x00, b"").repeat(usize::from(MAX_FRAGMENTS)));
    streams.push([frame(0x01, b""), frame(0x00, b"x").repeat(70)].concat());
    streams.push(frame(0x81, &[b'4'; 200]));
    streams.push([frame(0x8a, b""), frame(0x88, b"\x03\xe8bye"), frame(0x81, b"2")].concat());
    streams.push(b"\x81\xff\0\0\0\0\0\x01\0\0\0\0\0\0".to_vec());
    streams.push(
        [frame(0x01, "한".as_bytes().split_at(1).0), frame(0x80, "한".as_bytes().split_at(1).1)].concat(),
    );
    streams
}

type Seen = (Vec<String>, Result<(), WsError>);

/// Decodes the pieces. The decoder must never hold more than a message and a frame.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let (mut decoder, mut seen) = (Decoder::new(MESSAGE_MAX), Vec::new());
    for piece in pieces {
        let mut closed = false;
        let read = decoder.decode(&mut piece.to_vec(), |event| {
            assert!(!closed, "nothing follows a close frame");
            closed = matches!(event, Event::Close(_));
            if let Event::Text(text) = event {
                assert!(text.len() <= MESSAGE_MAX as usize);
            }
            seen.push(format!("{event:?}"));
            Ok(())
        });
        // A buffer doubles when it grows.
        assert!(decoder.heap_bytes() <= 4 * MESSAGE_MAX as usize + 256, "{} bytes", decoder.heap_bytes());
        if closed || read.is_err() {
            assert_eq!(decoder.heap_bytes(), 0, "what is over holds nothing");
            return (seen, read);
        }
    }
    (seen, Ok(()))
}

/// A second decoder, written directly after RFC 6455 sections 5.2 to 5.6: the events, and whether the input
/// is valid.
fn reference_decode(mut input: &[u8]) -> (Vec<String>, bool) {
    let (mut seen, mut message) = (Vec::new(), None::<(u8, usize, Vec<u8>)>);
    loop {
        let Some(&first) = input.first() else { return (seen, true) };
        let (fin, opcode) = (first >= 0x80, first & 0xf);
        let in_order = match opcode {
            0 => message.as_ref().is_some_and(|(_, fragments, _)| *fragments < usize::from(MAX_FRAGMENTS)),
            1 | 2 => message.is_none(),
            8..=10 => fin,
            _ => false,
        };
        // A fragmented control frame is refused at its second byte.
        if first & 0x70 != 0 || (!in_order && !(8..=10).contains(&opcode)) {
            return (seen, false);
        }
        let Some(&second) = input.get(1) else { return (seen, true) };
        if second < 0x80 || !in_order || (opcode >= 8 && second & 0x7f > 125) {
            return (seen, false);
        }
        let (start, least) = match second & 0x7f {
            126 => (4, 126),
            127 => (10, 1 << 16),
            _ => (2, 0),
        };
        let Some(extended) = input.get(2..start) else { return (seen, true) };
        let length = extended.iter().fold(0_u128, |length, byte| length << 8 | u128::from(*byte));
        let length = if start == 2 { u128::from(second & 0x7f) } else { length };
        let joined = message.as_ref().map_or(0, |(_, _, bytes)| bytes.len() as u128);
        if length < least || (opcode < 8 && joined + length > u128::from(MESSAGE_MAX)) {
            return (seen, false);
        }
        let end = start + 4 + length as usize;
        let Some(frame) = input.get(..end) else { return (seen, true) };
        let (mask, payload) = frame[start..].split_at(4);
        let payload: Vec<u8> =
            payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
        input = &input[end..];
        let whole = match opcode {
            0..=2 => {
                let (kind, fragments, mut bytes) = message.take().unwrap_or((opcode, 0, Vec::new()));
                bytes.extend(payload);
                if !fin {
                    message = Some((kind, fragments + 1, bytes));
                    continue;
                }
                (kind, bytes)
            }
            control => (control, payload),
        };
        match (whole.0, std::str::from_utf8(&whole.1)) {
            (1, Err(_)) => return (seen, false),
            (1, Ok(text)) => seen.push(format!("{:?}", Event::Text(text))),
            (2, _) => seen.push(format!("{:?}", Event::Binary(&whole.1))),
            (9, _) => seen.push(format!("{:?}", Event::Ping(&whole.1))),
            (10, _) => seen.push(format!("{:?}", Event::Pong)),
            _ => {
                let code = match whole.1.get(..2) {
                    Some(code) => u16::from_be_bytes([code[0], code[1]]),
                    None if whole.1.is_empty() => 1005,
                    None => return (seen, false),
                };
                let is_text = whole.1.is_empty() || std::str::from_utf8(&whole.1[2..]).is_ok();
                let may_be_sent =
                    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) || whole.1.is_empty();
                if is_text && may_be_sent {
                    seen.push(format!("{:?}", Event::Close(code)));
                }
                return (seen, is_text && may_be_sent);
            }
        }
    }
}

#[test]
fn fuzz_websocket_frames() {
    let tokens = [
        &b"\x81\x80"[..],
        b"\x01\x80",
        b"\0\x80",
        b"\x80\x80",
        b"\x89\xfd",
        b"\x88\x82",
        b"\x81\xfe\x01\x2c",
    ];
    Fuzz::new("websocket frames").seeds(streams()).tokens(tokens).bytes_max(2_048).run(|input| {
        let (seen, end) = read([input]);
        assert_eq!(
            (&seen, end.is_ok()),
            (&reference_decode(input).0, reference_decode(input).1),
            "read the plain way"
        );
        for size in [1, 2, 7, 125] {
            assert_eq!(read(input.chunks(size)), (seen.clone(), end), "in pieces of {size}");
        }
        let kinds: Vec<_> =
            seen.iter().filter_map(|event| event.split(['(', ' ']).next().map(str::to_owned)).collect();
        (kinds, end.err().map(|error| error.to_string()))
    });
}

/// Whether the decoder may treat this text as the double encoding of old clients.
fn may_be_double_encoded(text: &str) -> bool {
    !text.is_ascii() && text.chars().all(|ch| ch <= '\u{ff}')
}

fn bodies(framing: Framing) -> Vec<Vec<u8>> {
    let encode = |packets: &[&str]| payload::encode(framing, packets.iter().map(|packet| packet.as_bytes()));
    let mut bodies: Vec<_> = PACKETS.iter().map(|packet| encode(&[packet])).collect();
    bodies.push(encode(PACKETS));
    bodies.push(encode(&["2"; payload::MAX_PACKETS]));
    bodies.push(match framing {
        Framing::Text => "6:b4AQL/1:29:42[\"한😀\"]0:".into(),
        Framing::Binary => b"\x01\x04\xff\x04\x01\x02\xff\0\x01\xff2".to_vec(),
        Framing::Records => b"bAQL/\x1e2\x1ebAQI=".to_vec(),
    });
    bodies
}

fn fuzz_bodies(name: &'static str, framing: Framing) {
    const BODY_MAX: usize = 2_000;
    let tokens =
        [":", "0:", "1:2", "10:", "99999999999:", "-1:", "b", "b4", "\u{1e}", "é", "한", "😀", "\0\u{1}"];
    Fuzz::new(name).seeds(bodies(framing)).tokens(tokens).bytes_max(BODY_MAX + 50).run(|input| {
        let items = match payload::decode(framing, input, BODY_MAX) {
            Ok(items) => items,
            Err(error) => return Err(error.to_string()),
        };
        assert!(input.len() <= BODY_MAX && items.len() <= payload::MAX_PACKETS);
        let mut packets = Vec::new();
        for item in &items {
            match item {
                Item::Text(text) => {
                    assert!(PacketRef::parse(text).is_ok(), "{text:?}");
                    packets.push(&**text);
                }
                Item::Binary(data) => assert!(data.len() <= input.len()),
            }
        }
        let is_plain =
            packets.len() == items.len() && !packets.iter().any(|text| may_be_double_encoded(text));
        if is_plain && !items.is_empty() {
            let again = payload::encode(framing, packets.iter().map(|packet| packet.as_bytes()));
            let max = again.len();
            assert_eq!(payload::decode(framing, &again, max).as_ref(), Ok(&items), "encoded again");
        }
        Ok((packets.len().min(20), (items.len() - packets.len()).min(20)))
    });
}

#[test]
fn fuzz_text_bodies() {
    fuzz_bodies("text bodies", Framing::Text);
}

#[test]
fn fuzz_binary_bodies() {
    fuzz_bodies("binary bodies", Framing::Binary);
}

#[test]
fn fuzz_record_bodies() {
    fuzz_bodies("record bodies", Framing::Records);
}

/// A packet, encoded again.
fn written(packet: &SocketPacketRef<'_>) -> String {
    let kind = match packet.kind {
        Kind::Connect => 0,
        Kind::Disconnect => 1,
        Kind::Event => 2,
        Kind::Ack => 3,
        Kind::Error => 4,
        Kind::BinaryEvent => 5,
        Kind::BinaryAck => 6,
    };
    let attachments = if kind >= 5 { format!("{}-", packet.attachments) } else { String::new() };
    let query = packet.query.map(|query| format!("?{query}")).unwrap_or_default();
    let ack = packet.ack.map(|ack| ack.to_string()).unwrap_or_default();
    format!("{kind}{attachments}{}{query},{ack}{}", packet.namespace, packet.data)
}

#[test]
fn fuzz_packets() {
    let tokens = ["/", "/chat,", "?", ",", "-", "10-", "11-", "[", "]", "{}", "18446744073709551616", "한"];
    let seeds = PACKETS.iter().map(|packet| packet.strip_prefix('4').unwrap_or(packet));
    Fuzz::new("packets").seeds(seeds).tokens(tokens).bytes_max(400).run(|input| {
        let Ok(text) = std::str::from_utf8(input) else { return Err("not UTF-8".to_owned()) };
        if let Ok(packet) = PacketRef::parse(text) {
            assert_eq!(packet.data, &text[1..]);
        }
        let packet = SocketPacketRef::parse(text).map_err(|error| error.to_string())?;
        assert!(packet.attachments <= packet::MAX_ATTACHMENTS);
        assert!(packet.namespace.len() <= packet::MAX_NAMESPACE_BYTES && packet.namespace.is_ascii());
        let again = written(&packet);
        assert_eq!(SocketPacketRef::parse(&again), Ok(packet), "{again}");
        Ok((
            format!("{:?}", packet.kind),
            packet.ack.is_some(),
            packet.query.is_some(),
            packet.namespace.len() > 1,
        ))
    });
}

/// Each line is one packet. Each `~` advances the time by a second, `#` is a binary message, `^` a websocket
/// ping.
#[test]
fn fuzz_sessions() {
    let script = PACKETS.join("\n");
    let seeds = [
        "2\n2\n2\n~~~~~\n40\n42[\"a\"]",
        "40\n3\n3\n#",
        "451-[\"x\"]\n#\n#",
        "40/a\n40/b\n40/c",
        "^\n^\n0:",
        &script,
    ];
    let tokens = [
        "\n",
        "\n2",
        "\n40/x,",
        "\n~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
        "\n#",
        "\n#\u{2}",
        "\n^",
        "\n451-[0]\n#",
    ];
    Fuzz::new("sessions").seeds(seeds).tokens(tokens).bytes_max(1_500).run(|input| {
        let Ok(text) = std::str::from_utf8(input) else { return Vec::new() };
        [Revision::V2, Revision::V3, Revision::V4].map(|revision| play(revision, text)).to_vec()
    });
}

fn play(revision: Revision, script: &str) -> (Option<CloseReason>, usize, bool) {
    let open = Open { revision, sid: "s", may_upgrade: true, timing: Timing::default(), max_payload: 100 };
    let (mut frames, mut now, mut connected) = (0_usize, 0, 0);
    let mut session = Session::open(&open, now, |_| {});
    let mut packets = 0;
    for line in script.lines() {
        let mut out = |frame: Frame| {
            assert!(frame.packet().len() <= 400, "answers are short");
            frames += 1;
        };
        let taken = match line {
            "^" => session.on_websocket_control(now),
            binary if binary.starts_with('#') => {
                session.on_binary(now, "s", &binary.as_bytes()[1..], &mut out)
            }
            wait if wait.starts_with('~') => {
                now += 1_000 * wait.len() as u64;
                packets = 0;
                session.on_tick(now, &mut out)
            }
            text => session.on_packet(now, "s", text, &mut out).map(|signal| {
                connected += usize::from(signal == socketio::Signal::Connected);
            }),
        };
        packets += 1;
        assert!(session.deadline() > 0);
        if let Err(reason) = taken {
            return (Some(reason), frames.min(10), connected > 0);
        }
        assert!(packets <= usize::from(FLOOD_PACKETS) + 1, "more than the limit was taken without a pause");
        assert!(connected <= 1, "a session is introduced once");
    }
    assert!(frames <= script.lines().count() + 1, "no packet has more than one answer");
    (None, frames.min(10), connected > 0)
}

#[test]
fn fuzz_upgrades() {
    Fuzz::new("upgrades").seeds(["2probe\n5", "2probe\n2probe", "5"]).tokens(["\n", "2probe", "5"]).run(
        |input| {
            let Ok(text) = std::str::from_utf8(input) else { return Vec::new() };
            let mut upgrade = Upgrade::default();
            let steps: Vec<_> = text.lines().map_while(|packet| upgrade.on_packet(packet).ok()).collect();
            assert!(steps.len() <= 2 && (steps.len() < 2 || text.starts_with("2probe")));
            steps.iter().map(|step| format!("{step:?}")).collect()
        },
    );
}

#[test]
fn fuzz_events_reach_the_client_unchanged() {
    let seeds = [r#"{"content":"한글 😀 \"q\" \\"}"#, "", "\u{0}\u{1f}\u{7f}\u{2028}\u{10ffff}"];
    Fuzz::new("events").seeds(seeds).tokens(["\\", "\"", "\\u", "😀", "가"]).run(|input| {
        let text = String::from_utf8_lossy(input);
        let frame = packet::event("CHAT", &*text);
        let packet = std::str::from_utf8(frame.packet()).expect("it is a text");
        assert!(packet.is_ascii());
        let argument = packet.strip_prefix("42[\"CHAT\",").and_then(|rest| rest.strip_suffix(']'));
        let json = unescaped(argument.expect("an event of one argument"));
        assert_eq!(serde_json::from_str::<String>(&json).expect("it is JSON"), text);
        // The header of the frame contains the frame's length.
        let frame = frame.websocket();
        let header = frame.len() - packet.len();
        assert_eq!(
            (frame[0], header),
            (
                0x81,
                match packet.len() {
                    0..126 => 2,
                    126..65_536 => 4,
                    _ => 10,
                }
            )
        );
        text.is_ascii()
    });
}

/// Unescapes a JSON string without the code of the crate.
fn unescaped(json: &str) -> String {
    let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("a string");
    let (mut units, mut rest) = (Vec::new(), inner.chars());
    while let Some(ch) = rest.next() {
        assert!(ch != '"' && ch >= ' ', "{ch:?} stands bare");
        let unit = if ch != '\\' {
            ch as u16
        } else {
            match rest.next().expect("something is escaped") {
                'n' => 10,
                'r' => 13,
                't' => 9,
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    u16::from_str_radix(&digits, 16).expect("four hex digits")
                }
                plain @ ('"' | '\\') => plain as u16,
                other => panic!("{other:?} is escaped"),
            }
        };
        units.push(unit);
    }
    String::from_utf16(&units).expect("pairs of surrogates")
}
