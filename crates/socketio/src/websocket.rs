//! The server side of RFC 6455 without extensions and subprotocols, which Engine.IO does not need.
//!
//! The gateway reads into one scratch buffer per thread and passes the bytes to [`Decoder::decode`]. Whole
//! frames are unmasked and checked in place, without a copy or an allocation. Only an incomplete frame or
//! fragmented message is kept, in a box that is freed when it is complete. So an idle session costs 16 bytes
//! here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use sha1::{Digest, Sha1};

use crate::frame;

/// Default of the maximum length of a message, in bytes after joining fragments.
pub const DEFAULT_MAX_MESSAGE_BYTES: u32 = 16 * 1024;
/// Maximum number of fragments of one message. Browsers and the usual clients do not fragment messages this
/// small.
pub const MAX_FRAGMENTS: u16 = 64;
/// Largest payload of a ping, pong or close frame, in bytes (RFC 6455 section 5.5).
pub const MAX_CONTROL_BYTES: usize = 125;
/// Stands for a close frame without a code; never sent (RFC 6455 section 7.4.1).
pub const NO_STATUS: u16 = 1005;

/// The text that RFC 6455 section 1.3 appends to the key.
const ACCEPT_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Bytes of the nonce that the key encodes.
const KEY_BYTES: usize = 16;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// Whether a `Sec-WebSocket-Key` is base64 of 16 bytes.
#[must_use]
pub fn is_valid_key(key: &[u8]) -> bool {
    let mut nonce = [0; KEY_BYTES + 2];
    BASE64.decode_slice(key, &mut nonce) == Ok(KEY_BYTES)
}

/// The `Sec-WebSocket-Accept` value for a `Sec-WebSocket-Key`.
#[must_use]
pub fn accept_key(key: &[u8]) -> String {
    BASE64.encode(Sha1::new().chain_update(key).chain_update(ACCEPT_GUID).finalize())
}

/// Encodes a pong with the payload of the ping. Longer payloads than [`MAX_CONTROL_BYTES`] are cut off.
#[must_use]
pub fn pong(payload: &[u8]) -> Bytes {
    control(PONG, payload)
}

/// Encodes a close frame. A reason of more than 123 bytes is cut off at a character.
#[must_use]
pub fn close(code: u16, reason: &str) -> Bytes {
    let mut payload = code.to_be_bytes().to_vec();
    let end = reason.floor_char_boundary(MAX_CONTROL_BYTES - 2);
    payload.extend_from_slice(&reason.as_bytes()[..end]);
    control(CLOSE, &payload)
}

fn control(opcode: u8, payload: &[u8]) -> Bytes {
    let payload = &payload[..payload.len().min(MAX_CONTROL_BYTES)];
    let (header, len) = frame::header(FIN | opcode, payload.len());
    [&header[..len], payload].concat().into()
}

/// The client broke the protocol. The connection must be closed with [`WsError::close_code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WsError {
    /// A frame without mask.
    Unmasked,
    /// A reserved bit is set, but no extension was negotiated.
    ReservedBits,
    /// An opcode that RFC 6455 does not define.
    UnknownOpcode,
    /// A control frame that is fragmented or longer than [`MAX_CONTROL_BYTES`].
    BadControlFrame,
    /// A continuation without a beginning, or a new message before the last one ended.
    BadFragmentation,
    /// More than [`MAX_FRAGMENTS`] fragments.
    TooManyFragments,
    /// A length that is not written in the shortest form.
    BadLength,
    /// A message over the limit. The header alone shows it, before the payload arrives.
    MessageTooBig,
    /// A text message, or the reason of a close frame, that is not UTF-8.
    InvalidUtf8,
    /// A close frame of one byte or with a code that must not be sent.
    BadClose,
}

impl WsError {
    /// The code to close with (RFC 6455 section 7.4.1).
    #[must_use]
    pub fn close_code(self) -> u16 {
        match self {
            Self::InvalidUtf8 => 1007,
            Self::TooManyFragments => 1008,
            Self::MessageTooBig => 1009,
            Self::Unmasked
            | Self::ReservedBits
            | Self::UnknownOpcode
            | Self::BadControlFrame
            | Self::BadFragmentation
            | Self::BadLength
            | Self::BadClose => 1002,
        }
    }
}

