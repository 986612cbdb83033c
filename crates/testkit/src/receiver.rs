//! A receiver of webhooks on loopback, which answers as configured and records every request.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;
use crate::patiently;

/// Number of bytes of an endless answer that are sent at once.
const POURED_AT_ONCE: usize = 4_096;

/// The reaction of a receiver to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers at once, without a body.
    Status(u16),
    /// Answers with further headers, each a whole line, and a body.
    Whole(u16, Vec<String>, Vec<u8>),
    /// Answers with status 200 after a pause.
    After(Duration),
    /// Reads the request and never answers.
    Hang,
    /// Reads the request and closes the connection.
    Close,
    /// Sends these bytes and closes the connection.
    Raw(Vec<u8>),
    /// Sends an answer with status 200 byte by byte, with this pause after each.
    Drip(Duration),
    /// Answers with a status and a body that never ends.
    Endless(u16),
    /// Sends the first bytes, then the second bytes repeatedly.
    Flood(Vec<u8>, Vec<u8>),
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The request line.
    pub line: String,
    /// Every header, names as they were spelled.
    pub headers: Vec<(String, String)>,
    /// The raw body.
    pub body: Vec<u8>,
    /// The number of the receiver's connection, from 0.
    pub connection: usize,
}

impl Received {
    /// The value of a header that must occur exactly once.
    ///
    /// # Panics
    /// When it does not.
    pub fn header(&self, name: &str) -> &str {
        let value = self.find(name);
        value.unwrap_or_else(|| panic!("{name} is missing: {:?}", self.headers))
    }

    /// The value of a header that may occur once.
    ///
    /// # Panics
    /// When it occurs more often.
    pub fn find(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} stands twice");
        value
    }
}

/// A listening receiver. Dropping it closes every connection.
pub struct Receiver {
    address: SocketAddr,
    base: String,
    state: Arc<State>,
    _listening: JoinSet<()>,
}

#[derive(Default)]
struct State {
    book: Mutex<Book>,
    came: Notify,
}

#[derive(Default)]
struct Book {
    received: Vec<Received>,
    /// Number of requests that [`Receiver::next`] has returned.
    seen: usize,
    connections: usize,
    /// The replies to the next requests, in order.
    script: VecDeque<Reply>,
    /// The reply to all other requests.
    usual: Option<Reply>,
    running: usize,
    running_most: usize,
    /// Bytes that went into endless answers.
    poured: usize,
    /// Number of connections that ended with [`Reply::Raw`] and that the client has ended, too.
    let_go: usize,
}

impl Receiver {
    /// A receiver over HTTP that answers 200.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start() -> Self {
        Self::listen("127.0.0.1:0", None, "http://127.0.0.1").await
    }

    /// As [`start`](Self::start), at an unused address.
    ///
    /// # Panics
    /// When the address is in use.
    pub async fn at(address: SocketAddr) -> Self {
        Self::listen(&address.to_string(), None, "http://127.0.0.1").await
    }

    /// A receiver over HTTPS that answers 200, with a certificate for `name`, under the address
    /// `https://{reached_as}`.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start_tls(authority: &Authority, name: &str, reached_as: &str) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(authority.server_for(name)));
        Self::listen("127.0.0.1:0", Some(acceptor), &format!("https://{reached_as}")).await
    }

    async fn listen(at: &str, tls: Option<TlsAcceptor>, base: &str) -> Self {
        let listener = TcpListener::bind(at).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State::default());
        let mut listening = JoinSet::new();
        listening.spawn(accept(listener, tls, state.clone()));
        Self { address, base: format!("{base}:{}", address.port()), state, _listening: listening }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of one of its paths, which begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Sets the reply to every request without its own reply.
    pub fn usually(&self, reply: Reply) {
        self.book(|book| book.usual = Some(reply));
    }

    /// Adds replies to the next requests, in order.
    pub fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        self.book(|book| book.script.extend(replies));
    }

    /// The next request that this method has not returned yet.
    ///
    /// # Panics
    /// When no request arrives.
    pub async fn next(&self) -> Received {
        patiently("a webhook", async {
            loop {
                let came = self.state.came.notified();
                let next = self.book(|book| {
                    let next = book.received.get(book.seen).cloned();
                    book.seen += usize::from(next.is_some());
                    next
                });
                match next {
                    Some(received) => return received,
                    None => came.await,
                }
            }
        })
        .await
    }

    /// All requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.book(|book| book.received.clone())
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.book(|book| book.received.len())
    }

    /// The number of requests that [`next`](Self::next) has returned.
    pub fn seen(&self) -> usize {
        self.book(|book| book.seen)
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.book(|book| book.connections)
    }

    /// Waits until the client has closed this many connections that ended with [`Reply::Raw`].
    ///
    /// # Panics
    /// When it does not.
    pub async fn let_go(&self, connections: usize) {
        patiently("the client's end of a connection", async {
            loop {
                let came = self.state.came.notified();
                if self.book(|book| book.let_go) >= connections {
                    return;
                }
                came.await;
            }
        })
        .await;
    }

    /// The maximum number of requests that waited for an answer at once.
    pub fn at_once(&self) -> usize {
        self.book(|book| book.running_most)
    }

    /// Bytes that went into endless answers.
    pub fn poured(&self) -> usize {
        self.book(|book| book.poured)
    }

    fn book<T>(&self, look: impl FnOnce(&mut Book) -> T) -> T {
        self.state.book(look)
    }
}

