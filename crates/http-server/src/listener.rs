//! The accept loop. It bounds connections, the time until a request's head has arrived, and the head's size.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::Language;
use domain::client_address::AddressBlock;
use domain::reason::{REASON_HEADER, Word};
use gateway::{Gateway, Hold, Socket};
use http::header::{
    ACCEPT_LANGUAGE, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, DATE, HOST, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sandbox::Cut;
use service::{Entropy, Purpose};
use telemetry::{TRACES, is_tracing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;
use tracing::Instrument;
use web::{Body, ClientAddress, KeepPlace, RequestId, SecureOrigin};

use crate::connections::{Connection, Connections, Place};
use crate::hosts::{HostFilter, named_host};
use crate::inbound::Inbound;
use crate::malformed::{self, HEAD_BYTES_MAX};
use crate::proxies::{Peer, Proxies};
use crate::terminator::{Opened, Terminator};
use crate::unix_socket::BoundListener;

/// Deadline of a request's headers, and of an idle connection.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);
/// How long a connection without a running request is kept after the listener was closed, because a request
/// may be on its way.
const SILENCE_GRACE: Duration = Duration::from_secs(1);
/// How long a peer may leave sent bytes unacknowledged or unread. Then the system ends the connection, even
/// if the peer keeps acknowledging with a full receive window.
const UNREAD_DEADLINE: Duration = Duration::from_secs(30);
/// How long an ended connection is still read, so that its peer receives the last answer.
const LINGER_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of bytes read from an ended connection.
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Size of the buffer for reading an ended connection.
const LINGER_BUFFER_BYTES: usize = 16 * 1024;
/// Pause after the system refused to accept a connection, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum length of the header `traceparent`, which has 55 bytes in its first version.
const TRACE_PARENT_BYTES_MAX: usize = 128;
/// Browsers use HTTPS for half a year after an answer over HTTPS.
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=15552000");
/// Browsers believe the media type of an answer.
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
const REASON: HeaderName = HeaderName::from_static(REASON_HEADER);
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The phase of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// All requests are served.
    Serving,
    /// All requests are served, but every connection ends with its next answer. So no proxy keeps a
    /// connection when the listener closes.
    Draining,
    /// No new connection is accepted.
    Closing,
}

/// The current handlers of a listener whose handlers are replaced while it serves; `None` while there are
/// none.
#[derive(Clone)]
pub struct Door(pub watch::Receiver<Option<Arc<Edges>>>);

impl Door {
    /// The current handlers, as soon as there are some. `None` when there will be none.
    async fn edges(&self) -> Option<Arc<Edges>> {
        let mut door = self.0.clone();
        door.wait_for(Option::is_some).await.ok().and_then(|edges| edges.clone())
    }
}

/// The handlers of requests, and their dependencies.
#[derive(Clone)]
pub struct Edges {
    /// Handles sockets, if the listener serves them.
    pub gateway: Option<Gateway>,
    /// The sandbox API, if the node is a sandbox.
    pub sandbox: Option<sandbox::Api>,
    /// Handles all other requests.
    pub web: web::Router,
    /// The source of request ids.
    pub entropy: Entropy,
    /// The proxies in front of the listener.
    pub proxies: Arc<Proxies>,
    /// Refuses requests for foreign hosts.
    pub hosts: Arc<HostFilter>,
    /// Ends TLS, if the listener speaks it.
    pub tls: Option<Terminator>,
    /// The language of refusals before a request is known.
    pub language: Language,
    /// Where the handlers are found that have replaced these. Only in a sandbox.
    pub door: Option<Door>,
}

impl Edges {
    /// Whether only HTTPS is served.
    fn is_https(&self) -> bool {
        self.tls.as_ref().is_some_and(Terminator::is_strict)
    }
}

/// Accepts connections until the phase is [`Phase::Closing`], then waits for running requests, for up to
/// `grace`.
pub async fn serve(
    listener: BoundListener,
    connections: Arc<Connections>,
    edges: Edges,
    mut phase: watch::Receiver<Phase>,
    grace: Duration,
) {
    if let BoundListener::Tcp(listener) = &listener {
        prepare(listener);
    }
    let tls = edges.tls.clone();
    let mut refused_before = false;
    let phases = phase.clone();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections, &edges.proxies) => accepted,
            () = closing(&mut phase) => break,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                refused_before = false;
                tokio::spawn(connection(stream, peer, place, edges.clone(), phases.clone()));
            }
            Err(error) => {
                if !std::mem::replace(&mut refused_before, true) {
                    tracing::warn!(%error, "failed to accept connections");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    for (stream, peer, place) in drain_backlog(listener, &connections, &edges.proxies) {
        tokio::spawn(connection(stream, peer, place, edges.clone(), phases.clone()));
    }
    let ended = async {
        connections.all_ended().await;
        if let Some(tls) = tls {
            tls.all_ended().await;
        }
    };
    if tokio::time::timeout(grace, ended).await.is_err() {
        tracing::warn!("failed to finish every request before the deadline");
    }
}

/// Waits for room before accepting, so that further peers wait in the system's queue.
async fn accept(
    listener: &BoundListener,
    connections: &Arc<Connections>,
    proxies: &Proxies,
) -> std::io::Result<(TcpStream, SocketAddr, Place)> {
    connections.room().await;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, connections.enter(block(proxies, peer))))
}

