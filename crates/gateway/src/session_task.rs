//! The task of a session, from its handshake to the record of its end. Only this task ends the session.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use domain::secret::SecretHash;
use hyper::upgrade::OnUpgrade;
use service::sessions::ConnectedSession;
use socketio::{CloseReason, Frame, Framing, Revision, websocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

use crate::config::{CLOSE_FRAME_TIMEOUT, HALF_OPEN_CHECK, LINGER, LINGER_BYTES_MAX, POLL_LINGER};
use crate::context::Context;
use crate::fanout::{Command, Join, Shards};
use crate::http::{Auth, Denied, raw_stream};
use crate::metrics::{Counted, add};
use crate::node::{Disconnects, Registry};
use crate::panics::catch_panic;
use crate::session::{Session, Sid, Transport, Wakeup, says_close};

/// Starts the tasks of sessions.
pub(crate) struct SessionTasks {
    context: Arc<Context>,
    shards: Arc<Shards>,
    registry: Arc<Registry>,
    disconnects: Disconnects,
}

/// An open session, and the parts of the node that its task uses.
struct OpenSession {
    session: Arc<Session>,
    tasks: Arc<SessionTasks>,
}

type Opening = Pin<Box<dyn Future<Output = Option<OpenSession>> + Send>>;

/// Sends the answer to the handshake from the session's task to the handler of the request.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, Denied>>;

/// Runs a session in a task that starts before the URL is consumed. If the peer disconnects, its request is
/// dropped, but not the task, which must free the place in the store.
async fn run_session(opening: Opening) {
    // The opening and the end are boxed, so that an idle session does not hold their memory.
    let Some(open) = opening.await else { return };
    let reason = serve(&open).await;
    let ending: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(finish(open, reason));
    ending.await;
}

/// Runs the session until it ends. A panic ends this session only.
async fn serve(open: &OpenSession) -> CloseReason {
    loop {
        let wakeup = catch_panic(poll_fn(|cx| open.session.poll(cx))).await;
        let wakeup = wakeup.unwrap_or(Wakeup::Over(CloseReason::InternalError));
        let key = open.session.key();
        let command = match wakeup {
            Wakeup::Introduce => Command::Introduced(key.clone()),
            Wakeup::Watch => Command::Watch(key.clone()),
            Wakeup::Over(reason) => return reason,
        };
        let sending: Pin<Box<dyn Future<Output = bool> + Send>> =
            Box::pin(open.tasks.shards.send(key, command));
        sending.await;
    }
}

impl SessionTasks {
    pub(crate) fn new(context: Arc<Context>, shards: Arc<Shards>, registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self { context, shards, registry, disconnects: Disconnects::default() })
    }

    /// Opens a session over a websocket. The `101` is sent after `reply`.
    pub(crate) fn open_websocket(
        self: Arc<Self>,
        auth: Auth,
        revision: Revision,
        upgrade: OnUpgrade,
        reply: ReplySender<()>,
    ) {
        let (tasks, span) = (self, Span::current());
        let opening: Opening = Box::pin(async move {
            let session = match tasks.register(&auth, revision, false).instrument(span).await {
                Ok(session) => session,
                Err(denied) => {
                    // The peer may be gone.
                    let _ = reply.send(Err(denied));
                    return None;
                }
            };
            let attached = match reply.send(Ok(())) {
                Ok(()) => {
                    let attached = catch_panic(attach(&tasks.context, &session, upgrade)).await;
                    attached.unwrap_or(Err(CloseReason::InternalError))
                }
                Err(_) => Err(CloseReason::TransportClosed),
            };
            if let Err(reason) = attached {
                session.end(reason);
            }
            Some(OpenSession { session, tasks })
        });
        tokio::spawn(run_session(opening));
    }

    /// Opens a session that polls. The reply holds the body of the handshake's answer.
    pub(crate) fn open_polling(
        self: Arc<Self>,
        auth: Auth,
        revision: Revision,
        framing: Framing,
        reply: ReplySender<Vec<u8>>,
    ) {
        let (tasks, span) = (self, Span::current());
        let opening: Opening = Box::pin(async move {
            let session = match tasks.register(&auth, revision, true).instrument(span).await {
                Ok(session) => session,
                Err(denied) => {
                    let _ = reply.send(Err(denied));
                    return None;
                }
            };
            tasks.registry.add_sid(&session);
            if reply.send(Ok(session.first_poll(framing))).is_err() {
                session.end(CloseReason::TransportClosed);
            }
            Some(OpenSession { session, tasks })
        });
        tokio::spawn(run_session(opening));
    }

    /// Consumes the session URL and registers the session on this node.
    async fn register(&self, auth: &Auth, revision: Revision, polls: bool) -> Result<Arc<Session>, Denied> {
        let Self { context, shards, registry, .. } = self;
        let unmatched_changes = shards.unmatched_changes();
        let times_declared_dead = registry.times_declared_dead();
        let connected = context.service.connect_session(&auth.0).await.map_err(|error| match error {
            service::Error::Refused(refusal) => Denied::Refused(refusal),
            error => Denied::Failed(error),
        })?;
        let ConnectedSession { session_key, owner, profile } = &connected;
        if let Some(point) = context.service.socket_faults() {
            point.on_open(session_key, owner);
        }
        tracing::debug!(%session_key, client_id = %owner.client_id(), ?profile, ?revision, polls, "session opened");
        add(&context.counters.opened, 1);
        registry.opened();
        let polling = polls.then(|| SecretHash::of(&auth.0));
        let sid = Sid::generate(context.service.entropy());
        let session = Session::open(context.clone(), connected, sid, revision, polling);
        let (key, is_introduced) = (session.key().clone(), session.take_introduction());
        if !shards.join(Join { key, session: session.clone(), unmatched_changes, is_introduced }) {
            session.end(CloseReason::InternalError);
        }
        // The drain, or the declaration that the node is dead, listed the sessions before this one joined. So
        // this session is closed here.
        if registry.is_draining() {
            session.end(CloseReason::ServerShutdown);
        } else if registry.times_declared_dead() != times_declared_dead {
            session.end(CloseReason::NodeDead);
        }
        Ok(session)
    }
}

