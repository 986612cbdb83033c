//! A websocket that carries Engine.IO packets as text.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use wire_client::{CLOSE, HANDSHAKE_HEADERS, Head, PING, TEXT, check_handshake, text};

use crate::{Connection, Request, Response};

/// The answer to a refused handshake.
pub type Refused = Response;

/// An open websocket. It can also be used as its connection.
#[derive(Debug)]
pub struct WebSocket {
    /// For bytes of the test's own.
    pub connection: Connection,
    /// The latest frame was Engine.IO `1`.
    said_close: bool,
    /// The client speaks revision 4.
    is_revision_4: bool,
}

/// The request for a websocket with this query.
pub fn websocket_request(query: &str) -> Request {
    let request = Request::get(format!("/socket.io/?{query}"));
    HANDSHAKE_HEADERS.iter().fold(request, |request, (name, value)| request.header(name, *value))
}

impl WebSocket {
    /// Opens a websocket.
    ///
    /// # Errors
    /// The answer, when the handshake is refused.
    pub async fn open(address: SocketAddr, query: &str) -> Result<Self, Refused> {
        Self::over(Connection::open(address).await, &websocket_request(query)).await
    }

    /// Opens a websocket over a connection.
    ///
    /// # Errors
    /// The answer, when the handshake is refused.
    ///
    /// # Panics
    /// When the answer is neither a refusal nor a proper one.
    pub async fn over(mut connection: Connection, request: &Request) -> Result<Self, Refused> {
        let answer = connection.send(request).await;
        if answer.status != 101 {
            return Err(answer);
        }
        let head = Head { status: answer.status, headers: answer.headers };
        check_handshake(&head).unwrap_or_else(|wrong| panic!("{wrong}: {head:?}"));
        let is_revision_4 = request.target().contains("EIO=4");
        Ok(Self { connection, said_close: false, is_revision_4 })
    }

    /// Sends a packet.
    pub async fn send(&mut self, packet: &str) {
        self.connection.write(&text(packet)).await;
    }

    /// The next frame: its first byte and its payload. `None` at the end of the connection.
    pub async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let frame = self.connection.frame().await?;
        if frame.0 != CLOSE {
            self.said_close = (frame.0, frame.1.as_slice()) == (TEXT, b"1");
        }
        Some(frame)
    }

    /// The next packet. `None` when the server closes the session.
    ///
    /// # Panics
    /// When the server sends a frame of another kind.
    pub async fn next_packet(&mut self) -> Option<String> {
        loop {
            match self.frame().await? {
                (TEXT, payload) if payload == b"1" => return None,
                (TEXT, payload) => return Some(String::from_utf8(payload).expect("a text frame is UTF-8")),
                (CLOSE, _) => return None,
                (PING, _) => {}
                (first, _) => panic!("a frame that begins with {first:x}"),
            }
        }
    }

    /// The next packet.
    ///
    /// # Panics
    /// When the server closes the session.
    pub async fn packet(&mut self) -> String {
        self.next_packet().await.expect("a packet")
    }

    /// Pings and waits for the answer, so that everything that was sent before has arrived.
    ///
    /// # Panics
    /// When anything else arrives first.
    pub async fn ping(&mut self) {
        self.send("2").await;
        assert_eq!(self.next_packet().await.as_deref(), Some("3"));
    }

    /// The code and the reason of the close frame. Frames before it are skipped. `None` when the connection
    /// ends without a close frame.
    ///
    /// # Panics
    /// When something follows the close frame.
    pub async fn close_frame(&mut self) -> Option<(u16, String)> {
        loop {
            match self.frame().await? {
                (CLOSE, payload) => {
                    let (code, reason) = payload.split_first_chunk().expect("a close frame has a code");
                    assert!(self.connection.is_closed().await, "nothing follows a close frame");
                    let reason = String::from_utf8(reason.to_vec()).expect("a reason is UTF-8");
                    return Some((u16::from_be_bytes(*code), reason));
                }
                _ => continue,
            }
        }
    }

    /// The code and the reason with which the server closes the session.
    ///
    /// # Panics
    /// When the connection ends without a close frame. When Engine.IO `1` does not come right before it,
    /// unless the client speaks revision 4 or said goodbye, or the upgrade was not finished.
    pub async fn closed(&mut self) -> (u16, String) {
        let (code, reason) = self.close_frame().await.expect("a close frame");
        let is_due = !self.is_revision_4 && reason != "client_goodbye" && reason != "upgrade_failed";
        assert_eq!(self.said_close, is_due, "whether `1` comes before {reason}");
        (code, reason)
    }
}

impl Deref for WebSocket {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for WebSocket {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
