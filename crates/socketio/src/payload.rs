//! Long-polling bodies: several packets in one HTTP body.
//!
//! | Framing | Revision | One packet | Content type |
//! |---|---|---|---|
//! | [`Framing::Text`] | 2, 3 with `b64=1` | `length:packet` | `text/plain; charset=UTF-8` |
//! | [`Framing::Binary`] | 2, 3 | `00` or `01`, length as bytes 0 to 9, `ff`, packet | `application/octet-stream` |
//! | [`Framing::Records`] | 4 | packet, separated by `1e` | `text/plain; charset=UTF-8` |
//!
//! The server sends ASCII text packets, so every client agrees on their length. Posted bodies are harder:
//! JavaScript counts UTF-16 units, some languages code points, Python bytes, and `engine.io-parser` 1.x
//! encodes text as UTF-8 twice. [`decode`] chooses the unit with which the lengths fit the whole body. `j=`
//! (JSONP) is not supported.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::engine::{PacketRef, Revision};

/// Maximum number of packets in one body.
pub const MAX_PACKETS: usize = 256;
/// Default of the maximum length of a poll or post body, in bytes.
pub const DEFAULT_MAX_BODY_BYTES: usize = 64 * 1024;

/// Separates two packets of revision 4.
const SEPARATOR: u8 = 0x1e;
/// Ends the length in the binary framing.
const LENGTH_END: u8 = 0xff;
/// Maximum number of digits of a length; ten cover 32 bits.
const MAX_LENGTH_DIGITS: usize = 10;
/// Browsers pad base64. Some libraries do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The way in which packets are joined in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// `length:packet`.
    Text,
    /// Marker, length digits, `ff`, packet.
    Binary,
    /// Packets separated by `1e`.
    Records,
}

impl Framing {
    /// The framing of an answer to a poll. `base64`: whether the query has `b64=1` (or `b64=true`).
    #[must_use]
    pub fn of_answer(revision: Revision, base64: bool) -> Self {
        match (revision, base64) {
            (Revision::V4, _) => Self::Records,
            (_, true) => Self::Text,
            (_, false) => Self::Binary,
        }
    }

    /// The framing of a posted body, chosen by its `Content-Type` header (empty if there is none).
    #[must_use]
    pub fn of_request(revision: Revision, content_type: &str) -> Self {
        const BINARY: &str = "application/octet-stream";
        let binary = content_type.get(..BINARY.len()).is_some_and(|head| head.eq_ignore_ascii_case(BINARY));
        Self::of_answer(revision, !binary)
    }

    /// The `Content-Type` of a body in this framing.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text | Self::Records => "text/plain; charset=UTF-8",
            Self::Binary => "application/octet-stream",
        }
    }
}

/// A posted body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadError {
    /// The body has more bytes than the caller allows.
    TooBig,
    /// The body has more than [`MAX_PACKETS`] packets.
    TooManyPackets,
    /// A text packet is not UTF-8.
    InvalidUtf8,
    /// Any other fault: an empty body, lengths that do not add up, an unknown packet type, bad base64.
    Malformed,
}

impl std::fmt::Display for PayloadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooBig => "body too big",
            Self::TooManyPackets => "too many packets",
            Self::InvalidUtf8 => "text is not UTF-8",
            Self::Malformed => "malformed body",
        })
    }
}

impl std::error::Error for PayloadError {}

