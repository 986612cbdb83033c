//! Long polling: a GET waits for packets, a POST brings some (`docs/spec/realtime.md#transports`).

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

/// What a session holds while its client polls.
pub(crate) struct Polling {
    /// Hash of the URL token that the handshake was made with: later requests must show it too.
    auth: SecretHash,
    /// Wakes the poll that waits.
    waiter: Option<Waker>,
    is_polled: bool,
    is_posted: bool,
    /// A poll was answered with the end of the session: there is nothing more to poll for.
    is_told: bool,
    /// The handshake asked for text. Some clients do not say it again.
    pub(crate) reads_text: bool,
    /// How far a websocket is with taking over.
    pub(crate) takeover: Takeover,
}

/// A websocket that wants to take a polling session over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    None,
    /// It is there, and has not been probed.
    Begun,
    /// It was probed: polls are released at once until it is through.
    Probed,
}

impl Polling {
    pub(crate) fn new(auth: SecretHash) -> Box<Self> {
        let (is_polled, is_posted, is_told, reads_text) = (false, false, false, false);
        Box::new(Self {
            auth,
            waiter: None,
            is_polled,
            is_posted,
            is_told,
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

/// Which of the two requests that a client may have under way at once.
#[derive(Clone, Copy)]
enum Errand {
    Poll,
    Post,
}

/// Marks a request as under way. A second one of its kind ends the session, as the reference server does; so does a
/// request that is broken off, for what it carried is lost.
struct UnderWay<'a> {
    session: &'a Session,
    errand: Errand,
    answered: bool,
}

impl<'a> UnderWay<'a> {
    fn begin(session: &'a Session, errand: Errand) -> Result<Self, Denied> {
        let mut state = session.lock();
        let Link::Polling(polling) = &mut state.io.link else { return Err(Denied::UnknownSid) };
        if polling.is_told && matches!(errand, Errand::Poll) {
            return Err(Denied::UnknownSid);
        }
        if std::mem::replace(polling.flag(errand), true) {
            state.io.end(CloseReason::PollConflict);
            return Err(Denied::Overlap);
        }
        Ok(Self { session, errand, answered: false })
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        if let Link::Polling(polling) = &mut state.io.link {
            *polling.flag(self.errand) = false;
            if let Errand::Poll = self.errand {
                polling.waiter = None;
            }
            if !self.answered {
                state.io.end(CloseReason::TransportClosed);
            }
        }
    }
}

impl Polling {
    fn flag(&mut self, errand: Errand) -> &mut bool {
        match errand {
            Errand::Poll => &mut self.is_polled,
            Errand::Post => &mut self.is_posted,
        }
    }
}

/// Whether the token in a request's query is the one of the handshake. Takes the same time for every wrong one.
pub(crate) fn is_clients(session: &Session, auth: &str) -> Result<bool, Denied> {
    match &session.lock().io.link {
        Link::Polling(polling) => Ok(polling.auth.matches(&SecretHash::of(auth))),
        Link::Opening | Link::Websocket(_) | Link::Gone => Err(Denied::UnknownSid),
    }
}

/// The framing of an answer: text when this request asks for it, or the handshake did.
fn agreed(session: &Session, framing: Framing) -> Framing {
    match &session.lock().io.link {
        Link::Polling(polling) if polling.reads_text => Framing::Text,
        _ => framing,
    }
}

/// Answers a poll: with what waits, or as soon as something does.
pub(crate) async fn poll(session: &Arc<Session>, framing: Framing) -> Result<Reply, Denied> {
    let mut under_way = UnderWay::begin(session, Errand::Poll)?;
    let framing = agreed(session, framing);
    let hub = &session.hub;
    let mut held = pin!(hub.service.clock().sleep(hub.config.poll_hold));
    let body = poll_fn(|cx| match session.lock().io.poll_packets(session, framing, cx) {
        Poll::Pending => held.as_mut().poll(cx).map(|()| packets(framing, &[Frame::NOOP])),
        ready => ready,
    })
    .await;
    under_way.answered = true;
    Ok(answer(framing, body))
}

impl Io {
    fn poll_packets(&mut self, session: &Session, framing: Framing, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let waiting = match &self.link {
            // The rest goes over the websocket.
            Link::Websocket(_) => return Poll::Ready(packets(framing, &[Frame::NOOP])),
            _ => self.queue.take_packets(framing, &session.hub.counters.queued_bytes),
        };
        if self.ended.is_some() {
            if let Link::Polling(polling) = &mut self.link {
                polling.is_told = true;
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

/// Takes what a client posts. Nothing of a body that does not hold together is acted on.
pub(crate) async fn post(
    session: &Arc<Session>,
    framing: Framing,
    body: impl RequestBody,
) -> Result<Reply, Denied> {
    let mut under_way = UnderWay::begin(session, Errand::Post)?;
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
    under_way.answered = true;
    match take(session, framing, &body) {
        Ok(()) | Err(CloseReason::ClientGoodbye) => Ok(accepted()),
        Err(_) => Err(Denied::BadBody),
    }
}

/// Acts on a whole body; the first packet that ends the session is the last one looked at. What comes after that is
/// taken and ignored.
fn take(session: &Session, framing: Framing, body: &[u8]) -> Result<(), CloseReason> {
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

/// A body of just these packets.
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

/// The answer to a post. `text/html`, because that is what the reference server says and old clients were tried with.
fn accepted() -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(b"ok")));
    reply.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/html"));
    no_store(&mut reply);
    reply
}
