//! The state of a session whose client polls (`docs/spec/realtime.md#transports`).

use std::task::Waker;

use domain::secret::SecretHash;
use socketio::{Frame, Framing, payload};

/// The state of a polling session.
pub(super) struct Polling {
    /// Hash of the URL token of the handshake. Later requests must present the same token.
    auth: SecretHash,
    /// Wakes the waiting poll.
    pub(super) waiter: Option<Waker>,
    poll_in_flight: bool,
    post_in_flight: bool,
    /// Whether a poll was answered with the end of the session. Further polls are refused.
    pub(super) end_reported: bool,
    /// Whether the handshake asked for text. Some clients ask only there.
    pub(super) reads_text: bool,
    /// The state of an upgrade to a websocket.
    pub(super) takeover: Takeover,
}

/// The state of the websocket that takes a polling session over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takeover {
    None,
    /// The websocket is connected and has not sent its probe.
    Begun,
    /// The websocket has sent its probe. Polls are answered at once until the upgrade ends.
    Probed,
}

/// The kinds of requests. A client may have one request of each kind in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Poll,
    Post,
}

/// Why a session rejects a request of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The session does not poll, or has reported its end.
    NotPolling,
    /// A request of this kind is in flight. The second one has ended the session.
    Overlap,
    /// Another websocket is already taking the session over.
    UpgradeUnderWay,
}

impl Polling {
    pub(super) fn new(auth: SecretHash) -> Box<Self> {
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

    /// Whether the token of a request is that of the handshake, compared in constant time.
    pub(super) fn token_matches(&self, token: &str) -> bool {
        self.auth.matches(&SecretHash::of(token))
    }

    pub(super) fn wake(&self) {
        if let Some(waiter) = &self.waiter {
            waiter.wake_by_ref();
        }
    }

    /// Whether a request of this kind is in flight.
    pub(super) fn in_flight(&mut self, kind: RequestKind) -> &mut bool {
        match kind {
            RequestKind::Poll => &mut self.poll_in_flight,
            RequestKind::Post => &mut self.post_in_flight,
        }
    }
}

/// A body with these packets.
pub(crate) fn packets(framing: Framing, frames: &[Frame]) -> Vec<u8> {
    payload::encode(framing, frames.iter().map(Frame::packet))
}
