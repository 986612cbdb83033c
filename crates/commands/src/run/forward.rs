//! Passes connections on to the sandbox, byte by byte.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Maximum number of connections of one command. Further ones wait.
const CONNECTIONS_MAX: usize = 1_024;
/// Pause after the system refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Deadline of a connection to the sandbox or to another host.
pub(super) const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// The host and port of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub host: String,
    pub port: u16,
}

impl Destination {
    /// The destination of a base URL, which has been checked before.
    pub fn of(base: &str) -> Self {
        let uri: Uri = base.parse().unwrap_or_default();
        let port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let host = uri.host().unwrap_or("localhost").trim_start_matches('[').trim_end_matches(']');
        Self { host: host.to_owned(), port: uri.port_u16().unwrap_or(port) }
    }

    /// The address, if it is of this machine's loopback.
    pub fn loopback(&self) -> Option<Ipv4Addr> {
        match self.host.parse() {
            Ok(IpAddr::V4(address)) if address.is_loopback() => Some(address),
            _ => None,
        }
    }

    pub async fn connect(&self) -> std::io::Result<TcpStream> {
        let connected = TcpStream::connect((self.host.as_str(), self.port));
        let stream = tokio::time::timeout(CONNECT_DEADLINE, connected).await??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Passes the connections of a listener on.
pub(super) async fn serve(listener: TcpListener, destination: Destination) {
    accept_each(listener, move |stream| {
        let destination = destination.clone();
        async move {
            if let Ok(sandbox) = destination.connect().await {
                join(stream, sandbox).await;
            }
        }
    })
    .await;
}

/// Handles each connection of a listener in a task of its own. The tasks end with this one.
pub(super) async fn accept_each<F>(listener: TcpListener, handle: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        while tasks.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                let handled = handle(stream);
                tasks.spawn(async move {
                    handled.await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Copies both ways until both have ended.
pub(super) async fn join<S>(mut client: S, mut server: TcpStream)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // An end or an error of one side is the end of the other.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_a_destination() {
        for (base, host, port) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080),
            ("http://localhost", "localhost", 80),
            ("https://[::1]", "::1", 443),
        ] {
            assert_eq!(Destination::of(base), Destination { host: host.to_owned(), port });
        }
        assert!(Destination::of("http://127.0.0.1").loopback().is_some());
        assert!(Destination::of("http://10.0.0.1").loopback().is_none());
    }
}
