//! The state of a session, which one lock guards: its protocol, and its input and output.

use std::cell::RefCell;
use std::task::{Context as TaskContext, Poll, ready};

use domain::system_message::{self, SYSTEM};
use domain::{Profile, SessionKey};
use service::fault_points::{Packet, SystemMessage};
use socketio::payload::{self, Item};
use socketio::{
    CloseReason, Decoder, Event, Frame, Framing, Millis, Open, Revision, Signal, packet, websocket,
};

use super::io::{Io, Wakeup};
use super::link::{Link, RawStream};
use super::polling::{Polling, packets};
use super::sid::Sid;
use super::tap::{LateBytes, Tap};
use crate::config::SCRATCH_BYTES;
use crate::context::Context;

thread_local! {
    /// The read buffer of all sessions of a thread, so that an idle session holds none.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// The constant properties of a session.
pub(super) struct Identity {
    pub(super) key: SessionKey,
    pub(super) sid: Sid,
    pub(super) profile: Profile,
}

/// The common arguments of the methods of [`State`].
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) context: &'a Context,
    pub(super) identity: &'a Identity,
    pub(super) now: Millis,
}

/// The protocol of a session, and its input and output.
pub(super) struct State {
    pub(super) io: Io,
    protocol: socketio::Session,
}

impl State {
    /// Queues the first packets.
    pub(super) fn open(
        call: Call<'_>,
        revision: Revision,
        polling: Option<Box<Polling>>,
        tap: Option<Box<Tap>>,
    ) -> Self {
        let Call { context, identity, now } = call;
        let open = Open {
            revision,
            sid: identity.sid.as_str(),
            may_upgrade: polling.is_some(),
            timing: context.config.timing(),
            max_payload: u32::try_from(context.config.post_bytes_max).unwrap_or(u32::MAX),
        };
        let mut io = Io::new(polling.map_or(Link::Opening, Link::Polling), tap);
        let protocol =
            socketio::Session::open(&open, now, |frame| io.answer(context, frame.websocket(), now));
        Self { io, protocol }
    }

    /// The protocol revision of the client.
    pub(super) fn revision(&self) -> Revision {
        self.protocol.revision()
    }

    /// The time of the client's last sign of life.
    pub(super) fn last_heard(&self) -> Millis {
        self.protocol.last_heard()
    }

    /// Queues SYSTEM `connected` if the client is connected, and marks that for the shard.
    pub(super) fn introduce(&mut self, call: Call<'_>) {
        if self.protocol.is_connected() {
            let frame = packet::event(SYSTEM, &system_message::connected(&call.identity.key));
            self.send_system(call, SystemMessage::Connected, &frame);
            self.io.introduced();
        }
    }

    /// Sends a SYSTEM message. If necessary, the session's task asks the shard to watch the write deadline.
    fn send_system(&mut self, call: Call<'_>, message: SystemMessage<'_>, frame: &Frame) {
        if self.io.send_system(call.context, message, frame.websocket(), call.now) {
            self.io.watch();
        }
    }

    /// Processes expired deadlines and returns the next one; `None` when the session has ended.
    pub(super) fn on_deadline(&mut self, call: Call<'_>) -> Option<Millis> {
        let Call { context, now, .. } = call;
        let Self { protocol, io } = self;
        if io.is_over() {
            return None;
        }
        // The write deadline below also covers a queued ping.
        let tick = protocol.on_tick(now, |frame| _ = io.send(context, frame.websocket(), 1, now));
        if let Err(reason) = tick {
            io.end(reason);
            return None;
        }
        // Any packet may make the heartbeat's deadline earlier. But the deadline is never less than an
        // interval from now.
        let interval = u64::from(context.config.timing().ping_interval_ms);
        let mut next = protocol.deadline().min(now + interval);
        if let Some(deadline) = io.write_deadline(context) {
            if now >= deadline {
                io.end(CloseReason::WriteTimeout);
                return None;
            }
            next = next.min(deadline);
        }
        Some(next)
    }

    /// Takes over a websocket, and processes the bytes that were already read.
    pub(super) fn attach(&mut self, call: Call<'_>, stream: RawStream) {
        let RawStream { stream, held, read } = stream;
        self.io.push_front(call.context, held, call.now);
        self.io.link_websocket(call.context, stream, call.now);
        if !read.is_empty() {
            self.receive(call, &mut read.to_vec());
        }
    }

    /// Reads and writes. Returns ready when the session's task has a command to send.
    pub(super) fn poll(&mut self, call: Call<'_>, cx: &mut TaskContext<'_>) -> Poll<Wakeup> {
        loop {
            if let Some(wakeup) = self.io.take_wakeup() {
                return Poll::Ready(wakeup);
            }
            if self.poll_websocket(call, cx).is_pending() {
                self.io.remember(cx);
                return Poll::Pending;
            }
        }
    }

