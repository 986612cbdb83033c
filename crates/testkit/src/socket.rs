//! A client of the sockets: Engine.IO revision 3 over websocket, like Socket.IO clients 1.0 to 2.x.

use std::net::SocketAddr;

use serde_json::Value;
use wire_client::{CLOSE, frame};

use crate::{Refused, WebSocket, contract};

/// A session whose SYSTEM `connected` has arrived.
#[derive(Debug)]
pub struct Socket {
    websocket: WebSocket,
    session_key: String,
}

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
        let websocket = WebSocket::open(address, &format!("{query}&EIO=3&transport=websocket")).await?;
        let mut socket = Self { websocket, session_key: String::new() };
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

    /// Sends an Engine.IO packet.
    pub async fn send(&mut self, packet: &str) {
        self.websocket.send(packet).await;
    }

    /// The next Engine.IO packet; `None` when the server closes the session.
    pub async fn next_packet(&mut self) -> Option<String> {
        self.websocket.next_packet().await
    }

    /// Pings and waits for the answer, so that everything that was sent before has arrived.
    pub async fn ping(&mut self) {
        self.websocket.ping().await;
    }

    /// Sends a close, and waits until the server has closed the connection.
    pub async fn close(mut self) {
        self.send("41").await;
        self.websocket.write(&frame(CLOSE, &1000_u16.to_be_bytes())).await;
        while self.next_packet().await.is_some() {}
    }

    /// Waits until the server closes the connection, and returns the code and the reason that it sent.
    pub async fn closed(mut self) -> (u16, String) {
        self.websocket.closed().await
    }
}

/// Splits a session URL into address and query, as a Socket.IO client does.
fn split(url: &str) -> (SocketAddr, &str) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("no http address: {url}"));
    let (host, query) = rest.split_once('?').expect("a session URL has a query");
    let address = host.trim_end_matches('/').parse();
    (address.unwrap_or_else(|_| panic!("no address: {host}")), query)
}
