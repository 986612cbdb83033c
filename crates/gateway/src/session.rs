//! One session: its protocol state, its link to the peer, and its send queue. One lock guards all of it and
//! is never held across an await. The shard, the session's task, polls and posts share it.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use domain::event::{SYSTEM, system_connected};
use domain::{Profile, SessionKey};
use service::sessions::ConnectedSession;
use socketio::{CloseReason, Decoder, Event, Frame, Millis, Open, Revision, Signal, packet, websocket};
use tokio::net::TcpStream;

use crate::config::SCRATCH_BYTES;
use crate::hub::Hub;
use crate::poll::Polling;
use crate::queue::{SendQueue, Sent};
use crate::session_task::RawStream;
use crate::sid::Sid;
use crate::stats::{add, sub};

thread_local! {
    /// The read buffer of all sessions of a thread, so that an idle session holds none.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// One session, shared by its task, its shard and, while it polls, the requests of its client.
pub(crate) struct Session {
    pub(crate) profile: Profile,
    state: Mutex<State>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) key: SessionKey,
    pub(crate) sid: Sid,
    /// Makes the session's task panic, for a test.
    #[cfg(test)]
    pub(crate) panic_for_test: std::sync::atomic::AtomicBool,
}

/// The state that the lock guards.
pub(crate) struct State {
    pub(crate) io: Io,
    protocol: socketio::Session,
}

/// The input and output of a session.
pub(crate) struct Io {
    /// Why the session ended. Set once; nothing is sent afterwards.
    pub(crate) ended: Option<CloseReason>,
    pending: PendingWork,
    pub(crate) queue: SendQueue,
    pub(crate) link: Link,
    /// Wakes the session's task.
    waker: Option<Waker>,
}

/// Commands that the session's task still has to send to its shard.
#[derive(Default)]
struct PendingWork {
    introduce: bool,
    watch: bool,
}

/// The transport to the peer.
pub(crate) enum Link {
    /// The websocket is being upgraded.
    Opening,
    Websocket(WebsocketIo),
    Polling(Box<Polling>),
    /// The session has ended and released its peer.
    Gone,
}

/// A TCP stream after the websocket handshake, and its decoder.
pub(crate) struct WebsocketIo {
    pub(crate) stream: TcpStream,
    pub(crate) decoder: Decoder,
}

/// The reason why the session's task wakes up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// SYSTEM `connected` is queued: the shard may apply changes.
    Introduce,
    /// The peer takes no bytes: the shard watches the write deadline.
    Watch,
    /// The session has ended.
    Over(CloseReason),
}

impl Session {
    /// Opens a session and queues its first packets. A websocket session queues SYSTEM `connected` at once. A
    /// polling session does so after the answer to its handshake, by [`State::introduce`].
    pub(crate) fn open(
        hub: Arc<Hub>,
        connected: ConnectedSession,
        sid: Sid,
        revision: Revision,
        polling: Option<Box<Polling>>,
    ) -> Arc<Self> {
        let open = Open {
            revision,
            sid: sid.as_str(),
            may_upgrade: polling.is_some(),
            timing: hub.config.timing(),
            max_payload: u32::try_from(hub.config.post_bytes_max).unwrap_or(u32::MAX),
        };
        let (now, is_polling) = (hub.now_ms(), polling.is_some());
        if is_polling {
            add(&hub.counters.polling, 1);
        }
        let link = polling.map_or(Link::Opening, Link::Polling);
        let mut io = Io {
            ended: None,
            pending: PendingWork::default(),
            queue: SendQueue::default(),
            link,
            waker: None,
        };
        let protocol = socketio::Session::open(&open, now, |frame| io.answer(&hub, frame.websocket(), now));
        let ConnectedSession { session_key: key, profile, .. } = connected;
        let session = Self {
            profile,
            state: Mutex::new(State { io, protocol }),
            hub,
            key,
            sid,
            #[cfg(test)]
            panic_for_test: Default::default(),
        };
        if !is_polling {
            session.lock().introduce(&session, now);
        }
        Arc::new(session)
    }

    /// Locks the state. After a panic of another holder the state is that between two packets, so the session
    /// can be closed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends whole frames to the peer, or queues them. `true` when they are the first queued bytes of a
    /// websocket: then the caller watches the write deadline.
    pub(crate) fn deliver(&self, bytes: &Bytes, messages: usize, now: Millis) -> bool {
        self.lock().io.send(&self.hub, bytes, messages, now)
    }

    /// Ends the session, unless it has ended. The first reason counts.
    pub(crate) fn end(&self, reason: CloseReason) {
        self.lock().io.end(reason);
    }

