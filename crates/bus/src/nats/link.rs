//! One connection to a NATS server.

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::address::{Address, Login, Server};
use super::protocol::{self, NotNats, Said};

/// How long a server has to be reached and to let this node in.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// Bytes that are read at once, at the least.
const READ_BYTES: usize = 16 * 1024;
/// A buffer that is larger than this is given back when it is empty.
const BUFFER_KEPT_BYTES: usize = 64 * 1024;

/// Why a connection ended, or did not come about.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    NotNats(#[from] NotNats),
    #[error("it says: {0}")]
    Refused(String),
    #[error("it demands TLS, which is not spoken here")]
    DemandsTls,
    #[error("it is silent")]
    Silent,
}

pub(super) struct Link {
    stream: TcpStream,
    input: BytesMut,
    /// Bytes at the beginning of `input` that were read already.
    read: usize,
    /// What is yet to be sent. Whoever adds to it sees to its bound.
    pub(super) out: BytesMut,
    /// Whether anything came since this was last looked at.
    heard: bool,
}

impl Link {
    /// Signs in at one server of the address; `turn` says at which.
    pub(super) async fn connect(address: &Address, turn: usize, name: &str) -> Result<Self, Broken> {
        // There is at least one server.
        let server = &address.servers[turn % address.servers.len()];
        let connecting = tokio::time::timeout(CONNECT_DEADLINE, Self::sign_in(server, &address.login, name));
        connecting.await.unwrap_or(Err(Broken::Silent))
    }

    async fn sign_in(server: &Server, login: &Login, name: &str) -> Result<Self, Broken> {
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
        stream.set_nodelay(true)?;
        let (input, out) = (BytesMut::new(), BytesMut::new());
        let mut link = Self { stream, input, read: 0, out, heard: false };
        let mut signed_in = false;
        loop {
            while let Some(said) = link.next()? {
                match said {
                    Said::Info(info) if !signed_in => {
                        let info: serde_json::Value = serde_json::from_str(info).map_err(|_| NotNats)?;
                        if info["tls_required"] == true {
                            return Err(Broken::DemandsTls);
                        }
                        signed_in = true;
                        link.out.extend_from_slice(format!("CONNECT {}\r\n", hello(login, name)).as_bytes());
                        protocol::ping(&mut link.out);
                    }
                    Said::Pong if signed_in => return Ok(link),
                    Said::Error(error) => return Err(Broken::Refused(error.to_owned())),
                    Said::Info(_) | Said::Ok => {}
                    Said::Ping | Said::Pong | Said::Message { .. } => return Err(NotNats.into()),
                }
            }
            link.turn().await?;
        }
    }

    /// The next thing that was said and has arrived. Answers pings by itself.
    pub(super) fn next(&mut self) -> Result<Option<Said<'_>>, Broken> {
        self.input.advance(std::mem::take(&mut self.read));
        if self.input.is_empty() && self.input.capacity() > BUFFER_KEPT_BYTES {
            self.input = BytesMut::new();
        }
        let Some((said, used)) = protocol::parse(&self.input)? else { return Ok(None) };
        self.read = used;
        if said == Said::Ping {
            protocol::pong(&mut self.out);
        }
        Ok(Some(said))
    }

    /// Waits until something arrived or was sent. May be dropped at any time.
    pub(super) async fn turn(&mut self) -> Result<(), Broken> {
        let writable = if self.out.is_empty() { Interest::READABLE } else { Interest::WRITABLE };
        let ready = self.stream.ready(Interest::READABLE | writable).await?;
        if ready.is_readable() {
            self.input.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
                Ok(_) => self.heard = true,
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

    /// Whether anything came since the last call.
    pub(super) fn was_heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }
}

/// What this node says about itself.
fn hello(login: &Login, name: &str) -> serde_json::Value {
    let mut hello = serde_json::json!({
        "verbose": false, "pedantic": false, "tls_required": false, "echo": true, "headers": false,
        "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "name": name,
    });
    match login {
        Login::Nobody => {}
        Login::Token(token) => hello["auth_token"] = token.as_str().into(),
        Login::User { user, password } => {
            hello["user"] = user.as_str().into();
            hello["pass"] = password.as_str().into();
        }
    }
    hello
}
