//! One connection to a NATS server.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use rustls::pki_types::ServerName;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::access::{Access, BadAccess};
use crate::address::{Login, Server};
use crate::credentials::{BadCredentials, Credentials};
use crate::protocol::{self, NotNats, ServerOp};
use crate::servers::Servers;

/// Deadline to connect and sign in to a server.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// Minimum number of bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// An empty buffer that is larger than this is released.
const BUFFER_KEPT_BYTES: usize = 64 * 1024;

/// Why a connection ended or failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The socket failed, or the server closed it.
    #[error("{}", tls_files::meaning(.0).unwrap_or_else(|| .0.to_string()))]
    Io(#[from] io::Error),
    /// The server's bytes are not NATS's protocol.
    #[error(transparent)]
    NotNats(#[from] NotNats),
    /// The server sent `-ERR`.
    #[error("the server refused: {0}")]
    Refused(String),
    /// TLS is wanted, and the server has none.
    #[error("the server has no TLS: give it a tls block, or leave out tls:// and the files for TLS")]
    NoTls,
    /// The server asks for no signature.
    #[error("the server asks for no signature: it has no users with nkeys or JWTs")]
    NoNonce,
    /// A file cannot be used.
    #[error(transparent)]
    Access(#[from] BadAccess),
    /// No other server is known.
    #[error("no other server is known")]
    Alone,
    /// The server has announced that it stops.
    #[error("the server is stopping")]
    Leaving,
    /// The move from a server that stops took too long.
    #[error(
        "the next server and the one that stops forward no messages to each other: form a cluster of them"
    )]
    Apart,
    /// A deadline passed.
    #[error("no answer")]
    Silent,
}

impl From<BadCredentials> for ConnectionError {
    fn from(bad: BadCredentials) -> Self {
        Self::Access(bad.into())
    }
}

/// A socket, with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What a server says of itself. It may say it again at any time.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    tls_required: bool,
    tls_available: bool,
    nonce: Option<String>,
    /// The servers of its cluster.
    connect_urls: Vec<String>,
    /// Whether it is about to stop.
    ldm: bool,
}

/// A connection that has signed in. Operations are appended to a buffer, which the caller bounds;
/// [`drive`](Self::drive) sends it. Dropping the connection closes it. The type has no `Debug`, because the
/// buffer holds the login at first.
pub struct Connection {
    stream: Box<dyn Stream>,
    server: Server,
    input: BytesMut,
    /// Number of bytes at the beginning of `input` that were processed.
    read: usize,
    /// Bytes to send.
    out: BytesMut,
    /// Whether bytes wait in the stream to be sent.
    is_unflushed: bool,
    /// Whether bytes were received since the last call of [`has_received`](Self::has_received).
    received: bool,
    /// Whether the server has announced that it stops.
    is_leaving: bool,
}

impl Connection {
    /// Signs in to one server under a name; `attempt` selects the server. `except` is not tried.
    ///
    /// # Errors
    /// Why there is no connection within 2 s.
    pub async fn connect(
        access: &Access,
        servers: &Servers,
        attempt: usize,
        except: Option<&Server>,
        name: &str,
    ) -> Result<Self, ConnectionError> {
        let server = servers.choose(attempt, except).ok_or(ConnectionError::Alone)?;
        let connecting = Self::sign_in(access, servers, server, name);
        tokio::time::timeout(CONNECT_DEADLINE, connecting).await.unwrap_or(Err(ConnectionError::Silent))
    }

    async fn sign_in(
        access: &Access,
        servers: &Servers,
        server: Server,
        name: &str,
    ) -> Result<Self, ConnectionError> {
        let credentials = access.credentials()?;
        let mut stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
        stream.set_nodelay(true)?;
        let info = first_info(&mut stream).await?;
        let wants_tls = access.demands_tls();
        let is_secure = wants_tls || info.tls_required;
        let stream: Box<dyn Stream> = if is_secure {
            if !(info.tls_required || info.tls_available) {
                return Err(ConnectionError::NoTls);
            }
            let host = servers.certificate_name(&server).to_owned();
            let host = ServerName::try_from(host).map_err(io::Error::other)?;
            Box::new(TlsConnector::from(access.tls()?).connect(host, stream).await?)
        } else {
            Box::new(stream)
        };
        let mut connection = Self::new(stream, server);
        connection.note(&info, servers);
        let options = connect_options(&access.address.login, credentials.as_ref(), &info, is_secure, name)?;
        connection.out.extend_from_slice(format!("CONNECT {options}\r\n").as_bytes());
        protocol::ping(&mut connection.out);
        loop {
            while let Some(op) = connection.next_op()? {
                match op {
                    ServerOp::Pong => return Ok(connection),
                    ServerOp::Error(error) => return Err(ConnectionError::Refused(error.to_owned())),
                    ServerOp::Info(_) | ServerOp::Ok => {}
                    ServerOp::Ping | ServerOp::Message { .. } => return Err(NotNats.into()),
                }
            }
            connection.drive().await?;
        }
    }

    fn new(stream: Box<dyn Stream>, server: Server) -> Self {
        Self {
            stream,
            server,
            input: BytesMut::new(),
            read: 0,
            out: BytesMut::new(),
            is_unflushed: false,
            received: false,
            is_leaving: false,
        }
    }

