//! Engine.IO packets: the layer below Socket.IO that opens a session, keeps it alive and closes it.
//!
//! A packet is one digit and its data. This module has the digits, the three protocol revisions that the
//! `EIO` query value names, and the JSON of the first packet. [`crate::frame`] (websocket) and
//! [`crate::payload`] (long polling) put packets on the wire.

use crate::frame::{Builder, Frame};

/// Milliseconds on the caller's monotonic clock, from any origin.
pub type Millis = u64;

/// Time between two pings, in milliseconds, unless the operator configures another.
pub const DEFAULT_PING_INTERVAL_MS: u32 = 25_000;
/// How long an answer to a ping may take, in milliseconds, unless the operator configures another.
pub const DEFAULT_PING_TIMEOUT_MS: u32 = 60_000;

/// Protocol revision of Engine.IO, as asked for by the client in the query value `EIO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    /// `EIO=2`: browser builds of Socket.IO 1.0. On the wire it does not differ from revision 3.
    V2,
    /// `EIO=3`: Socket.IO 1.x and 2.x. The client pings.
    V3,
    /// `EIO=4`: Socket.IO 3.x and 4.x. The server pings and the client has to ask for its namespace.
    V4,
}

impl Revision {
    /// Reads the `EIO` query value; `None` for an unsupported revision.
    #[must_use]
    pub fn from_query(value: &str) -> Option<Self> {
        match value {
            "2" => Some(Self::V2),
            "3" => Some(Self::V3),
            "4" => Some(Self::V4),
            _ => None,
        }
    }

    /// The `EIO` query value of this revision, also used as a metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "2",
            Self::V3 => "3",
            Self::V4 => "4",
        }
    }
}

/// The type of a packet, given by its first digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// `0`, server to client: the session's parameters.
    Open,
    /// `1`: the sender closes the session.
    Close,
    /// `2`: asks for a pong with the same data.
    Ping,
    /// `3`: answers a ping.
    Pong,
    /// `4`: a Socket.IO packet.
    Message,
    /// `5`, client to server: the probed transport takes over.
    Upgrade,
    /// `6`: nothing; releases a waiting poll.
    Noop,
}

/// The packet is empty or its first character is none of `0` to `6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownPacket;

impl std::fmt::Display for UnknownPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not an Engine.IO packet")
    }
}

impl std::error::Error for UnknownPacket {}

/// A text packet, borrowed from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRef<'a> {
    /// The first digit.
    pub kind: PacketType,
    /// The text after the digit.
    pub data: &'a str,
}

impl<'a> PacketRef<'a> {
    /// Splits a text packet into type and data.
    ///
    /// # Errors
    /// [`UnknownPacket`] when the text is empty or does not start with `0` to `6`.
    pub fn parse(text: &'a str) -> Result<Self, UnknownPacket> {
        let kind = match text.as_bytes().first() {
            Some(b'0') => PacketType::Open,
            Some(b'1') => PacketType::Close,
            Some(b'2') => PacketType::Ping,
            Some(b'3') => PacketType::Pong,
            Some(b'4') => PacketType::Message,
            Some(b'5') => PacketType::Upgrade,
            Some(b'6') => PacketType::Noop,
            _ => return Err(UnknownPacket),
        };
        Ok(Self { kind, data: &text[1..] })
    }
}

/// Ping times of a session, as configured by the operator and announced in the open packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time between two pings, in milliseconds.
    pub ping_interval_ms: u32,
    /// How long the other side may take to answer, in milliseconds.
    pub ping_timeout_ms: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self { ping_interval_ms: DEFAULT_PING_INTERVAL_MS, ping_timeout_ms: DEFAULT_PING_TIMEOUT_MS }
    }
}

impl Timing {
    /// Interval plus timeout, in milliseconds: a client of revision 2 or 3 that is silent for longer is
    /// closed.
    #[must_use]
    pub fn silence_ms(self) -> Millis {
        Millis::from(self.ping_interval_ms) + Millis::from(self.ping_timeout_ms)
    }
}

/// The values in the `0{…}` packet that opens every session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open<'a> {
    /// Protocol revision; decides whether `maxPayload` is announced.
    pub revision: Revision,
    /// The session id, which the client repeats in the query of later requests.
    pub sid: &'a str,
    /// Whether the client may move from polling to websocket. False if it is already on a websocket.
    pub may_upgrade: bool,
    /// Ping times.
    pub timing: Timing,
    /// Largest body, in bytes, that the client may send in one request or message (revision 4 only).
    pub max_payload: u32,
}

impl Open<'_> {
    /// Encodes the packet.
    #[must_use]
    pub fn frame(&self) -> Frame {
        let mut out = Builder::with_capacity(160);
        out.push_str("0{\"sid\":");
        out.push_json_string(self.sid);
        out.push_str(",\"upgrades\":");
        out.push_str(if self.may_upgrade { "[\"websocket\"]" } else { "[]" });
        out.push_str(",\"pingInterval\":");
        out.push_str(&self.timing.ping_interval_ms.to_string());
        out.push_str(",\"pingTimeout\":");
        out.push_str(&self.timing.ping_timeout_ms.to_string());
        if self.revision == Revision::V4 {
            out.push_str(",\"maxPayload\":");
            out.push_str(&self.max_payload.to_string());
        }
        out.push_str("}");
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_three_supported_revisions_parse() {
        for revision in [Revision::V2, Revision::V3, Revision::V4] {
            assert_eq!(Revision::from_query(revision.as_str()), Some(revision));
        }
        for other in ["", "1", "5", "03", "3 ", "４", "x"] {
            assert_eq!(Revision::from_query(other), None, "{other:?}");
        }
    }

    #[test]
    fn only_digits_from_0_to_6_are_packet_types() {
        use PacketType::*;
        for (text, kind, data) in [
            ("0{}", Open, "{}"),
            ("1", Close, ""),
            ("2probe", Ping, "probe"),
            ("3", Pong, ""),
            ("42[\"한\"]", Message, "2[\"한\"]"),
            ("5", Upgrade, ""),
            ("6", Noop, ""),
        ] {
            assert_eq!(PacketRef::parse(text), Ok(PacketRef { kind, data }));
        }
        for text in ["", "7", "9x", "b4AAAA", " 2", "한", "\u{0}"] {
            assert_eq!(PacketRef::parse(text), Err(UnknownPacket), "{text:?}");
        }
    }

    #[test]
    fn the_open_packet_has_the_fields_of_its_revision() {
        let open = Open {
            revision: Revision::V3,
            sid: "a-B_9",
            may_upgrade: true,
            timing: Timing::default(),
            max_payload: 100_000,
        };
        assert_eq!(
            open.frame().packet(),
            br#"0{"sid":"a-B_9","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":60000}"#
        );
        let open = Open { revision: Revision::V4, may_upgrade: false, ..open };
        assert_eq!(
            open.frame().packet(),
            br#"0{"sid":"a-B_9","upgrades":[],"pingInterval":25000,"pingTimeout":60000,"maxPayload":100000}"#
        );
    }
}
