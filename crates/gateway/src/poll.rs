//! Long polling: a GET waits for packets, a POST brings packets (`docs/spec/realtime.md#transports`).

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use domain::secret::SecretHash;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use socketio::payload::{self, Item};
use socketio::{CloseReason, Frame, Framing};

use crate::RequestBody;
use crate::config::POST_DEADLINE;
use crate::http::{Denied, Reply, no_store};
use crate::session::{Io, Link, Session};

/// The state of a session whose client polls.
pub(crate) struct Polling {
    /// Hash of the URL token of the handshake. Later requests must present the same token.
    auth: SecretHash,
    /// Wakes the waiting poll.
    waiter: Option<Waker>,
    poll_in_flight: bool,
    post_in_flight: bool,
    /// A poll was answered with the end of the session. Further polls are refused.
    end_reported: bool,
    /// The handshake asked for text. Some clients ask only there.
    pub(crate) reads_text: bool,
    /// The state of an upgrade to a websocket.
    pub(crate) takeover: Takeover,
}

/// The state of the websocket that takes a polling session over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    None,
    /// The websocket is connected and has not sent its probe.
    Begun,
    /// The websocket has sent its probe. Polls are answered at once until the upgrade ends.
    Probed,
}

impl Polling {
    pub(crate) fn new(auth: SecretHash) -> Box<Self> {
        let (poll_in_flight, post_in_flight, end_reported, reads_text) = (false, false, false, false);
        Box::new(Self {
            auth,
            waiter: None,
            poll_in_flight,
            post_in_flight,
            end_reported,
            reads_text,
            takeover: Takeover::None,
        })
    }

    pub(crate) fn wake(&self) {
        if let Some(waiter) = &self.waiter {
            waiter.wake_by_ref();
        }
    }
}

/// The kinds of request of which a client may have one in flight each.
#[derive(Clone, Copy)]
enum RequestKind {
    Poll,
    Post,
}

/// Marks a request as in flight. A second request of its kind ends the session, as on the reference server.
/// So does a request that is aborted, because its packets are lost.
struct InFlight<'a> {
    session: &'a Session,
    kind: RequestKind,
    answered: bool,
}

impl<'a> InFlight<'a> {
    fn begin(session: &'a Session, kind: RequestKind) -> Result<Self, Denied> {
        let mut state = session.lock();
        let Link::Polling(polling) = &mut state.io.link else { return Err(Denied::UnknownSid) };
        if polling.end_reported && matches!(kind, RequestKind::Poll) {
            return Err(Denied::UnknownSid);
        }
        if std::mem::replace(polling.flag(kind), true) {
            state.io.end(CloseReason::PollConflict);
            return Err(Denied::Overlap);
        }
        Ok(Self { session, kind, answered: false })
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        if let Link::Polling(polling) = &mut state.io.link {
            *polling.flag(self.kind) = false;
            if let RequestKind::Poll = self.kind {
                polling.waiter = None;
            }
            if !self.answered {
                state.io.end(CloseReason::TransportClosed);
            }
        }
    }
}

impl Polling {
    fn flag(&mut self, kind: RequestKind) -> &mut bool {
        match kind {
            RequestKind::Poll => &mut self.poll_in_flight,
            RequestKind::Post => &mut self.post_in_flight,
        }
    }
}

/// Whether the token of a request is that of the handshake, compared in constant time.
pub(crate) fn token_matches(session: &Session, auth: &str) -> Result<bool, Denied> {
    match &session.lock().io.link {
        Link::Polling(polling) => Ok(polling.auth.matches(&SecretHash::of(auth))),
        Link::Opening | Link::Websocket(_) | Link::Gone => Err(Denied::UnknownSid),
    }
}

/// The framing of an answer: text when this request asks for it, or the handshake did.
fn agreed_framing(session: &Session, framing: Framing) -> Framing {
    match &session.lock().io.link {
        Link::Polling(polling) if polling.reads_text => Framing::Text,
        _ => framing,
    }
}

