//! Engine.IO 3 and Socket.IO 2 packets in the text frames of a websocket.

use serde::Deserialize;

/// A packet of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    /// `0{…}`: the Engine.IO session is open.
    Open(Timing),
    /// `40`: the client is in the root namespace.
    Joined,
    /// `42["NAME","…"]`: an event with one text.
    Event {
        /// The event's name.
        name: &'a str,
        /// Its text, still escaped as in the JSON.
        escaped: &'a str,
    },
    /// `3`: the answer to a ping.
    Pong,
    /// `6`: nothing.
    Noop,
    /// `41`: the client is out of the root namespace.
    Left,
    /// `1`: the Engine.IO session is closed.
    Closed,
}

/// Ping interval and timeout, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timing {
    pub(crate) ping_interval: u32,
    pub(crate) ping_timeout: u32,
}

/// Maximum accepted time between pings, in milliseconds: 10 minutes.
const PING_MS_MAX: u32 = 600_000;

impl<'a> Packet<'a> {
    /// Parses the packet in a frame; `None` if the service never sends such a packet.
    pub(crate) fn read(frame: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(frame).ok()?;
        match text {
            "3" => Some(Self::Pong),
            "40" => Some(Self::Joined),
            "41" => Some(Self::Left),
            "1" => Some(Self::Closed),
            "6" => Some(Self::Noop),
            _ if text.starts_with('0') => {
                let timing = serde_json::from_str::<Timing>(&text[1..]).ok()?;
                let sane = |ms| (1..=PING_MS_MAX).contains(&ms);
                (sane(timing.ping_interval) && sane(timing.ping_timeout)).then_some(Self::Open(timing))
            }
            _ => {
                let inside = text.strip_prefix(r#"42[""#)?.strip_suffix(r#""]"#)?;
                let (name, rest) = inside.split_at(memchr::memchr(b'"', inside.as_bytes())?);
                Some(Self::Event { name, escaped: rest.strip_prefix(r#"",""#)? })
            }
        }
    }
}

/// The JSON inside an event's text, fully decoded. `None` if the text is not JSON.
pub(crate) fn payload(escaped: &str) -> Option<serde_json::Value> {
    let text = serde_json::from_str::<String>(&format!("\"{escaped}\"")).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_the_service_sends() {
        let check = |text: &str, packet| assert_eq!(Packet::read(text.as_bytes()), packet, "{text}");
        let timing = Timing { ping_interval: 25_000, ping_timeout: 60_000 };
        check(
            r#"0{"sid":"s","upgrades":[],"pingInterval":25000,"pingTimeout":60000}"#,
            Some(Packet::Open(timing)),
        );
        check("40", Some(Packet::Joined));
        check("3", Some(Packet::Pong));
        check("6", Some(Packet::Noop));
        check("41", Some(Packet::Left));
        check("1", Some(Packet::Closed));
        check(
            r#"42["CHAT","{\"a\":\"b\"}"]"#,
            Some(Packet::Event { name: "CHAT", escaped: r#"{\"a\":\"b\"}"# }),
        );
    }

    #[test]
    fn anything_else_is_not_a_packet() {
        for text in [
            "",
            "2",
            "3probe",
            "0",
            "0{}",
            r#"0{"pingInterval":0,"pingTimeout":1}"#,
            "42",
            r#"42["CHAT",{"a":1}]"#,
            r#"42["CHAT"]"#,
            r#"42/n,["CHAT","x"]"#,
            r#"43["CHAT","x"]"#,
        ] {
            assert_eq!(Packet::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Packet::read(b"42[\"CHAT\",\"\xff\"]"), None);
    }

    #[test]
    fn payloads_are_json_in_json() {
        let value = payload(r#"{\"content\":\"\uc548\ub155 \ud83d\udc4b\"}"#).unwrap();
        assert_eq!(value["content"], "안녕 👋");
        for bad in ["x", r#"{\"a\""#, r#"{"a":1}"#, r"\x"] {
            assert_eq!(payload(bad), None, "{bad}");
        }
    }
}
