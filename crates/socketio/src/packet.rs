//! Socket.IO packets: the content of an Engine.IO message (`4…`).
//!
//! Parsing borrows from the client's text and checks only the shape. The service accepts no events from
//! clients, so their arguments are never read. Encoding covers the packets of this server: connect, refusal,
//! disconnect and events.

use serde::Serialize;

use crate::engine::Revision;
use crate::frame::{Builder, Frame};

/// The root namespace, the only one of this server.
pub const ROOT: &str = "/";
/// Maximum length of a namespace name from a client, in bytes. A refusal repeats the name, so it must be
/// short.
pub const MAX_NAMESPACE_BYTES: usize = 128;
/// Maximum number of binary attachments that one client packet may announce.
pub const MAX_ATTACHMENTS: u8 = 10;

/// Initial capacity of an event: most chat messages fit.
const EVENT_BYTES: usize = 640;

/// First digit of a Socket.IO packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `0`: enter a namespace, or the answer that it was entered.
    Connect,
    /// `1`: leave a namespace.
    Disconnect,
    /// `2`: an event with JSON arguments.
    Event,
    /// `3`: answer to an event that had an id.
    Ack,
    /// `4`: a namespace is refused (`ERROR` of the old protocol, `CONNECT_ERROR` of the new). Only servers
    /// send it.
    Error,
    /// `5`: an event whose binary arguments follow as separate messages.
    BinaryEvent,
    /// `6`: an answer whose binary arguments follow as separate messages.
    BinaryAck,
}

/// The text is not a Socket.IO packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketError {
    /// The text is empty, or its first character is none of `0` to `6`.
    UnknownType,
    /// The count of attachments is missing, has no `-` after it, or is above [`MAX_ATTACHMENTS`].
    Attachments,
    /// The namespace is longer than [`MAX_NAMESPACE_BYTES`] or contains anything but printable ASCII.
    Namespace,
    /// The id of an acknowledgement is missing where it is required, or does not fit in 64 bits.
    AckId,
    /// The data does not have the JSON type of the packet type.
    Data,
}

impl std::fmt::Display for PacketError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UnknownType => "unknown packet type",
            Self::Attachments => "bad count of attachments",
            Self::Namespace => "bad namespace",
            Self::AckId => "bad acknowledgement id",
            Self::Data => "data of the wrong type",
        })
    }
}

impl std::error::Error for PacketError {}

/// A client's packet, borrowed from its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketPacketRef<'a> {
    /// The packet type.
    pub kind: Kind,
    /// Number of binary messages that follow; 0 except for the two binary types.
    pub attachments: u8,
    /// The namespace with its leading slash; [`ROOT`] when none is written.
    pub namespace: &'a str,
    /// The text after `?` in the namespace (revisions 2 and 3 only).
    pub query: Option<&'a str>,
    /// The id that an acknowledgement repeats.
    pub ack: Option<u64>,
    /// The JSON text; empty when there is none.
    pub data: &'a str,
}

impl<'a> SocketPacketRef<'a> {
    /// Parses the data of an Engine.IO message, i.e. the text after the `4`.
    ///
    /// # Errors
    /// A [`PacketError`] that names the faulty part.
    pub fn parse(text: &'a str) -> Result<Self, PacketError> {
        let (kind, rest) = split_kind(text)?;
        let (attachments, rest) = split_attachments(kind, rest)?;
        let (namespace, query, rest) = split_namespace(rest)?;
        let (ack, data) = split_ack(rest)?;
        let packet = Self { kind, attachments, namespace, query, ack, data };
        packet.check().map(|()| packet)
    }

    /// Checks that data and id fit the type. The content of the JSON is not read.
    fn check(&self) -> Result<(), PacketError> {
        let answers = matches!(self.kind, Kind::Ack | Kind::BinaryAck);
        let may_have_id = answers || matches!(self.kind, Kind::Event | Kind::BinaryEvent);
        if (answers && self.ack.is_none()) || (!may_have_id && self.ack.is_some()) {
            return Err(PacketError::AckId);
        }
        let fits = match self.kind {
            Kind::Connect => self.data.is_empty() || is_between(self.data, '{', '}'),
            Kind::Disconnect => self.data.is_empty(),
            Kind::Event | Kind::BinaryEvent => is_between(self.data, '[', ']') && self.data.len() > 2,
            Kind::Ack | Kind::BinaryAck => is_between(self.data, '[', ']'),
            Kind::Error => true,
        };
        if fits { Ok(()) } else { Err(PacketError::Data) }
    }
}

