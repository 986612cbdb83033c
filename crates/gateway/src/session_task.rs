//! The task of a session, from its handshake to the record of its end. Only this task ends the session.

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
    CATCH_UP_TRIES, CLOSE_FRAME_TIMEOUT, INTEREST_CONFIRM_TIMEOUT, LINGER, LINGER_BYTES_MAX, POLL_LINGER,
    RETRY_FIRST, RETRY_LONGEST,
};
use crate::http::{Auth, Denied};
use crate::hub::Hub;
use crate::poll::{Polling, packets};
use crate::session::{Link, Session, Wakeup};
use crate::shard::{Command, Join};
use crate::sid::Sid;
use crate::socket::Socket;
use crate::stats::{Counted, add};

type Opening = Pin<Box<dyn Future<Output = Option<Arc<Session>>> + Send>>;

/// Sends the answer to the handshake's request to its handler.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, Denied>>;

/// Runs a session in a task that starts before the URL is consumed. A peer that disconnects drops its request,
/// but not the task that has to free the place in the store.
async fn run_session(opening: Opening) {
    // The opening and the end are boxed, so that an idle session does not carry their size.
    let Some(session) = opening.await else { return };
    let reason = serve(&session).await;
    let ending: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(finish(session, reason));
    ending.await;
}

/// Runs the session until it ends. A panic ends this session only.
async fn serve(session: &Arc<Session>) -> CloseReason {
    loop {
        let wakeup = catch_panic(poll_fn(|cx| session.poll(cx))).await;
        let wakeup = wakeup.unwrap_or(Wakeup::Over(CloseReason::InternalError));
        let command = match wakeup {
            Wakeup::Introduce => Command::Introduced(session.clone()),
            Wakeup::Watch => Command::Watch(session.clone()),
            Wakeup::Over(reason) => return reason,
        };
        let sending: Pin<Box<dyn Future<Output = bool> + Send>> =
            Box::pin(async { session.hub.send(&session.key, command).await });
        sending.await;
    }
}

/// Runs a future. `None` when it panicked; the panic hook has reported the panic.
pub(crate) async fn catch_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// Opens a session over a websocket. The `101` is sent after `reply`.
pub(crate) fn open_websocket(
    hub: Arc<Hub>,
    auth: Auth,
    revision: Revision,
    upgrade: OnUpgrade,
    reply: ReplySender<()>,
) {
    let span = Span::current();
    let opening: Opening = Box::pin(async move {
        let session = match register(&hub, &auth, revision, false).instrument(span).await {
            Ok(session) => session,
            Err(denied) => {
                // The peer may have gone.
                let _ = reply.send(Err(denied));
                return None;
            }
        };
        let attached = match reply.send(Ok(())) {
            Ok(()) => catch_panic(attach(&session, upgrade)).await.unwrap_or(Err(CloseReason::InternalError)),
            Err(_) => Err(CloseReason::TransportClosed),
        };
        if let Err(reason) = attached {
            session.end(reason);
        }
        Some(session)
    });
    tokio::spawn(run_session(opening));
}

async fn attach(session: &Session, upgrade: OnUpgrade) -> Result<(), CloseReason> {
    session.attach(raw_stream(&session.hub, upgrade).await?);
    Ok(())
}

/// The TCP stream of an upgraded connection, without the buffers of HTTP.
pub(crate) struct RawStream {
    pub(crate) stream: TcpStream,
    /// Bytes that have to be written first.
    pub(crate) held: Vec<u8>,
    /// Bytes that were read already.
    pub(crate) read: Bytes,
}

/// Waits until HTTP has released a connection, for at most the upgrade deadline.
///
/// # Errors
/// [`CloseReason::TransportClosed`] when the deadline passes, [`CloseReason::InternalError`] when the
/// connection is not a [`Socket`].
pub(crate) async fn raw_stream(hub: &Hub, upgrade: OnUpgrade) -> Result<RawStream, CloseReason> {
    let upgraded = tokio::select! {
        upgraded = upgrade => upgraded.map_err(|_| CloseReason::TransportClosed)?,
        () = hub.service.clock().sleep(hub.config.upgrade_deadline) => return Err(CloseReason::TransportClosed),
    };
    let parts = upgraded.downcast::<TokioIo<Socket>>().map_err(|_| {
        tracing::error!("failed to upgrade: the listener must serve TokioIo<Socket>");
        CloseReason::InternalError
    })?;
    let (stream, held) = parts.io.into_inner().into_parts();
    Ok(RawStream { stream, held, read: parts.read_buf })
}

