//! The accept loop: bounded in connections, in the time a peer may take for its headers, and in what it may send in them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use gateway::Gateway;
use http::{HeaderName, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use service::Entropy;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;
use tracing::Instrument;
use web::{Body, Peer, RequestId};

/// HTTP connections at once. Sockets that were upgraded count no more: the gateway holds them, under its own limits.
const CONNECTIONS_MAX: usize = 16_384;
/// How long a peer may take to send the headers of a request, which is also how long an idle connection is kept.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of a request's headers.
const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// How long a connection without a running request is kept once the node stops: hyper takes one that was opened ahead of
/// its first request, as browsers do, for a busy one.
const SILENCE_GRACE: Duration = Duration::from_secs(1);
/// The pause after the system refused a connection, as when descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What answers requests.
#[derive(Clone)]
pub struct Edges {
    /// The sockets, where there are any.
    pub gateway: Option<Gateway>,
    /// Everything else.
    pub web: web::Router,
    /// Where request ids come from.
    pub entropy: Entropy,
}

/// Accepts connections until `stop` turns true, then lets those that are busy finish, for up to `grace`.
pub async fn serve(listener: TcpListener, edges: Edges, mut stop: watch::Receiver<bool>, grace: Duration) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let stopping = stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            () = told(&mut stop) => break,
        };
        match accepted {
            Ok((stream, peer, permit)) => {
                tokio::spawn(connection(stream, peer, permit, edges.clone(), stopping.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    // Every place is free again once the last connection has ended.
    let all = connections.acquire_many(u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX));
    if tokio::time::timeout(grace, all).await.is_err() {
        tracing::warn!("some requests were still running when the time to finish was over");
    }
}

/// Waits for a place before it accepts, so that a peer beyond the limit waits in the system's queue.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = connections.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

/// One HTTP connection. When it becomes a websocket it ends here: the gateway takes the bare stream.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    _permit: OwnedSemaphorePermit,
    edges: Edges,
    mut stop: watch::Receiver<bool>,
) {
    // Answers are written whole, so waiting to fill a packet would only delay them.
    let _ = stream.set_nodelay(true);
    let running = Arc::new(AtomicUsize::new(0));
    let (random, requests) = (edges.entropy.bytes(), AtomicU64::new(0));
    let service = service_fn({
        let running = running.clone();
        move |request| {
            let id = RequestId::new(random, requests.fetch_add(1, Ordering::Relaxed));
            let (running, answer) = (Running::begin(&running), answer(edges.clone(), peer, id, request));
            async move {
                let answer = answer.await;
                drop(running);
                answer
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_DEADLINE)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = silence(&running) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// One request of a connection, from its head to its answer.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn begin(requests: &Arc<AtomicUsize>) -> Self {
        requests.fetch_add(1, Ordering::Relaxed);
        Self(requests.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns when a connection had its time to ask, and nothing of it runs.
async fn silence(running: &AtomicUsize) {
    tokio::time::sleep(SILENCE_GRACE).await;
    if running.load(Ordering::Relaxed) > 0 {
        std::future::pending::<()>().await;
    }
}

/// Every answer, also that of a refused handshake, carries the id under which the log knows its request.
async fn answer(
    edges: Edges,
    peer: SocketAddr,
    id: RequestId,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let header = id.header();
    // Never the query: it may carry a secret.
    let span = tracing::info_span!("request", %id, method = %request.method(), path = request.uri().path());
    request.extensions_mut().insert(Peer(peer));
    request.extensions_mut().insert(id);
    let sockets = edges.gateway.filter(|_| is_socket(request.uri().path()));
    let mut response = async {
        if let Some(gateway) = sockets {
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

/// Returns when `stop` turns true, or when nobody is left to turn it.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