impl State {
    fn book<T>(&self, look: impl FnOnce(&mut Book) -> T) -> T {
        look(&mut self.book.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (state, tls) = (state.clone(), tls.clone());
        let connection = state.book(|book| {
            book.connections += 1;
            book.connections - 1
        });
        connections.spawn(async move {
            match tls {
                None => serve(stream, connection, &state).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => serve(stream, connection, &state).await,
                    Err(_) => None,
                },
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Counts a request as running until it is dropped, also with its connection.
struct Running<'a>(&'a State);

impl<'a> Running<'a> {
    fn begin(state: &'a State) -> Self {
        state.book(|book| {
            book.running += 1;
            book.running_most = book.running_most.max(book.running);
        });
        Self(state)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.book(|book| book.running -= 1);
    }
}

/// Serves until the connection ends.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    state: &State,
) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let received = read(&mut stream, &mut buffer, connection).await?;
        let running = Running::begin(state);
        let reply = state.book(|book| {
            book.received.push(received);
            let usual = book.usual.clone().unwrap_or(Reply::Status(200));
            book.script.pop_front().unwrap_or(usual)
        });
        state.came.notify_waiters();
        match reply {
            Reply::Status(status) => answer(&mut stream, status, &[], &[]).await?,
            Reply::Whole(status, headers, body) => answer(&mut stream, status, &headers, &body).await?,
            Reply::After(pause) => {
                tokio::time::sleep(pause).await;
                answer(&mut stream, 200, &[], &[]).await?;
            }
            // The receiver waits until the peer closes the connection.
            Reply::Hang => while stream.read_buf(&mut buffer).await.ok()? > 0 {},
            Reply::Close => return None,
            Reply::Raw(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                let _ = stream.shutdown().await;
                drop(running);
                // The receiver waits until the peer has received the end.
                while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {}
                state.book(|book| book.let_go += 1);
                state.came.notify_waiters();
                return None;
            }
            Reply::Drip(pause) => {
                for byte in
                    b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".iter().chain([b'.'; 100_000].iter())
                {
                    stream.write_all(&[*byte]).await.ok()?;
                    stream.flush().await.ok()?;
                    tokio::time::sleep(pause).await;
                }
            }
            Reply::Endless(status) => {
                let head = format!("HTTP/1.1 {status} Reply\r\nTransfer-Encoding: chunked\r\n\r\n");
                let chunk = [b"1000\r\n".as_slice(), &[b'x'; 0x1000], b"\r\n"].concat();
                pour(&mut stream, head.as_bytes(), &chunk, state).await?
            }
            Reply::Flood(head, piece) => pour(&mut stream, &head, &piece, state).await?,
        }
        drop(running);
    }
}

/// The next request; `None` at the end.
async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    connection: usize,
) -> Option<Received> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head: Vec<u8> = buffer.drain(..head_end + 4).collect();
    let head = String::from_utf8(head).expect("a head of a webhook is text");
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let headers = lines.map(|line| line.split_once(": ").expect("a header has a colon"));
    let headers: Vec<_> = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut received = Received { line, headers, body: Vec::new(), connection };
    // A GET has no body and no length.
    let length = received.find("Content-Length").map_or(0, |length| length.parse().expect("a length"));
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    received.body = buffer.drain(..length).collect();
    Some(received)
}

async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    status: u16,
    headers: &[String],
    body: &[u8],
) -> Option<()> {
    let mut head = format!("HTTP/1.1 {status} Reply\r\n");
    headers.iter().for_each(|line| head.push_str(&format!("{line}\r\n")));
    if status != 204 {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).await.ok()?;
    stream.flush().await.ok()
}

async fn pour(
    stream: &mut (impl AsyncWrite + Unpin),
    head: &[u8],
    piece: &[u8],
    state: &State,
) -> Option<()> {
    stream.write_all(head).await.ok()?;
    let pieces = piece.repeat(POURED_AT_ONCE.div_ceil(piece.len()));
    loop {
        stream.write_all(&pieces).await.ok()?;
        state.book(|book| book.poured += pieces.len());
    }
}
