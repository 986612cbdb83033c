//! The gateway of a node: its parts, and the requests that reach them.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::{HeaderValue, Method, Request, Response, header};
use bytes::Bytes;
use domain::refusal::{Credential, CredentialFault, Resource};
use domain::{Language, Refusal, SessionKey};
use http_body_util::Full;
use service::routed_sessions::RouterComparison;
use service::{LogLimit, Service};
use socketio::{CloseReason, Framing};
use tokio::sync::oneshot;

use crate::config::Config;
use crate::context::Context;
use crate::fanout::Shards;
use crate::http::{self, Denied, Hold, Params, Reply, RequestBody};
use crate::metrics::{self, Stats};
use crate::node::{self, Dispatcher, Receivers, Registry};
use crate::session::{Session, Transport};
use crate::session_task::SessionTasks;

const TASK_ENDED: service::Error =
    service::Error::Internal("the session's task ended before its handshake was answered");
/// The `auth` of a polling session's request differs from that of its handshake.
const WRONG_AUTH: Refusal = Refusal::Unauthorized(CredentialFault::WrongKind(Credential::SessionUrl));

/// The sockets of one node. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Parts>);

/// The parts of a gateway.
pub(crate) struct Parts {
    context: Arc<Context>,
    pub(crate) shards: Arc<Shards>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) dispatcher: Dispatcher,
    tasks: Arc<SessionTasks>,
    refused: LogLimit,
    /// Taken by [`Gateway::run`].
    receivers: Mutex<Option<Receivers>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("node", self.0.context.service.node()).finish_non_exhaustive()
    }
}

impl Gateway {
    /// The path of the socket. It is served without its last slash too.
    pub const PATH: &str = "/socket.io/";

    /// A gateway that is subscribed to the bus from now on. The caller must call [`run`](Self::run), because
    /// an unread subscription slows publishers down.
    pub fn new(service: Service, config: Config) -> Self {
        // With a fault point, one shard sees all sessions of an event.
        let shards = if service.socket_faults().is_some() { 1 } else { config.shards };
        let (shards, inboxes) = Shards::new(shards);
        let registry = Registry::new(config.sessions_max);
        let context = Context::new(service, config);
        let receivers = Receivers { bus: context.service.subscribe_to_bus(), inboxes };
        let dispatcher = Dispatcher::new(context.clone(), shards.clone(), registry.clone());
        let tasks = SessionTasks::new(context.clone(), shards.clone(), registry.clone());
        let receivers = Mutex::new(Some(receivers));
        let refused = LogLimit::default();
        Self(Arc::new(Parts { context, shards, registry, dispatcher, tasks, refused, receivers }))
    }

    /// Delivers events and changes to the sessions until the bus ends. A second call returns at once. A
    /// change that the bus lost is read from the store within a second.
    ///
    /// # Panics
    /// When a shard panics. That is a bug, and no session can continue.
    pub async fn run(self) {
        let receivers = self.0.receivers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(receivers) = receivers {
            self.0.dispatcher.run(receivers).await;
        }
    }

    /// Answers a request to [`PATH`](Self::PATH): handshake, poll, post, upgrade, preflight. Refusals are in
    /// the envelope. The connection must be served with upgrades, over `TokioIo<Socket>`, and a request
    /// should carry the socket's [`Hold`] among its extensions.
    pub async fn handle<B: RequestBody>(&self, request: Request<B>) -> Response<Full<Bytes>> {
        let origin = request.headers().get(header::ORIGIN).cloned();
        let accepted = request.headers().get(header::ACCEPT_LANGUAGE).cloned();
        let mut reply = match self.answer(request).await {
            Ok(reply) => reply,
            Err(denied) => {
                self.log(&denied);
                let accepted = accepted.and_then(|accepted| Language::preferred(accepted.to_str().ok()?));
                denied.reply(accepted.unwrap_or(self.0.context.config.language))
            }
        };
        http::allow_origin(origin, &mut reply);
        reply
    }

    /// Logs one refusal a minute, and every refusal at level debug. The span of the request has its id,
    /// method and path.
    fn log(&self, denied: &Denied) {
        let (status, reason) = (denied.status(), denied.reason());
        match denied {
            Denied::Failed(error) => {
                self.0.context.service.log_failure("failed to answer a socket request", error);
            }
            _ => {
                tracing::debug!(status, %reason, "refused a socket request");
                if let Some(times) = self.0.refused.due(self.0.context.clock().monotonic()) {
                    tracing::info!(status, %reason, times, "refused socket requests");
                }
            }
        }
    }

    async fn answer<B: RequestBody>(&self, request: Request<B>) -> Result<Reply, Denied> {
        if !matches!(request.uri().path(), Self::PATH | "/socket.io") {
            return Err(Refusal::NotFound(Resource::Path).into());
        }
        if *request.method() == Method::OPTIONS {
            return Ok(http::preflight());
        }
        let params = Params::parse(request.uri().query().unwrap_or_default())?;
        match params.sid {
            None => self.open(request, params).await.inspect_err(|_| {
                metrics::add(&self.0.context.counters.refused, 1);
            }),
            Some(sid) => {
                let session = sid.and_then(|sid| self.0.registry.find(&sid)).ok_or(Denied::UnknownSid)?;
                if !session.token_matches(&params.auth.0).ok_or(Denied::UnknownSid)? {
                    return Err(WRONG_AUTH.into());
                }
                self.continue_session(session, request, params).await
            }
        }
    }