    /// Writes queued bytes and reads. Returns ready when the state may have changed.
    fn poll_websocket(&mut self, call: Call<'_>, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Err(reason) = self.io.poll_write(call.context, call.now, cx) {
            self.io.end(reason);
            return Poll::Ready(());
        }
        SCRATCH.with_borrow_mut(|scratch| {
            match ready!(self.io.poll_read(cx, scratch)) {
                Ok(0) => {}
                Ok(read) => self.receive(call, &mut scratch[..read]),
                Err(CloseReason::TransportClosed) if self.io.hold_received(&[], call.now) => {}
                Err(reason) => self.io.end(reason),
            }
            Poll::Ready(())
        })
    }

    /// Takes bytes of the websocket. The network of a sandbox may hold them back.
    fn receive(&mut self, call: Call<'_>, input: &mut [u8]) {
        if !self.io.hold_received(input, call.now) {
            self.feed(call, input);
        }
    }

    /// Sends or processes bytes that are due.
    pub(super) fn on_late(&mut self, call: Call<'_>, late: LateBytes) {
        let Some(received) = self.io.send_late(call.context, late, call.now) else { return };
        match received.is_empty() {
            true => self.io.end(CloseReason::TransportClosed),
            false => self.feed(call, &mut received.to_vec()),
        }
    }

    /// Decodes bytes of the websocket and processes its messages.
    fn feed(&mut self, call: Call<'_>, input: &mut [u8]) {
        let Some(socket) = self.io.link().websocket() else { return };
        let max = call.context.config.message_bytes_max;
        let mut decoder = std::mem::replace(&mut socket.decoder, Decoder::new(max));
        let fed = decoder.decode(input, |event| self.on_event(call, event));
        if let Some(socket) = self.io.link().websocket() {
            socket.decoder = decoder;
        }
        if let Err(reason) = fed {
            self.io.end(reason);
        }
    }

    /// Processes a websocket message, or a packet of a post, of the client.
    pub(super) fn on_event(&mut self, call: Call<'_>, event: Event<'_>) -> Result<(), CloseReason> {
        if let Some(tap) = self.io.tap() {
            match event {
                Event::Text(text) => tap.on_received(Packet::Text(text.as_bytes())),
                Event::Binary(data) => tap.on_received(Packet::Binary(data.len())),
                Event::Close(_) => tap.on_received(Packet::WebsocketClose),
                Event::Ping(_) | Event::Pong => {}
            }
            if tap.is_silent {
                return Ok(());
            }
        }
        match event {
            Event::Text(text) => self.on_packet(call, text),
            Event::Binary(data) => self.on_binary(call, data),
            Event::Ping(payload) => {
                self.protocol.on_websocket_control(call.now)?;
                self.io.answer(call.context, &websocket::pong(payload), call.now);
                Ok(())
            }
            Event::Pong => self.protocol.on_websocket_control(call.now),
            Event::Close(_) => Err(CloseReason::ClientGoodbye),
        }
    }

    /// Processes a text packet of the client, from either transport.
    fn on_packet(&mut self, call: Call<'_>, text: &str) -> Result<(), CloseReason> {
        let Self { protocol, io } = self;
        let answer = |frame: Frame| io.answer(call.context, frame.websocket(), call.now);
        match protocol.on_packet(call.now, call.identity.sid.as_str(), text, answer)? {
            Signal::Connected => self.introduce(call),
            Signal::Nothing => {}
        }
        Ok(())
    }

    /// Processes a binary packet of the client.
    fn on_binary(&mut self, call: Call<'_>, data: &[u8]) -> Result<(), CloseReason> {
        let Self { protocol, io } = self;
        let answer = |frame: Frame| io.answer(call.context, frame.websocket(), call.now);
        protocol.on_binary(call.now, call.identity.sid.as_str(), data, answer)
    }

    /// Processes the packets of a post, up to the first one that ends the session. Later packets are ignored.
    /// A malformed body has no effect.
    pub(super) fn on_post(
        &mut self,
        call: Call<'_>,
        framing: Framing,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        if self.io.is_over() {
            return Ok(());
        }
        let items = payload::decode(framing, body, call.context.config.post_bytes_max);
        let taken = items.map_err(CloseReason::from).and_then(|items| {
            if items.is_empty() {
                self.protocol.on_empty_post(call.now)?;
            }
            items.iter().try_for_each(|item| match item {
                Item::Text(text) => self.on_event(call, Event::Text(text)),
                Item::Binary(data) => self.on_event(call, Event::Binary(data)),
            })
        });
        if let Err(reason) = taken {
            self.io.end(reason);
        }
        taken
    }

    /// The answer to the handshake of a polling session. It contains only `0…` and `40`, because some clients
    /// lose SYSTEM `connected` in the same answer.
    pub(super) fn first_poll(&mut self, call: Call<'_>, framing: Framing) -> Vec<u8> {
        if let Some(polling) = self.io.link().polling() {
            polling.reads_text = framing == Framing::Text;
        }
        let body = self.io.take_packets(call.context, framing);
        self.introduce(call);
        body.unwrap_or_else(|| packets(framing, &[]))
    }
}
