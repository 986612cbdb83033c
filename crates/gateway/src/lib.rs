//! The sockets of one node: handshakes, long polling, websockets, and the fan-out of events from the bus.
//!
//! The `socketio` crate has the protocol, and the `service` crate has the rules. This crate has sockets,
//! queues and deadlines.
//!
//! # Map
//!
//! | Module | What it does |
//! |---|---|
//! | `http` | the shape of requests: query, websocket handshake, refusals, origins |
//! | `socket` | the stream of an HTTP connection until a session takes it over |
//! | `session_task` | one task for each session: opens it, runs it, records its end |
//! | `session` | the state under the session's lock: protocol, link, send queue |
//! | `queue` | the bounded send queue of one session; writes its messages together |
//! | `poll`, `upgrade` | the requests of a polling session; its move to a websocket |
//! | `hub` | the state that all sessions share; dispatches deliveries of the bus to the shards |
//! | `shard` | one thread that owns a part of the sessions: changes, events, deadlines |
//! | `reconcile` | reconciles the sessions with the store, whatever the bus delivered |
//! | `inspect` | details of a session that only its node knows |
//! | `recently_unsubscribed` | which sessions unsubscribed from which channel in the last 15 s |
//! | `disconnects` | records the ends of sessions in batches |
//! | `index`, `fanout` | the subscriptions; events encoded once and batched (pacing) |
//! | `config`, `stats` | every limit, with its unit; counters |
//!
//! # Who owns what
//!
//! A session is one `Arc` with three holders: its task, its shard, and, while it polls, the table of sids.
//! The session's one lock guards all mutable state and is never held across an await. The shard writes an
//! event to the socket directly when the queue is empty. Bytes that the kernel does not take go to the queue,
//! and the session's task writes them when the socket has room. An idle session has no buffer, no timer and
//! no queue: its task waits for readability and reads into a buffer that the sessions of a thread share, and
//! its shard checks its deadlines once in a ping interval.
//!
//! Only the shard owns subscriptions, so the path of an event takes no lock but that of each session. A shard
//! works in rounds: commands that arrive while it writes belong to the next round. So the busier it is, the
//! more events go into one write. A channel with a costly write pauses after it, with the same effect.
//!
//! # The life of a session
//!
//! 1. **Handshake.** The query is checked. Then a spawned task consumes the URL's token in the service. No
//!    state exists for the peer before that. The task outlives the request, so a peer that disconnects does not
//!    leak its place.
//! 2. **Joined.** The session waits in the join list of its shard, so the shard knows it before any command
//!    about it. The peer gets `0…` and `40`: over the websocket together with the `101`, in one write, or as
//!    the first poll.
//! 3. **Introduced.** SYSTEM `connected` is queued (in revision 4 when the client has sent its `40`). From
//!    now on the shard applies changes, each exactly once and in order. It reads earlier changes from the
//!    store.
//! 4. **Upgraded**, perhaps: between two packets the websocket becomes the link. The queue stays.
//! 5. **Over.** The first close reason counts: [`socketio::CloseReason`]. The task closes the connection,
//!    leaves the shard, counts the reason and retries until the store has recorded the end.

mod config;
mod disconnects;
mod fanout;
mod http;
mod hub;
mod index;
mod inspect;
mod poll;
mod queue;
mod recently_unsubscribed;
mod reconcile;
mod session;
mod session_task;
mod shard;
mod sid;
mod socket;
mod stats;
#[cfg(test)]
mod tests;
mod upgrade;

#[cfg(test)]
extern crate self as gateway;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::{HeaderValue, Method, Request, Response, header};
use bytes::Bytes;
use domain::refusal::{Credential, CredentialFault, Resource};
use domain::{Language, Refusal};
use http_body_util::Full;
use hyper::body::Body;
use service::Service;
use socketio::Framing;
use tokio::sync::oneshot;

pub use crate::http::Transport;
pub use config::Config;
pub use config::{
    POLL_HOLD, POST_BYTES_MAX, POST_DEADLINE, QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX, SHARDS_MAX,
    UPGRADE_DEADLINE, WRITE_DEADLINE,
};
pub use socket::{Hold, Socket};
pub use socketio::CloseReason;
pub use stats::Stats;

use crate::config::DRAIN_WAVES;
use crate::http::{Denied, Params, Reply};
use crate::hub::{Hub, Receivers};
use crate::session::Session;

const TASK_ENDED: service::Error =
    service::Error::Internal("the session's task ended before its handshake was answered");
/// The `auth` of a polling session's request differs from that of its handshake.
const WRONG_AUTH: Refusal = Refusal::Unauthorized(CredentialFault::WrongKind(Credential::SessionUrl));

/// The body of a request, as a listener passes it on.
pub trait RequestBody: Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static> RequestBody for B {}

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The sockets of one node. Cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    hub: Arc<Hub>,
    receivers: Arc<Mutex<Option<Receivers>>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("node", self.hub.service.node()).finish_non_exhaustive()
    }
}

impl Gateway {
    /// The path of the socket. It is served without its last slash too.
    pub const PATH: &str = "/socket.io/";

    /// A gateway that is subscribed to the bus from now on. [`run`](Self::run) has to be called, because an
    /// unread subscription slows publishers down.
    pub fn new(service: Service, config: Config) -> Self {
        let (hub, receivers) = Hub::new(service, config);
        Self { hub, receivers: Arc::new(Mutex::new(Some(receivers))) }
    }

