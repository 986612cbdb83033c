//! The websocket decoder: boundary lengths, fragments cut at every byte, and every rule that a client can
//! break.

use socketio::websocket::{DEFAULT_MAX_MESSAGE_BYTES, Decoder, Event, MAX_FRAGMENTS, NO_STATUS, WsError};
use wire_client::{frame, text};

const FIN: u8 = 0x80;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Got {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close(u16),
}

impl From<Event<'_>> for Got {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Text(text) => Self::Text(text.into()),
            Event::Binary(bytes) => Self::Binary(bytes.into()),
            Event::Ping(payload) => Self::Ping(payload.into()),
            Event::Pong => Self::Pong,
            Event::Close(code) => Self::Close(code),
        }
    }
}

fn feed(decoder: &mut Decoder, bytes: &[u8], got: &mut Vec<Got>) -> Result<(), WsError> {
    decoder.decode(&mut bytes.to_vec(), |event| {
        got.push(event.into());
        Ok(())
    })
}

/// Decodes the pieces in order.
fn decode_all<'a>(limit: u32, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Got>, Result<(), WsError>) {
    let (mut decoder, mut got) = (Decoder::new(limit), Vec::new());
    for piece in pieces {
        if let Err(error) = feed(&mut decoder, piece, &mut got) {
            assert_eq!(decoder.heap_bytes(), 0, "an error frees everything");
            return (got, Err(error));
        }
    }
    (got, Ok(()))
}

/// A fragmented text message with a ping inside, a binary one, an empty one, a pong and a close.
fn conversation() -> (Vec<u8>, Vec<Got>) {
    let hangul = "안녕 😀".as_bytes();
    let stream = [
        text("2probe"),
        // The cut is inside of a character: only the whole message must be UTF-8.
        frame(1, &hangul[..4]),
        frame(0, &hangul[4..9]),
        frame(FIN | 9, b"are you there"),
        frame(0, b""),
        frame(FIN, &hangul[9..]),
        frame(FIN | 2, &[0, 0xff, 0xfe]),
        text(""),
        text(&"x".repeat(130)),
        frame(FIN | 0xa, b"pong"),
        frame(FIN | 8, b"\x03\xe9going"),
    ]
    .concat();
    let got = vec![
        Got::Text("2probe".into()),
        Got::Ping(b"are you there".into()),
        Got::Text("안녕 😀".into()),
        Got::Binary(vec![0, 0xff, 0xfe]),
        Got::Text(String::new()),
        Got::Text("x".repeat(130)),
        Got::Pong,
        Got::Close(1001),
    ];
    (stream, got)
}

#[test]
fn a_conversation_decodes_the_same_cut_at_every_byte() {
    let (stream, expected) = conversation();
    assert_eq!(decode_all(1000, [&stream[..]]), (expected.clone(), Ok(())));
    for cut in 0..=stream.len() {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(decode_all(1000, [head, tail]), (expected.clone(), Ok(())), "cut at {cut}");
    }
    for size in 1..20 {
        assert_eq!(decode_all(1000, stream.chunks(size)), (expected.clone(), Ok(())), "pieces of {size}");
    }
}

#[test]
fn no_memory_is_held_between_whole_messages() {
    let mut decoder = Decoder::new(1000);
    let mut got = Vec::new();
    feed(&mut decoder, &text("2"), &mut got).unwrap();
    assert_eq!(decoder.heap_bytes(), 0);

    let message = text("42[\"a\"]");
    feed(&mut decoder, &message[..5], &mut got).unwrap();
    assert!(decoder.heap_bytes() > 0);
    feed(&mut decoder, &message[5..], &mut got).unwrap();
    assert_eq!(decoder.heap_bytes(), 0);

    feed(&mut decoder, &frame(1, b"4"), &mut got).unwrap();
    assert!(decoder.heap_bytes() > 0);
    feed(&mut decoder, &frame(FIN, b"1"), &mut got).unwrap();
    assert_eq!(decoder.heap_bytes(), 0);
    assert_eq!(got, ["2", "42[\"a\"]", "41"].map(|text| Got::Text(text.into())));
}

#[test]
fn every_length_format_decodes_at_its_boundary() {
    for length in [0, 1, 125, 126, 127, 65_535, 65_536] {
        let payload = "k".repeat(length);
        let (got, end) = decode_all(70_000, [&text(&payload)[..]]);
        assert_eq!((got, end), (vec![Got::Text(payload)], Ok(())), "{length}");
    }
}

#[test]
fn a_message_may_be_exactly_as_long_as_the_limit() {
    let limit = DEFAULT_MAX_MESSAGE_BYTES as usize;
    let whole = text(&"m".repeat(limit));
    assert_eq!(decode_all(DEFAULT_MAX_MESSAGE_BYTES, [&whole[..]]).1, Ok(()));
    let parts = [frame(1, &vec![b'm'; limit]), frame(FIN, b"")].concat();
    assert_eq!(decode_all(DEFAULT_MAX_MESSAGE_BYTES, [&parts[..]]).1, Ok(()));
    for over in [
        // The header alone shows the length, before the payload arrives.
        text(&"m".repeat(limit + 1))[..4].to_vec(),
        [frame(1, &vec![b'm'; limit]), frame(FIN, b"m")].concat(),
        vec![FIN | 2, 0xff, 0, 0, 0, 1, 0, 0, 0, 0],
        [frame(1, b"m"), vec![FIN, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255]].concat(),
    ] {
        assert_eq!(decode_all(DEFAULT_MAX_MESSAGE_BYTES, [&over[..]]), (vec![], Err(WsError::MessageTooBig)));
    }
}