impl std::fmt::Display for WsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unmasked => "frame without mask",
            Self::ReservedBits => "reserved bit set",
            Self::UnknownOpcode => "unknown opcode",
            Self::BadControlFrame => "fragmented or long control frame",
            Self::BadFragmentation => "bad order of fragments",
            Self::TooManyFragments => "too many fragments",
            Self::BadLength => "length not in shortest form",
            Self::MessageTooBig => "message too big",
            Self::InvalidUtf8 => "text is not UTF-8",
            Self::BadClose => "bad close frame",
        })
    }
}

impl std::error::Error for WsError {}

/// An input from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole text message.
    Text(&'a str),
    /// A whole binary message.
    Binary(&'a [u8]),
    /// A ping, to be answered with [`pong`] of the same payload.
    Ping(&'a [u8]),
    /// A pong. This server sends no pings, so it has no meaning.
    Pong,
    /// The client closes with this code ([`NO_STATUS`] if it gave none). No event follows.
    Close(u16),
}

/// Decodes client frames from a byte stream that may be cut anywhere.
#[derive(Debug)]
pub struct Decoder {
    incomplete: Option<Box<Incomplete>>,
    max_message: u32,
    finished: bool,
}

/// Input that is incomplete between two reads.
#[derive(Debug, Default)]
struct Incomplete {
    /// The start of a frame, still masked. It never exceeds one frame.
    frame: Vec<u8>,
    /// The message whose last fragment has not arrived.
    message: Option<Fragmented>,
}

#[derive(Debug)]
struct Fragmented {
    is_text: bool,
    fragments: u16,
    /// Payloads of the fragments received so far, unmasked. At most `max_message` bytes.
    bytes: Vec<u8>,
}

/// A checked frame header.
#[derive(Clone, Copy)]
struct Header {
    fin: bool,
    opcode: u8,
    mask: [u8; 4],
    /// Bytes of header and mask.
    start: usize,
    payload: usize,
}

enum Parsed {
    Whole(Header),
    /// The header is incomplete: at least this many bytes are needed.
    Short(usize),
}

impl Decoder {
    /// A decoder that refuses messages of more than `max_message` bytes.
    #[must_use]
    pub fn new(max_message: u32) -> Self {
        Self { incomplete: None, max_message, finished: false }
    }

    /// Decodes the bytes and reports every complete message, in order. The input is overwritten. After an
    /// error or [`Event::Close`] further input is ignored.
    ///
    /// # Errors
    /// A [`WsError`], or the first error of `on_event`.
    pub fn decode<E: From<WsError>>(
        &mut self,
        mut input: &mut [u8],
        mut on_event: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !self.finished && !input.is_empty() {
            let result = match self.take_partial_frame() {
                Some(partial) => self.continue_frame(partial, &mut input, &mut on_event),
                None => self.next_frame(&mut input, &mut on_event),
            };
            if result.is_err() {
                self.finished = true;
                self.incomplete = None;
                return result;
            }
        }
        Ok(())
    }

    /// Heap bytes held for incomplete input: 0 if there is none.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.incomplete.as_ref().map_or(0, |incomplete| {
            let message = incomplete.message.as_ref().map_or(0, |message| message.bytes.capacity());
            size_of::<Incomplete>() + incomplete.frame.capacity() + message
        })
    }

    /// The usual case: the input starts with a frame.
    fn next_frame<E: From<WsError>>(
        &mut self,
        input: &mut &mut [u8],
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = std::mem::take(input);
        match self.parse(bytes)? {
            Parsed::Whole(header) => {
                let (frame, rest) = bytes.split_at_mut(header.start + header.payload);
                *input = rest;
                self.accept(header, frame, on_event)
            }
            Parsed::Short(_) => {
                self.incomplete.get_or_insert_default().frame = bytes.to_vec();
                Ok(())
            }
        }
    }

    /// Adds the bytes that the incomplete frame lacks, and accepts the frame when it is complete.
    fn continue_frame<E: From<WsError>>(
        &mut self,
        mut partial: Vec<u8>,
        input: &mut &mut [u8],
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            match self.parse(&partial)? {
                Parsed::Whole(header) => return self.accept(header, &mut partial, on_event),
                Parsed::Short(_) if input.is_empty() => {
                    self.incomplete.get_or_insert_default().frame = partial;
                    return Ok(());
                }
                Parsed::Short(need) => {
                    let bytes = std::mem::take(input);
                    let lacking = bytes.len().min(need - partial.len());
                    let (lacking, rest) = bytes.split_at_mut(lacking);
                    partial.extend_from_slice(lacking);
                    *input = rest;
                }
            }
        }
    }

    /// Takes the partial frame out of the box, and frees the box if nothing else is in it.
    fn take_partial_frame(&mut self) -> Option<Vec<u8>> {
        let incomplete = self.incomplete.as_mut()?;
        let frame = std::mem::take(&mut incomplete.frame);
        if incomplete.message.is_none() {
            self.incomplete = None;
        }
        (!frame.is_empty()).then_some(frame)
    }

    /// Parses and checks as much of a header as has arrived, so that a bad frame is refused at its first bad
    /// byte.
    fn parse(&self, bytes: &[u8]) -> Result<Parsed, WsError> {
        let Some(&first) = bytes.first() else { return Ok(Parsed::Short(2)) };
        let (fin, opcode) = (first & FIN != 0, first & OPCODE);
        self.check_first(first)?;
        let Some(&second) = bytes.get(1) else { return Ok(Parsed::Short(2)) };
        if second & MASKED == 0 {
            return Err(WsError::Unmasked);
        }
        let short = second & !MASKED;
        if opcode >= CLOSE && (!fin || usize::from(short) > MAX_CONTROL_BYTES) {
            return Err(WsError::BadControlFrame);
        }
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let start = 2 + extended + 4;
        let Some(length) = bytes.get(2..2 + extended) else { return Ok(Parsed::Short(start)) };
        let payload = payload_length(short, length)?;
        self.check_size(opcode, payload)?;
        // The length was checked against a 32-bit limit above.
        let end = start + payload as usize;
        if bytes.len() < end {
            return Ok(Parsed::Short(end));
        }
        let mut mask = [0; 4];
        mask.copy_from_slice(&bytes[start - 4..start]);
        Ok(Parsed::Whole(Header { fin, opcode, mask, start, payload: payload as usize }))
    }

    fn message(&self) -> Option<&Fragmented> {
        self.incomplete.as_ref()?.message.as_ref()
    }

    fn check_first(&self, first: u8) -> Result<(), WsError> {
        if first & RESERVED != 0 {
            return Err(WsError::ReservedBits);
        }
        match (first & OPCODE, self.message()) {
            (CONTINUATION, None) | (TEXT | BINARY, Some(_)) => Err(WsError::BadFragmentation),
            (CONTINUATION, Some(message)) if message.fragments >= MAX_FRAGMENTS => {
                Err(WsError::TooManyFragments)
            }
            (CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG, _) => Ok(()),
            _ => Err(WsError::UnknownOpcode),
        }
    }

    fn check_size(&self, opcode: u8, payload: u64) -> Result<(), WsError> {
        if opcode >= CLOSE {
            return Ok(());
        }
        let before = self.message().map_or(0, |message| message.bytes.len() as u64);
        let fits = before.checked_add(payload).is_some_and(|total| total <= u64::from(self.max_message));
        if fits { Ok(()) } else { Err(WsError::MessageTooBig) }
    }

    /// Unmasks a whole frame and reports the message that it completes.
    fn accept<E: From<WsError>>(
        &mut self,
        header: Header,
        frame: &mut [u8],
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let payload = &mut frame[header.start..];
        unmask(payload, header.mask);
        match header.opcode {
            TEXT | BINARY if header.fin => on_event(message(header.opcode == TEXT, payload)?),
            CONTINUATION | TEXT | BINARY => match self.join(header, payload) {
                Some(whole) => on_event(message(whole.is_text, &whole.bytes)?),
                None => Ok(()),
            },
            PING => on_event(Event::Ping(payload)),
            PONG => on_event(Event::Pong),
            _ => {
                let code = close_code(payload)?;
                self.finished = true;
                self.incomplete = None;
                on_event(Event::Close(code))
            }
        }
    }

    /// Adds a fragment. Returns the message with its last fragment.
    fn join(&mut self, header: Header, payload: &[u8]) -> Option<Fragmented> {
        let incomplete = self.incomplete.get_or_insert_default();
        let message = incomplete.message.get_or_insert_with(|| Fragmented {
            is_text: header.opcode == TEXT,
            fragments: 0,
            bytes: Vec::new(),
        });
        message.fragments += 1;
        message.bytes.extend_from_slice(payload);
        if !header.fin {
            return None;
        }
        // The box holds nothing else, because the partial frame was taken out before.
        self.incomplete.take().and_then(|incomplete| incomplete.message)
    }
}