    /// Answers a handshake. The node holds no state for the peer before the token of the session URL is
    /// accepted.
    async fn open<B: RequestBody>(&self, request: Request<B>, params: Params) -> Result<Reply, Denied> {
        let Params { revision, transport, auth, base64, .. } = params;
        if self.0.registry.is_draining() {
            return Err(Denied::Draining);
        }
        if *request.method() != Method::GET {
            return Err(Refusal::MethodNotAllowed.into());
        }
        let _permit = self.0.registry.reserve_handshake().ok_or(Denied::Full)?;
        let tasks = self.0.tasks.clone();
        match transport {
            Transport::Websocket => {
                let accept = http::websocket_accept(request.method(), request.version(), request.headers())?;
                let (reply, answer) = oneshot::channel();
                let hold = request.extensions().get::<Hold>().cloned();
                tasks.open_websocket(auth, revision, hyper::upgrade::on(request), reply);
                answer.await.unwrap_or(Err(Denied::Failed(TASK_ENDED)))?;
                hold.iter().for_each(Hold::begin);
                Ok(http::switching_protocols(accept))
            }
            Transport::Polling => {
                let framing = Framing::of_answer(revision, base64);
                let (reply, answer) = oneshot::channel();
                tasks.open_polling(auth, revision, framing, reply);
                let body = answer.await.unwrap_or(Err(Denied::Failed(TASK_ENDED)))?;
                Ok(http::poll_answer(framing, body))
            }
        }
    }

    /// Answers a request of a polling session.
    async fn continue_session<B: RequestBody>(
        &self,
        session: Arc<Session>,
        request: Request<B>,
        params: Params,
    ) -> Result<Reply, Denied> {
        let (Params { revision, transport, base64, .. }, context) = (params, &self.0.context);
        if session.is_silent() {
            // The request has no answer until the client or the node ends the connection.
            std::future::pending::<()>().await;
        }
        match (request.method(), transport) {
            (&Method::GET, Transport::Polling) => {
                http::poll(context, &session, Framing::of_answer(revision, base64)).await
            }
            (&Method::POST, Transport::Polling) => {
                let content_type = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::to_str);
                let framing =
                    Framing::of_request(revision, content_type.and_then(Result::ok).unwrap_or_default());
                http::post(context, &session, framing, request.into_body()).await
            }
            (&Method::GET, Transport::Websocket) => {
                let accept = http::websocket_accept(request.method(), request.version(), request.headers())?;
                session.begin_upgrade()?;
                let (context, registry) = (context.clone(), self.0.registry.clone());
                let upgrade = hyper::upgrade::on(request);
                tokio::spawn(async move {
                    if http::take_over(&context, &session, upgrade).await {
                        registry.remove_sid(session.sid());
                    }
                });
                Ok(http::switching_protocols(accept))
            }
            _ => Err(Refusal::MethodNotAllowed.into()),
        }
    }

    /// Closes every session, in jittered waves over half of `within`, and waits until their ends are
    /// recorded, for at most the other half. New handshakes are refused from now on.
    pub async fn drain(&self, within: Duration) {
        node::drain(&self.0.context, &self.0.shards, &self.0.registry, within).await;
    }

    /// Closes every session at once, because the world of a sandbox is replaced, and waits until their ends
    /// are recorded, for at most `within`. New handshakes are refused from now on.
    pub async fn close_at_once(&self, within: Duration) {
        node::close_at_once(&self.0.context, &self.0.shards, &self.0.registry, within).await;
    }

    /// Closes every session, because the other nodes declared this node dead and ended its sessions in the
    /// store, or probably did.
    pub async fn on_declared_dead(&self) {
        self.0.dispatcher.on_declared_dead().await;
    }

    /// Ends a session for a reason. Returns whether it is connected to this node.
    pub async fn end_session(&self, key: &SessionKey, reason: CloseReason) -> bool {
        let session = self.0.shards.session(key).await;
        session.map(|session| session.end(reason)).is_some()
    }

    /// Loses the connection of a session without a close frame. Returns whether it is connected to this node.
    pub async fn cut_session(&self, key: &SessionKey) -> bool {
        let session = self.0.shards.session(key).await;
        session.map(|session| session.cut()).is_some()
    }

    /// Sends a session nothing and reads nothing from it any more, while its connection stays. Only a gateway
    /// with a fault point does that. Returns whether the session is connected to this node.
    pub async fn silence_session(&self, key: &SessionKey) -> bool {
        let session = self.0.shards.session(key).await;
        session.map(|session| session.silence()).is_some()
    }

    /// The transport of a session, and the time since its client's last sign of life; `None` if it is not
    /// connected to this node.
    pub async fn connection(&self, key: &SessionKey) -> Option<(Transport, Duration)> {
        let session = self.0.shards.session(key).await?;
        Some((session.transport()?, session.silent_for()))
    }

    /// Compares the sessions and subscriptions of this node with those in the store. Differences that are
    /// only changes under way are not among the result.
    ///
    /// # Errors
    /// The store's.
    pub async fn compare_with_store(&self) -> Result<RouterComparison, service::Error> {
        node::compare(&self.0.context, &self.0.shards).await
    }

    /// Number of open sockets: those of sessions, and those before or after a session.
    pub fn sockets(&self) -> usize {
        let counters = &self.0.context.counters;
        let sockets = counters.websocket.load(Relaxed) + counters.sockets_beside.load(Relaxed);
        usize::try_from(sockets).unwrap_or(usize::MAX)
    }

    /// A snapshot of the counters.
    pub fn stats(&self) -> Stats {
        self.0.context.counters.stats()
    }
}
