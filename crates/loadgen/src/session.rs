//! One session: checks the messages of its socket against the service's promises.
//!
//! An idle session has no buffer. The sessions of a thread read into one scratch buffer, with one system call
//! for each read.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use wire_client::{BINARY, BadFrame, CLOSE, Frame, Frames, PING, PONG, TEXT, frame};

use crate::clock::Nanos;
use crate::ledger::{Ledger, Mark, Verdict};
use crate::packet::{self, Packet, Timing};
use crate::plan::{EventKind, SessionPlan};
use crate::shared::{Entry, Opened, Shared};
use crate::stats::{Times, lock};

/// Bytes read from a socket at once.
const SCRATCH_BYTES: usize = 64 * 1024;
/// One of this many messages of a session is fully decoded, beginning with the first one. In the others only
/// the mark is read.
const READ_IN_FULL_EVERY: u64 = 1_024;

/// The state that the sessions of one thread share.
pub(crate) struct Thread {
    pub(crate) shared: std::sync::Arc<Shared>,
    scratch: RefCell<Box<[u8]>>,
    /// Durations from the publish call to the receipt.
    pub(crate) latency: RefCell<Times>,
    /// Durations from the ping to the pong.
    pub(crate) pongs: RefCell<Times>,
}

impl Thread {
    pub(crate) fn new(shared: std::sync::Arc<Shared>) -> Self {
        Self {
            shared,
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into()),
            latency: RefCell::default(),
            pongs: RefCell::default(),
        }
    }
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A close frame, with its code.
    CloseFrame(Option<u16>),
    /// Packet `1` or `41`.
    Goodbye,
    /// The connection ended without a close.
    Ended,
    /// The connection broke.
    Reset,
    /// A ping was not answered in time.
    NoPong,
    /// A frame that a server must not send.
    BadFrame(&'static str),
}

impl End {
    /// The name of the reason.
    pub(crate) fn kind(self) -> String {
        match self {
            Self::CloseFrame(Some(code)) => format!("closed by the server with {code}"),
            Self::CloseFrame(None) => "closed by the server without a code".to_owned(),
            Self::Goodbye => "goodbye of the server".to_owned(),
            Self::Ended => "connection ended".to_owned(),
            Self::Reset => "connection reset".to_owned(),
            Self::NoPong => "no pong in time".to_owned(),
            Self::BadFrame(what) => format!("bad frame: {what}"),
        }
    }
}

impl From<BadFrame> for End {
    fn from(BadFrame(what): BadFrame) -> Self {
        Self::BadFrame(what)
    }
}

/// The phase of a session, which only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Nothing received yet.
    New,
    /// `0{…}` received.
    Open,
    /// `40` received.
    Joined,
    /// SYSTEM `connected` received.
    Connected,
}

/// The parts of a session that the ping task and the final report use.
pub(crate) struct Peer {
    pub(crate) number: u32,
    write: OwnedWriteHalf,
    /// Zero until `0{…}` is received.
    pub(crate) timing: Cell<Timing>,
    /// When the unanswered ping was sent.
    pub(crate) pinged: Cell<Option<Nanos>>,
    /// The subscriptions that SYSTEM `subscribed` has confirmed, as bits.
    subscribed: Cell<u32>,
    pub(crate) ledger: RefCell<Ledger>,
    over: Cell<bool>,
}

impl Peer {
    /// Whether the session has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Ends the session with `reason`, unless it has ended.
    pub(crate) fn end(&self, shared: &Shared, reason: Option<End>) {
        if self.over.replace(true) {
            return;
        }
        if self.receives_chat() {
            shared.chat_ends(self.ledger.borrow().channel());
        }
        if let Some(reason) = reason {
            shared.lost.count(&reason.kind());
        }
    }

    /// Whether the session receives the chat of its own channel.
    fn receives_chat(&self) -> bool {
        self.subscribed.get() & EventKind::Chat.bit(0) != 0
    }

    /// Sends a small frame at once. The kernel's buffer has room for it, unless the server does not read.
    pub(crate) fn send(&self, first: u8, payload: &[u8]) -> bool {
        let frame = frame(first, payload);
        self.write.try_write(&frame).is_ok_and(|written| written == frame.len())
    }

    /// Leaves like the client library: leaves the namespace, then closes the websocket.
    pub(crate) fn leave(&self, shared: &Shared) {
        if !self.is_over() {
            self.end(shared, None);
            self.send(TEXT, b"41");
            self.send(CLOSE, &1_000_u16.to_be_bytes());
        }
    }
}

