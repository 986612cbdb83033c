//! A peer that sends arbitrary bytes.

use std::net::{Ipv4Addr, SocketAddr};

use testkit::{Api, patiently};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

pub const TEXT: u8 = 0x81;
pub const CLOSE: u8 = 0x88;
const MASK: [u8; 4] = [0xa1, 0x17, 0x5c, 0x03];

/// A client's frame, masked, with the length in its shortest form.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        medium @ 126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

/// A text frame.
pub fn text(packet: &str) -> Vec<u8> {
    frame(TEXT, packet.as_bytes())
}

/// The head of a websocket handshake, with more header lines.
pub fn handshake(query: &str, more: &str) -> String {
    format!(
        "GET /socket.io/?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

/// The queries of `count` client session URLs, ten for each application.
pub async fn session_queries(api: &Api, name: &str, count: usize) -> Vec<String> {
    let mut queries = Vec::new();
    while queries.len() < count {
        let app = api.application(&format!("{name}-{}", queries.len())).create().await;
        for _ in 0..(count - queries.len()).min(10) {
            let url = api.client_session_url(&app).await.content()["url"].clone();
            let (_, query) =
                url.as_str().and_then(|url| url.split_once('?')).expect("an address with a query");
            queries.push(query.to_owned());
        }
    }
    queries
}

/// One connection.
pub struct Peer {
    stream: TcpStream,
    read: Vec<u8>,
    /// The key of its session, once it has been introduced.
    pub session_key: String,
}

impl Peer {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = patiently("a connection", TcpStream::connect(address)).await.expect("it is accepted");
        Self { stream, read: Vec::new(), session_key: String::new() }
    }

    /// Connects from an address of this machine.
    pub async fn connect_from(from: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from((from, 0))).expect("an address of this machine");
        let stream = patiently("a connection", socket.connect(address)).await.expect("it is accepted");
        Self { stream, read: Vec::new(), session_key: String::new() }
    }

    /// Connects with a very small receive buffer.
    pub async fn connect_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(2_048).expect("a small buffer");
        let stream = patiently("a connection", socket.connect(address)).await.expect("it is accepted");
        Self { stream, read: Vec::new(), session_key: String::new() }
    }

    /// Opens a websocket session of an Engine.IO revision, and reads up to SYSTEM `connected`.
    pub async fn session(address: SocketAddr, query: &str, revision: u8) -> Self {
        Self::connect(address).await.introduced(query, revision).await
    }

    /// The same on an existing connection.
    pub async fn introduced(self, query: &str, revision: u8) -> Self {
        let mut peer = self.opened(query, revision).await;
        if revision == 4 {
            peer.write(&text("40")).await;
            assert!(peer.packet().await.expect("a packet").starts_with("40{"));
        } else {
            assert_eq!(peer.packet().await.as_deref(), Some("40"));
        }
        let connected = peer.packet().await.expect("a packet");
        let (_, key) = connected.split_once(r#"\"sessionKey\":\""#).expect("SYSTEM connected");
        peer.session_key = key.split('\\').next().unwrap_or_default().to_owned();
        peer
    }

    /// Opens a websocket session, and reads only its first packet.
    pub async fn opened(mut self, query: &str, revision: u8) -> Self {
        let query = format!("{query}&EIO={revision}&transport=websocket");
        self.write(handshake(&query, "").as_bytes()).await;
        let head = self.head().await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(self.packet().await.expect("a packet").starts_with("0{"));
        self
    }

    /// Sends bytes; the server may already have closed.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _ = patiently("the server takes bytes", self.stream.write_all(bytes)).await;
    }

    /// Sends as many bytes as the system accepts at once.
    pub fn try_write(&self, bytes: &[u8]) -> Option<usize> {
        self.stream.try_write(bytes).ok()
    }

    /// Resets the connection.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("an option of sockets");
    }

    /// Closes the sending side.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// The next packet; `None` when the server has closed.
    pub async fn packet(&mut self) -> Option<String> {
        match self.frame().await? {
            (TEXT, payload) => Some(String::from_utf8(payload).expect("text")),
            (CLOSE, _) => None,
            (first, _) => panic!("a frame that begins with {first:x}"),
        }
    }

    /// The next frame: its first byte and its payload.
    pub async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let header = self.take(2).await?;
        let length = match header[1] {
            126 => self.take(2).await?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
            127 => self.take(8).await?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
            short => usize::from(short),
        };
        Some((header[0], self.take(length).await?))
    }

    /// The reason in the close frame, skipping earlier frames; `None` if the server closes without one.
    pub async fn reason(&mut self) -> Option<String> {
        loop {
            match self.frame().await? {
                (CLOSE, payload) => {
                    assert!(!self.more().await, "nothing follows a close frame");
                    return Some(String::from_utf8(payload[2..].to_vec()).expect("text"));
                }
                _ => continue,
            }
        }
    }

    /// The head of an answer.
    pub async fn head(&mut self) -> String {
        loop {
            if let Some(at) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = self.read.split_off(at + 4);
                return String::from_utf8(std::mem::replace(&mut self.read, rest)).expect("text");
            }
            assert!(self.more().await, "the connection ended before an answer");
        }
    }

    /// All bytes up to the end of the connection.
    pub async fn rest(mut self) -> Vec<u8> {
        while self.more().await {}
        self.read
    }

    async fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.read.len() < count {
            if !self.more().await {
                return None;
            }
        }
        Some(self.read.drain(..count).collect())
    }

    /// Reads more bytes. Returns `false` at the end, or after a reset.
    async fn more(&mut self) -> bool {
        let read = patiently("the server says something", self.stream.read_buf(&mut self.read)).await;
        matches!(read, Ok(1..))
    }
}