#[test]
fn every_violation_has_its_close_code() {
    use WsError::*;
    let cases: Vec<(&str, Vec<u8>, WsError, u16)> = vec![
        ("no mask", vec![FIN | 1, 1, b'2'], Unmasked, 1002),
        ("reserved bit 1", frame(FIN | 0x40 | 1, b"2"), ReservedBits, 1002),
        ("reserved bit 2", frame(FIN | 0x20 | 1, b"2"), ReservedBits, 1002),
        ("reserved bit 3", frame(FIN | 0x10 | 1, b"2"), ReservedBits, 1002),
        ("data opcode 3", frame(FIN | 3, b""), UnknownOpcode, 1002),
        ("data opcode 7", frame(FIN | 7, b""), UnknownOpcode, 1002),
        ("control opcode 11", frame(FIN | 11, b""), UnknownOpcode, 1002),
        ("control opcode 15", frame(FIN | 15, b""), UnknownOpcode, 1002),
        ("ping of 126 bytes", frame(FIN | 9, &[0; 126]), BadControlFrame, 1002),
        ("close of 126 bytes", frame(FIN | 8, &[0; 126]), BadControlFrame, 1002),
        ("fragmented ping", frame(9, b""), BadControlFrame, 1002),
        ("continuation of nothing", frame(FIN, b"x"), BadFragmentation, 1002),
        ("text inside of a text", [frame(1, b"a"), frame(FIN | 1, b"b")].concat(), BadFragmentation, 1002),
        ("binary inside of a text", [frame(1, b"a"), frame(2, b"b")].concat(), BadFragmentation, 1002),
        ("125 in two bytes", vec![FIN | 1, 0xfe, 0, 125, 0, 0, 0, 0], BadLength, 1002),
        ("65535 in eight bytes", vec![FIN | 1, 0xff, 0, 0, 0, 0, 0, 0, 255, 255], BadLength, 1002),
        ("length with its top bit", vec![FIN | 1, 0xff, 128, 0, 0, 0, 0, 1, 0, 0], BadLength, 1002),
        ("text that is not UTF-8", frame(FIN | 1, b"4\xff"), InvalidUtf8, 1007),
        ("text that is a lone surrogate", frame(FIN | 1, b"4\xed\xa0\x80"), InvalidUtf8, 1007),
        ("fragments that are not UTF-8", [frame(1, b"4\xed"), frame(FIN, b"x")].concat(), InvalidUtf8, 1007),
        ("close of one byte", frame(FIN | 8, b"\x03"), BadClose, 1002),
        ("close with a bad reason", frame(FIN | 8, b"\x03\xe8\xff"), InvalidUtf8, 1007),
        (
            "too many fragments",
            [frame(1, b""), frame(0, b"").repeat(usize::from(MAX_FRAGMENTS))].concat(),
            TooManyFragments,
            1008,
        ),
    ];
    for (what, bytes, error, code) in cases {
        assert_eq!(decode_all(1000, [&bytes[..]]), (vec![], Err(error)), "{what}");
        assert_eq!(error.close_code(), code, "{what}");
    }
}

#[test]
fn a_bad_frame_is_refused_at_its_first_bad_byte() {
    for (bytes, error) in [
        (&[FIN | 0x40 | 1][..], WsError::ReservedBits),
        (&[FIN | 3], WsError::UnknownOpcode),
        (&[FIN], WsError::BadFragmentation),
        (&[FIN | 1, 5], WsError::Unmasked),
    ] {
        assert_eq!(decode_all(1000, [bytes]), (vec![], Err(error)));
    }
}

#[test]
fn a_message_may_have_the_maximum_number_of_fragments() {
    let middle = frame(0, b"").repeat(usize::from(MAX_FRAGMENTS) - 2);
    let stream = [frame(1, b"4"), middle, frame(FIN, b"1")].concat();
    assert_eq!(decode_all(1000, [&stream[..]]), (vec![Got::Text("41".into())], Ok(())));
}

#[test]
fn only_valid_close_codes_are_accepted() {
    for code in [1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4999_u16] {
        let close = frame(FIN | 8, &code.to_be_bytes());
        assert_eq!(decode_all(1000, [&close[..]]), (vec![Got::Close(code)], Ok(())));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65_535_u16] {
        let close = frame(FIN | 8, &code.to_be_bytes());
        assert_eq!(decode_all(1000, [&close[..]]), (vec![], Err(WsError::BadClose)), "{code}");
    }
    assert_eq!(decode_all(1000, [&frame(FIN | 8, b"")[..]]), (vec![Got::Close(NO_STATUS)], Ok(())));
}

#[test]
fn input_after_a_close_or_an_error_is_ignored() {
    let close = [frame(FIN | 8, b""), text("2")].concat();
    let mut decoder = Decoder::new(1000);
    let mut got = Vec::new();
    assert_eq!(feed(&mut decoder, &close, &mut got), Ok(()));
    assert_eq!(feed(&mut decoder, &text("2"), &mut got), Ok(()));
    assert_eq!(got, [Got::Close(NO_STATUS)]);

    let mut decoder = Decoder::new(1000);
    assert_eq!(feed(&mut decoder, &frame(FIN | 3, b""), &mut got), Err(WsError::UnknownOpcode));
    assert_eq!(feed(&mut decoder, &text("2"), &mut got), Ok(()));
    assert_eq!(got.len(), 1);
}

#[test]
fn the_caller_can_stop_at_an_event() {
    let mut input = [text("1"), text("2")].concat();
    let mut seen = 0;
    let end: Result<(), socketio::CloseReason> = Decoder::new(1000).decode(&mut input, |_| {
        seen += 1;
        Err(socketio::CloseReason::ClientGoodbye)
    });
    assert_eq!((end, seen), (Err(socketio::CloseReason::ClientGoodbye), 1));
}
