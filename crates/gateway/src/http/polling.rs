//! Long polling: a GET waits for packets, a POST brings packets (`docs/spec/realtime.md#transports`).

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use socketio::{CloseReason, Frame, Framing};

use super::refusal::Denied;
use super::reply::{ConnectionLost, Reply, poll_answer, post_answer};
use super::request::RequestBody;
use crate::config::POST_DEADLINE;
use crate::context::Context;
use crate::session::{RequestKind, Session, packets};

/// A request in flight. Dropping this guard ends the request, which counts as aborted unless it was answered.
struct InFlight<'a> {
    session: &'a Session,
    kind: RequestKind,
    is_answered: bool,
}

impl<'a> InFlight<'a> {
    fn begin(session: &'a Session, kind: RequestKind) -> Result<Self, Denied> {
        session.begin_request(kind)?;
        Ok(Self { session, kind, is_answered: false })
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.session.end_request(self.kind, self.is_answered);
    }
}

/// Answers a poll with the queued packets, as soon as there are any. Refuses it when the session is over.
pub(crate) async fn poll(context: &Context, session: &Session, framing: Framing) -> Result<Reply, Denied> {
    let mut in_flight = InFlight::begin(session, RequestKind::Poll)?;
    let framing = session.agreed_framing(framing);
    let mut held = pin!(context.clock().sleep(context.config.poll_hold));
    let body = poll_fn(|cx| match session.poll_packets(framing, cx) {
        Poll::Pending if session.is_silent() => Poll::Pending,
        Poll::Pending => held.as_mut().poll(cx).map(|()| Ok(packets(framing, &[Frame::NOOP]))),
        ready => ready,
    })
    .await;
    in_flight.is_answered = true;
    if session.is_cut() {
        let mut reply = poll_answer(framing, Vec::new());
        reply.extensions_mut().insert(ConnectionLost);
        return Ok(reply);
    }
    Ok(poll_answer(framing, body?))
}

/// Processes a post. A malformed body has no effect.
pub(crate) async fn post(
    context: &Context,
    session: &Session,
    framing: Framing,
    body: impl RequestBody,
) -> Result<Reply, Denied> {
    let mut in_flight = InFlight::begin(session, RequestKind::Post)?;
    let read = tokio::select! {
        read = Limited::new(body, context.config.post_bytes_max).collect() => read,
        () = context.clock().sleep(POST_DEADLINE) => return Err(Denied::BadBody),
    };
    let body = match read {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            session.end(CloseReason::MessageTooBig);
            return Err(Denied::TooBig);
        }
        Err(_) => return Err(Denied::BadBody),
    };
    in_flight.is_answered = true;
    match session.on_post(framing, &body) {
        Ok(()) | Err(CloseReason::ClientGoodbye) => Ok(post_answer()),
        Err(_) => Err(Denied::BadBody),
    }
}
