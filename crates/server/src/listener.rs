//! The accept loop: bounded in connections, in the time a peer may take for its headers, and in what it may send in them.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gateway::{Gateway, Hold, Socket};
use http::header::CONNECTION;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use service::Entropy;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;
use tracing::Instrument;
use web::{Body, ClientAddress, RequestId};

use crate::connections::{Connection, Connections, Place, Running};
use crate::proxies::Proxies;

/// How long a peer may take to send the headers of a request, which is also how long an idle connection is kept.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of a request's headers.
const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// How long a connection without a running request is kept once the listener is closed: for a request that is on its way.
const SILENCE_GRACE: Duration = Duration::from_secs(1);
/// How long a peer may leave what was sent to it untaken. The system then ends the connection, however politely the peer
/// acknowledges that it has no room.
const UNTAKEN_DEADLINE: Duration = Duration::from_secs(30);
/// The pause after the system refused a connection, as when descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Where a listener is on the way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// At the beginning of it.
    Serving,
    /// Everything is still served, but every connection ends with its next answer, so that none is left in a proxy's pool
    /// when the listener closes.
    Draining,
    /// No new connection is taken.
    Closing,
}

/// What answers requests.
#[derive(Clone)]
pub struct Edges {
    /// The sockets, where there are any.
    pub gateway: Option<Gateway>,
    /// Everything else.
    pub web: web::Router,
    /// Where request ids come from.
    pub entropy: Entropy,
    /// The proxies before the listener.
    pub proxies: Arc<Proxies>,
}

/// Accepts connections until the phase is [`Phase::Closing`], then lets those that are busy finish, for up to `grace`.
pub async fn serve(
    listener: TcpListener,
    connections: Arc<Connections>,
    edges: Edges,
    mut phase: watch::Receiver<Phase>,
    grace: Duration,
) {
    prepare(&listener);
    let mut refused_before = false;
    let phases = phase.clone();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            () = closing(&mut phase) => break,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                refused_before = false;
                tokio::spawn(connection(stream, peer, place, edges.clone(), phases.clone()));
            }
            Err(error) => {
                if !std::mem::replace(&mut refused_before, true) {
                    tracing::warn!(%error, "connections are not accepted for the time being");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    for (stream, peer, place) in last_ones(listener, &connections) {
        tokio::spawn(connection(stream, peer, place, edges.clone(), phases.clone()));
    }
    if tokio::time::timeout(grace, connections.all_ended()).await.is_err() {
        tracing::warn!("some requests were still running when the time to finish was over");
    }
}

/// Waits for room before it accepts, so that a peer beyond the limit waits in the system's queue.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
) -> std::io::Result<(TcpStream, SocketAddr, Place)> {
    connections.room().await;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, connections.enter()))
}

/// Closes a listener, and gives the connections that the system has made for it already: to their peers they are open, and
/// would be reset.
fn last_ones(listener: TcpListener, connections: &Arc<Connections>) -> Vec<(TcpStream, SocketAddr, Place)> {
    let mut last = Vec::new();
    let Ok(listener) = listener.into_std() else { return last };
    while connections.has_room() {
        // The listener does not block: it fails when nobody waits any more.
        let Ok((stream, peer)) = listener.accept() else { break };
        let taken = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
        last.extend(taken.ok().map(|stream| (stream, peer, connections.enter())));
    }
    last
}

/// One HTTP connection. When it becomes a websocket it ends here: the gateway takes the bare stream.
async fn connection(
    mut stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    edges: Edges,
    mut phase: watch::Receiver<Phase>,
) {
    let open = &place.connection;
    let peer = tokio::select! {
        peer = edges.proxies.peer(&mut stream, peer.ip()) => peer,
        () = open.evicted() => return,
    };
    let Ok(peer) = peer else { return };
    let (random, requests) = (edges.entropy.bytes(), AtomicU64::new(0));
    let socket = Socket::new(stream);
    let hold = socket.hold();
    let service = service_fn({
        let (open, phase) = (open.clone(), phase.clone());
        move |request| {
            let id = RequestId::new(random, requests.fetch_add(1, Ordering::Relaxed));
            let (running, answer) =
                (Running::begin(&open), answer(edges.clone(), peer, id, hold.clone(), request));
            let phase = phase.clone();
            async move {
                let mut answer = answer.await;
                if let Ok(answer) = &mut answer
                    && *phase.borrow() >= Phase::Draining
                    && answer.status() != StatusCode::SWITCHING_PROTOCOLS
                {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                drop(running);
                answer
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_DEADLINE)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // One that still asks ends by itself, with its answer.
        () = async { closing(&mut phase).await; silence(open).await } => Ok(()),
        () = open.evicted() => {
            connection.as_mut().graceful_shutdown();
            if open.is_idle() { Ok(()) } else { connection.await }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Returns when a connection had its time to ask, and nothing of it runs.
async fn silence(connection: &Connection) {
    tokio::time::sleep(SILENCE_GRACE).await;
    if !connection.is_idle() {
        std::future::pending::<()>().await;
    }
}

/// Sets on the listener what its connections are to have from their beginning: they inherit it, which costs them nothing.
fn prepare(listener: &TcpListener) {
    let socket = socket2::SockRef::from(listener);
    // Answers and frames are written whole, so waiting to fill a packet would only delay them.
    if let Err(error) = socket.set_tcp_nodelay(true) {
        tracing::warn!(%error, "small packets will wait for acknowledgements");
    }
    // A peer that reads no answers would otherwise hold its connection for ever: HTTP has no deadline for that.
    #[cfg(target_os = "linux")]
    if let Err(error) = socket.set_tcp_user_timeout(Some(UNTAKEN_DEADLINE)) {
        tracing::warn!(%error, "there will be no deadline for untaken bytes");
    }
}

/// Every answer, also that of a refused handshake, carries the id under which the log knows its request.
async fn answer(
    edges: Edges,
    peer: IpAddr,
    id: RequestId,
    hold: Hold,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let header = id.header();
    let client = edges.proxies.client(peer, request.headers());
    // Never the query: it may carry a secret.
    let span =
        tracing::info_span!("request", %id, %client, method = %request.method(), path = request.uri().path());
    request.extensions_mut().insert(ClientAddress(client));
    request.extensions_mut().insert(id);
    let sockets = edges.gateway.filter(|_| is_socket(request.uri().path()));
    let mut response = async {
        if let Some(gateway) = sockets {
            request.extensions_mut().insert(hold);
            return gateway.handle(request).await.map(Body::new);
        }
        let Ok(response) = edges.web.oneshot(request).await;
        response
    }
    .instrument(span)
    .await;
    response.headers_mut().insert(X_REQUEST_ID, header);
    Ok(response)
}

fn is_socket(path: &str) -> bool {
    path == Gateway::PATH || path == Gateway::PATH.trim_end_matches('/')
}

/// Returns in the phase of that name, or when nobody is left to begin it.
async fn closing(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use socket2::SockRef;

    use super::*;

    #[tokio::test]
    async fn connections_have_from_the_beginning_what_their_listener_was_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        prepare(&listener);
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
        let (stream, _) = listener.accept().await.expect("accepts");
        let (socket, other) = (SockRef::from(&stream), SockRef::from(&peer));
        assert!(socket.tcp_nodelay().expect("asked") && !other.tcp_nodelay().expect("asked"));
        assert_eq!(socket.tcp_user_timeout().expect("asked"), Some(UNTAKEN_DEADLINE));
    }
}