/// Answers a poll with the queued packets, as soon as there are any.
pub(crate) async fn poll(session: &Arc<Session>, framing: Framing) -> Result<Reply, Denied> {
    let mut in_flight = InFlight::begin(session, RequestKind::Poll)?;
    let framing = agreed_framing(session, framing);
    let hub = &session.hub;
    let mut held = pin!(hub.service.clock().sleep(hub.config.poll_hold));
    let body = poll_fn(|cx| match session.lock().io.poll_packets(session, framing, cx) {
        Poll::Pending => held.as_mut().poll(cx).map(|()| packets(framing, &[Frame::NOOP])),
        ready => ready,
    })
    .await;
    in_flight.answered = true;
    Ok(answer(framing, body))
}

impl Io {
    fn poll_packets(&mut self, session: &Session, framing: Framing, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let waiting = match &self.link {
            // The websocket takes the rest.
            Link::Websocket(_) => return Poll::Ready(packets(framing, &[Frame::NOOP])),
            _ => self.queue.take_packets(framing, &session.hub.counters.queued_bytes),
        };
        if self.ended.is_some() {
            if let Link::Polling(polling) = &mut self.link {
                polling.end_reported = true;
            }
            let mut body = waiting.unwrap_or_default();
            payload::append(framing, Frame::CLOSE.packet(), &mut body);
            return Poll::Ready(body);
        }
        match (waiting, &mut self.link) {
            (Some(body), _) => Poll::Ready(body),
            (None, Link::Polling(polling)) if polling.takeover != Takeover::Probed => {
                polling.waiter = Some(cx.waker().clone());
                Poll::Pending
            }
            (None, _) => Poll::Ready(packets(framing, &[Frame::NOOP])),
        }
    }
}

/// Processes a post. If its body is malformed, none of it has an effect.
pub(crate) async fn post(
    session: &Arc<Session>,
    framing: Framing,
    body: impl RequestBody,
) -> Result<Reply, Denied> {
    let mut in_flight = InFlight::begin(session, RequestKind::Post)?;
    let hub = &session.hub;
    let max = hub.config.post_bytes_max;
    let read = tokio::select! {
        read = Limited::new(body, max).collect() => read,
        () = hub.service.clock().sleep(POST_DEADLINE) => return Err(Denied::BadBody),
    };
    let body = match read {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            session.end(CloseReason::MessageTooBig);
            return Err(Denied::TooBig);
        }
        Err(_) => return Err(Denied::BadBody),
    };
    in_flight.answered = true;
    match process_post(session, framing, &body) {
        Ok(()) | Err(CloseReason::ClientGoodbye) => Ok(accepted()),
        Err(_) => Err(Denied::BadBody),
    }
}

/// Processes the packets of a body, up to the first one that ends the session. The rest is ignored.
fn process_post(session: &Session, framing: Framing, body: &[u8]) -> Result<(), CloseReason> {
    let now = session.hub.now_ms();
    let items = payload::decode(framing, body, session.hub.config.post_bytes_max);
    let mut state = session.lock();
    if state.io.ended.is_some() {
        return Ok(());
    }
    let taken = items.map_err(CloseReason::from).and_then(|items| {
        if items.is_empty() {
            state.on_empty_post(now)?;
        }
        items.iter().try_for_each(|item| match item {
            Item::Text(text) => state.on_packet(session, now, text),
            Item::Binary(data) => state.on_binary(session, now, data),
        })
    });
    if let Err(reason) = taken {
        state.io.end(reason);
    }
    taken
}

/// A body with these packets.
pub(crate) fn packets(framing: Framing, frames: &[Frame]) -> Vec<u8> {
    payload::encode(framing, frames.iter().map(Frame::packet))
}

/// The answer to a poll.
pub(crate) fn answer(framing: Framing, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    reply.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(framing.content_type()));
    no_store(&mut reply);
    reply
}

/// The answer to a post. The reference server says `text/html`, and old clients were tested with it.
fn accepted() -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(b"ok")));
    reply.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/html"));
    no_store(&mut reply);
    reply
}
