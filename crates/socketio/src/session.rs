//! [`Session`]: which packets a client may send at which time, on any transport.
//!
//! The state is small and has neither a buffer nor a clock. The caller passes its monotonic time in, and gets
//! the time of the next [`Session::on_tick`] from [`Session::deadline`].

use crate::close::CloseReason;
use crate::engine::{Millis, Open, PacketRef, PacketType, Revision, Timing};
use crate::frame::{Builder, Frame};
use crate::packet::{self, Kind, PacketError, ROOT, SocketPacketRef};
use crate::payload::{self, Framing, Item};

/// How long a client of revision 4 may take to ask for the root namespace, in milliseconds.
pub const CONNECT_TIMEOUT_MS: Millis = 45_000;
/// Length of the window in which a client's packets are counted, in milliseconds. The window starts with a
/// packet.
pub const FLOOD_WINDOW_MS: Millis = 10_000;
/// Maximum number of packets, websocket pings included, of a client in one window. Clients need about one.
pub const FLOOD_PACKETS: u16 = 100;
/// Maximum number of refused namespaces before the session is closed.
pub const MAX_REFUSED_NAMESPACES: u8 = 8;
/// Maximum length of the data of a ping that is echoed, in bytes. Clients send none, or `probe`.
pub const MAX_PING_BYTES: usize = 125;

/// First byte of a binary websocket message that holds a polling payload with text packets.
const PAYLOAD_MARKER: u8 = 0;
/// First byte of a ping as a binary packet.
const BINARY_PING: u8 = 2;

/// The effect of a packet on the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Signal {
    /// No effect on the caller.
    Nothing,
    /// The client is in the root namespace: events may be sent from now on. Returned once, in revision 4
    /// only. Clients of revisions 2 and 3 are connected as soon as their session opens.
    Connected,
}

/// The side that sends pings, and the time at which silence of the other side ends the session.
#[derive(Debug, Clone, Copy)]
enum Heartbeat {
    /// Revisions 2 and 3: any packet of the client extends the deadline.
    ClientPings { last_packet: Millis },
    /// Revision 4, between two pings.
    PingDue { at: Millis },
    /// Revision 4, ping sent.
    PongDue { until: Millis },
}

/// The client's state in the root namespace.
#[derive(Debug, Clone, Copy)]
enum Root {
    /// Revision 4, before the client's `40`.
    Awaited {
        until: Millis,
    },
    Joined,
}

/// State of one session.
#[derive(Debug)]
pub struct Session {
    heartbeat: Heartbeat,
    root: Root,
    window_start: Millis,
    timing: Timing,
    window_packets: u16,
    revision: Revision,
    refused_namespaces: u8,
    /// Number of announced binary messages that have not arrived. Counted in revision 4 only.
    attachments_due: u8,
}

// Every session holds a `Session`, so its size matters.
const _: () = assert!(size_of::<Session>() <= 56);

impl Session {
    /// Opens a session: emits the `0{…}` packet. In revisions 2 and 3 also emits the `40` that puts the
    /// client into the root namespace.
    pub fn open(open: &Open<'_>, now: Millis, mut out: impl FnMut(Frame)) -> Self {
        let (heartbeat, root) = match open.revision {
            Revision::V2 | Revision::V3 => (Heartbeat::ClientPings { last_packet: now }, Root::Joined),
            Revision::V4 => (
                Heartbeat::PingDue { at: now + Millis::from(open.timing.ping_interval_ms) },
                Root::Awaited { until: now + CONNECT_TIMEOUT_MS },
            ),
        };
        out(open.frame());
        if matches!(root, Root::Joined) {
            out(packet::connected(open.revision, open.sid));
        }
        Self {
            heartbeat,
            root,
            window_start: now,
            timing: open.timing,
            window_packets: 0,
            revision: open.revision,
            refused_namespaces: 0,
            attachments_due: 0,
        }
    }

