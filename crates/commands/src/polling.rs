//! A session over long polling, as a client of Socket.IO 4 holds it.

use std::time::Duration;

use bytes::Bytes;
use domain::reason::Word;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use socketio::engine::{PacketRef, PacketType};
use socketio::packet::{Kind, SocketPacketRef};
use socketio::payload::{self, Item};
use socketio::{Framing, Revision};

use crate::client::{Call, Failure, Server};

/// How much longer than another call a poll may take: the time between two pings, and the time of an answer.
const POLL_PATIENCE: Duration = Duration::from_secs(85);
/// Maximum length of the answer to a poll, in bytes.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The framing of the bodies.
const FRAMING: Framing = Framing::Records;
/// Asks for the root namespace.
const CONNECT: &str = "40";
const PONG: &str = "3";
const GOODBYE: &str = "1";

/// An open session.
pub(crate) struct PollingSession {
    server: Server,
    /// Path and query of every request.
    path: String,
}

/// What came with a poll.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Polled {
    /// The events: their names and payloads.
    pub events: Vec<(String, Value)>,
    /// Whether the server has ended the session.
    pub has_ended: bool,
    /// Whether the server asked for a sign of life.
    is_pinged: bool,
}

impl PollingSession {
    /// Opens a session with a session URL.
    ///
    /// # Errors
    /// The handshake was refused, or there is no answer.
    pub async fn open(url: &str) -> Result<Self, Failure> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let server = Server::parse(base).map_err(Failure::Unreachable)?;
        let transport = format!("EIO={}&transport=polling", Revision::V4.as_str());
        let mut session = Self { path: format!("/socket.io/?{query}&{transport}"), server };
        let opened = session.get().await?;
        let sid = sid(&opened).ok_or_else(|| session.strange("its first packet has no sid"))?;
        // The session URL stays in the query: it belongs to the sid from now on.
        session.path.push_str(&format!("&sid={sid}"));
        session.post(CONNECT).await?;
        Ok(session)
    }

    /// Waits for packets, and answers a ping.
    ///
    /// # Errors
    /// The session is gone, or there is no answer.
    pub async fn poll(&self) -> Result<Polled, Failure> {
        let body = match self.get().await {
            // The session has ended: revision 4 gets no packet about it.
            Err(Failure::Refused { reason, .. }) if reason.as_deref() == Some(Word::SidUnknown.name()) => {
                return Ok(Polled { has_ended: true, ..Polled::default() });
            }
            body => body?,
        };
        let polled = read(&body).ok_or_else(|| self.strange("the answer to a poll cannot be read"))?;
        if polled.is_pinged {
            self.post(PONG).await?;
        }
        Ok(polled)
    }

    /// Ends the session.
    pub async fn say_goodbye(&self) {
        // A session that is gone already needs no goodbye.
        let _ = self.post(GOODBYE).await;
    }

    async fn get(&self) -> Result<Bytes, Failure> {
        let answer =
            self.server.ask(Call { patience: POLL_PATIENCE, ..Call::new(Method::GET, &self.path) }).await?;
        if answer.status.is_success() {
            Ok(answer.beginning.into())
        } else {
            Err(self.server.refusal(&answer))
        }
    }

    async fn post(&self, packet: &'static str) -> Result<(), Failure> {
        let headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(FRAMING.content_type()))]);
        let body = Bytes::from_static(packet.as_bytes());
        let answer = self.server.ask(Call { headers, body, ..Call::new(Method::POST, &self.path) }).await?;
        if answer.status.is_success() { Ok(()) } else { Err(self.server.refusal(&answer)) }
    }

    fn strange(&self, why: &str) -> Failure {
        Failure::Unreachable(format!("{} is no server of sessions: {why}", self.server.base()))
    }
}

/// The session id of the first packet.
fn sid(body: &[u8]) -> Option<String> {
    let packets = payload::decode(FRAMING, body, BODY_BYTES_MAX).ok()?;
    let Item::Text(text) = packets.first()? else { return None };
    let packet = PacketRef::parse(text).ok().filter(|packet| packet.kind == PacketType::Open)?;
    let open: Value = serde_json::from_str(packet.data).ok()?;
    let sid = open["sid"].as_str()?;
    let is_plain = sid.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_plain.then(|| sid.to_owned())
}

/// The packets of a poll; `None` if they cannot be read.
fn read(body: &[u8]) -> Option<Polled> {
    let mut polled = Polled::default();
    for item in payload::decode(FRAMING, body, BODY_BYTES_MAX).ok()? {
        let Item::Text(text) = item else { continue };
        let packet = PacketRef::parse(&text).ok()?;
        match packet.kind {
            PacketType::Ping => polled.is_pinged = true,
            PacketType::Close => polled.has_ended = true,
            PacketType::Message => {
                let message = SocketPacketRef::parse(packet.data).ok()?;
                match message.kind {
                    Kind::Event => polled.events.push(event(message.data)?),
                    Kind::Disconnect | Kind::Error => polled.has_ended = true,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Some(polled)
}

/// The name and the payload of `["NAME","{…}"]`.
fn event(data: &str) -> Option<(String, Value)> {
    let (name, payload): (String, String) = serde_json::from_str(data).ok()?;
    Some((name, serde_json::from_str(&payload).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_packet_has_the_sid() {
        assert_eq!(sid(br#"0{"sid":"a-B_9","upgrades":[]}"#).as_deref(), Some("a-B_9"));
        for body in [&b""[..], b"40", br#"0{"sid":"a&b"}"#, b"0{}", b"0[", b"\xff"] {
            assert_eq!(sid(body), None);
        }
    }

    #[test]
    fn a_poll_has_events_pings_and_the_end() {
        let body = b"40{\"sid\":\"x\"}\x1e42[\"CHAT\",\"{\\\"content\\\":\\\"hi\\\"}\"]\x1e2\x1e1";
        let events = vec![("CHAT".to_owned(), json!({ "content": "hi" }))];
        assert_eq!(read(body), Some(Polled { events, has_ended: true, is_pinged: true }));
        assert_eq!(read(b"6"), Some(Polled::default()));
        for body in [&b"42[1]"[..], b"9", b"", b"42[\"A\",\"{\"]"] {
            assert_eq!(read(body), None);
        }
    }
}
