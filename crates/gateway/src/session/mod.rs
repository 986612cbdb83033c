//! One session: its protocol state, its link to the peer, and its send queue. One lock guards all of it and
//! is never held across an await. The shard, the session's task, polls and posts share the session. They
//! change it only through its methods.

mod io;
mod link;
mod polling;
mod probe;
mod send_queue;
mod sid;
mod state;
mod tap;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::Bytes;
use domain::secret::SecretHash;
use domain::session::SessionChange;
use domain::system_message::{self, SYSTEM};
use domain::{Profile, SessionKey};
use service::Clock;
use service::application_usage::ApplicationUsage;
use service::fault_points::{MessageAction, SystemMessage};
use service::sessions::ConnectedSession;
use socketio::{CloseReason, Framing, Millis, Revision, packet};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

pub(crate) use io::{Wakeup, says_close};
pub(crate) use link::RawStream;
pub use link::Transport;
pub(crate) use polling::{Rejected, RequestKind, packets};
pub(crate) use probe::Probe;
#[cfg(test)]
pub(crate) use send_queue::{Limits, SendQueue};
pub(crate) use sid::Sid;

use crate::context::Context;
use crate::metrics::add;
use link::Link;
use polling::{Polling, Takeover};
use state::{Call, Identity, State};
use tap::{LateBytes, Tap};

/// One session, shared by its task, its shard and, while it polls, the requests of its client.
pub(crate) struct Session {
    context: Arc<Context>,
    identity: Identity,
    /// Counts the events that it receives for its application, if there is room.
    usage: Option<Arc<ApplicationUsage>>,
    state: Mutex<State>,
    /// Makes the session's task panic, for a test.
    #[cfg(feature = "testing")]
    panics: std::sync::atomic::AtomicBool,
}

impl Session {
    /// Opens a session and queues its first packets. A websocket session queues SYSTEM `connected` at once. A
    /// polling session has the hash of its URL's token, and queues SYSTEM `connected` after the answer to its
    /// handshake, in [`first_poll`](Self::first_poll).
    pub(crate) fn open(
        context: Arc<Context>,
        connected: ConnectedSession,
        sid: Sid,
        revision: Revision,
        polling: Option<SecretHash>,
    ) -> Arc<Self> {
        let ConnectedSession { session_key: key, profile, owner } = connected;
        let usage = context.service.usage_counters(owner.client_id());
        let identity = Identity { key, sid, profile };
        let call = Call { context: &context, identity: &identity, now: context.now_ms() };
        let is_polling = polling.is_some();
        let point = context.service.socket_faults();
        let (tap, late) = point.map(|point| Tap::new(point.clone(), identity.key.clone())).unzip();
        let mut state = State::open(call, revision, polling.map(Polling::new), tap);
        if is_polling {
            add(&context.counters.polling, 1);
        } else {
            state.introduce(call);
        }
        let session = Arc::new(Self {
            context,
            identity,
            usage,
            state: Mutex::new(state),
            #[cfg(feature = "testing")]
            panics: Default::default(),
        });
        if let Some(late) = late {
            tokio::spawn(send_late(Arc::downgrade(&session), session.context.clock().clone(), late));
        }
        session
    }

    pub(crate) fn key(&self) -> &SessionKey {
        &self.identity.key
    }

    pub(crate) fn sid(&self) -> &Sid {
        &self.identity.sid
    }

    pub(crate) fn profile(&self) -> Profile {
        self.identity.profile
    }

    /// Locks the state. After a panic of another holder the state is whole, as between two packets, so the
    /// session can be closed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, now: Millis) -> Call<'_> {
        Call { context: &self.context, identity: &self.identity, now }
    }

    fn call_now(&self) -> Call<'_> {
        self.call(self.context.now_ms())
    }

    /// Counts events that it receives for its application.
    pub(crate) fn count_events(&self, events: usize) {
        if let Some(usage) = &self.usage {
            usage.count_events(events);
        }
    }

    /// Sends whole frames to the peer, or queues them. Returns `true` if they are the first queued bytes of a
    /// websocket: then the caller watches the write deadline.
    pub(crate) fn deliver(&self, bytes: &Bytes, messages: usize, now: Millis) -> bool {
        self.lock().io.send(&self.context, bytes, messages, now)
    }

    /// Sends the SYSTEM message about a change. Returns what [`deliver`](Self::deliver) does.
    pub(crate) fn deliver_change(&self, change: &SessionChange, now: Millis) -> bool {
        let frame = packet::event(SYSTEM, &system_message::change(change));
        let message = SystemMessage::Changed(change);
        self.lock().io.send_system(&self.context, message, frame.websocket(), now)
    }

    /// Sends an event as a fault point decided. Returns what [`deliver`](Self::deliver) does.
    pub(crate) fn deliver_with(&self, bytes: &Bytes, action: MessageAction, now: Millis) -> bool {
        self.lock().io.send_with(&self.context, bytes, action, now)
    }

    /// Sends and reads nothing any more. Only a session with a fault point does that.
    pub(crate) fn silence(&self) {
        self.lock().io.silence(&self.context);
    }

    /// Whether nothing is sent and nothing is read any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.lock().io.is_silent()
    }

    /// Loses the connection without a close frame.
    pub(crate) fn cut(&self) {
        self.lock().io.cut();
    }

    /// Whether the connection ends without a close frame.
    pub(crate) fn is_cut(&self) -> bool {
        self.lock().io.tap().is_some_and(|tap| tap.is_cut)
    }

    /// Ends the session, unless it has ended. Only the first reason counts.
    pub(crate) fn end(&self, reason: CloseReason) {
        self.lock().io.end(reason);
    }

    /// Processes expired deadlines and returns the next one; `None` when the session has ended.
    pub(crate) fn on_deadline(&self, now: Millis) -> Option<Millis> {
        self.lock().on_deadline(self.call(now))
    }

    /// Gives the session its websocket, and processes the bytes that were already read.
    pub(crate) fn attach(&self, stream: RawStream) {
        self.lock().attach(self.call_now(), stream);
    }

    /// Whether SYSTEM `connected` is still to be reported to the shard. Resets the mark.
    pub(crate) fn take_introduction(&self) -> bool {
        self.lock().io.take_introduction()
    }

    /// Polls the session for its task: reads, writes queued bytes, and is ready when a command for the shard
    /// is pending.
    pub(crate) fn poll(&self, cx: &mut TaskContext<'_>) -> Poll<Wakeup> {
        let mut state = self.lock();
        #[cfg(feature = "testing")]
        assert!(!self.panics.load(std::sync::atomic::Ordering::SeqCst), "a test asked for this panic");
        state.poll(self.call_now(), cx)
    }

    /// Ends the session, if it has not ended, and releases its link and its queue. Returns its websocket and
    /// the unwritten part of a partly written chunk. A polling client is answered for some more seconds.
    pub(crate) fn detach(&self, reason: CloseReason) -> Option<(TcpStream, Bytes)> {
        self.lock().io.detach(&self.context, reason)
    }

    /// The protocol revision of the client.
    pub(crate) fn revision(&self) -> Revision {
        self.lock().revision()
    }

    /// The transport of the session; `None` before its websocket is attached, and after its end. A polling
    /// session keeps its transport after its end.
    pub(crate) fn transport(&self) -> Option<Transport> {
        self.lock().io.link().transport()
    }

    /// How long ago the client gave its last sign of life, a packet or the answer to a ping.
    pub(crate) fn silent_for(&self) -> Duration {
        let now = self.context.now_ms();
        Duration::from_millis(now.saturating_sub(self.lock().last_heard()))
    }
}