    /// The protocol revision that the client chose.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether events may be sent: the client is in the root namespace.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.root, Root::Joined)
    }

    /// The time of the client's last sign of life: a packet in revisions 2 and 3, a pong in revision 4.
    /// Before any, the time at which the session opened.
    #[must_use]
    pub fn last_heard(&self) -> Millis {
        let (interval, timeout) =
            (Millis::from(self.timing.ping_interval_ms), Millis::from(self.timing.ping_timeout_ms));
        match self.heartbeat {
            Heartbeat::ClientPings { last_packet } => last_packet,
            Heartbeat::PingDue { at } => at.saturating_sub(interval),
            Heartbeat::PongDue { until } => until.saturating_sub(timeout + interval),
        }
    }

    /// The latest time of the next call of [`Session::on_tick`]. Any packet may make it earlier or later.
    #[must_use]
    pub fn deadline(&self) -> Millis {
        let heartbeat = match self.heartbeat {
            Heartbeat::ClientPings { last_packet } => last_packet + self.timing.silence_ms(),
            Heartbeat::PingDue { at } => at,
            Heartbeat::PongDue { until } => until,
        };
        match self.root {
            Root::Awaited { until } => heartbeat.min(until),
            Root::Joined => heartbeat,
        }
    }

    /// Sends a due ping in revision 4, or ends the session. An early call does nothing.
    ///
    /// # Errors
    /// [`CloseReason::PingTimeout`] or [`CloseReason::ConnectTimeout`]: the session has ended.
    pub fn on_tick(&mut self, now: Millis, mut out: impl FnMut(Frame)) -> Result<(), CloseReason> {
        if let Root::Awaited { until } = self.root
            && now >= until
        {
            return Err(CloseReason::ConnectTimeout);
        }
        match self.heartbeat {
            Heartbeat::ClientPings { last_packet } if now >= last_packet + self.timing.silence_ms() => {
                Err(CloseReason::PingTimeout)
            }
            Heartbeat::PongDue { until } if now >= until => Err(CloseReason::PingTimeout),
            Heartbeat::PingDue { at } if now >= at => {
                let until = now + Millis::from(self.timing.ping_timeout_ms);
                self.heartbeat = Heartbeat::PongDue { until };
                out(Frame::PING);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Processes one text packet of the client and emits the answers. `sid` is the session's id, which this
    /// state does not hold.
    ///
    /// # Errors
    /// The reason why the session has ended; a goodbye is one of them ([`CloseReason::is_clean`]).
    pub fn on_packet(
        &mut self,
        now: Millis,
        sid: &str,
        text: &str,
        mut out: impl FnMut(Frame),
    ) -> Result<Signal, CloseReason> {
        self.count(now)?;
        self.on_input(now);
        let packet = match PacketRef::parse(text) {
            Ok(packet) => packet,
            // A binary packet in base64.
            Err(_) if self.ignores_strays() && text.starts_with('b') => return Ok(Signal::Nothing),
            Err(_) => return Err(CloseReason::ProtocolError),
        };
        match packet.kind {
            PacketType::Message => return self.on_message(sid, packet.data, &mut out),
            PacketType::Ping => self.on_ping(packet.data, &mut out)?,
            PacketType::Pong => self.on_pong(now),
            PacketType::Noop => {}
            PacketType::Close => return Err(CloseReason::ClientGoodbye),
            PacketType::Open | PacketType::Upgrade if self.ignores_strays() => {}
            PacketType::Open | PacketType::Upgrade => return Err(CloseReason::ProtocolError),
        }
        Ok(Signal::Nothing)
    }

    /// Processes one binary packet of the client. Its content is ignored, with two exceptions in revisions 2
    /// and 3: a binary ping is answered, and a polling payload in a websocket message is split into packets,
    /// because chzzkpy 2.1 sends its packets that way. In revision 4 a packet must announce a binary message.
    ///
    /// # Errors
    /// As [`Session::on_packet`].
    pub fn on_binary(
        &mut self,
        now: Millis,
        sid: &str,
        data: &[u8],
        mut out: impl FnMut(Frame),
    ) -> Result<(), CloseReason> {
        if self.ignores_strays()
            && data.first() == Some(&PAYLOAD_MARKER)
            && let Ok(items) = payload::decode(Framing::Binary, data, data.len())
        {
            return items.iter().try_for_each(|item| match item {
                Item::Text(text) => self.on_packet(now, sid, text, &mut out).map(|_| ()),
                Item::Binary(_) => self.count(now),
            });
        }
        self.count(now)?;
        self.on_input(now);
        if !self.ignores_strays() {
            self.attachments_due = self.attachments_due.checked_sub(1).ok_or(CloseReason::ProtocolError)?;
        } else if data.first() == Some(&BINARY_PING) {
            out(Frame::PONG);
        }
        Ok(())
    }

    /// Whether stray packets are ignored. The reference servers of revisions 2 and 3 ignore most of them, and
    /// some clients rely on that. Those of revision 4 close the session.
    fn ignores_strays(&self) -> bool {
        self.revision != Revision::V4
    }

    /// Counts a websocket ping or pong of the client against the flood limit. Neither replaces a ping of
    /// Engine.IO.
    ///
    /// # Errors
    /// [`CloseReason::PacketFlood`]: the session has ended.
    pub fn on_websocket_control(&mut self, now: Millis) -> Result<(), CloseReason> {
        self.count(now)
    }

    /// Counts a posted body without packets against the flood limit.
    ///
    /// # Errors
    /// [`CloseReason::PacketFlood`]: the session has ended.
    pub fn on_empty_post(&mut self, now: Millis) -> Result<(), CloseReason> {
        self.count(now)
    }

    fn count(&mut self, now: Millis) -> Result<(), CloseReason> {
        if now.saturating_sub(self.window_start) >= FLOOD_WINDOW_MS {
            self.window_start = now;
            self.window_packets = 0;
        }
        self.window_packets = self.window_packets.saturating_add(1);
        if self.window_packets > FLOOD_PACKETS { Err(CloseReason::PacketFlood) } else { Ok(()) }
    }

    fn on_input(&mut self, now: Millis) {
        if let Heartbeat::ClientPings { last_packet } = &mut self.heartbeat {
            *last_packet = now;
        }
    }

    fn on_ping(&self, data: &str, out: &mut impl FnMut(Frame)) -> Result<(), CloseReason> {
        if self.revision == Revision::V4 {
            return Err(CloseReason::ProtocolError);
        }
        out(if data.len() > MAX_PING_BYTES { Frame::PONG } else { pong(data) });
        Ok(())
    }

    /// An unexpected pong does no harm in any revision.
    fn on_pong(&mut self, now: Millis) {
        if let Heartbeat::PongDue { .. } = self.heartbeat {
            self.heartbeat = Heartbeat::PingDue { at: now + Millis::from(self.timing.ping_interval_ms) };
        }
    }

    fn on_message(
        &mut self,
        sid: &str,
        data: &str,
        out: &mut impl FnMut(Frame),
    ) -> Result<Signal, CloseReason> {
        let packet = match SocketPacketRef::parse(data) {
            Ok(packet) => packet,
            Err(error) if self.ignores_strays() && is_stray(error, data) => return Ok(Signal::Nothing),
            Err(_) => return Err(CloseReason::ProtocolError),
        };
        if self.attachments_due > 0 {
            return Err(CloseReason::ProtocolError);
        }
        match packet.kind {
            Kind::Connect if packet.namespace == ROOT => return self.join_root(sid, out),
            Kind::Connect => self.refuse(packet.namespace, out)?,
            Kind::Disconnect if packet.namespace == ROOT => return Err(CloseReason::ClientGoodbye),
            Kind::Disconnect => {}
            Kind::Error if self.ignores_strays() => {}
            Kind::Error => return Err(CloseReason::ProtocolError),
            Kind::Event | Kind::Ack | Kind::BinaryEvent | Kind::BinaryAck => {
                if !self.is_connected() {
                    return Err(CloseReason::ProtocolError);
                }
                if !self.ignores_strays() {
                    self.attachments_due = packet.attachments;
                }
            }
        }
        Ok(Signal::Nothing)
    }

    /// Answers a `40`. Clients of revisions 2 and 3 are in the root namespace already, and some send `40`
    /// anyway. In revision 4 a second `40` is an error.
    fn join_root(&mut self, sid: &str, out: &mut impl FnMut(Frame)) -> Result<Signal, CloseReason> {
        match (self.root, self.revision) {
            (Root::Joined, Revision::V4) => Err(CloseReason::ProtocolError),
            (Root::Joined, _) => Ok(Signal::Nothing),
            (Root::Awaited { .. }, _) => {
                self.root = Root::Joined;
                out(packet::connected(self.revision, sid));
                Ok(Signal::Connected)
            }
        }
    }

    fn refuse(&mut self, namespace: &str, out: &mut impl FnMut(Frame)) -> Result<(), CloseReason> {
        if self.refused_namespaces == MAX_REFUSED_NAMESPACES {
            return Err(CloseReason::NamespaceFlood);
        }
        self.refused_namespaces += 1;
        out(packet::invalid_namespace(self.revision, namespace));
        Ok(())
    }
}

/// Whether the reference server of Socket.IO 2 ignores a message with this error instead of closing.
fn is_stray(error: PacketError, data: &str) -> bool {
    match error {
        PacketError::UnknownType => !data.is_empty(),
        PacketError::AckId | PacketError::Data => true,
        PacketError::Attachments | PacketError::Namespace => false,
    }
}

/// A pong with the data of the ping. The usual data cost no allocation.
fn pong(data: &str) -> Frame {
    match data {
        "" => Frame::PONG,
        "probe" => Frame::PONG_PROBE,
        _ => {
            let mut out = Builder::with_capacity(1 + data.len());
            out.push_str("3");
            out.push_str(data);
            out.finish()
        }
    }
}