/// The payload length, from the seven bits and the extended length after them.
fn payload_length(short: u8, extended: &[u8]) -> Result<u64, WsError> {
    let length = extended.iter().fold(0, |length, &byte| length << 8 | u64::from(byte));
    match extended.len() {
        0 => Ok(u64::from(short)),
        2 if length > 125 => Ok(length),
        8 if length > u64::from(u16::MAX) && length >> 63 == 0 => Ok(length),
        _ => Err(WsError::BadLength),
    }
}

fn message(is_text: bool, payload: &[u8]) -> Result<Event<'_>, WsError> {
    if !is_text {
        return Ok(Event::Binary(payload));
    }
    std::str::from_utf8(payload).map(Event::Text).map_err(|_| WsError::InvalidUtf8)
}

fn close_code(payload: &[u8]) -> Result<u16, WsError> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(NO_STATUS) } else { Err(WsError::BadClose) };
    };
    if std::str::from_utf8(reason).is_err() {
        return Err(WsError::InvalidUtf8);
    }
    match u16::from_be_bytes(*code) {
        code @ (1000..=1003 | 1007..=1014 | 3000..=4999) => Ok(code),
        _ => Err(WsError::BadClose),
    }
}

/// Applies the mask (RFC 6455 section 5.3), sixteen bytes at a time.
fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let wide = u128::from_ne_bytes([mask; 4].as_flattened().try_into().unwrap_or_default());
    let mut words = payload.chunks_exact_mut(size_of::<u128>());
    for word in &mut words {
        let plain = u128::from_ne_bytes((&*word).try_into().unwrap_or_default()) ^ wide;
        word.copy_from_slice(&plain.to_ne_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

// Every session holds a `Decoder`, so its size matters.
const _: () = assert!(size_of::<Decoder>() <= 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_key_is_that_of_the_rfc() {
        assert_eq!(accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_key_is_base64_of_sixteen_bytes() {
        for (key, valid) in [
            (&b"dGhlIHNhbXBsZSBub25jZQ=="[..], true),
            (b"", false),
            (b"dGhlIHNhbXBsZSBub25jZQ", false),
            (b"dGhlIHNhbXBsZSBub25jZTE=", false),
            (b"dGhlIHNhbXBsZSBub25j", false),
            (b"dGhlIHNhbXBsZSBub25jZQ==dGhlIHNhbXBsZSBub25jZQ==", false),
            (b"!GhlIHNhbXBsZSBub25jZQ==", false),
        ] {
            assert_eq!(is_valid_key(key), valid, "{key:?}");
        }
    }

    #[test]
    fn unmasking_twice_restores_the_payload_at_every_length() {
        let mask = [0xa1, 0x02, 0xff, 0x7e];
        for length in 0..70 {
            let plain: Vec<u8> = (0..length).collect();
            let mut payload = plain.clone();
            unmask(&mut payload, mask);
            for (at, (masked, plain)) in payload.iter().zip(&plain).enumerate() {
                assert_eq!(masked ^ plain, mask[at % 4]);
            }
            unmask(&mut payload, mask);
            assert_eq!(payload, plain);
        }
    }

    #[test]
    fn pong_and_close_frames_stay_control_frames() {
        assert_eq!(&pong(b"hi")[..], b"\x8a\x02hi");
        assert_eq!(pong(&[7; 200]).len(), 2 + MAX_CONTROL_BYTES);
        assert_eq!(&close(1009, "big")[..], b"\x88\x05\x03\xf1big");
        // 41 Hangul syllables fill 123 bytes; the whole 42nd is cut off.
        let long = close(1000, &"한".repeat(60));
        assert_eq!(long.len(), 2 + 2 + 41 * 3);
    }
}