    /// The server of this connection.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Whether the server has announced that it stops. Its clients are to move to another one.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Notes what the server says of itself: `text` is that of an `INFO`.
    pub fn learn(&mut self, text: &str, servers: &Servers) {
        // A server that says something else later is still a server.
        if let Ok(info) = serde_json::from_str(text) {
            self.note(&info, servers);
        }
    }

    fn note(&mut self, info: &Info, servers: &Servers) {
        servers.learn(&info.connect_urls);
        self.is_leaving |= info.ldm;
    }

    /// Publishes a message: the concatenation of a header and a body.
    pub fn publish(&mut self, subject: &str, header: &[u8], body: &[u8]) {
        protocol::publish(&mut self.out, subject, header, body);
    }

    /// Subscribes to a subject, under a number that the caller chooses.
    pub fn subscribe(&mut self, subject: &str, sid: u64) {
        protocol::subscribe(&mut self.out, subject, sid);
    }

    /// Ends the subscription of that number.
    pub fn unsubscribe(&mut self, sid: u64) {
        protocol::unsubscribe(&mut self.out, sid);
    }

    /// Sends a `PING`, which the server answers with `PONG`.
    pub fn ping(&mut self) {
        protocol::ping(&mut self.out);
    }

    /// The next received operation; `None` while it is incomplete. Pings of the server are answered here.
    ///
    /// # Errors
    /// When the bytes are not NATS's protocol.
    pub fn next_op(&mut self) -> Result<Option<ServerOp<'_>>, ConnectionError> {
        self.input.advance(std::mem::take(&mut self.read));
        if self.input.is_empty() && self.input.capacity() > BUFFER_KEPT_BYTES {
            self.input = BytesMut::new();
        }
        let Some((op, used)) = protocol::parse(&self.input)? else { return Ok(None) };
        self.read = used;
        if op == ServerOp::Ping {
            protocol::pong(&mut self.out);
        }
        Ok(Some(op))
    }

    /// Reads or writes once, when the socket is ready. Cancel safe.
    ///
    /// # Errors
    /// When the socket fails, or the server has closed it.
    pub async fn drive(&mut self) -> Result<(), ConnectionError> {
        poll_fn(|context| {
            let read = self.poll_read(context)?;
            let written = self.poll_write(context)?;
            if read || written { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    /// Whether bytes were read.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<bool, ConnectionError> {
        self.input.reserve(READ_BYTES);
        // The future holds nothing, so it may be dropped before it is ready.
        let reading = pin!(self.stream.read_buf(&mut self.input));
        match reading.poll(context)? {
            Poll::Pending => Ok(false),
            Poll::Ready(0) => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
            Poll::Ready(_) => {
                self.received = true;
                Ok(true)
            }
        }
    }

    /// Whether bytes were written.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<bool, ConnectionError> {
        let mut has_written = false;
        if !self.out.is_empty()
            && let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(context, &self.out)?
        {
            self.out.advance(written);
            (self.is_unflushed, has_written) = (true, true);
            if self.out.is_empty() && self.out.capacity() > BUFFER_KEPT_BYTES {
                self.out = BytesMut::new();
            }
        }
        // TLS holds encrypted bytes back while the socket is full.
        if self.is_unflushed && Pin::new(&mut self.stream).poll_flush(context)?.is_ready() {
            self.is_unflushed = false;
        }
        Ok(has_written)
    }

    /// Whether bytes were received since the last call.
    pub fn has_received(&mut self) -> bool {
        std::mem::take(&mut self.received)
    }
}

/// Reads the first `INFO`, and no byte after it: a handshake may follow.
async fn first_info(stream: &mut TcpStream) -> Result<Info, ConnectionError> {
    let mut bytes = BytesMut::new();
    loop {
        let mut seen = [0; READ_BYTES];
        let length = stream.peek(&mut seen).await?;
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        let line = seen[..length].iter().position(|byte| *byte == b'\n').map_or(length, |end| end + 1);
        let mut taken = vec![0; line];
        stream.read_exact(&mut taken).await?;
        bytes.extend_from_slice(&taken);
        match protocol::parse(&bytes)? {
            None => {}
            Some((ServerOp::Info(info), _)) => return serde_json::from_str(info).map_err(|_| NotNats.into()),
            Some((ServerOp::Error(error), _)) => return Err(ConnectionError::Refused(error.to_owned())),
            Some(_) => return Err(NotNats.into()),
        }
    }
}

/// The options of `CONNECT`.
fn connect_options(
    login: &Login,
    credentials: Option<&Credentials>,
    info: &Info,
    is_secure: bool,
    name: &str,
) -> Result<serde_json::Value, ConnectionError> {
    let mut options = serde_json::json!({
        "verbose": false, "pedantic": false, "tls_required": is_secure, "echo": true, "headers": false,
        "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "name": name,
    });
    match login {
        Login::Anonymous => {}
        Login::Token(token) => options["auth_token"] = token.as_str().into(),
        Login::User { user, password } => {
            options["user"] = user.as_str().into();
            options["pass"] = password.as_str().into();
        }
    }
    if let Some(credentials) = credentials {
        let nonce = info.nonce.as_deref().ok_or(ConnectionError::NoNonce)?;
        credentials.prove(nonce, &mut options);
    }
    Ok(options)
}