fn split_kind(text: &str) -> Result<(Kind, &str), PacketError> {
    let kind = match text.as_bytes().first() {
        Some(b'0') => Kind::Connect,
        Some(b'1') => Kind::Disconnect,
        Some(b'2') => Kind::Event,
        Some(b'3') => Kind::Ack,
        Some(b'4') => Kind::Error,
        Some(b'5') => Kind::BinaryEvent,
        Some(b'6') => Kind::BinaryAck,
        _ => return Err(PacketError::UnknownType),
    };
    Ok((kind, &text[1..]))
}

fn split_attachments(kind: Kind, rest: &str) -> Result<(u8, &str), PacketError> {
    if !matches!(kind, Kind::BinaryEvent | Kind::BinaryAck) {
        return Ok((0, rest));
    }
    let digits = digits(rest);
    let count: u8 = rest[..digits].parse().map_err(|_| PacketError::Attachments)?;
    match rest[digits..].strip_prefix('-') {
        Some(rest) if count <= MAX_ATTACHMENTS => Ok((count, rest)),
        _ => Err(PacketError::Attachments),
    }
}

type Namespace<'a> = (&'a str, Option<&'a str>, &'a str);

/// A namespace starts with a slash and ends at a comma. Clients older than 2.0.4 omit the comma if nothing
/// follows.
fn split_namespace(rest: &str) -> Result<Namespace<'_>, PacketError> {
    if !rest.starts_with('/') {
        return Ok((ROOT, None, rest));
    }
    let (full, rest) = rest.split_once(',').unwrap_or((rest, ""));
    let (name, query) = match full.split_once('?') {
        Some((name, query)) => (name, Some(query)),
        None => (full, None),
    };
    if name.len() > MAX_NAMESPACE_BYTES || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(PacketError::Namespace);
    }
    Ok((name, query, rest))
}

fn split_ack(rest: &str) -> Result<(Option<u64>, &str), PacketError> {
    match digits(rest) {
        0 => Ok((None, rest)),
        digits => {
            let id = rest[..digits].parse().map_err(|_| PacketError::AckId)?;
            Ok((Some(id), &rest[digits..]))
        }
    }
}

/// Number of leading ASCII digits.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn is_between(data: &str, first: char, last: char) -> bool {
    data.len() >= 2 && data.starts_with(first) && data.ends_with(last)
}

/// Encodes the event `name` with one argument: a JSON **string** whose content is `argument` as JSON.
/// Everything that is not ASCII is escaped, so `JSON.parse` of the argument gives that JSON.
///
/// ```
/// let frame = socketio::packet::event("CHAT", &std::collections::BTreeMap::from([("content", "안녕")]));
/// assert_eq!(frame.packet(), br#"42["CHAT","{\"content\":\"\uc548\ub155\"}"]"#);
/// ```
#[must_use]
pub fn event<T: Serialize + ?Sized>(name: &str, argument: &T) -> Frame {
    let mut out = Builder::with_capacity(EVENT_BYTES);
    out.push_str("42[");
    out.push_json_string(name);
    out.push_str(",");
    out.push_nested_json(argument);
    out.push_str("]");
    out.finish()
}

/// Encodes the answer to a connect to the root namespace: `40`, in revision 4 with the session id.
#[must_use]
pub fn connected(revision: Revision, sid: &str) -> Frame {
    if revision != Revision::V4 {
        return Frame::CONNECT;
    }
    let mut out = Builder::with_capacity(16 + sid.len());
    out.push_str("40{\"sid\":");
    out.push_json_string(sid);
    out.push_str("}");
    out.finish()
}

