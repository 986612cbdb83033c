//! A raw client: bytes of HTTP and of websocket frames over a TCP socket.

use std::net::SocketAddr;

use domain::SessionKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::world::PATIENCE;

pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;
const MASK: [u8; 4] = [0xa1, 0x17, 0x5c, 0x03];

/// The address of a gateway.
#[derive(Clone, Copy)]
pub struct Address(pub SocketAddr);

/// An HTTP answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("the body is text")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Address {
    pub async fn connect(self) -> TcpStream {
        TcpStream::connect(self.0).await.expect("connects")
    }

    /// Sends a request and reads the whole answer.
    pub async fn http(self, method: &str, query: &str, headers: &str, body: &[u8]) -> Answer {
        let mut stream = self.request(method, query, headers, body).await;
        read_answer(&mut stream).await
    }

    /// Sends a request without reading the answer.
    pub async fn request(self, method: &str, query: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = self.connect().await;
        let head = format!(
            "{method} /socket.io/?{query} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await.expect("the request is sent");
        stream
    }

    pub async fn get(self, query: &str) -> Answer {
        self.http("GET", query, "", b"").await
    }

    /// Opens a websocket, or returns the refusal.
    pub async fn websocket(self, query: &str) -> Result<WsClient, Answer> {
        let mut stream = self.connect().await;
        stream.write_all(websocket_request(query).as_bytes()).await.expect("the handshake is sent");
        let mut client = WsClient { stream, read: Vec::new() };
        let head = client.head().await;
        if head.starts_with("HTTP/1.1 101") {
            assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
            return Ok(client);
        }
        let WsClient { mut stream, read } = client;
        Err(finish_answer(&mut stream, head, read).await)
    }

    /// Opens a websocket session of revision 3 and reads up to SYSTEM `connected`.
    pub async fn session(self, auth: &str) -> (WsClient, SessionKey) {
        let query = format!("auth={auth}&EIO=3&transport=websocket");
        let mut client = self.websocket(&query).await.unwrap_or_else(|a| panic!("refused: {}", a.text()));
        assert!(client.text().await.starts_with("0{"));
        assert_eq!(client.text().await, "40");
        let key = connected_key(&client.text().await);
        (client, key)
    }
}

pub fn websocket_request(query: &str) -> String {
    format!(
        "GET /socket.io/?{query} HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    )
}

/// The session key in a SYSTEM `connected` packet.
pub fn connected_key(packet: &str) -> SessionKey {
    let system = system(packet);
    assert_eq!(system["type"], "connected", "{packet}");
    SessionKey::stored(system["data"]["sessionKey"].as_str().expect("a key").to_owned())
}

/// The payload of a SYSTEM packet.
pub fn system(packet: &str) -> serde_json::Value {
    payload("SYSTEM", packet)
}

/// The payload of an event packet, which is JSON in a JSON string.
pub fn payload(name: &str, packet: &str) -> serde_json::Value {
    assert!(packet.is_ascii(), "{packet}");
    let event: Vec<String> =
        serde_json::from_str(packet.strip_prefix("42").expect("an event")).expect(packet);
    assert_eq!(event[0], name, "{packet}");
    assert_eq!(event.len(), 2);
    serde_json::from_str(&event[1]).expect("the argument is JSON")
}

/// `type eventType` of a SYSTEM packet about a subscription.
pub fn change(packet: &str) -> String {
    let system = system(packet);
    format!(
        "{} {}",
        system["type"].as_str().expect("a type"),
        system["data"]["eventType"].as_str().expect("an event type")
    )
}

pub async fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut read = Vec::new();
    let head = read_head(stream, &mut read).await;
    finish_answer(stream, head, read).await
}

async fn finish_answer(stream: &mut TcpStream, head: String, mut body: Vec<u8>) -> Answer {
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let mut answer = Answer { status, head, body: Vec::new() };
    let length: usize = answer.header("content-length").map_or(0, |l| l.parse().expect("a length"));
    while body.len() < length {
        assert!(read_more(stream, &mut body).await, "the answer ends early");
    }
    answer.body = body;
    answer
}

async fn read_head(stream: &mut TcpStream, read: &mut Vec<u8>) -> String {
    loop {
        if let Some(at) = read.windows(4).position(|w| w == b"\r\n\r\n") {
            let rest = read.split_off(at + 4);
            let head = std::mem::replace(read, rest);
            return String::from_utf8(head).expect("a head");
        }
        assert!(read_more(stream, read).await, "the connection closed before an answer");
    }
}

async fn read_more(stream: &mut TcpStream, read: &mut Vec<u8>) -> bool {
    let count = timeout(PATIENCE, stream.read_buf(read)).await.expect("the server sends something");
    count.unwrap_or(0) > 0
}

/// A client frame, masked.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend((long as u16).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

pub struct WsClient {
    pub stream: TcpStream,
    read: Vec<u8>,
}

impl WsClient {
    async fn head(&mut self) -> String {
        read_head(&mut self.stream, &mut self.read).await
    }

    pub async fn send(&mut self, text: &str) {
        self.send_raw(&frame(TEXT, text.as_bytes())).await;
    }

    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server takes it");
    }

    /// The next frame: its first byte and payload; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Some(frame);
            }
            if !read_more(&mut self.stream, &mut self.read).await {
                return None;
            }
        }
    }

    fn take_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let (&first, &short) = (self.read.first()?, self.read.get(1)?);
        assert_eq!(short & 0x80, 0, "servers do not mask");
        let (start, length) = match short {
            126 => (4, usize::from(u16::from_be_bytes(self.read.get(2..4)?.try_into().expect("the length")))),
            127 => (10, u64::from_be_bytes(self.read.get(2..10)?.try_into().expect("the length")) as usize),
            short => (2, usize::from(short)),
        };
        if self.read.len() < start + length {
            return None;
        }
        let rest = self.read.split_off(start + length);
        let frame = std::mem::replace(&mut self.read, rest);
        Some((first, frame[start..].to_vec()))
    }

    /// The next frame, which must be text.
    pub async fn text(&mut self) -> String {
        let (first, payload) = self.next().await.expect("the connection is open");
        assert_eq!(first, TEXT, "{payload:?}");
        String::from_utf8(payload).expect("it is UTF-8")
    }

    /// Reads up to the close frame and returns its code and reason. Before the close frame the server sends
    /// Engine.IO `1`, unless the client said goodbye first or the upgrade was not finished. After the close
    /// frame the stream ends.
    pub async fn closed(&mut self) -> (u16, String) {
        let mut last = None;
        loop {
            match self.next().await.expect("a close frame comes first") {
                (CLOSE, payload) => {
                    assert!(self.next().await.is_none(), "nothing follows a close frame");
                    let code = u16::from_be_bytes([payload[0], payload[1]]);
                    let reason = String::from_utf8(payload[2..].to_vec()).expect("it is UTF-8");
                    let says_close = last == Some((TEXT, b"1".to_vec()));
                    let is_due = reason != "client_goodbye" && reason != "upgrade_failed";
                    assert_eq!(says_close, is_due, "{reason}: {last:?}");
                    return (code, reason);
                }
                frame => last = Some(frame),
            }
        }
    }

    /// Sends a ping, and asserts that the pong is the next frame.
    pub async fn nothing_but_pong(&mut self) {
        self.send("2").await;
        assert_eq!(self.text().await, "3");
    }
}
