//! A client of the sockets: Engine.IO revision 3 over websocket, as Socket.IO 1.0 to 2.x clients speak it.

use std::net::SocketAddr;

use serde_json::Value;

use crate::{Connection, Request, Response, contract, patiently};

/// The answer to a refused handshake.
pub type Refused = Response;

/// A session whose SYSTEM `connected` has arrived.
#[derive(Debug)]
pub struct Socket {
    connection: Connection,
    session_key: String,
    /// Engine.IO `1` has arrived.
    said_close: bool,
}

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;

impl Socket {
    /// Connects with a session URL and waits for `connected`.
    ///
    /// # Panics
    /// When the handshake is refused.
    pub async fn open(url: &str) -> Self {
        Self::connect(url)
            .await
            .unwrap_or_else(|answer| panic!("refused: {} {}", answer.status, answer.text()))
    }

    /// Connects with a session URL and waits for `connected`.
    ///
    /// # Errors
    /// The answer, when the handshake is refused.
    ///
    /// # Panics
    /// When the server breaks the protocol.
    pub async fn connect(url: &str) -> Result<Self, Refused> {
        let (address, query) = split(url);
        let request = Request::get(format!("/socket.io/?{query}&EIO=3&transport=websocket"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        let mut connection = Connection::open(address).await;
        let answer = connection.send(&request).await;
        if answer.status != 101 {
            return Err(answer);
        }
        assert_eq!(answer.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        let mut socket = Self { connection, session_key: String::new(), said_close: false };
        let open = socket.next_packet().await.expect("an open packet");
        assert!(open.starts_with(r#"0{"sid":""#), "no open packet: {open}");
        assert_eq!(socket.next_packet().await.as_deref(), Some("40"));
        let connected = socket.system("connected").await;
        socket.session_key = connected["sessionKey"].as_str().expect("a session key").to_owned();
        Ok(socket)
    }

    /// The session's key, for subscribe calls.
    pub fn session_key(&self) -> &str {
        &self.session_key
    }

    /// The next event: its name and the text of its payload. `None` when the session ended.
    ///
    /// # Panics
    /// When something other than an event arrives.
    pub async fn next_event(&mut self) -> Option<(String, String)> {
        let packet = self.next_packet().await?;
        let Some(event) = packet.strip_prefix("42") else { panic!("no event: {packet}") };
        match serde_json::from_str(event) {
            Ok(Value::Array(parts)) => match parts.as_slice() {
                [Value::String(name), Value::String(payload)] => {
                    contract::check_event(name, payload);
                    Some((name.clone(), payload.clone()))
                }
                _ => panic!("not a name and a text: {event}"),
            },
            _ => panic!("no array: {event}"),
        }
    }

    /// The payload of the next event, which must have this name.
    ///
    /// # Panics
    /// When it is not, or the session ended.
    pub async fn event(&mut self, name: &str) -> Value {
        let (found, payload) =
            self.next_event().await.unwrap_or_else(|| panic!("the session ended before {name}"));
        assert_eq!(found, name, "{payload}");
        serde_json::from_str(&payload).unwrap_or_else(|_| panic!("a payload is JSON: {payload}"))
    }

    /// `data` of the next event, which must be a SYSTEM message of this type.
    ///
    /// # Panics
    /// When it is not.
    pub async fn system(&mut self, kind: &str) -> Value {
        let message = self.event("SYSTEM").await;
        assert_eq!(message["type"], kind, "{message}");
        message["data"].clone()
    }

    /// Sends an Engine.IO packet as text.
    pub async fn send(&mut self, packet: &str) {
        self.send_frame(TEXT, packet.as_bytes()).await;
    }

    /// Pings and waits for the answer, so that everything that was sent before has arrived.
    ///
    /// # Panics
    /// When anything else arrives first.
    pub async fn ping(&mut self) {
        self.send("2").await;
        assert_eq!(self.next_packet().await.as_deref(), Some("3"));
    }

    /// Sends a close, and waits until the server has closed the connection.
    pub async fn close(mut self) {
        self.send("41").await;
        self.send_frame(CLOSE, &1000_u16.to_be_bytes()).await;
        while self.next_packet().await.is_some() {}
    }

    /// Waits until the server closes the connection, and returns the code and the reason that it sent.
    ///
    /// # Panics
    /// When the connection ends without a close frame, or Engine.IO `1` does not come before it.
    pub async fn closed(mut self) -> (u16, String) {
        patiently("the socket is closed", async {
            loop {
                let (opcode, payload) = self.next_frame().await.expect("a close frame");
                match (opcode, payload.as_slice()) {
                    (CLOSE, [high, low, reason @ ..]) => {
                        let reason = String::from_utf8_lossy(reason).into_owned();
                        assert!(self.said_close || reason == "client_goodbye", "no `1` before {reason}");
                        return (u16::from_be_bytes([*high, *low]), reason);
                    }
                    (TEXT, b"1") => self.said_close = true,
                    _ => {}
                }
            }
        })
        .await
    }

    /// The next Engine.IO packet; `None` when the server closes the session.
    ///
    /// # Panics
    /// When the server breaks the protocol.
    pub async fn next_packet(&mut self) -> Option<String> {
        patiently("a packet", async {
            loop {
                let (opcode, payload) = self.next_frame().await?;
                match opcode {
                    TEXT if payload == b"1" => {
                        self.said_close = true;
                        return None;
                    }
                    TEXT => return Some(String::from_utf8(payload).expect("a text frame is UTF-8")),
                    CLOSE => return None,
                    PING => {}
                    other => panic!("a frame of opcode {other}"),
                }
            }
        })
        .await
    }

    async fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let header = self.take(2).await?;
        assert_eq!(header[0] & 0x80, 0x80, "the server fragments nothing");
        assert_eq!(header[1] & 0x80, 0, "the server masks nothing");
        let length = match header[1] {
            126 => self.take(2).await?.iter().fold(0, |n, b| n << 8 | usize::from(*b)),
            127 => self.take(8).await?.iter().fold(0, |n, b| n << 8 | usize::from(*b)),
            short => usize::from(short),
        };
        Some((header[0] & 0x0f, self.take(length).await?))
    }

    async fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.connection.buffer.len() < count {
            if !self.connection.fill().await {
                return None;
            }
        }
        Some(self.connection.buffer.drain(..count).collect())
    }

    async fn send_frame(&mut self, opcode: u8, payload: &[u8]) {
        const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
        let length = u8::try_from(payload.len()).ok().filter(|length| *length < 126);
        let length = length.expect("tests send short frames");
        let masked = payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        let frame: Vec<u8> = [0x80 | opcode, 0x80 | length].into_iter().chain(MASK).chain(masked).collect();
        self.connection.write(&frame).await;
    }
}

/// Splits a session URL into address and query, as a Socket.IO client does.
fn split(url: &str) -> (SocketAddr, &str) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("no http address: {url}"));
    let (host, query) = rest.split_once('?').expect("a session URL has a query");
    let address = host.trim_end_matches('/').parse();
    (address.unwrap_or_else(|_| panic!("no address: {host}")), query)
}