    /// Processes expired deadlines and returns the next one; `None` when the session has ended.
    pub(crate) fn on_deadline(&self, now: Millis) -> Option<Millis> {
        let mut state = self.lock();
        let State { protocol, io } = &mut *state;
        if io.ended.is_some() {
            return None;
        }
        // A queued ping is covered by the write deadline below.
        let tick = protocol.on_tick(now, |frame| _ = io.send(&self.hub, frame.websocket(), 1, now));
        if let Err(reason) = tick {
            io.end(reason);
            return None;
        }
        // Any packet may move the heartbeat's deadline to an earlier time, but never to less than an interval
        // from now.
        let interval = u64::from(self.hub.config.timing().ping_interval_ms);
        let mut next = protocol.deadline().min(now + interval);
        if let Some(deadline) = io.write_deadline(&self.hub) {
            if now >= deadline {
                io.end(CloseReason::WriteTimeout);
                return None;
            }
            next = next.min(deadline);
        }
        Some(next)
    }

    /// Gives the session its websocket, and processes the bytes that were read already.
    pub(crate) fn attach(&self, RawStream { stream, held, read }: RawStream) {
        let decoder = Decoder::new(self.hub.config.message_bytes_max);
        let now = self.hub.now_ms();
        let mut state = self.lock();
        state.io.queue.push_front(held.into(), now, &self.hub.counters.queued_bytes);
        state.link_websocket(self, WebsocketIo { stream, decoder });
        state.feed(self, &mut read.to_vec(), now);
    }

    /// Whether SYSTEM `connected` is queued and the shard does not know yet. Resets the mark.
    pub(crate) fn take_introduction(&self) -> bool {
        std::mem::take(&mut self.lock().io.pending.introduce)
    }

    /// Polls the session for its task: reads, writes queued bytes, and is ready when a command for the shard
    /// is pending.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        let mut guard = self.lock();
        let state = &mut *guard;
        #[cfg(test)]
        assert!(
            !self.panic_for_test.load(std::sync::atomic::Ordering::SeqCst),
            "a test asked for this panic"
        );
        loop {
            if let Some(reason) = state.io.ended {
                return Poll::Ready(Wakeup::Over(reason));
            }
            if std::mem::take(&mut state.io.pending.introduce) {
                return Poll::Ready(Wakeup::Introduce);
            }
            if std::mem::take(&mut state.io.pending.watch) {
                return Poll::Ready(Wakeup::Watch);
            }
            if state.poll_websocket(self, cx).is_pending() {
                state.io.remember(cx);
                return Poll::Pending;
            }
        }
    }

    /// Ends the session, if it has not ended, and releases what it held. Returns its websocket and the rest
    /// of a partly written chunk. A polling client is answered for some more seconds.
    pub(crate) fn detach(&self, reason: CloseReason) -> Option<(TcpStream, Bytes)> {
        let mut state = self.lock();
        let io = &mut state.io;
        io.end(reason);
        let unfinished = io.queue.unfinished();
        io.queue.clear(&self.hub.counters.queued_bytes);
        if let Link::Polling(polling) = &io.link {
            sub(&self.hub.counters.polling, 1);
            polling.wake();
            return None;
        }
        match std::mem::replace(&mut io.link, Link::Gone) {
            Link::Websocket(socket) => {
                sub(&self.hub.counters.websocket, 1);
                Some((socket.stream, unfinished))
            }
            Link::Polling(_) | Link::Opening | Link::Gone => None,
        }
    }

    /// Whether the client polls, or polled when the session ended.
    pub(crate) fn polls(&self) -> bool {
        matches!(self.lock().io.link, Link::Polling(_))
    }
}

impl State {
    /// Queues SYSTEM `connected` if the client is connected, and marks that for the shard.
    pub(crate) fn introduce(&mut self, session: &Session, now: Millis) {
        if self.protocol.is_connected() {
            let frame = packet::event(SYSTEM, &system_connected(&session.key));
            self.io.answer(&session.hub, frame.websocket(), now);
            self.io.pending.introduce = true;
            self.io.wake();
        }
    }

    /// Processes a text packet of the client, from either transport.
    pub(crate) fn on_packet(
        &mut self,
        session: &Session,
        now: Millis,
        text: &str,
    ) -> Result<(), CloseReason> {
        let Self { protocol, io } = self;
        let answer = |frame: Frame| io.answer(&session.hub, frame.websocket(), now);
        match protocol.on_packet(now, session.sid.as_str(), text, answer)? {
            Signal::Connected => self.introduce(session, now),
            Signal::Nothing => {}
        }
        Ok(())
    }

    /// Processes a binary packet of the client.
    pub(crate) fn on_binary(
        &mut self,
        session: &Session,
        now: Millis,
        data: &[u8],
    ) -> Result<(), CloseReason> {
        let Self { protocol, io } = self;
        let answer = |frame: Frame| io.answer(&session.hub, frame.websocket(), now);
        protocol.on_binary(now, session.sid.as_str(), data, answer)
    }

    /// Processes a post without packets.
    pub(crate) fn on_empty_post(&mut self, now: Millis) -> Result<(), CloseReason> {
        self.protocol.on_empty_post(now)
    }