/// The block of a connection; `None` for a proxy, which has many clients.
fn block(proxies: &Proxies, peer: SocketAddr) -> Option<AddressBlock> {
    (!proxies.trusts(peer.ip())).then(|| AddressBlock::from(peer.ip()))
}

/// Closes a listener, and returns the connections that the system has already accepted for it. Their peers
/// see them as open, and would receive a reset.
fn drain_backlog(
    listener: BoundListener,
    connections: &Arc<Connections>,
    proxies: &Proxies,
) -> Vec<(TcpStream, SocketAddr, Place)> {
    let mut last = Vec::new();
    let Ok(next) = listener.close() else { return last };
    while connections.has_room() {
        let Ok((stream, peer)) = next() else { break };
        last.push((stream, peer, connections.enter(block(proxies, peer))));
    }
    last
}

/// Serves one HTTP connection. If it becomes a websocket, this function ends and the gateway has the stream.
async fn connection(
    mut stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    edges: Edges,
    mut phase: watch::Receiver<Phase>,
) {
    let named = tokio::select! {
        named = edges.proxies.peer(&mut stream, peer.ip()) => named,
        () = place.connection.evicted() => return,
    };
    let Ok(named) = named else { return };
    // A client that a proxy names counts by its own block, unless the client is another trusted proxy.
    let shared = named.address == peer.ip() || edges.proxies.trusts(named.address);
    let place = if shared { place } else { place.moved_to(AddressBlock::from(named.address)) };
    let (open, peer) = (&place.connection, named);
    let opened = tokio::select! {
        opened = open_stream(edges.tls.as_ref(), stream) => opened,
        () = open.evicted() => return,
        () = async { closing(&mut phase).await; tokio::time::sleep(SILENCE_GRACE).await } => return,
    };
    let Some(Opened { stream, is_secure }) = opened else { return };
    if !is_secure && edges.is_https() {
        let answer = malformed::not_https(
            edges.language,
            &RequestId::new(edges.entropy.bytes(Purpose::Connection), 0),
        );
        return end(stream, answer, open, &mut phase).await;
    }
    let socket = Socket::new(stream);
    let exchange = Arc::new(Exchange {
        random: edges.entropy.bytes(Purpose::Connection),
        requests: AtomicU64::new(0),
        edges,
        peer,
        is_secure,
        hold: socket.hold(),
        open: open.clone(),
        phase: phase.clone(),
    });
    let service = service_fn({
        let exchange = exchange.clone();
        // Boxed, so that a connection without a request reserves no memory for a request.
        move |request| -> Answering { Box::pin(exchange.clone().answer(request)) }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_DEADLINE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let ended = tokio::select! {
        ended = &mut connection => ended,
        // A connection with a request ends with its answer.
        () = async { closing(&mut phase).await; end_of_grace(open).await } => return,
        () = open.evicted() => {
            Pin::new(&mut connection).graceful_shutdown();
            if open.is_waiting() {
                return;
            }
            (&mut connection).await
        }
    };
    // An upgraded connection has no parts.
    let Some(parts) = connection.into_parts() else { return };
    let stream = parts.io.into_inner().into_stream();
    let last_bytes = match ended {
        Ok(()) => Vec::new(),
        Err(error) => match exchange.malformed(&error, &parts.read_buf) {
            Some(answer) => answer,
            None => return tracing::debug!(%error, "connection ended with an error"),
        },
    };
    end(stream, last_bytes, open, &mut phase).await;
}

/// Sends the last bytes of a connection, and ends it.
async fn end(stream: TcpStream, last_bytes: Vec<u8>, open: &Connection, phase: &mut watch::Receiver<Phase>) {
    tokio::select! {
        () = Box::pin(linger(stream, last_bytes)) => {}
        () = async { closing(phase).await; tokio::time::sleep(SILENCE_GRACE).await } => {}
        () = open.evicted() => {}
    }
}

/// The plain stream of a connection; `None` if its handshake fails. Boxed, because few listeners speak TLS.
async fn open_stream(tls: Option<&Terminator>, stream: TcpStream) -> Option<Opened> {
    let Some(tls) = tls else { return Some(Opened { stream, is_secure: false }) };
    let failed = |error: &std::io::Error| tracing::debug!(%error, "a TLS connection failed");
    Box::pin(tls.open(stream)).await.inspect_err(failed).ok()
}

/// Ends a connection so that its last answer arrives. Closing the connection while bytes of its peer are
/// unread would make the system reset it, and the peer might lose the answer.
async fn linger(mut stream: TcpStream, last_bytes: Vec<u8>) {
    let read_on = async {
        stream.write_all(&last_bytes).await?;
        stream.shutdown().await?;
        let (mut left, mut scratch) = (LINGER_BYTES_MAX, Vec::with_capacity(LINGER_BUFFER_BYTES));
        while left > 0 && stream.read_buf(&mut scratch).await? > 0 {
            left = left.saturating_sub(scratch.len());
            scratch.clear();
        }
        std::io::Result::Ok(())
    };
    // A peer that disconnects earlier needs no answer.
    let _ = tokio::time::timeout(LINGER_WITHIN, read_on).await;
}

/// The future of one answer.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Cut>> + Send>>;

/// The state shared by the requests of one connection.
struct Exchange {
    edges: Edges,
    peer: Peer,
    /// Whether the client speaks TLS to this listener.
    is_secure: bool,
    hold: Hold,
    open: Arc<Connection>,
    phase: watch::Receiver<Phase>,
    /// The random part of request ids.
    random: [u8; 10],
    requests: AtomicU64,
}

impl Exchange {
    fn next_id(&self) -> RequestId {
        RequestId::new(self.random, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// The id of a request of a sandbox. With a seed it depends on the number of the request, not on its
    /// connection. The requests of the sandbox API do not count.
    fn sandbox_id(edges: &Edges, request: &Request<Inbound>) -> Option<RequestId> {
        let own = edges.sandbox.as_ref()?.router(request.uri().path()).is_some();
        let purpose = if own { Purpose::SandboxRequest } else { Purpose::Request };
        edges.entropy.is_seeded().then(|| RequestId::new(edges.entropy.bytes(purpose), 0))
    }

    /// Answers a request, and drains the unread part of its body.
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
        let (parts, body) = request.into_parts();
        let has_arrived = body.is_end_stream();
        let _request = self.open.begin_request(has_arrived);
        let (body, mut rest) = Inbound::new(&parts, body, &self.open);
        let mut request = Request::from_parts(parts, body);
        if !has_arrived {
            let open = self.open.clone();
            request.extensions_mut().insert(KeepPlace::new(move || open.received()));
        }
        let mut answer = self.handle(request).await?;
        let drained = match rest.try_recv() {
            Ok(rest) => rest.drained().await,
            Err(_) => true,
        };
        let is_last = !drained || *self.phase.borrow() >= Phase::Draining;
        if is_last && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(answer)
    }

    /// Routes a request. Every answer has the request id of the log, also a refused handshake.
    async fn handle(&self, mut request: Request<Inbound>) -> Result<Response<Body>, Cut> {
        let replaced = match &self.edges.door {
            None => None,
            Some(door) => Some(door.edges().await.ok_or(Cut)?),
        };
        let edges = replaced.as_deref().unwrap_or(&self.edges);
        let Edges { sandbox, proxies, .. } = edges;
        let id = Self::sandbox_id(edges, &request).unwrap_or_else(|| self.next_id());
        let client = proxies.client(self.peer, request.headers());
        let (method, path) = (request.method(), request.uri().path());
        // The query is never logged, because it may contain a secret.
        let traceparent = trace_parent(request.headers());
        let span = tracing::info_span!("request", %id, %client, %method, path, traceparent);
        request.extensions_mut().insert(ClientAddress(client));
        request.extensions_mut().insert(id);
        // Boxed, because a future that is passed on reserves its memory once for each function.
        let handled = async {
            let answered = match sandbox {
                None => Ok(Box::pin(self.route(edges, request)).await),
                Some(sandbox) => {
                    let route = |request| Box::pin(self.route(edges, request));
                    Box::pin(sandbox.intercept(id.to_string(), request, route)).await
                }
            };
            if let Ok(answer) = &answered {
                tracing::trace!(target: TRACES, status = answer.status().as_u16());
            }
            answered
        };
        let mut response = handled.instrument(span).await?;
        response.headers_mut().insert(X_REQUEST_ID, id.header());
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        if edges.is_https() {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
        }
        if let Some(sandbox) = sandbox {
            response.headers_mut().insert(DATE, sandbox.date());
        }
        Ok(response)
    }

    /// Calls the handler of a request.
    async fn route<B>(&self, edges: &Edges, mut request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes, Error = hyper::Error> + Send + 'static,
    {
        let Edges { gateway, sandbox, web, hosts, language, .. } = edges;
        if !has_one_host(request.version(), request.headers()) {
            return malformed_host(request.headers(), *language);
        }
        if !hosts.admits(request.uri(), request.headers()) {
            return foreign_host(request.headers(), *language);
        }
        // The URLs of `serve` are in its settings.
        if self.is_secure && !edges.is_https() {
            let host = named_host(request.uri(), request.headers());
            if let Some(origin) = host.map(|host| SecureOrigin(format!("https://{host}"))) {
                request.extensions_mut().insert(origin);
            }
        }
        if let Some(gateway) = gateway.as_ref().filter(|_| is_socket(request.uri().path())) {
            request.extensions_mut().insert(self.hold.clone());
            // Boxed, so that the future of every request does not reserve memory for a handshake.
            return Box::pin(gateway.handle(request)).await.map(Body::new);
        }
        let api = sandbox.as_ref().and_then(|sandbox| sandbox.router(request.uri().path()));
        let Ok(response) = api.unwrap_or_else(|| web.clone()).oneshot(request).await;
        response
    }

    /// The answer to bytes that the HTTP library cannot parse.
    fn malformed(&self, error: &hyper::Error, unread: &[u8]) -> Option<Vec<u8>> {
        malformed::answer(error, unread, self.open.is_idle(), self.edges.language, &self.next_id())
    }
}

/// The span of the caller, if requests are traced.
fn trace_parent(headers: &HeaderMap) -> Option<&str> {
    if !is_tracing() {
        return None;
    }
    let header = headers.get("traceparent")?.to_str().ok()?;
    (header.len() <= TRACE_PARENT_BYTES_MAX).then_some(header)
}

/// Whether a request names its host once (RFC 9112, section 3.2). HTTP/1.0 may leave it out. Of two hosts,
/// a proxy and this node might believe different ones.
fn has_one_host(version: Version, headers: &HeaderMap) -> bool {
    match headers.get_all(HOST).iter().count() {
        0 => version < Version::HTTP_11,
        hosts => hosts == 1,
    }
}

/// The answer to a request with no host, or with several.
fn malformed_host(headers: &HeaderMap, default: Language) -> Response<Body> {
    let mut response = refusal(headers, default, StatusCode::BAD_REQUEST, Word::HttpMalformed, |language| {
        language.pick(
            "잘못된 값을 입력했습니다. Host: 요청에는 Host 헤더가 하나만 있어야 합니다.",
            "A wrong value was entered. Host: a request must have one Host header.",
        )
    });
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The answer to a request for a foreign host.
fn foreign_host(headers: &HeaderMap, default: Language) -> Response<Body> {
    refusal(headers, default, StatusCode::FORBIDDEN, Word::HostNotAllowed, |language| {
        language.pick(
            "Host: 샌드박스는 루프백 이름과 --allow-host로 지정한 이름에만 응답합니다.",
            "Host: the sandbox answers only loopback names and those given by --allow-host.",
        )
    })
}

fn refusal(
    headers: &HeaderMap,
    default: Language,
    status: StatusCode,
    reason: Word,
    message: impl FnOnce(Language) -> &'static str,
) -> Response<Body> {
    let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|accepted| accepted.to_str().ok());
    let message = message(accepted.and_then(Language::preferred).unwrap_or(default));
    let body = serde_json::json!({ "code": status.as_u16(), "message": message }).to_string();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(REASON, HeaderValue::from_static(reason.name()));
    response
}

/// Returns when the connection's grace has ended and no request is running.
async fn end_of_grace(connection: &Connection) {
    tokio::time::sleep(SILENCE_GRACE).await;
    if !connection.is_idle() {
        std::future::pending::<()>().await;
    }
}

/// Sets options of the listener, which its connections inherit without a further call.
fn prepare(listener: &TcpListener) {
    let socket = socket2::SockRef::from(listener);
    // Answers and frames are written whole, so a delay to fill a packet is useless.
    if let Err(error) = socket.set_tcp_nodelay(true) {
        tracing::warn!(%error, "failed to set TCP_NODELAY: small packets wait for acknowledgements");
    }
    // A peer that reads no answers would keep its connection forever. HTTP has no deadline for that.
    #[cfg(target_os = "linux")]
    if let Err(error) = socket.set_tcp_user_timeout(Some(UNREAD_DEADLINE)) {
        tracing::warn!(%error, "failed to set TCP_USER_TIMEOUT: unread answers have no deadline");
    }
}

fn is_socket(path: &str) -> bool {
    path == Gateway::PATH || path == Gateway::PATH.trim_end_matches('/')
}

/// Returns in [`Phase::Closing`], or when the phase cannot change any more.
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
        assert_eq!(socket.tcp_user_timeout().expect("asked"), Some(UNREAD_DEADLINE));
    }
}