/// Encodes the refusal of a namespace: a JSON string in the old protocol, an object in revision 4.
#[must_use]
pub fn invalid_namespace(revision: Revision, namespace: &str) -> Frame {
    let mut out = Builder::with_capacity(40 + namespace.len());
    out.push_str("44");
    out.push_str(namespace);
    out.push_str(match revision {
        Revision::V2 | Revision::V3 => ",\"Invalid namespace\"",
        Revision::V4 => ",{\"message\":\"Invalid namespace\"}",
    });
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: Kind, data: &str) -> SocketPacketRef<'_> {
        SocketPacketRef { kind, attachments: 0, namespace: ROOT, query: None, ack: None, data }
    }

    #[test]
    fn packets_of_clients_parse() {
        let cases = [
            ("0", packet(Kind::Connect, "")),
            ("0{\"token\":\"x\"}", packet(Kind::Connect, "{\"token\":\"x\"}")),
            ("0/", packet(Kind::Connect, "")),
            ("0/?a=1", SocketPacketRef { query: Some("a=1"), ..packet(Kind::Connect, "") }),
            ("0/chat", SocketPacketRef { namespace: "/chat", ..packet(Kind::Connect, "") }),
            ("0/chat,{}", SocketPacketRef { namespace: "/chat", ..packet(Kind::Connect, "{}") }),
            (
                "0/chat?x=/y&z=?,",
                SocketPacketRef { namespace: "/chat", query: Some("x=/y&z=?"), ..packet(Kind::Connect, "") },
            ),
            ("1", packet(Kind::Disconnect, "")),
            ("1/chat,", SocketPacketRef { namespace: "/chat", ..packet(Kind::Disconnect, "") }),
            ("2[\"한\",1]", packet(Kind::Event, "[\"한\",1]")),
            ("213[\"a\"]", SocketPacketRef { ack: Some(13), ..packet(Kind::Event, "[\"a\"]") }),
            (
                "2/n,456[\"a\"]",
                SocketPacketRef { namespace: "/n", ack: Some(456), ..packet(Kind::Event, "[\"a\"]") },
            ),
            ("30[]", SocketPacketRef { ack: Some(0), ..packet(Kind::Ack, "[]") }),
            ("4\"no\"", packet(Kind::Error, "\"no\"")),
            ("51-[{}]", SocketPacketRef { attachments: 1, ..packet(Kind::BinaryEvent, "[{}]") }),
            (
                "610-/n,7[1]",
                SocketPacketRef {
                    attachments: 10,
                    namespace: "/n",
                    ack: Some(7),
                    ..packet(Kind::BinaryAck, "[1]")
                },
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(SocketPacketRef::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_error_names_the_faulty_part() {
        use PacketError::*;
        let long = format!("0/{}", "n".repeat(MAX_NAMESPACE_BYTES));
        for (text, expected) in [
            ("", UnknownType),
            ("7", UnknownType),
            ("한", UnknownType),
            ("0x", Data),
            ("0[]", Data),
            ("012", AckId),
            ("1{}", Data),
            ("2", Data),
            ("2[]", Data),
            ("2{}", Data),
            ("2[\"a\"", Data),
            ("3[]", AckId),
            ("31", Data),
            ("299999999999999999999[\"a\"]", AckId),
            ("5[\"a\"]", Attachments),
            ("5-[\"a\"]", Attachments),
            ("51[\"a\"]", Attachments),
            ("511-[\"a\"]", Attachments),
            ("5999999-[\"a\"]", Attachments),
            ("0/한", Namespace),
            ("0/a b", Namespace),
            (&long, Namespace),
        ] {
            assert_eq!(SocketPacketRef::parse(text), Err(expected), "{text}");
        }
        assert!(SocketPacketRef::parse(&long[..long.len() - 1]).is_ok());
    }

    #[test]
    fn an_event_carries_its_json_as_an_ascii_string() {
        let frame = event("CHAT", &serde_json::json!({ "channelId": "c1", "content": "한 😀 \"q\" \\" }));
        assert_eq!(
            std::str::from_utf8(frame.packet()),
            Ok(r#"42["CHAT","{\"channelId\":\"c1\",\"content\":\"\ud55c \ud83d\ude00 \\\"q\\\" \\\\\"}"]"#)
        );
    }

    #[test]
    fn connects_and_refusals_speak_each_revision() {
        for revision in [Revision::V2, Revision::V3] {
            assert_eq!(connected(revision, "s").packet(), b"40");
            assert_eq!(invalid_namespace(revision, "/n").packet(), br#"44/n,"Invalid namespace""#);
        }
        assert_eq!(connected(Revision::V4, "s-1").packet(), br#"40{"sid":"s-1"}"#);
        assert_eq!(
            invalid_namespace(Revision::V4, "/n").packet(),
            br#"44/n,{"message":"Invalid namespace"}"#
        );
    }
}