    /// Processes a websocket message of the client.
    pub(crate) fn on_event(
        &mut self,
        session: &Session,
        now: Millis,
        event: Event<'_>,
    ) -> Result<(), CloseReason> {
        match event {
            Event::Text(text) => self.on_packet(session, now, text),
            Event::Binary(data) => self.on_binary(session, now, data),
            Event::Ping(payload) => {
                self.protocol.on_websocket_control(now)?;
                self.io.answer(&session.hub, &websocket::pong(payload), now);
                Ok(())
            }
            Event::Pong => self.protocol.on_websocket_control(now),
            Event::Close(_) => Err(CloseReason::ClientGoodbye),
        }
    }

    /// Moves the session to a websocket. Queued messages go there, and a waiting poll is released.
    pub(crate) fn link_websocket(&mut self, session: &Session, socket: WebsocketIo) {
        let counters = &session.hub.counters;
        if self.io.ended.is_some() && matches!(self.io.link, Link::Gone) {
            return;
        }
        if let Link::Polling(polling) = &self.io.link {
            sub(&counters.polling, 1);
            polling.wake();
        }
        add(&counters.websocket, 1);
        let now = session.hub.now_ms();
        self.io.queue.restart(now);
        // The session's task meets the same error and ends the session.
        let _ = self.io.queue.write_to(&socket.stream, now, &counters.queued_bytes);
        self.io.pending.watch |= !self.io.queue.is_empty();
        self.io.link = Link::Websocket(socket);
        self.io.wake();
    }

    /// Decodes bytes of the websocket and processes its messages.
    pub(crate) fn feed(&mut self, session: &Session, input: &mut [u8], now: Millis) {
        let Link::Websocket(socket) = &mut self.io.link else { return };
        let mut decoder =
            std::mem::replace(&mut socket.decoder, Decoder::new(session.hub.config.message_bytes_max));
        let fed = decoder.decode(input, |event| self.on_event(session, now, event));
        if let Link::Websocket(socket) = &mut self.io.link {
            socket.decoder = decoder;
        }
        if let Err(reason) = fed {
            self.io.end(reason);
        }
    }

    /// Writes queued bytes and reads. Ready when something may have changed.
    fn poll_websocket(&mut self, session: &Session, cx: &mut Context<'_>) -> Poll<()> {
        let Link::Websocket(socket) = &self.io.link else { return Poll::Pending };
        while !self.io.queue.is_empty() {
            let Poll::Ready(ready) = socket.stream.poll_write_ready(cx) else { break };
            let gauge = &session.hub.counters.queued_bytes;
            let written =
                ready.and_then(|()| self.io.queue.write_to(&socket.stream, session.hub.now_ms(), gauge));
            if written.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
                self.io.end(CloseReason::TransportClosed);
                return Poll::Ready(());
            }
        }
        if ready!(socket.stream.poll_read_ready(cx)).is_err() {
            self.io.end(CloseReason::TransportClosed);
            return Poll::Ready(());
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let Link::Websocket(socket) = &self.io.link else { return };
            match socket.stream.try_read(scratch) {
                Ok(0) => self.io.end(CloseReason::TransportClosed),
                Ok(read) => self.feed(session, &mut scratch[..read], session.hub.now_ms()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.io.end(CloseReason::TransportClosed),
            }
        });
        Poll::Ready(())
    }
}

impl Io {
    /// As [`Session::deliver`].
    pub(crate) fn send(&mut self, hub: &Hub, bytes: &Bytes, messages: usize, now: Millis) -> bool {
        if self.ended.is_some() {
            return false;
        }
        let stream = match &self.link {
            Link::Websocket(socket) => Some(&socket.stream),
            Link::Opening | Link::Polling(_) | Link::Gone => None,
        };
        match self.queue.send(stream, bytes, messages, now, hub.limits()) {
            Ok(Sent::Written) => false,
            Ok(sent) => self.queued(sent),
            Err(reason) => {
                self.end(reason);
                false
            }
        }
    }

    /// Wakes the writer of the queued bytes. `true` as for [`Session::deliver`].
    fn queued(&mut self, sent: Sent) -> bool {
        match &self.link {
            Link::Websocket(_) if sent == Sent::FirstInQueue => {
                self.wake();
                true
            }
            Link::Polling(polling) => {
                polling.wake();
                false
            }
            Link::Websocket(_) | Link::Opening | Link::Gone => false,
        }
    }

    /// Sends outside the shard. The session's task asks the shard to watch the write deadline, if necessary.
    fn answer(&mut self, hub: &Hub, bytes: &Bytes, now: Millis) {
        if self.send(hub, bytes, 1, now) {
            self.pending.watch = true;
        }
    }

    pub(crate) fn end(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.wake();
            if let Link::Polling(polling) = &self.link {
                polling.wake();
            }
        }
    }

    /// When a websocket that takes no bytes is closed.
    fn write_deadline(&self, hub: &Hub) -> Option<Millis> {
        let Link::Websocket(_) = self.link else { return None };
        let span = u64::try_from(hub.config.write_deadline.as_millis()).unwrap_or(u64::MAX);
        self.queue.stalled_since().map(|since| since.saturating_add(span))
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    fn remember(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }
}
