//! A minimal HTTP/1.1 client, without checks that would prevent a test from sending malformed requests.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::contract;
use crate::message::{Request, Response};
use crate::patiently;

/// One connection, for requests that need more than one answer or are malformed.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// When nobody listens there.
    pub async fn open(address: SocketAddr) -> Self {
        Self::try_open(address).await.unwrap_or_else(|| panic!("no connection to {address}"))
    }

    /// Connects; `None` when nobody listens there.
    pub async fn try_open(address: SocketAddr) -> Option<Self> {
        let stream = patiently("a connection", TcpStream::connect(address)).await.ok()?;
        Some(Self { address, stream, buffer: Vec::new() })
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
        self.write(&request.bytes(self.address)).await;
        let response = self.read_response(request.method() == "HEAD").await?;
        contract::check_answer(request, &response);
        Some(response)
    }

    /// Sends bytes. A peer that has stopped reading is not an error: it may have answered already.
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
            let head_end = loop {
                if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                    break at;
                }
                if !self.fill().await {
                    assert!(self.buffer.is_empty(), "the connection ended within a head");
                    return None;
                }
            };
            let head: Vec<u8> = self.buffer.drain(..head_end + 4).collect();
            let mut response = parse_head(&head);
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

    /// `false` at the end. A reset is an end as well.
    pub(crate) async fn fill(&mut self) -> bool {
        // Reads into the buffer: an array here would be part of every test's future, which would overflow
        // stacks.
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..))
    }
}

pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn parse_head(head: &[u8]) -> Response {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.trim_end().split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let header = |line: &str| {
        let (name, value) = line.split_once(':').expect("a header has a colon");
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    Response {
        status: status.unwrap_or_else(|| panic!("no status line: {status_line}")),
        headers: lines.map(header).collect(),
        body: Vec::new(),
    }
}
