//! One session: its protocol state, its link to the peer, and what waits for it. All under one lock, which is never
//! held across an await; the dispatcher, the session's own task, polls and posts take turns.

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
use crate::life::Bare;
use crate::poll::Polling;
use crate::queue::{Queue, Sent};
use crate::sid::Sid;
use crate::stats::{add, sub};

thread_local! {
    /// Sessions read into this, so that an idle one holds no buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// One session, shared by its task, its shard and, while it polls, the requests of its client.
///
/// A node with many sessions finds none of them in the processor's cache, so what a delivery reads comes first, here and in
/// what the lock guards, and stays in the order it is written in: two lines of the cache instead of four.
#[repr(C)]
pub(crate) struct Session {
    pub(crate) profile: Profile,
    state: Mutex<State>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) key: SessionKey,
    pub(crate) sid: Sid,
    /// Makes the session's task panic, to see what that takes with it.
    #[cfg(test)]
    pub(crate) explode: std::sync::atomic::AtomicBool,
}

/// What the lock guards.
#[repr(C)]
pub(crate) struct State {
    pub(crate) io: Io,
    protocol: socketio::Session,
}

/// The part of the state that bytes go through.
#[repr(C)]
pub(crate) struct Io {
    /// Why the session is over. Set once; nothing is sent from then on.
    pub(crate) ended: Option<CloseReason>,
    errands: Errands,
    pub(crate) queue: Queue,
    pub(crate) link: Link,
    /// Wakes the session's task.
    waker: Option<Waker>,
}

/// What the session's task has to tell its shard.
#[derive(Default)]
struct Errands {
    introduce: bool,
    watch: bool,
}

/// How the peer is reached.
pub(crate) enum Link {
    /// The websocket is on its way.
    Opening,
    Websocket(Wire),
    Polling(Box<Polling>),
    /// The session is over and let its peer go.
    Gone,
}

/// A bare socket behind the websocket handshake.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    pub(crate) decoder: Decoder,
}

/// Why the session's task wakes up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// SYSTEM `connected` is on its way: the shard may apply changes.
    Introduce,
    /// The peer takes no bytes: the shard watches the write deadline.
    Watch,
    /// The session is over.
    Over(CloseReason),
}

impl Session {
    /// Opens a session and queues its first packets. A websocket session learns its key at once; a polling one once
    /// the answer to the handshake is made, by [`State::introduce`].
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
        let mut io =
            Io { ended: None, errands: Errands::default(), queue: Queue::default(), link, waker: None };
        let protocol = socketio::Session::open(&open, now, |frame| io.answer(&hub, frame.websocket(), now));
        let ConnectedSession { session_key: key, profile, .. } = connected;
        let session = Self {
            profile,
            state: Mutex::new(State { io, protocol }),
            hub,
            key,
            sid,
            #[cfg(test)]
            explode: Default::default(),
        };
        if !is_polling {
            session.lock().introduce(&session, now);
        }
        Arc::new(session)
    }

    /// A panic of another holder leaves the state as it was between two packets: it can be closed, so it is used.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands whole frames to the peer, or queues them. `true` when they are the first that wait for a websocket: the
    /// caller watches the write deadline then.
    pub(crate) fn deliver(&self, bytes: &Bytes, messages: usize, now: Millis) -> bool {
        self.lock().io.send(&self.hub, bytes, messages, now)
    }

    /// Ends the session, unless it has ended: the first reason counts.
    pub(crate) fn end(&self, reason: CloseReason) {
        self.lock().io.end(reason);
    }

    /// Does what time demands, and says when to be asked again; `None` when the session is over.
    pub(crate) fn on_deadline(&self, now: Millis) -> Option<Millis> {
        let mut state = self.lock();
        let State { protocol, io } = &mut *state;
        if io.ended.is_some() {
            return None;
        }
        // A ping that has to wait is watched below, like everything else that waits.
        let tick = protocol.on_tick(now, |frame| _ = io.send(&self.hub, frame.websocket(), 1, now));
        if let Err(reason) = tick {
            io.end(reason);
            return None;
        }
        // The heartbeat's deadline may move to an earlier time with any packet, but never to less than an interval.
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

    /// Gives the session its websocket, and takes what was read from it already.
    pub(crate) fn attach(&self, Bare { stream, held, read }: Bare) {
        let decoder = Decoder::new(self.hub.config.message_bytes_max);
        let now = self.hub.now_ms();
        let mut state = self.lock();
        state.io.queue.put_first(held.into(), now, &self.hub.counters.queued_bytes);
        state.link_websocket(self, Wire { stream, decoder });
        state.feed(self, &mut read.to_vec(), now);
    }

    /// Whether SYSTEM `connected` is on its way and the shard was not told so yet.
    pub(crate) fn take_introduction(&self) -> bool {
        std::mem::take(&mut self.lock().io.errands.introduce)
    }

    /// The session's task: reads, writes what waits, and returns when there is something to tell.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Turn> {
        let mut guard = self.lock();
        let state = &mut *guard;
        #[cfg(test)]
        assert!(!self.explode.load(std::sync::atomic::Ordering::SeqCst), "a test wants it so");
        loop {
            if let Some(reason) = state.io.ended {
                return Poll::Ready(Turn::Over(reason));
            }
            if std::mem::take(&mut state.io.errands.introduce) {
                return Poll::Ready(Turn::Introduce);
            }
            if std::mem::take(&mut state.io.errands.watch) {
                return Poll::Ready(Turn::Watch);
            }
            if state.poll_wire(self, cx).is_pending() {
                state.io.remember(cx);
                return Poll::Pending;
            }
        }
    }

    /// Ends the session, if a panic has not let it, and lets go of what it held. Gives its websocket, and the rest of what
    /// was begun to be written to it. A client that polls is answered for a while yet.
    pub(crate) fn unlink(&self, reason: CloseReason) -> Option<(TcpStream, Bytes)> {
        let mut state = self.lock();
        let io = &mut state.io;
        io.end(reason);
        let begun = io.queue.begun();
        io.queue.clear(&self.hub.counters.queued_bytes);
        if let Link::Polling(polling) = &io.link {
            sub(&self.hub.counters.polling, 1);
            polling.wake();
            return None;
        }
        match std::mem::replace(&mut io.link, Link::Gone) {
            Link::Websocket(wire) => {
                sub(&self.hub.counters.websocket, 1);
                Some((wire.stream, begun))
            }
            Link::Polling(_) | Link::Opening | Link::Gone => None,
        }
    }

    /// Whether the client polls, or did when the session ended.
    pub(crate) fn polls(&self) -> bool {
        matches!(self.lock().io.link, Link::Polling(_))
    }
}