/// One packet of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// A text packet with a known type digit. Owned only if a double UTF-8 encoding was undone.
    Text(Cow<'a, str>),
    /// A binary packet. In revisions 2 and 3 its first byte, if any, is the packet type, which may be
    /// unknown. In revision 4 it is the data of a message.
    Binary(Cow<'a, [u8]>),
}

/// Appends one text packet to a body under construction.
pub fn append(framing: Framing, packet: &[u8], body: &mut Vec<u8>) {
    match framing {
        Framing::Text => {
            push_decimal(utf16_len(packet), 0, body);
            body.extend_from_slice(b":");
        }
        Framing::Binary => {
            body.push(0);
            push_decimal(packet.len(), b'0', body);
            body.push(LENGTH_END);
        }
        Framing::Records => {
            if !body.is_empty() {
                body.push(SEPARATOR);
            }
        }
    }
    body.extend_from_slice(packet);
}

/// Encodes text packets, e.g. those of [`Frame::packet`](crate::Frame::packet), as the body of an answer.
#[must_use]
pub fn encode<'a>(framing: Framing, packets: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    for packet in packets {
        append(framing, packet, &mut body);
    }
    body
}

/// Appends the digits of `number`, each plus `zero` (the binary framing writes digits as bytes 0 to 9).
fn push_decimal(number: usize, zero: u8, body: &mut Vec<u8>) {
    body.extend(number.to_string().bytes().map(|digit| digit - zero));
}

/// UTF-16 units of UTF-8 text: one for every byte that starts a character, one more for a four-byte
/// character.
fn utf16_len(packet: &[u8]) -> usize {
    if packet.is_ascii() {
        return packet.len();
    }
    packet.iter().map(|&byte| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0)).sum()
}

/// Decodes a posted body of at most `max_bytes` bytes.
///
/// # Errors
/// A [`PayloadError`]. The caller must not process any packet of a refused body.
pub fn decode(framing: Framing, body: &[u8], max_bytes: usize) -> Result<Vec<Item<'_>>, PayloadError> {
    if body.len() > max_bytes {
        return Err(PayloadError::TooBig);
    }
    if body.is_empty() {
        return Err(PayloadError::Malformed);
    }
    match framing {
        Framing::Text => decode_text(body),
        Framing::Binary => decode_binary(body),
        Framing::Records => decode_records(body),
    }
}

/// The unit in which a client counts a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Utf16,
    CodePoint,
    Byte,
}

impl Unit {
    /// Byte offset after the first `count` units, if the text is that long and a character ends there.
    fn offset(self, text: &str, count: usize) -> Option<usize> {
        let ascii = text.as_bytes().get(..count).is_some_and(<[u8]>::is_ascii);
        if ascii || self == Self::Byte {
            return text.is_char_boundary(count).then_some(count);
        }
        let (mut at, mut left) = (0, count);
        for ch in text.chars() {
            if left == 0 {
                break;
            }
            left = left.checked_sub(if self == Self::Utf16 { ch.len_utf16() } else { 1 })?;
            at += ch.len_utf8();
        }
        (left == 0).then_some(at)
    }
}

fn decode_text(body: &[u8]) -> Result<Vec<Item<'_>>, PayloadError> {
    let body = std::str::from_utf8(body).map_err(|_| PayloadError::InvalidUtf8)?;
    let units: &[Unit] =
        if body.is_ascii() { &[Unit::Byte] } else { &[Unit::Utf16, Unit::CodePoint, Unit::Byte] };
    let mut first = Err(PayloadError::Malformed);
    for &unit in units {
        match split_text(body, unit) {
            Ok(packets) => return Ok(packets),
            Err(error) if unit == units[0] => first = Err(error),
            Err(_) => {}
        }
    }
    first
}

/// Reads `length:packet` up to the exact end of the body, with lengths in `unit`.
fn split_text(mut body: &str, unit: Unit) -> Result<Vec<Item<'_>>, PayloadError> {
    let mut items = Vec::new();
    while !body.is_empty() {
        let window = &body.as_bytes()[..body.len().min(MAX_LENGTH_DIGITS + 1)];
        let colon = memchr::memchr(b':', window).ok_or(PayloadError::Malformed)?;
        let length = decimal(window[..colon].iter().map(|&byte| byte.wrapping_sub(b'0')))?;
        let rest = &body[colon + 1..];
        let end = unit.offset(rest, length).ok_or(PayloadError::Malformed)?;
        // JavaScript clients write an empty body as `0:`.
        if end > 0 {
            push_item(&mut items, text_item(&rest[..end], true)?)?;
        }
        body = &rest[end..];
    }
    Ok(items)
}

