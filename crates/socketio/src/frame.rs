//! [`Frame`]: a server packet, encoded once and shared by every session that receives it.
//!
//! Frames from server to client are not masked, so all receivers get the same bytes, and thousands of
//! sessions share one allocation. Long polling extracts the packet from the frame again.

use bytes::{Buf, Bytes};
use serde::Serialize;

use crate::json;

/// Bytes kept free in front of a packet for the longest websocket header without a mask.
const HEADER_ROOM: usize = 10;
/// First byte of an unfragmented text frame: FIN and opcode 1.
const FIN_TEXT: u8 = 0x81;

/// One Engine.IO text packet as a whole unmasked websocket text frame, ready to be written. Clones share the
/// bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame(Bytes);

impl Frame {
    /// `1`: the server closes the Engine.IO session.
    pub const CLOSE: Self = Self::fixed(b"\x81\x011");
    /// `2`: ping of revision 4.
    pub const PING: Self = Self::fixed(b"\x81\x012");
    /// `3`: pong without data.
    pub const PONG: Self = Self::fixed(b"\x81\x013");
    /// `3probe`: the answer to the probe of an upgrade.
    pub const PONG_PROBE: Self = Self::fixed(b"\x81\x063probe");
    /// `6`: releases a waiting poll.
    pub const NOOP: Self = Self::fixed(b"\x81\x016");
    /// `40`: the client is in the root namespace (revisions 2 and 3).
    pub const CONNECT: Self = Self::fixed(b"\x81\x0240");
    /// `41`: the client is removed from the root namespace.
    pub const DISCONNECT: Self = Self::fixed(b"\x81\x0241");

    const fn fixed(frame: &'static [u8]) -> Self {
        Self(Bytes::from_static(frame))
    }

    /// Encodes a packet that is already complete, e.g. `3hello`.
    #[must_use]
    pub fn text(packet: &str) -> Self {
        let mut out = Builder::with_capacity(packet.len());
        out.push_str(packet);
        out.finish()
    }

    /// The whole websocket frame, header included.
    #[must_use]
    pub fn websocket(&self) -> &Bytes {
        &self.0
    }

    /// The whole websocket frame, header included. Moves the bytes.
    #[must_use]
    pub fn into_websocket(self) -> Bytes {
        self.0
    }

    /// The Engine.IO packet, for long polling.
    #[must_use]
    pub fn packet(&self) -> &[u8] {
        &self.0[self.header_len()..]
    }

    /// Length of the whole websocket frame in bytes, which queue limits count.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Length of the header. The header itself contains it, so a frame needs no field for it.
    fn header_len(&self) -> usize {
        match self.0[1] {
            126 => 4,
            127 => 10,
            _ => 2,
        }
    }
}

impl std::fmt::Debug for Frame {
    /// Shows only type and size, because the content may be a user's chat or a session key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.packet().first().map_or(' ', |&byte| char::from(byte));
        write!(f, "Frame({kind:?}, {} bytes)", self.len())
    }
}

/// Writes a packet after free room for its header. So the header is added when the length is known, without
/// moving the packet.
pub(crate) struct Builder(Vec<u8>);

impl Builder {
    pub(crate) fn with_capacity(packet: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_ROOM + packet);
        bytes.extend_from_slice(&[0; HEADER_ROOM]);
        Self(bytes)
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends a quoted JSON string in ASCII whose content is a value as JSON.
    pub(crate) fn push_nested_json<T: Serialize + ?Sized>(&mut self, value: &T) {
        json::push_nested(&mut self.0, value);
    }

    /// Appends a quoted JSON string in ASCII.
    pub(crate) fn push_json_string(&mut self, text: &str) {
        json::push_string(&mut self.0, text);
    }

    pub(crate) fn finish(mut self) -> Frame {
        let (header, len) = header(FIN_TEXT, self.0.len() - HEADER_ROOM);
        self.0[HEADER_ROOM - len..HEADER_ROOM].copy_from_slice(&header[..len]);
        let mut bytes = Bytes::from(self.0);
        bytes.advance(HEADER_ROOM - len);
        Frame(bytes)
    }
}

/// The header of an unmasked frame, and the number of its bytes that are used (RFC 6455 section 5.2).
pub(crate) fn header(first: u8, payload: usize) -> ([u8; HEADER_ROOM], usize) {
    let mut header = [0; HEADER_ROOM];
    header[0] = first;
    match (u8::try_from(payload), u16::try_from(payload)) {
        (Ok(short @ 0..126), _) => {
            header[1] = short;
            (header, 2)
        }
        (_, Ok(medium)) => {
            header[1] = 126;
            header[2..4].copy_from_slice(&medium.to_be_bytes());
            (header, 4)
        }
        _ => {
            header[1] = 127;
            header[2..].copy_from_slice(&(payload as u64).to_be_bytes());
            (header, HEADER_ROOM)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_grows_at_126_and_at_65536_bytes() {
        for (length, head) in [
            (1, &[0x81, 1][..]),
            (125, &[0x81, 125]),
            (126, &[0x81, 126, 0, 126]),
            (65_535, &[0x81, 126, 0xff, 0xff]),
            (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let packet = "4".repeat(length);
            let frame = Frame::text(&packet);
            assert_eq!(&frame.websocket()[..head.len()], head, "{length}");
            assert_eq!(frame.packet(), packet.as_bytes());
            assert_eq!(frame.len(), head.len() + length);
        }
    }

    #[test]
    fn fixed_frames_equal_their_encoded_text() {
        for (frame, text) in [
            (Frame::CLOSE, "1"),
            (Frame::PING, "2"),
            (Frame::PONG, "3"),
            (Frame::PONG_PROBE, "3probe"),
            (Frame::NOOP, "6"),
            (Frame::CONNECT, "40"),
            (Frame::DISCONNECT, "41"),
        ] {
            assert_eq!(frame, Frame::text(text));
        }
    }

    #[test]
    fn a_clone_shares_the_bytes() {
        let frame = Frame::text("42[\"CHAT\"]");
        assert_eq!(frame.clone().websocket().as_ptr(), frame.websocket().as_ptr());
    }

    #[test]
    fn debug_output_hides_the_content() {
        assert_eq!(format!("{:?}", Frame::text("42[\"SECRET\"]")), "Frame('4', 14 bytes)");
    }
}
