//! An HTTP proxy for the time of one command. It leads the fixed hosts to the sandbox, and every other host
//! to where it is.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::forward::{CONNECT_DEADLINE, Destination, accept_each, join};
use crate::failure::CommandFailure;

/// Maximum length of the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Deadline of the head of a request.
const HEAD_DEADLINE: Duration = Duration::from_secs(10);
/// The hosts that no program asks a proxy for.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";

/// Starts the proxy on a free port of loopback.
pub(super) async fn start(
    hosts: &[String],
    destination: &Destination,
) -> Result<(SocketAddr, JoinSet<()>), CommandFailure> {
    let failed = |error: std::io::Error| CommandFailure::Failed(format!("the proxy cannot listen: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (hosts, destination): (Arc<[String]>, _) = (hosts.into(), destination.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(accept_each(listener, move |stream| {
        let (hosts, destination) = (hosts.clone(), destination.clone());
        async move {
            // A client that disconnects needs no answer.
            let _ = handle(stream, &hosts, &destination).await;
        }
    }));
    Ok((address, tasks))
}

/// The variables that lead programs to the proxy.
pub(super) fn variables(proxy: SocketAddr) -> Vec<(&'static str, String)> {
    let url = format!("http://{proxy}");
    let other = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy")).unwrap_or_default();
    let none = if other.is_empty() { NO_PROXY.to_owned() } else { format!("{NO_PROXY},{other}") };
    let led = ["HTTPS_PROXY", "https_proxy", "WSS_PROXY", "wss_proxy"].map(|name| (name, url.clone()));
    let mut variables = led.to_vec();
    variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, none.clone())));
    // Node.js from 22.21 and 24 on follows the variables only with this one.
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    variables
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// A tunnel to a host and port.
    Tunnel(String, u16),
    /// One request, with the host in its target. Some clients send these for HTTPS, too.
    Absolute(String),
}

async fn handle(mut stream: TcpStream, hosts: &[String], destination: &Destination) -> std::io::Result<()> {
    let head = tokio::time::timeout(HEAD_DEADLINE, read_head(&mut stream)).await??;
    let is_fixed = |host: &String| hosts.contains(host);
    match wanted(&head.bytes[..head.length]) {
        Some(Wanted::Tunnel(host, port)) => {
            let opened = match is_fixed(&host) {
                true => destination.connect().await,
                false => elsewhere(&host, port).await,
            };
            let Ok(mut server) = opened else { return refuse(stream, "502 Bad Gateway").await };
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            server.write_all(&head.bytes[head.length..]).await?;
            join(stream, server).await;
        }
        Some(Wanted::Absolute(host)) if is_fixed(&host) => {
            let mut server = destination.connect().await?;
            server.write_all(&head.bytes).await?;
            join(stream, server).await;
        }
        Some(Wanted::Absolute(_)) => return refuse(stream, "405 Method Not Allowed").await,
        None => return refuse(stream, "400 Bad Request").await,
    }
    Ok(())
}

async fn elsewhere(host: &str, port: u16) -> std::io::Result<TcpStream> {
    tokio::time::timeout(CONNECT_DEADLINE, TcpStream::connect((host, port))).await?
}

async fn refuse(mut stream: TcpStream, status: &str) -> std::io::Result<()> {
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// The head of a request, and what was read after it.
struct Head {
    bytes: Vec<u8>,
    length: usize,
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<Head> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 || bytes.len() > HEAD_BYTES_MAX {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            return Ok(Head { length: at + 4, bytes });
        }
    }
}

/// The target of a request, by its first line.
fn wanted(head: &[u8]) -> Option<Wanted> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    if method == "CONNECT" {
        let (host, port) = target.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        return Some(Wanted::Tunnel(host.to_ascii_lowercase(), port.parse().ok()?));
    }
    let uri: http::Uri = target.parse().ok()?;
    uri.scheme()?;
    Some(Wanted::Absolute(uri.host()?.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_where_a_request_goes() {
        let tunnel = |host: &str, port| Some(Wanted::Tunnel(host.to_owned(), port));
        for (line, expected) in [
            ("CONNECT Api.example:443 HTTP/1.1", tunnel("api.example", 443)),
            ("CONNECT [::1]:8443 HTTP/1.1", tunnel("::1", 8443)),
            ("GET https://api.example/x?y HTTP/1.1", Some(Wanted::Absolute("api.example".to_owned()))),
            ("CONNECT api.example HTTP/1.1", None),
            ("CONNECT api.example:99999 HTTP/1.1", None),
            ("GET /x HTTP/1.1", None),
            ("GET", None),
            ("", None),
        ] {
            assert_eq!(wanted(format!("{line}\r\nHost: x\r\n\r\n").as_bytes()), expected, "{line}");
        }
        assert_eq!(wanted(b"\xff\xfe / x\r\n\r\n"), None);
    }
}