fn decode_records(body: &[u8]) -> Result<Vec<Item<'_>>, PayloadError> {
    let body = std::str::from_utf8(body).map_err(|_| PayloadError::InvalidUtf8)?;
    let mut items = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(SEPARATOR, body.as_bytes()).chain([body.len()]) {
        push_item(&mut items, text_item(&body[start..end], false)?)?;
        start = end + 1;
    }
    Ok(items)
}

fn decode_binary(mut body: &[u8]) -> Result<Vec<Item<'_>>, PayloadError> {
    let mut items = Vec::new();
    while let Some((&marker, rest)) = body.split_first() {
        let window = &rest[..rest.len().min(MAX_LENGTH_DIGITS + 1)];
        let end = memchr::memchr(LENGTH_END, window).ok_or(PayloadError::Malformed)?;
        let length = decimal(window[..end].iter().copied())?;
        let (packet, rest) = rest[end + 1..].split_at_checked(length).ok_or(PayloadError::Malformed)?;
        let item = match (marker, packet.split_first()) {
            (0, Some(_)) => {
                let text = std::str::from_utf8(packet).map_err(|_| PayloadError::InvalidUtf8)?;
                Item::Text(known(text)?.into())
            }
            (1, _) => Item::Binary(packet.into()),
            _ => return Err(PayloadError::Malformed),
        };
        push_item(&mut items, item)?;
        body = rest;
    }
    Ok(items)
}

fn push_item<'a>(items: &mut Vec<Item<'a>>, item: Item<'a>) -> Result<(), PayloadError> {
    if items.len() == MAX_PACKETS {
        return Err(PayloadError::TooManyPackets);
    }
    items.push(item);
    Ok(())
}

/// A packet in a text body: `b…` is base64, after the digit of the packet type in revisions 2 and 3.
fn text_item(packet: &str, typed: bool) -> Result<Item<'_>, PayloadError> {
    if let Some(encoded) = packet.strip_prefix('b') {
        return if typed { typed_base64(encoded) } else { Ok(Item::Binary(base64(encoded)?.into())) };
    }
    let packet = known(packet)?;
    Ok(Item::Text(if typed { undo_double_utf8(packet) } else { packet.into() }))
}

/// A binary packet of revisions 2 and 3: its type digit becomes its first byte.
fn typed_base64(encoded: &str) -> Result<Item<'_>, PayloadError> {
    let Some((kind, encoded)) = encoded.split_at_checked(1) else {
        return if encoded.is_empty() {
            Ok(Item::Binary(Cow::default()))
        } else {
            Err(PayloadError::Malformed)
        };
    };
    let kind = kind.as_bytes()[0].wrapping_sub(b'0');
    Ok(Item::Binary([vec![kind], base64(encoded)?].concat().into()))
}

fn base64(encoded: &str) -> Result<Vec<u8>, PayloadError> {
    BASE64.decode(encoded).map_err(|_| PayloadError::Malformed)
}

fn known(packet: &str) -> Result<&str, PayloadError> {
    PacketRef::parse(packet).map(|_| packet).map_err(|_| PayloadError::Malformed)
}

/// Undoes a double encoding: `engine.io-parser` 1.x turned a packet into UTF-8, one character per byte, and
/// the request encoded that again. Such text has no character above U+00FF, and its characters taken as bytes
/// are UTF-8. Ordinary text is very unlikely to have both properties.
fn undo_double_utf8(packet: &str) -> Cow<'_, str> {
    if packet.is_ascii() || packet.chars().any(|ch| ch > '\u{ff}') {
        return packet.into();
    }
    let bytes = packet.chars().map(|ch| ch as u8).collect();
    String::from_utf8(bytes).map_or(packet.into(), Cow::Owned)
}