/// Opens a session that polls. The reply holds the body of the handshake's answer.
pub(crate) fn open_polling(
    hub: Arc<Hub>,
    auth: Auth,
    revision: Revision,
    framing: Framing,
    reply: ReplySender<Vec<u8>>,
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
        hub.register_sid(&session);
        if reply.send(Ok(first_poll(&session, framing))).is_err() {
            session.end(CloseReason::TransportClosed);
        }
        Some(session)
    });
    tokio::spawn(run_session(opening));
}

/// The answer to the handshake holds `0…` and `40` only. Some clients lose SYSTEM `connected` in the same
/// answer.
fn first_poll(session: &Session, framing: Framing) -> Vec<u8> {
    let mut state = session.lock();
    if let Link::Polling(polling) = &mut state.io.link {
        polling.reads_text = framing == Framing::Text;
    }
    let body = state.io.queue.take_packets(framing, &session.hub.counters.queued_bytes);
    state.introduce(session, session.hub.now_ms());
    body.unwrap_or_else(|| packets(framing, &[]))
}

/// Consumes the session URL and registers the session on this node.
async fn register(
    hub: &Arc<Hub>,
    auth: &Auth,
    revision: Revision,
    polls: bool,
) -> Result<Arc<Session>, Denied> {
    let (unmatched_changes, declared_dead) =
        (hub.unmatched_changes.load(SeqCst), hub.declared_dead.load(SeqCst));
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
    if !hub.join(Join { session: session.clone(), unmatched_changes, is_introduced }) {
        session.end(CloseReason::InternalError);
    }
    // This session joined after the drain, or the declaration that the node is dead, took its snapshot: close
    // it here.
    if hub.draining.load(SeqCst) {
        session.end(CloseReason::ServerShutdown);
    } else if hub.declared_dead.load(SeqCst) != declared_dead {
        session.end(CloseReason::NodeDead);
    }
    Ok(session)
}

/// Releases what a session held: its peer, its place on this node, its place in the store.
async fn finish(session: Arc<Session>, reason: CloseReason) {
    let hub = session.hub.clone();
    let websocket = session.detach(reason).filter(|_| reason != CloseReason::TransportClosed);
    hub.send(&session.key, Command::Leave(session.clone())).await;
    hub.counters.closed(reason);
    tracing::debug!(session_key = %session.key, %reason, "session closed");
    tokio::join!(
        hub.disconnects.record(&hub, &session.key, reason),
        send_close_frame(&hub, websocket, reason),
        forget(&hub, &session)
    );
}

/// Keeps the sid for some seconds. Some clients post their goodbyes one by one and expect an answer to each;
/// others learn of the end with their next poll.
async fn forget(hub: &Hub, session: &Session) {
    if session.polls() {
        hub.service.clock().sleep(POLL_LINGER).await;
    }
    hub.unregister_sid(&session.sid);
}

/// Sends the rest of a frame, Engine.IO `1` unless the client ended the session, and the close frame. Some
/// clients do not notice the end without the `1`: chzzkpy 2 reads the closed websocket again and again.
async fn send_close_frame(hub: &Hub, websocket: Option<(TcpStream, Bytes)>, reason: CloseReason) {
    let Some((mut stream, unfinished)) = websocket else { return };
    let _socket = Counted::in_gauge(&hub.counters.sockets_beside);
    let packet = if reason.is_clean() { Bytes::new() } else { Frame::CLOSE.into_websocket() };
    let frame = websocket::close(reason.close_code(), reason.as_str());
    let mut bytes = unfinished.chain(packet).chain(frame);
    let written = tokio::select! {
        written = stream.write_all_buf(&mut bytes) => written,
        () = hub.service.clock().sleep(CLOSE_FRAME_TIMEOUT) => return,
    };
    if written.is_ok() {
        linger(hub, stream).await;
    }
}

/// Reads on for a moment. A socket that is dropped with unread bytes resets the connection, and the peer may
/// lose the close frame.
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

/// Reads the changes that a session missed, and sends them to its shard.
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
                hub.service.log_failure("failed to read the changes of a session", &error);
                hub.service.clock().sleep(backoff(tries)).await;
            }
        }
    }
    session.end(CloseReason::InternalError);
}

/// Waits until the bus has confirmed the interests, and sends the changes to the shard.
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
        () = hub.service.clock().sleep(INTEREST_CONFIRM_TIMEOUT) => {}
    }
    // The interests are held until the shard holds its own.
    let key = session.key.clone();
    hub.send(&key, Command::CaughtUp { session, changes, interests }).await;
}

pub(crate) fn backoff(tries: u32) -> Duration {
    RETRY_FIRST.saturating_mul(2_u32.saturating_pow(tries)).min(RETRY_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These values exist once for every idle session, so their size decides the memory of a node.
    #[test]
    fn an_idle_session_is_small() {
        let opening: Opening = Box::pin(async { None });
        let task = size_of_val(&run_session(opening));
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