/// A session whose websocket is open.
pub(crate) struct Session {
    read: OwnedReadHalf,
    frames: Frames,
    inner: Inner,
}

struct Inner {
    thread: Rc<Thread>,
    peer: Rc<Peer>,
    phase: Phase,
}

impl Session {
    /// Takes the stream over after its handshake.
    pub(crate) fn new(thread: Rc<Thread>, plan: SessionPlan, stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        let ledger = Ledger::new(plan.channel, thread.shared.streams);
        let peer = Peer {
            number: plan.number,
            write,
            timing: Cell::new(Timing { ping_interval: 0, ping_timeout: 0 }),
            pinged: Cell::new(None),
            subscribed: Cell::new(0),
            ledger: RefCell::new(ledger),
            over: Cell::new(false),
        };
        let inner = Inner { thread, peer: Rc::new(peer), phase: Phase::New };
        Self { read, frames: Frames::default(), inner }
    }

    /// The parts that other tasks use.
    pub(crate) fn peer(&self) -> Rc<Peer> {
        self.inner.peer.clone()
    }

    /// Processes bytes that came with the handshake.
    ///
    /// # Errors
    /// Why the session ended.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), End> {
        let now = self.inner.thread.shared.clock.now();
        let inner = &mut self.inner;
        self.frames.feed(bytes, |frame| inner.on_frame(frame, now))
    }

    /// Reads until SYSTEM `connected` is received.
    pub(crate) fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        while self.inner.phase < Phase::Connected {
            ready!(self.poll_read(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads until the session ends, and returns the reason.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if let Err(end) = ready!(self.poll_read(cx)) {
                return Poll::Ready(end);
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let thread = self.inner.thread.clone();
        let mut scratch = thread.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch);
        match ready!(Pin::new(&mut self.read).poll_read(cx, &mut buffer)) {
            Ok(()) if buffer.filled().is_empty() => Poll::Ready(Err(End::Ended)),
            Ok(()) => Poll::Ready(self.feed(buffer.filled())),
            Err(_) => Poll::Ready(Err(End::Reset)),
        }
    }
}

impl Inner {
    fn shared(&self) -> &Shared {
        &self.thread.shared
    }

    fn violated(&self, promise: &str) {
        self.shared().violations.count(promise);
    }

    fn on_frame(&mut self, frame: Frame<'_>, now: Nanos) -> Result<(), End> {
        match frame.first {
            TEXT => match Packet::read(frame.payload) {
                Some(packet) => self.on_packet(packet, now),
                None => {
                    self.violated("an unexpected packet");
                    Ok(())
                }
            },
            CLOSE => {
                let code = frame.payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                Err(End::CloseFrame(code))
            }
            PING => {
                self.peer.send(PONG, frame.payload);
                Ok(())
            }
            PONG => Ok(()),
            BINARY => {
                self.violated("a binary frame");
                Ok(())
            }
            _ => Err(End::BadFrame("an unknown opcode")),
        }
    }

    fn on_packet(&mut self, packet: Packet<'_>, now: Nanos) -> Result<(), End> {
        match packet {
            Packet::Event { name, escaped } => self.on_event(name, escaped, now),
            Packet::Pong => match self.peer.pinged.take() {
                Some(pinged) => {
                    self.shared().pongs.add(1);
                    self.thread.pongs.borrow_mut().record(pinged, now);
                }
                None => self.violated("a pong without a ping"),
            },
            Packet::Noop => {}
            Packet::Open(timing) => {
                self.peer.timing.set(timing);
                self.go(Phase::New, Phase::Open, "a second open packet");
            }
            Packet::Joined => self.on_joined(now),
            // The close frame with its code follows.
            Packet::Closed => {}
            Packet::Left => return Err(End::Goodbye),
        }
        Ok(())
    }

    fn go(&mut self, from: Phase, to: Phase, otherwise: &str) {
        if self.phase == from {
            self.phase = to;
        } else {
            self.violated(otherwise);
        }
    }

    fn on_joined(&mut self, now: Nanos) {
        self.go(Phase::Open, Phase::Joined, "a connect packet out of place");
        if self.phase == Phase::Joined && self.shared().entry == Entry::Joins {
            self.hears(EventKind::Chat.bit(0));
            self.connected(now);
        }
    }

    fn connected(&mut self, now: Nanos) {
        self.phase = Phase::Connected;
        self.shared().last_connected.raise_to(now);
        self.shared().connected.add(1);
    }

    fn hears(&self, bit: u32) {
        self.peer.subscribed.update(|bits| bits | bit);
        if bit == EventKind::Chat.bit(0) {
            self.shared().chat_begins(self.peer.ledger.borrow().channel());
        }
    }

    fn on_event(&mut self, name: &str, escaped: &str, now: Nanos) {
        if !escaped.is_ascii() {
            self.violated("JSON that is not escaped to ASCII");
        }
        match name {
            "CHAT" => self.on_chat(escaped, now),
            "SYSTEM" => {
                if self.on_system(escaped, now).is_none() {
                    self.violated("an unexpected SYSTEM message");
                }
            }
            _ => self.violated("an unexpected event"),
        }
    }

    /// Returns `None` if the message is not expected here.
    fn on_system(&mut self, escaped: &str, now: Nanos) -> Option<()> {
        let message = packet::payload(escaped)?;
        let data = message.get("data")?;
        match message.get("type")?.as_str()? {
            "connected" => {
                let key = data.get("sessionKey")?.as_str().filter(|key| !key.is_empty())?.to_owned();
                if self.phase != Phase::Joined {
                    return None;
                }
                lock(&self.shared().opened).push(Opened { session: self.peer.number, key });
                self.connected(now);
            }
            "subscribed" => {
                let kind = EventKind::from_name(data.get("eventType")?.as_str()?)?;
                let bit = kind.bit(self.nth_channel(data.get("channelId")?.as_str()?)?);
                if self.peer.subscribed.get() & bit != 0 {
                    return None;
                }
                self.hears(bit);
                self.shared().subscribed.add(1);
            }
            _ => return None,
        }
        Some(())
    }

    /// The index of the session's channel with this id.
    fn nth_channel(&self, id: &str) -> Option<u32> {
        let Entry::Subscribes { channels_each, .. } = self.shared().entry else { return None };
        let (channels, own) = (&self.shared().channels, self.peer.ledger.borrow().channel() as usize);
        (0..channels_each).find(|nth| channels[(own + *nth as usize) % channels.len()] == id)
    }

    fn on_chat(&mut self, escaped: &str, now: Nanos) {
        let shared = self.shared();
        if !self.peer.receives_chat() {
            self.violated("CHAT before its SYSTEM subscribed");
        }
        let Some(mark) = Mark::find(escaped) else {
            return self.violated("CHAT without the load's mark");
        };
        let mut ledger = self.peer.ledger.borrow_mut();
        if ledger.seen.is_multiple_of(READ_IN_FULL_EVERY) && !self.is_chat(ledger.channel(), &mark, escaped) {
            self.violated("CHAT with a wrong payload");
        }
        shared.deliveries.add(1);
        match ledger.record(&mark, &shared.uncertain) {
            Verdict::Good => {}
            Verdict::Gap(missing) => shared.violations.add("events missing before a later one", missing),
            Verdict::Stale => self.violated("events doubled or out of order"),
            Verdict::WrongChannel => self.violated("events of another channel"),
        }
        if shared.measuring.load(Relaxed) {
            self.thread.latency.borrow_mut().record(mark.called, now);
        }
    }

    fn is_chat(&self, channel: u32, mark: &Mark, escaped: &str) -> bool {
        let channel_id = self.shared().channels[channel as usize].as_str();
        packet::payload(escaped).is_some_and(|payload| is_chat(&payload, channel_id, &mark.text()))
    }
}

/// Whether the payload is a CHAT (`docs/spec/realtime.md#chat-event`) on this channel with this text.
pub(crate) fn is_chat(payload: &Value, channel_id: &str, text: &str) -> bool {
    let roles = ["streamer", "common_user", "streaming_channel_manager", "streaming_chat_manager"];
    let field = |name| payload.get(name).unwrap_or(&Value::Null);
    let profile = |name| field("profile").get(name).unwrap_or(&Value::Null);
    field("channelId") == channel_id
        && field("content") == text
        && field("senderChannelId").is_string()
        && field("chatChannelId").is_string()
        && field("userRoleCode").as_str().is_some_and(|role| roles.contains(&role))
        && field("emojis").is_object()
        && field("messageTime").is_i64()
        && profile("nickname").is_string()
        && profile("badges").is_array()
        && profile("verifiedMark").is_boolean()
}

#[cfg(test)]
mod tests;
