//! A minimal client of HTTP/1.1 and websockets, without checks that would prevent a test from sending
//! malformed bytes.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use wire_client::{Frame, Head};

use crate::contract;
use crate::message::{Request, Response};
use crate::patiently;

/// One connection, for requests that need more than one answer or are malformed.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// When no server listens there.
    pub async fn open(address: SocketAddr) -> Self {
        Self::try_open(address).await.unwrap_or_else(|| panic!("no connection to {address}"))
    }

    /// Connects; `None` if no server listens there.
    pub async fn try_open(address: SocketAddr) -> Option<Self> {
        let stream = patiently("a connection", TcpStream::connect(address)).await.ok()?;
        Some(Self { address, stream, buffer: Vec::new() })
    }

    /// Connects from this address of the machine.
    ///
    /// # Panics
    /// When no process listens there.
    pub async fn open_from(from: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from((from, 0))).expect("an address of this machine");
        Self::over(socket, address).await
    }

    /// Connects with a small receive buffer.
    ///
    /// # Panics
    /// When no process listens there.
    pub async fn open_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(2_048).expect("a small buffer");
        Self::over(socket, address).await
    }

    async fn over(socket: TcpSocket, address: SocketAddr) -> Self {
        let stream = patiently("a connection", socket.connect(address)).await;
        let stream = stream.unwrap_or_else(|_| panic!("no connection to {address}"));
        Self { address, stream, buffer: Vec::new() }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Panics
    /// When the connection ends without one.
    pub async fn send(&mut self, request: &Request) -> Response {
        let answer = self.try_send(request).await;
        answer.unwrap_or_else(|| panic!("no answer to {} {}", request.method(), request.target()))
    }

    /// Sends a request and waits for its answer; `None` when the connection ends before one.
    pub async fn try_send(&mut self, request: &Request) -> Option<Response> {
        self.begin(request).await;
        let response = self.read_response(request.method() == "HEAD").await?;
        contract::check_answer(request, &response);
        Some(response)
    }

    /// Sends a request.
    pub async fn begin(&mut self, request: &Request) {
        self.write(&request.bytes(self.address)).await;
    }

    /// Sends bytes. A peer that has stopped reading is not an error, because it may already have answered.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _ = patiently("the peer takes bytes", self.stream.write_all(bytes)).await;
    }

    /// Sends bytes. Fails when the peer has closed the connection.
    ///
    /// # Errors
    /// That of the system.
    pub async fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        patiently("the peer takes bytes", self.stream.write_all(bytes)).await
    }

    /// Sends as many bytes as the system takes at once.
    pub fn try_write(&self, bytes: &[u8]) -> Option<usize> {
        self.stream.try_write(bytes).ok()
    }

    /// Closes the connection with a reset.
    ///
    /// # Panics
    /// When the system has no such option.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("an option of sockets");
    }

    /// Closes the sending side of the connection.
    pub async fn finish_writing(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// The next answer; `None` when the connection ended before one. `to_head` for the answer to a HEAD.
    ///
    /// # Panics
    /// When the connection ends within an answer.
    pub async fn read_response(&mut self, to_head: bool) -> Option<Response> {
        patiently("an answer", async {
            let (head, length) = loop {
                if let Some(head) = Head::read(&self.buffer).expect("the head of an answer") {
                    break head;
                }
                if !self.fill().await {
                    assert!(self.buffer.is_empty(), "the connection ended within a head");
                    return None;
                }
            };
            self.buffer.drain(..length);
            let mut response = Response { status: head.status, headers: head.headers, body: Vec::new() };
            assert_eq!(response.header("transfer-encoding"), None, "answers are sent whole");
            if !to_head && !matches!(response.status, 101 | 204 | 304) {
                response.body = self.read_body(response.header("content-length")).await;
            }
            Some(response)
        })
        .await
    }

    async fn read_body(&mut self, length: Option<&str>) -> Vec<u8> {
        let length: Option<usize> = length.map(|length| length.parse().expect("a length"));
        while length.is_none_or(|length| self.buffer.len() < length) {
            if !self.fill().await {
                assert_eq!(length, None, "the connection ended within a body");
                break;
            }
        }
        self.buffer.drain(..length.unwrap_or(self.buffer.len())).collect()
    }

    /// The next frame of a websocket: its first byte and its payload. `None` at the end of the connection.
    ///
    /// # Panics
    /// When the server breaks the protocol.
    pub async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        patiently("a frame", async {
            loop {
                if let Some((frame, length)) = Frame::read(&self.buffer).expect("a frame of a server") {
                    let frame = (frame.first, frame.payload.to_vec());
                    self.buffer.drain(..length);
                    return Some(frame);
                }
                if !self.fill().await {
                    return None;
                }
            }
        })
        .await
    }

    /// Everything up to the end of the connection.
    pub async fn rest(&mut self) -> Vec<u8> {
        while patiently("bytes or the end", self.fill()).await {}
        std::mem::take(&mut self.buffer)
    }

    /// Everything up to these bytes.
    ///
    /// # Panics
    /// When the connection ends before them.
    pub async fn until(&mut self, bytes: &[u8]) -> Vec<u8> {
        while !self.buffer.windows(bytes.len()).any(|window| window == bytes) {
            assert!(patiently("bytes", self.fill()).await, "the connection ended");
        }
        std::mem::take(&mut self.buffer)
    }

    /// Whether neither bytes nor an end have arrived since the last answer. A proxy checks this before it
    /// reuses a connection.
    pub fn is_idle(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        self.buffer.is_empty() && read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Whether the peer closes the connection without sending anything more.
    pub async fn is_closed(&mut self) -> bool {
        patiently("the end of a connection", async { self.buffer.is_empty() && !self.fill().await }).await
    }

    /// Reads more bytes. Returns `false` at the end, or after a reset.
    async fn fill(&mut self) -> bool {
        // The bytes are read into the buffer. An array would be part of every test's future, which would
        // overflow stacks.
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..))
    }
}