    /// Delivers events and changes to the sessions until the bus ends. A second call returns at once. A
    /// change that the bus lost is read from the store within a second.
    ///
    /// # Panics
    /// When a shard panics: that is a bug, and no session can continue.
    pub async fn run(self) {
        let receivers = self.receivers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(receivers) = receivers {
            tokio::select! {
                () = self.hub.clone().run(receivers) => {}
                () = reconcile::run(self.hub) => {}
            }
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
                denied.reply(accepted.unwrap_or(self.hub.config.language))
            }
        };
        http::allow_origin(origin, &mut reply);
        reply
    }

    /// Logs one line for each refusal. The span of the request has its id, method and path.
    fn log(&self, denied: &Denied) {
        let (status, reason) = (denied.status(), denied.reason());
        match denied {
            Denied::Failed(error) => self.hub.service.log_failure("failed to answer a socket request", error),
            _ => tracing::info!(status, %reason, "socket request refused"),
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
                stats::add(&self.hub.counters.refused, 1);
            }),
            Some(sid) => {
                let session = sid.and_then(|sid| self.hub.find(&sid)).ok_or(Denied::UnknownSid)?;
                if !poll::token_matches(&session, &params.auth.0)? {
                    return Err(WRONG_AUTH.into());
                }
                continue_session(session, request, params).await
            }
        }
    }

    /// Answers a handshake. The node holds no state for the peer before the token of the session URL is
    /// accepted.
    async fn open<B: RequestBody>(&self, request: Request<B>, params: Params) -> Result<Reply, Denied> {
        let Params { revision, transport, auth, base64, .. } = params;
        if self.hub.draining.load(SeqCst) {
            return Err(Denied::Draining);
        }
        if *request.method() != Method::GET {
            return Err(Refusal::MethodNotAllowed.into());
        }
        let _permit = self.hub.reserve_handshake()?;
        let hub = self.hub.clone();
        match transport {
            Transport::Websocket => {
                let accept = http::websocket_accept(request.method(), request.version(), request.headers())?;
                let (reply, answer) = oneshot::channel();
                let hold = request.extensions().get::<Hold>().cloned();
                session_task::open_websocket(hub, auth, revision, hyper::upgrade::on(request), reply);
                answer.await.unwrap_or(Err(Denied::Failed(TASK_ENDED)))?;
                hold.iter().for_each(Hold::begin);
                Ok(http::switching_protocols(accept))
            }
            Transport::Polling => {
                let framing = Framing::of_answer(revision, base64);
                let (reply, answer) = oneshot::channel();
                session_task::open_polling(hub, auth, revision, framing, reply);
                let body = answer.await.unwrap_or(Err(Denied::Failed(TASK_ENDED)))?;
                Ok(poll::answer(framing, body))
            }
        }
    }

    /// Closes every session, in jittered waves over half of `within`, and waits until their ends are
    /// recorded, for at most the other half. New handshakes are refused from now on.
    pub async fn drain(&self, within: Duration) {
        let clock = self.hub.service.clock();
        self.hub.draining.store(true, SeqCst);
        let deadline = clock.monotonic() + within;
        tokio::select! {
            () = self.close_in_waves(within / 2) => {}
            () = clock.sleep_until(deadline) => {
                tracing::warn!(sessions = *self.hub.live.borrow(), "failed to close every session before the drain deadline");
            }
        }
    }

    async fn close_in_waves(&self, span: Duration) {
        let (hub, clock) = (&self.hub, self.hub.service.clock());
        let mut sessions = hub.sessions().await;
        let wave = sessions.len().div_ceil(DRAIN_WAVES as usize).max(1);
        let pause = span / DRAIN_WAVES;
        while !sessions.is_empty() {
            for session in sessions.drain(sessions.len().saturating_sub(wave)..) {
                session.end(CloseReason::ServerShutdown);
            }
            if !sessions.is_empty() {
                // Between half and one and a half of the pause, so that nodes that drain together do not act
                // in lockstep.
                let [jitter] = hub.service.entropy().bytes::<1>();
                clock.sleep(pause / 2 + pause * u32::from(jitter) / 255).await;
            }
        }
        // The sender lives in the hub, so the wait cannot fail.
        let _ = hub.live.subscribe().wait_for(|live| *live == 0).await;
    }

    /// Closes every session, because the other nodes declared this node dead and ended its sessions in the
    /// store, or must be expected to.
    pub async fn on_declared_dead(&self) {
        self.hub.on_declared_dead().await;
    }

    /// Number of sockets that the gateway holds: those of sessions, and those before or after a session.
    pub fn sockets(&self) -> usize {
        let counters = &self.hub.counters;
        let sockets = counters.websocket.load(Relaxed) + counters.sockets_beside.load(Relaxed);
        usize::try_from(sockets).unwrap_or(usize::MAX)
    }

    /// A snapshot of the counters.
    pub fn stats(&self) -> Stats {
        self.hub.counters.stats()
    }
}

/// Answers a request of a polling session.
async fn continue_session<B: RequestBody>(
    session: Arc<Session>,
    request: Request<B>,
    params: Params,
) -> Result<Reply, Denied> {
    let Params { revision, transport, base64, .. } = params;
    match (request.method(), transport) {
        (&Method::GET, Transport::Polling) => {
            poll::poll(&session, Framing::of_answer(revision, base64)).await
        }
        (&Method::POST, Transport::Polling) => {
            let content_type = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::to_str);
            let framing =
                Framing::of_request(revision, content_type.and_then(Result::ok).unwrap_or_default());
            poll::post(&session, framing, request.into_body()).await
        }
        (&Method::GET, Transport::Websocket) => {
            let accept = http::websocket_accept(request.method(), request.version(), request.headers())?;
            upgrade::begin(&session)?;
            tokio::spawn(upgrade::take_over(session, hyper::upgrade::on(request)));
            Ok(http::switching_protocols(accept))
        }
        _ => Err(Refusal::MethodNotAllowed.into()),
    }
}