/// Parses a number of one to [`MAX_LENGTH_DIGITS`] digits, given as values 0 to 9.
fn decimal(digits: impl ExactSizeIterator<Item = u8>) -> Result<usize, PayloadError> {
    if digits.len() == 0 {
        return Err(PayloadError::Malformed);
    }
    let mut number: u64 = 0;
    for digit in digits {
        if digit > 9 {
            return Err(PayloadError::Malformed);
        }
        number = number * 10 + u64::from(digit);
    }
    usize::try_from(number).map_err(|_| PayloadError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = DEFAULT_MAX_BODY_BYTES;

    fn texts<'a>(packets: &[&'a str]) -> Result<Vec<Item<'a>>, PayloadError> {
        Ok(packets.iter().map(|&packet| Item::Text(packet.into())).collect())
    }

    #[test]
    fn an_answer_has_the_framing_of_its_query() {
        let packets: [&[u8]; 2] = [b"0{\"sid\":\"x\"}", b"40"];
        for (revision, base64, body, content_type) in [
            (Revision::V3, true, &b"12:0{\"sid\":\"x\"}2:40"[..], "text/plain; charset=UTF-8"),
            (Revision::V2, false, b"\0\x01\x02\xff0{\"sid\":\"x\"}\0\x02\xff40", "application/octet-stream"),
            (Revision::V4, false, b"0{\"sid\":\"x\"}\x1e40", "text/plain; charset=UTF-8"),
            (Revision::V4, true, b"0{\"sid\":\"x\"}\x1e40", "text/plain; charset=UTF-8"),
        ] {
            let framing = Framing::of_answer(revision, base64);
            assert_eq!(encode(framing, packets), body);
            assert_eq!(framing.content_type(), content_type);
        }
    }

    #[test]
    fn the_length_of_a_text_packet_is_that_of_javascript() {
        for (packet, body) in [("2", "1:2"), ("3é한", "3:3é한"), ("3😀", "3:3😀")] {
            assert_eq!(encode(Framing::Text, [packet.as_bytes()]), body.as_bytes());
        }
    }

    #[test]
    fn a_post_has_the_framing_of_its_content_type() {
        for (revision, content_type, framing) in [
            (Revision::V3, "text/plain;charset=UTF-8", Framing::Text),
            (Revision::V3, "", Framing::Text),
            (Revision::V3, "Application/Octet-Stream", Framing::Binary),
            (Revision::V2, "application/octet-stream; x", Framing::Binary),
            (Revision::V4, "application/octet-stream", Framing::Records),
        ] {
            assert_eq!(Framing::of_request(revision, content_type), framing);
        }
    }

    #[test]
    fn lengths_may_count_units_code_points_or_bytes() {
        let packets = ["42[\"한😀\"]", "2"];
        for body in ["9:42[\"한😀\"]1:2", "8:42[\"한😀\"]1:2", "13:42[\"한😀\"]1:2"] {
            assert_eq!(decode(Framing::Text, body.as_bytes(), MAX), texts(&packets), "{body}");
        }
        assert_eq!(decode(Framing::Text, "14:42[\"한😀\"]1:2".as_bytes(), MAX), Err(PayloadError::Malformed));
    }

    #[test]
    fn a_double_encoding_of_old_clients_is_undone() {
        let packet = "42[\"한\"]";
        let mangled: String = packet.bytes().map(char::from).collect();
        let body = format!("{}:{mangled}1:2", packet.len());
        assert_eq!(decode(Framing::Text, body.as_bytes(), MAX), texts(&[packet, "2"]));
        // Latin text is kept if its characters taken as bytes are not UTF-8.
        assert_eq!(decode(Framing::Text, "6:42é[1]".as_bytes(), MAX), texts(&["42é[1]"]));
    }

    #[test]
    fn binary_packets_are_read_in_all_framings() {
        for (framing, body, data) in [
            (Framing::Text, &b"6:b4AQL/1:2"[..], &b"\x04\x01\x02\xff"[..]),
            (Framing::Binary, b"\x01\x04\xff\x04\x01\x02\xff\0\x01\xff2", b"\x04\x01\x02\xff"),
            (Framing::Records, b"bAQL/\x1e2", b"\x01\x02\xff"),
            // Packet types that cannot be binary, and a missing type.
            (Framing::Text, b"4:b2AQ1:2", b"\x02\x01"),
            (Framing::Text, b"1:b1:2", b""),
            (Framing::Binary, b"\x01\x02\xff\x02\x01\0\x01\xff2", b"\x02\x01"),
            (Framing::Binary, b"\x01\0\xff\0\x01\xff2", b""),
        ] {
            let expected = Ok(vec![Item::Binary(data.into()), Item::Text("2".into())]);
            assert_eq!(decode(framing, body, MAX), expected, "{framing:?} {body:?}");
        }
        // With and without padding.
        for body in ["bAQ==", "bAQ"] {
            let expected = Ok(vec![Item::Binary(vec![1].into())]);
            assert_eq!(decode(Framing::Records, body.as_bytes(), MAX), expected);
        }
    }

    #[test]
    fn a_body_that_does_not_add_up_is_refused() {
        use PayloadError::*;
        for (framing, body, error) in [
            (Framing::Text, &b""[..], Malformed),
            (Framing::Text, b"2", Malformed),
            (Framing::Text, b":2", Malformed),
            (Framing::Text, b"2:2", Malformed),
            (Framing::Text, b"1:22", Malformed),
            (Framing::Text, b"+1:2", Malformed),
            (Framing::Text, b"1:7", Malformed),
            (Framing::Text, b"1.0:2", Malformed),
            (Framing::Text, b"00000000001:2", Malformed),
            (Framing::Text, b"9999999999:2", Malformed),
            (Framing::Text, b"2:b4AQ==", Malformed),
            (Framing::Text, b"4:b4!!", Malformed),
            (Framing::Text, "4:b\u{ac00}".as_bytes(), Malformed),
            (Framing::Text, b"3:4\xff\xff", InvalidUtf8),
            (Framing::Binary, b"\0\x01\xff", Malformed),
            (Framing::Binary, b"\0\xff2", Malformed),
            (Framing::Binary, b"\0\x0a\xff2222222222", Malformed),
            (Framing::Binary, b"\0\x002", Malformed),
            (Framing::Binary, b"\x02\x01\xff2", Malformed),
            (Framing::Binary, b"\0\0\xff", Malformed),
            (Framing::Binary, b"\0\x02\xff4\xff", InvalidUtf8),
            (Framing::Binary, b"\0\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\xff2", Malformed),
            (Framing::Records, b"2\x1e", Malformed),
            (Framing::Records, b"\x1e2", Malformed),
            (Framing::Records, b"b!!!!", Malformed),
            (Framing::Records, b"4\xff", InvalidUtf8),
        ] {
            assert_eq!(decode(framing, body, MAX), Err(error), "{framing:?} {body:?}");
        }
        assert_eq!(decode(Framing::Text, b"0:", MAX), Ok(vec![]));
    }

    #[test]
    fn the_limits_hold_at_their_boundaries() {
        for framing in [Framing::Text, Framing::Binary, Framing::Records] {
            let full = encode(framing, std::iter::repeat_n(&b"2"[..], MAX_PACKETS));
            assert_eq!(decode(framing, &full, MAX).map(|items| items.len()), Ok(MAX_PACKETS));
            let more = encode(framing, std::iter::repeat_n(&b"2"[..], MAX_PACKETS + 1));
            assert_eq!(decode(framing, &more, MAX), Err(PayloadError::TooManyPackets));
            assert!(decode(framing, &full, full.len()).is_ok());
            assert_eq!(decode(framing, &full, full.len() - 1), Err(PayloadError::TooBig));
        }
    }
}
