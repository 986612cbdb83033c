//! One connection to a NATS server.

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::address::{Address, Login, Server};
use crate::protocol::{self, NotNats, ServerOp};

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
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server's bytes are not NATS's protocol.
    #[error(transparent)]
    NotNats(#[from] NotNats),
    /// The server sent `-ERR`.
    #[error("the server refused: {0}")]
    Refused(String),
    /// TLS is not supported.
    #[error("the server requires TLS, which is not supported")]
    DemandsTls,
    /// A deadline passed.
    #[error("no answer")]
    Silent,
}

/// A connection that has signed in. Operations are appended to a buffer, which the caller bounds;
/// [`drive`](Self::drive) sends it. Dropping the connection closes it. The type has no `Debug`, because the
/// buffer holds the login at first.
pub struct Connection {
    stream: TcpStream,
    input: BytesMut,
    /// Number of bytes at the beginning of `input` that were processed.
    read: usize,
    /// Bytes to send.
    out: BytesMut,
    /// Whether bytes were received since the last call of [`has_received`](Self::has_received).
    received: bool,
}

impl Connection {
    /// Signs in to one server of the address under a name; `attempt` selects the server.
    ///
    /// # Errors
    /// Why there is no connection within 2 s.
    pub async fn connect(address: &Address, attempt: usize, name: &str) -> Result<Self, ConnectionError> {
        // The list of servers is never empty.
        let server = &address.servers[attempt % address.servers.len()];
        let connecting = tokio::time::timeout(CONNECT_DEADLINE, Self::sign_in(server, &address.login, name));
        connecting.await.unwrap_or(Err(ConnectionError::Silent))
    }

    async fn sign_in(server: &Server, login: &Login, name: &str) -> Result<Self, ConnectionError> {
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
        stream.set_nodelay(true)?;
        let (input, out) = (BytesMut::new(), BytesMut::new());
        let mut connection = Self { stream, input, read: 0, out, received: false };
        let mut signed_in = false;
        loop {
            while let Some(op) = connection.next_op()? {
                match op {
                    ServerOp::Info(info) if !signed_in => {
                        let info: serde_json::Value = serde_json::from_str(info).map_err(|_| NotNats)?;
                        if info["tls_required"] == true {
                            return Err(ConnectionError::DemandsTls);
                        }
                        signed_in = true;
                        connection.out.extend_from_slice(
                            format!("CONNECT {}\r\n", connect_options(login, name)).as_bytes(),
                        );
                        protocol::ping(&mut connection.out);
                    }
                    ServerOp::Pong if signed_in => return Ok(connection),
                    ServerOp::Error(error) => return Err(ConnectionError::Refused(error.to_owned())),
                    ServerOp::Info(_) | ServerOp::Ok => {}
                    ServerOp::Ping | ServerOp::Pong | ServerOp::Message { .. } => return Err(NotNats.into()),
                }
            }
            connection.drive().await?;
        }
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
        let writable = if self.out.is_empty() { Interest::READABLE } else { Interest::WRITABLE };
        let ready = self.stream.ready(Interest::READABLE | writable).await?;
        if ready.is_readable() {
            self.input.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
                Ok(_) => self.received = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        if ready.is_writable() && !self.out.is_empty() {
            match self.stream.try_write(&self.out) {
                Ok(written) => self.out.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            if self.out.is_empty() && self.out.capacity() > BUFFER_KEPT_BYTES {
                self.out = BytesMut::new();
            }
        }
        Ok(())
    }

    /// Whether bytes were received since the last call.
    pub fn has_received(&mut self) -> bool {
        std::mem::take(&mut self.received)
    }
}

/// The options of `CONNECT`.
fn connect_options(login: &Login, name: &str) -> serde_json::Value {
    let mut options = serde_json::json!({
        "verbose": false, "pedantic": false, "tls_required": false, "echo": true, "headers": false,
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
    options
}
