//! Reads the client's address from proxies: the header of the PROXY protocol before a connection, and the
//! headers of each request. The rules are in `domain`.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

use domain::client_address::{ForwardingHeaders, TrustedProxies};
use domain::proxy_protocol::{
    BINARY_HEAD_BYTES, Named, PREFIX_BYTES, Prefix, TEXT_BYTES_MAX, binary_length, parse_binary, parse_text,
};
use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};
use service::{Clock, LogLimit};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Deadline of the header of the PROXY protocol, which a proxy sends first.
const HEADER_DEADLINE: Duration = Duration::from_secs(5);

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The TCP peer, or the client that a trusted peer named with the PROXY protocol.
    pub(crate) address: IpAddr,
    /// Whether a proxy began the connection with a header of the PROXY protocol that names no client. Such a
    /// proxy passes the bytes of its client on, so the client may have written the forwarding headers.
    is_unnamed: bool,
}

/// The proxies in front of a listener.
#[derive(Debug)]
pub struct Proxies {
    trusted: TrustedProxies,
    /// Whether trusted proxies speak the PROXY protocol.
    proxy_protocol: bool,
    clock: Clock,
    malformed: LogLimit,
}

impl Proxies {
    /// The trusted proxies of the settings, and whether each connection of theirs begins with a header of the
    /// PROXY protocol.
    pub fn new(trusted: TrustedProxies, proxy_protocol: bool, clock: Clock) -> Self {
        Self { trusted, proxy_protocol, clock, malformed: LogLimit::default() }
    }

    /// Whether an address belongs to a trusted proxy, which has many clients.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.contains(address)
    }

    /// The client of a connection: the TCP peer, or the address that a trusted peer names with the PROXY
    /// protocol. If the protocol is on, a trusted peer must send its header. If the header were optional, a
    /// client could forge one.
    ///
    /// # Errors
    /// When the header is missing, malformed or late. The caller must close the connection.
    pub(crate) async fn peer(&self, stream: &mut TcpStream, peer: IpAddr) -> io::Result<Peer> {
        if !self.proxy_protocol || !self.trusts(peer) {
            return Ok(Peer { address: peer, is_unnamed: false });
        }
        let late = || Err(io::Error::new(ErrorKind::TimedOut, "the header came too late"));
        let named = tokio::time::timeout(HEADER_DEADLINE, read_header(stream)).await;
        match named.unwrap_or_else(|_| late()) {
            Ok(Named::Client(address)) => Ok(Peer { address, is_unnamed: false }),
            Ok(Named::Proxy) => Ok(Peer { address: peer, is_unnamed: true }),
            Err(error) => {
                if let Some(times) = self.malformed.due(self.clock.monotonic()) {
                    tracing::warn!(proxy = %peer, %error, times, "failed to read the PROXY protocol header of a trusted proxy");
                }
                Err(error)
            }
        }
    }

    /// The client of a request on a connection of a peer. After a header of the PROXY protocol the forwarding
    /// headers are read only if the header names another trusted proxy.
    pub(crate) fn client(&self, Peer { address: peer, is_unnamed }: Peer, headers: &HeaderMap) -> IpAddr {
        if is_unnamed || !self.trusts(peer) {
            return peer.to_canonical();
        }
        let lines = |name| headers.get_all(name).iter().map(http::HeaderValue::as_bytes);
        let headers =
            ForwardingHeaders { x_forwarded_for: lines(X_FORWARDED_FOR), forwarded: lines(FORWARDED) };
        self.trusted.client(peer, headers)
    }
}

/// Reads a header and nothing after it.
async fn read_header(stream: &mut TcpStream) -> io::Result<Named> {
    let mut prefix = [0; PREFIX_BYTES];
    stream.read_exact(&mut prefix).await?;
    let named =
        match Prefix::of(&prefix).ok_or_else(|| malformed("the connection does not begin with a header"))? {
            Prefix::Text => parse_text(&read_text(stream, prefix.to_vec()).await?),
            Prefix::Binary => parse_binary(&read_binary(stream, prefix).await?),
        };
    named.ok_or_else(|| malformed("the header is malformed"))
}

async fn read_text(stream: &mut TcpStream, mut line: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut ahead = [0; TEXT_BYTES_MAX];
    while !line.ends_with(b"\n") {
        let room = TEXT_BYTES_MAX - line.len();
        if room == 0 {
            return Err(malformed("the header has no line end"));
        }
        // The bytes are peeked first, because those after the header belong to the first request.
        let seen = stream.peek(&mut ahead[..room]).await?;
        if seen == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let line_end = ahead[..seen].iter().position(|byte| *byte == b'\n');
        let part = &mut ahead[..line_end.map_or(seen, |at| at + 1)];
        stream.read_exact(part).await?;
        line.extend_from_slice(part);
    }
    Ok(line)
}

async fn read_binary(stream: &mut TcpStream, prefix: [u8; PREFIX_BYTES]) -> io::Result<Vec<u8>> {
    let mut head = [0; BINARY_HEAD_BYTES];
    head[..PREFIX_BYTES].copy_from_slice(&prefix);
    stream.read_exact(&mut head[PREFIX_BYTES..]).await?;
    let mut header = vec![0; binary_length(&head).ok_or_else(|| malformed("the header is too long"))?];
    header[..BINARY_HEAD_BYTES].copy_from_slice(&head);
    stream.read_exact(&mut header[BINARY_HEAD_BYTES..]).await?;
    Ok(header)
}

fn malformed(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}