/// Sends or processes late bytes when they are due, as long as the session exists.
async fn send_late(session: Weak<Session>, clock: Clock, mut late: mpsc::UnboundedReceiver<LateBytes>) {
    let (mut waiting, mut count) = (BTreeMap::new(), 0_u64);
    loop {
        let next = waiting.first_key_value().map(|((due, _), _)| *due);
        tokio::select! {
            biased;
            received = late.recv() => {
                let Some(bytes) = received else { return };
                count += 1;
                waiting.insert((bytes.due, count), bytes);
            }
            () = clock.sleep_until(next.unwrap_or_default()), if next.is_some() => {
                let Some(session) = session.upgrade() else { return };
                if let Some((_, bytes)) = waiting.pop_first() {
                    let now = session.context.now_ms();
                    session.lock().on_late(session.call(now), bytes);
                }
            }
        }
    }
}

#[cfg(feature = "testing")]
impl Session {
    /// Makes the session's task panic when it is polled next.
    pub(crate) fn panic_for_test(&self) {
        self.panics.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// The requests of a polling client.
impl Session {
    /// Whether the token of a request is that of the handshake; `None` when the session does not poll.
    pub(crate) fn token_matches(&self, token: &str) -> Option<bool> {
        self.lock().io.link().polling().map(|polling| polling.token_matches(token))
    }

    /// Marks a request as in flight. A second request of its kind ends the session, as on the reference
    /// server.
    pub(crate) fn begin_request(&self, kind: RequestKind) -> Result<(), Rejected> {
        self.lock().io.begin_request(kind)
    }

    /// Marks a request as no longer in flight. An aborted request ends the session, because its packets are
    /// lost.
    pub(crate) fn end_request(&self, kind: RequestKind, is_answered: bool) {
        self.lock().io.end_request(kind, is_answered);
    }

    /// The framing of an answer: text if this request asks for it, or the handshake did.
    pub(crate) fn agreed_framing(&self, framing: Framing) -> Framing {
        match self.lock().io.link() {
            Link::Polling(polling) if polling.reads_text => Framing::Text,
            _ => framing,
        }
    }

    /// The answer to the handshake. SYSTEM `connected` is queued for the first poll.
    pub(crate) fn first_poll(&self, framing: Framing) -> Vec<u8> {
        self.lock().first_poll(self.call_now(), framing)
    }

    /// The packets of a poll, as soon as there are any.
    ///
    /// # Errors
    /// The session is over.
    pub(crate) fn poll_packets(
        &self,
        framing: Framing,
        cx: &TaskContext<'_>,
    ) -> Poll<Result<Vec<u8>, Rejected>> {
        let revision = self.revision();
        self.lock().io.poll_packets(&self.context, framing, revision, cx)
    }

    /// Processes the body of a post.
    pub(crate) fn on_post(&self, framing: Framing, body: &[u8]) -> Result<(), CloseReason> {
        self.lock().on_post(self.call_now(), framing, body)
    }

    /// Claims the session for one websocket.
    pub(crate) fn begin_upgrade(&self) -> Result<(), Rejected> {
        self.lock().io.begin_upgrade()
    }

    /// Processes bytes of a websocket that takes the session over, under one lock.
    pub(crate) fn feed_probe(&self, probe: &mut Probe, input: &mut [u8]) -> Result<(), CloseReason> {
        probe.feed(&mut self.lock(), self.call_now(), input)
    }

    /// Continues with polling after a failed upgrade.
    pub(crate) fn abort_upgrade(&self) {
        self.lock().io.set_takeover(Takeover::None);
    }
}
