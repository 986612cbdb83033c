//! The body of a request while it arrives.
//!
//! A handler may answer without reading the body: for an unknown path, a bad token, a body that is too large.
//! The peer may still be sending the body then. Closing the connection would cost many clients the answer, so
//! the unread part of the body is read and dropped, within bounds.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::EXPECT;
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::sync::oneshot;

use crate::connections::Connection;

/// Maximum number of bytes of an unread body that are read and dropped before an answer.
const DRAIN_BYTES_MAX: u64 = 1024 * 1024;
/// Deadline for reading and dropping these bytes.
const DRAIN_WITHIN: Duration = Duration::from_secs(2);

/// The body of a request, for its handler. Dropping it returns the unread part to the listener.
pub(crate) struct Inbound {
    /// `None` after the unread part was returned.
    body: Option<Incoming>,
    /// Returns the unread part.
    back: Option<oneshot::Sender<Rest>>,
    connection: Arc<Connection>,
    state: State,
}

/// The unread part of a body.
pub(crate) struct Rest {
    body: Incoming,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// The peer waits for `100 Continue` (`Expect: 100-continue`). The first read sends it.
    Unasked,
    /// The body ended early or was malformed.
    Broken,
}

impl Inbound {
    /// Wraps the body of a request. The connection is marked when the whole body has arrived.
    pub(crate) fn new(
        parts: &Parts,
        body: Incoming,
        connection: &Arc<Connection>,
    ) -> (Self, oneshot::Receiver<Rest>) {
        let expects = parts.headers.get(EXPECT).is_some_and(|value| {
            value.as_bytes().eq_ignore_ascii_case(b"100-continue") && parts.version > http::Version::HTTP_10
        });
        let (back, rest) = oneshot::channel();
        let state = if expects { State::Unasked } else { State::Good };
        (Self { body: Some(body), back: Some(back), connection: connection.clone(), state }, rest)
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        if this.state == State::Unasked {
            this.state = State::Good;
        }
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        if let Some(Err(_)) = frame {
            this.state = State::Broken;
        } else if frame.is_none() || body.is_end_stream() {
            this.connection.received();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), self.back.take())
            && !body.is_end_stream()
        {
            // Without a listener there is no connection to drain.
            let _ = back.send(Rest { body, state: self.state });
        }
    }
}

impl Rest {
    /// Reads the unread part of the body and drops it. Returns `false` if that fails or exceeds the bounds;
    /// then the connection must end with the answer.
    pub(crate) async fn drained(mut self) -> bool {
        // A peer that waits for `100 Continue` does not send the body after a refusal.
        if self.state != State::Good || self.body.size_hint().lower() > DRAIN_BYTES_MAX {
            return false;
        }
        let read_on = async {
            let mut left = DRAIN_BYTES_MAX;
            while let Some(frame) = self.body.frame().await {
                let read = frame.map(|frame| frame.data_ref().map_or(0, Bytes::len) as u64).ok();
                let Some(now) = read.and_then(|read| left.checked_sub(read)) else { return false };
                left = now;
            }
            true
        };
        tokio::time::timeout(DRAIN_WITHIN, read_on).await.unwrap_or(false)
    }
}