impl State {
    /// Queues SYSTEM `connected` and sends the session's task to its shard, if the client is connected.
    pub(crate) fn introduce(&mut self, session: &Session, now: Millis) {
        if self.protocol.is_connected() {
            let frame = packet::event(SYSTEM, &system_connected(&session.key));
            self.io.answer(&session.hub, frame.websocket(), now);
            self.io.errands.introduce = true;
            self.io.wake();
        }
    }

    /// Takes one text packet of the client, over whichever transport it came.
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

    /// Takes one binary packet of the client.
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

    /// Takes a post without a packet in it.
    pub(crate) fn on_empty_post(&mut self, now: Millis) -> Result<(), CloseReason> {
        self.protocol.on_empty_post(now)
    }

    /// Takes one websocket message of the client.
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

    /// Moves the session to a websocket. What is queued goes there; a waiting poll is released.
    pub(crate) fn link_websocket(&mut self, session: &Session, wire: Wire) {
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
        // An error shows again in the session's task, which ends the session.
        let _ = self.io.queue.write_to(&wire.stream, now, &counters.queued_bytes);
        self.io.errands.watch |= !self.io.queue.is_empty();
        self.io.link = Link::Websocket(wire);
        self.io.wake();
    }

    /// Decodes what was read from the websocket and acts on it.
    pub(crate) fn feed(&mut self, session: &Session, input: &mut [u8], now: Millis) {
        let Link::Websocket(wire) = &mut self.io.link else { return };
        let mut decoder =
            std::mem::replace(&mut wire.decoder, Decoder::new(session.hub.config.message_bytes_max));
        let fed = decoder.decode(input, |event| self.on_event(session, now, event));
        if let Link::Websocket(wire) = &mut self.io.link {
            wire.decoder = decoder;
        }
        if let Err(reason) = fed {
            self.io.end(reason);
        }
    }

    /// Writes and reads what the socket takes and has. Ready when something may have changed.
    fn poll_wire(&mut self, session: &Session, cx: &mut Context<'_>) -> Poll<()> {
        let Link::Websocket(wire) = &self.io.link else { return Poll::Pending };
        while !self.io.queue.is_empty() {
            let Poll::Ready(ready) = wire.stream.poll_write_ready(cx) else { break };
            let gauge = &session.hub.counters.queued_bytes;
            let written =
                ready.and_then(|()| self.io.queue.write_to(&wire.stream, session.hub.now_ms(), gauge));
            if written.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
                self.io.end(CloseReason::TransportClosed);
                return Poll::Ready(());
            }
        }
        if ready!(wire.stream.poll_read_ready(cx)).is_err() {
            self.io.end(CloseReason::TransportClosed);
            return Poll::Ready(());
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let Link::Websocket(wire) = &self.io.link else { return };
            match wire.stream.try_read(scratch) {
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
            Link::Websocket(wire) => Some(&wire.stream),
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

    /// Sees to it that somebody takes what was queued.
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

    /// Sends from where no shard listens: the session's task tells it.
    fn answer(&mut self, hub: &Hub, bytes: &Bytes, now: Millis) {
        if self.send(hub, bytes, 1, now) {
            self.errands.watch = true;
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

    /// Until when a websocket that takes nothing is waited for.
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
