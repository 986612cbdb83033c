//! Ends TLS. HTTP and the sockets read and write a plain stream: one end of a pair of local sockets, whose
//! other end is joined to the TLS connection.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, copy, split};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Deadline of the first byte of a connection.
const FIRST_BYTE_DEADLINE: Duration = Duration::from_secs(30);
/// Deadline of the handshake.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);
/// How long a peer is still read after its connection ended here, so that it receives the last bytes.
const LINGER_WITHIN: Duration = Duration::from_secs(5);
/// The first byte of a TLS connection: a record of the handshake. No HTTP request begins with it.
const HANDSHAKE_RECORD: u8 = 22;
/// The number of descriptors that a TLS connection has: its own and the pair.
pub const DESCRIPTORS: usize = 3;

/// What becomes of a connection without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainHttp {
    /// It is served too.
    Served,
    /// The answer says that the port speaks HTTPS.
    Refused,
}

/// Ends TLS for one listener. Cheap to clone.
#[derive(Clone)]
pub struct Terminator {
    acceptor: TlsAcceptor,
    /// Each connection has a receiver.
    joined: watch::Sender<()>,
    plain: PlainHttp,
}

impl std::fmt::Debug for Terminator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Terminator({} connections)", self.joined.receiver_count())
    }
}

/// An accepted stream that carries plain HTTP.
pub(crate) struct Opened {
    pub stream: TcpStream,
    /// Whether the client speaks TLS.
    pub is_secure: bool,
}

impl Terminator {
    /// TLS 1.2 and 1.3 for HTTP/1.1.
    ///
    /// # Errors
    /// A sentence: the TLS library refuses its own defaults.
    pub fn new(certificates: Arc<dyn ResolvesServerCert>, plain: PlainHttp) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS is not available: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), joined: watch::Sender::new(()), plain })
    }

    /// Whether connections without TLS are refused.
    pub(crate) fn is_strict(&self) -> bool {
        self.plain == PlainHttp::Refused
    }

    /// The plain stream of a connection. Its first byte says whether it is TLS.
    ///
    /// # Errors
    /// The handshake failed, or it came too late.
    pub(crate) async fn open(&self, stream: TcpStream) -> io::Result<Opened> {
        let late = |_| io::Error::new(ErrorKind::TimedOut, "the connection sent nothing in time");
        let mut first = [0];
        let read =
            tokio::time::timeout(FIRST_BYTE_DEADLINE, stream.peek(&mut first)).await.map_err(late)??;
        if read == 0 || first[0] != HANDSHAKE_RECORD {
            return Ok(Opened { stream, is_secure: false });
        }
        let late = |_| io::Error::new(ErrorKind::TimedOut, "the handshake did not end in time");
        let secure =
            tokio::time::timeout(HANDSHAKE_DEADLINE, self.acceptor.accept(stream)).await.map_err(late)??;
        let (inner, outer) = pair()?;
        let joined = self.joined.subscribe();
        tokio::spawn(async move {
            join(secure, outer).await;
            drop(joined);
        });
        Ok(Opened { stream: inner, is_secure: true })
    }

    /// Returns when the last TLS connection has ended.
    pub(crate) async fn all_ended(&self) {
        self.joined.closed().await;
    }
}

/// Two ends of a local connection. HTTP and the sockets take the first one for a TCP stream: they read, write
/// and shut it down, which every socket can.
fn pair() -> io::Result<(TcpStream, UnixStream)> {
    let (inner, outer) = StdUnixStream::pair()?;
    let inner = std::net::TcpStream::from(OwnedFd::from(inner));
    inner.set_nonblocking(true)?;
    outer.set_nonblocking(true)?;
    Ok((TcpStream::from_std(inner)?, UnixStream::from_std(outer)?))
}

/// Copies both ways until the plain side has ended. Then the peer is read on for a while, because closing the
/// connection with unread bytes would reset it, and the peer might lose the last answer.
async fn join(secure: TlsStream<TcpStream>, plain: UnixStream) {
    let (from_peer, to_peer) = split(secure);
    let (from_plain, to_plain) = split(plain);
    let mut incoming = pin!(receive(from_peer, to_plain));
    let mut outgoing = pin!(send(from_plain, to_peer));
    tokio::select! {
        // A peer that disconnects earlier needs no more.
        () = &mut outgoing => drop(tokio::time::timeout(LINGER_WITHIN, incoming).await),
        // The plain side sees the end, answers, and ends as well.
        () = &mut incoming => outgoing.await,
    }
}

/// Passes on what the peer sends, and then the end. What comes after the plain side has ended is dropped.
async fn receive(mut from_peer: ReadHalf<TlsStream<TcpStream>>, mut to_plain: WriteHalf<UnixStream>) {
    let failed = copy(&mut from_peer, &mut to_plain).await.is_err();
    let _ = to_plain.shutdown().await;
    if failed {
        let mut scratch = [0; 4_096];
        while from_peer.read(&mut scratch).await.is_ok_and(|read| read > 0) {}
    }
}

/// Passes on what the plain side sends, and then the end.
async fn send(mut from_plain: ReadHalf<UnixStream>, mut to_peer: WriteHalf<TlsStream<TcpStream>>) {
    // A peer that disconnects needs no more.
    let _ = copy(&mut from_plain, &mut to_peer).await;
    let _ = to_peer.shutdown().await;
}