async fn attach(context: &Context, session: &Session, upgrade: OnUpgrade) -> Result<(), CloseReason> {
    session.attach(raw_stream(context, upgrade).await?);
    Ok(())
}

/// Releases a session's peer, its place on this node, and its place in the store.
async fn finish(open: OpenSession, reason: CloseReason) {
    let OpenSession { session, tasks } = open;
    let SessionTasks { context, shards, registry, disconnects } = &*tasks;
    let is_silent = session.is_silent();
    let websocket = session.detach(reason).filter(|_| reason != CloseReason::TransportClosed);
    shards.send(session.key(), Command::Leave(session.key().clone())).await;
    context.counters.closed(reason);
    if let Some(point) = context.service.socket_faults() {
        point.on_end(session.key(), reason.as_str());
    }
    tracing::debug!(session_key = %session.key(), %reason, "session closed");
    let close = async {
        match websocket {
            Some((stream, _)) if is_silent => keep_half_open(context, registry, stream).await,
            websocket => send_close_frame(context, websocket, session.revision(), reason).await,
        }
    };
    tokio::join!(
        disconnects.record(context, registry, session.key(), reason),
        close,
        forget(context, registry, &session)
    );
}

/// Keeps the connection of a silent session, until its peer gives up or the node stops.
async fn keep_half_open(context: &Context, registry: &Registry, mut stream: TcpStream) {
    let _socket = Counted::in_gauge(&context.counters.sockets_beside);
    let mut scratch = [0; 512];
    while !registry.is_draining() {
        tokio::select! {
            read = stream.read(&mut scratch) => {
                if matches!(read, Ok(0) | Err(_)) {
                    return;
                }
            }
            () = context.clock().sleep(HALF_OPEN_CHECK) => {}
        }
    }
}

/// Keeps the sid for some seconds. Some clients post their goodbyes one by one and expect an answer to each.
/// Other clients find out about the end with their next poll.
async fn forget(context: &Context, registry: &Registry, session: &Session) {
    if session.transport() == Some(Transport::Polling) {
        context.clock().sleep(POLL_LINGER).await;
    }
    registry.remove_sid(session.sid());
}

/// Sends the unwritten part of a frame, Engine.IO `1` if [`says_close`], and the close frame.
async fn send_close_frame(
    context: &Context,
    websocket: Option<(TcpStream, Bytes)>,
    revision: Revision,
    reason: CloseReason,
) {
    let Some((mut stream, unfinished)) = websocket else { return };
    let _socket = Counted::in_gauge(&context.counters.sockets_beside);
    let packet = if says_close(revision, reason) { Frame::CLOSE.into_websocket() } else { Bytes::new() };
    let frame = websocket::close(reason.close_code(), reason.as_str());
    let mut bytes = unfinished.chain(packet).chain(frame);
    let written = tokio::select! {
        written = stream.write_all_buf(&mut bytes) => written,
        () = context.clock().sleep(CLOSE_FRAME_TIMEOUT) => return,
    };
    if written.is_ok() {
        linger(context, stream).await;
    }
}

/// Continues to read for a short time. Dropping a socket with unread bytes resets the connection, and the
/// peer may lose the close frame.
async fn linger(context: &Context, mut stream: TcpStream) {
    let read_on = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let (mut left, mut scratch) = (LINGER_BYTES_MAX, [0; 512]);
        while let Ok(read @ 1..) = stream.read(&mut scratch).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    };
    tokio::select! {
        () = read_on => {}
        () = context.clock().sleep(LINGER) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every idle session has one of each, so their size decides the memory of a node.
    #[test]
    fn an_idle_session_is_small() {
        let opening: Opening = Box::pin(async { None });
        let task = size_of_val(&run_session(opening));
        assert!(task <= 104, "the task's future has {task} bytes");
        let session = size_of::<Session>();
        assert!(session <= 256, "a session has {session} bytes");
    }
}
