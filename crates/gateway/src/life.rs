//! A session from its handshake to the record of its end. Each session has one task, and that task alone ends it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::Duration;

use bus::Interest;
use bytes::{Buf, Bytes};
use domain::secret::SecretHash;
use domain::session::{ChangeKind, SessionChange};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use service::sessions::ConnectedSession;
use socketio::{CloseReason, Frame, Framing, Revision, websocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

use crate::config::{
    CATCH_UP_TRIES, GOODBYE_WITHIN, INTEREST_WITHIN, LINGER, LINGER_BYTES_MAX, POLL_LINGER, RETRY_FIRST,
    RETRY_LONGEST,
};
use crate::http::{Auth, Denied};
use crate::hub::Hub;
use crate::poll::{Polling, packets};
use crate::session::{Link, Session, Turn};
use crate::shard::{Command, Join};
use crate::sid::Sid;
use crate::socket::Socket;
use crate::stats::{Counted, add};

type Opening = Pin<Box<dyn Future<Output = Option<Arc<Session>>> + Send>>;

/// Where the handler of the handshake's request waits for its answer.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Denied>>;

/// The life of a session, on a task of its own from before its URL is used up: a peer that goes away in between takes
/// the request with it, but not the task that has to give the slot back.
async fn live(opening: Opening) {
    // Both ends of a life are boxed, so that an idle session does not carry their size.
    let Some(session) = opening.await else { return };
    let reason = serve(&session).await;
    let ending: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(finish(session, reason));
    ending.await;
}

/// Runs the session until it is over. A panic ends this session and no other.
async fn serve(session: &Arc<Session>) -> CloseReason {
    loop {
        let turn = guarded(poll_fn(|cx| session.poll(cx))).await;
        let turn = turn.unwrap_or(Turn::Over(CloseReason::InternalError));
        let command = match turn {
            Turn::Introduce => Command::Introduced(session.clone()),
            Turn::Watch => Command::Watch(session.clone()),
            Turn::Over(reason) => return reason,
        };
        let telling: Pin<Box<dyn Future<Output = bool> + Send>> =
            Box::pin(async { session.hub.tell(&session.key, command).await });
        telling.await;
    }
}

/// Runs a future; `None` when it panicked. The panic itself is reported by the panic hook.
pub(crate) async fn guarded<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// Opens a session over a websocket. The `101` is answered when `reply` is.
pub(crate) fn open_websocket(
    hub: Arc<Hub>,
    auth: Auth,
    revision: Revision,
    upgrade: OnUpgrade,
    reply: Reply<()>,
) {
    let span = Span::current();
    let opening: Opening = Box::pin(async move {
        let session = match register(&hub, &auth, revision, false).instrument(span).await {
            Ok(session) => session,
            Err(denied) => {
                // The peer has gone: nobody to refuse.
                let _ = reply.send(Err(denied));
                return None;
            }
        };
        let attached = match reply.send(Ok(())) {
            Ok(()) => guarded(attach(&session, upgrade)).await.unwrap_or(Err(CloseReason::InternalError)),
            Err(_) => Err(CloseReason::TransportClosed),
        };
        if let Err(reason) = attached {
            session.end(reason);
        }
        Some(session)
    });
    tokio::spawn(live(opening));
}

async fn attach(session: &Session, upgrade: OnUpgrade) -> Result<(), CloseReason> {
    session.attach(bare_stream(&session.hub, upgrade).await?);
    Ok(())
}

/// The socket behind an upgraded connection, without the buffers of HTTP.
pub(crate) struct Bare {
    pub(crate) stream: TcpStream,
    /// What has to be written to it before anything else.
    pub(crate) held: Vec<u8>,
    /// What was read from it already.
    pub(crate) read: Bytes,
}

/// Waits for HTTP to let go of a connection, for as long as an upgrade may take.
///
/// # Errors
/// [`CloseReason::TransportClosed`] when it does not, [`CloseReason::InternalError`] when the connection is no [`Socket`].
pub(crate) async fn bare_stream(hub: &Hub, upgrade: OnUpgrade) -> Result<Bare, CloseReason> {
    let upgraded = tokio::select! {
        upgraded = upgrade => upgraded.map_err(|_| CloseReason::TransportClosed)?,
        () = hub.service.clock().sleep(hub.config.upgrade_deadline) => return Err(CloseReason::TransportClosed),
    };
    let parts = upgraded.downcast::<TokioIo<Socket>>().map_err(|_| {
        tracing::error!("an upgraded connection is not ours: the listener must serve TokioIo<Socket>");
        CloseReason::InternalError
    })?;
    let (stream, held) = parts.io.into_inner().into_parts();
    Ok(Bare { stream, held, read: parts.read_buf })
}

/// Opens a session that polls. The reply holds the body of the handshake's answer.
pub(crate) fn open_polling(
    hub: Arc<Hub>,
    auth: Auth,
    revision: Revision,
    framing: Framing,
    reply: Reply<Vec<u8>>,
) {
    let span = Span::current();
    let opening: Opening = Box::pin(async move {
        let session = match register(&hub, &auth, revision, true).instrument(span).await {
            Ok(session) => session,
            Err(denied) => {
                let _ = reply.send(Err(denied));
                return None;
            }
        };
        hub.remember_sid(&session);
        if reply.send(Ok(first_poll(&session, framing))).is_err() {
            session.end(CloseReason::TransportClosed);
        }
        Some(session)
    });
    tokio::spawn(live(opening));
}

/// The answer to the handshake holds `0…` and `40` only: clients lose SYSTEM `connected` when it is there too.
fn first_poll(session: &Session, framing: Framing) -> Vec<u8> {
    let mut state = session.lock();
    if let Link::Polling(polling) = &mut state.io.link {
        polling.reads_text = framing == Framing::Text;
    }
    let body = state.io.queue.take_packets(framing, &session.hub.counters.queued_bytes);
    state.introduce(session, session.hub.now_ms());
    body.unwrap_or_else(|| packets(framing, &[]))
}

/// Uses the session URL up, and makes the session known to this node.
async fn register(
    hub: &Arc<Hub>,
    auth: &Auth,
    revision: Revision,
    polls: bool,
) -> Result<Arc<Session>, Denied> {
    let (strays, struck_off) = (hub.strays.load(SeqCst), hub.struck_off.load(SeqCst));
    let connected = hub.service.connect_session(&auth.0).await.map_err(|error| match error {
        service::Error::Refused(refusal) => Denied::Refused(refusal),
        error => Denied::Failed(error),
    })?;
    let ConnectedSession { session_key, owner, profile } = &connected;
    tracing::debug!(%session_key, client_id = %owner.client_id(), ?profile, ?revision, polls, "session opened");
    add(&hub.counters.opened, 1);
    hub.live.send_modify(|live| *live += 1);
    let polling = polls.then(|| Polling::new(SecretHash::of(&auth.0)));
    let sid = Sid::generate(hub.service.entropy());
    let session = Session::open(hub.clone(), connected, sid, revision, polling);
    let is_introduced = session.take_introduction();
    if !hub.join(Join { session: session.clone(), strays, is_introduced }) {
        session.end(CloseReason::InternalError);
    }
    // This session joined after the drain, or the declaration that the node is dead, took its snapshot: close it here.
    if hub.draining.load(SeqCst) {
        session.end(CloseReason::ServerShutdown);
    } else if hub.struck_off.load(SeqCst) != struck_off {
        session.end(CloseReason::NodeDead);
    }
    Ok(session)
}

/// Gives everything back that a session held: its peer, its places in this node, its slot in the store.
async fn finish(session: Arc<Session>, reason: CloseReason) {
    let hub = session.hub.clone();
    let websocket = session.unlink(reason).filter(|_| reason != CloseReason::TransportClosed);
    hub.tell(&session.key, Command::Leave(session.clone())).await;
    hub.counters.closed(reason);
    tracing::debug!(session_key = %session.key, %reason, "session closed");
    tokio::join!(
        hub.departures.record(&hub, &session.key, reason),
        say_goodbye(&hub, websocket, reason),
        forget(&hub, &session)
    );
}

/// Some clients that poll post their goodbyes one by one, and expect each to be taken; others learn of the end with
/// their next poll. So the sid is known for some seconds yet.
async fn forget(hub: &Hub, session: &Session) {
    if session.polls() {
        hub.service.clock().sleep(POLL_LINGER).await;
    }
    hub.forget_sid(&session.sid);
}

/// Sends what is left of a frame, Engine.IO `1` unless the client said goodbye itself, and the close frame. Without the `1`
/// some clients do not notice the end: chzzkpy 2 reads the closed websocket again and again.
async fn say_goodbye(hub: &Hub, websocket: Option<(TcpStream, Bytes)>, reason: CloseReason) {
    let Some((mut stream, begun)) = websocket else { return };
    let _socket = Counted::in_gauge(&hub.counters.sockets_beside);
    let packet = if reason.is_clean() { Bytes::new() } else { Frame::CLOSE.into_websocket() };
    let frame = websocket::close(reason.close_code(), reason.as_str());
    let mut goodbye = begun.chain(packet).chain(frame);
    let written = tokio::select! {
        written = stream.write_all_buf(&mut goodbye) => written,
        () = hub.service.clock().sleep(GOODBYE_WITHIN) => return,
    };
    if written.is_ok() {
        linger(hub, stream).await;
    }
}

/// A socket that is dropped with unread bytes resets the connection, and the peer may lose the close frame.
async fn linger(hub: &Hub, mut stream: TcpStream) {
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
        () = hub.service.clock().sleep(LINGER) => {}
    }
}

/// Reads what a session missed, and tells its shard.
pub(crate) async fn catch_up(session: Arc<Session>, after: i64) {
    let hub = session.hub.clone();
    for tries in 0..CATCH_UP_TRIES {
        let read = match hub.catch_ups.acquire().await {
            Ok(_permit) => hub.service.session_changes(&session.key, after).await,
            Err(_) => Err(service::Error::Internal("catch-ups are over")),
        };
        match read {
            Ok(changes) => {
                let subscribed = changes.iter().filter(|change| change.kind == ChangeKind::Subscribed);
                let channels = subscribed.map(|change| &change.subscription.channel_id);
                let interests = channels.map(|channel| hub.service.interest(channel)).collect();
                return wait_for_interests(session, changes, interests).await;
            }
            Err(error) => {
                hub.service.log_failure("the changes of a session could not be read", &error);
                hub.service.clock().sleep(backoff(tries)).await;
            }
        }
    }
    session.end(CloseReason::InternalError);
}

/// Waits until events of the channels that are subscribed to come for sure, and tells the shard of the changes.
pub(crate) async fn wait_for_interests(
    session: Arc<Session>,
    changes: Vec<SessionChange>,
    interests: Vec<Interest>,
) {
    let hub = session.hub.clone();
    let ready = async {
        for interest in &interests {
            interest.ready().await;
        }
    };
    tokio::select! {
        () = ready => {}
        () = hub.service.clock().sleep(INTEREST_WITHIN) => {}
    }
    // They are held until the shard has its own.
    let key = session.key.clone();
    hub.tell(&key, Command::CaughtUp { session, changes, interests }).await;
}

pub(crate) fn backoff(tries: u32) -> Duration {
    RETRY_FIRST.saturating_mul(2_u32.saturating_pow(tries)).min(RETRY_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The issue of a node's memory: each of these is there once for every idle session.
    #[test]
    fn an_idle_session_is_small() {
        let opening: Opening = Box::pin(async { None });
        let task = size_of_val(&live(opening));
        assert!(task <= 96, "the task's future has {task} bytes");
        let session = size_of::<Session>();
        assert!(session <= 256, "a session has {session} bytes");
    }

    #[test]
    fn pauses_between_tries_double_up_to_a_limit() {
        let waits: Vec<_> = [0, 1, 5, 7, 60].map(|tries| backoff(tries).as_millis()).into();
        assert_eq!(waits, [100, 200, 3_200, 10_000, 10_000]);
    }
}
