//! The fault point of one session, with the packets that it holds back. Only a sandbox has one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::SessionKey;
use service::fault_points::{Direction, Packet, SocketFaultPoint, SystemMessage, Verdict};
use socketio::Millis;
use tokio::sync::mpsc;

use super::send_queue::text_packets;

/// Bytes that are sent later.
pub(crate) struct LateBytes {
    /// When, on the monotonic clock.
    pub(crate) due: Duration,
    pub(super) bytes: Bytes,
    pub(super) stage: Stage,
}

/// What late bytes have already waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A message that a verdict made late. The network's latency follows.
    Judged,
    /// Bytes that the network has held back.
    Arrived,
}

/// What becomes of bytes on their way to the peer.
pub(super) enum Passage {
    /// They are sent now.
    Now,
    /// They are sent later, or never.
    Later,
    /// More bytes wait than a session may queue.
    Full,
}

/// The fault point of one session.
pub(super) struct Tap {
    point: Arc<dyn SocketFaultPoint>,
    key: SessionKey,
    /// Leads to the task that sends late bytes.
    late: mpsc::UnboundedSender<LateBytes>,
    /// Number of held and late messages.
    waiting: usize,
    /// Number of packets that the network holds back, and when the last of them arrives.
    in_line: usize,
    line_end: Duration,
    /// Messages that follow the next one.
    reordered: Vec<Bytes>,
    /// Nothing is sent and nothing is read any more.
    pub(super) is_silent: bool,
    /// The connection ends without a goodbye.
    pub(super) is_cut: bool,
}

impl Tap {
    /// A tap, and the bytes that become late.
    pub(super) fn new(
        point: Arc<dyn SocketFaultPoint>,
        key: SessionKey,
    ) -> (Box<Self>, mpsc::UnboundedReceiver<LateBytes>) {
        let (late, receiver) = mpsc::unbounded_channel();
        let tap = Self {
            point,
            key,
            late,
            waiting: 0,
            in_line: 0,
            line_end: Duration::ZERO,
            reordered: Vec::new(),
            is_silent: false,
            is_cut: false,
        };
        (Box::new(tap), receiver)
    }

    pub(super) fn on_system(&self, message: SystemMessage<'_>) -> Verdict {
        self.point.on_system(&self.key, message)
    }

    /// Reports frames that are sent.
    pub(super) fn on_sent(&self, frames: &Bytes) {
        for packet in text_packets(frames) {
            self.point.on_packet(&self.key, Direction::ToClient, Packet::Text(&packet));
        }
    }

    /// Reports a packet of the peer.
    pub(super) fn on_received(&self, packet: Packet<'_>) {
        self.point.on_packet(&self.key, Direction::FromClient, packet);
    }

    /// Decides whether bytes leave now. The network's latency keeps their order.
    pub(super) fn pass(&mut self, bytes: &Bytes, now: Millis, waiting_max: usize) -> Passage {
        if self.is_silent {
            return Passage::Later;
        }
        let latency = match self.point.latency(&self.key) {
            Some(latency) => latency,
            None if self.in_line > 0 => Duration::ZERO,
            None => return Passage::Now,
        };
        let due = self.line_end.max(Duration::from_millis(now) + latency);
        self.in_line += 1;
        self.line_end = due;
        self.send_at(due, bytes, Stage::Arrived, waiting_max)
    }

    /// Holds a message back for this time.
    pub(super) fn delay(&mut self, bytes: &Bytes, by: Duration, now: Millis, waiting_max: usize) -> Passage {
        self.send_at(Duration::from_millis(now) + by, bytes, Stage::Judged, waiting_max)
    }

    fn send_at(&mut self, due: Duration, bytes: &Bytes, stage: Stage, waiting_max: usize) -> Passage {
        if self.waiting >= waiting_max {
            return Passage::Full;
        }
        self.waiting += 1;
        // The task that sends late bytes lives as long as the session.
        let _ = self.late.send(LateBytes { due, bytes: bytes.clone(), stage });
        Passage::Later
    }

    /// Late bytes are due.
    pub(super) fn on_due(&mut self, stage: Stage) {
        self.waiting = self.waiting.saturating_sub(1);
        if stage == Stage::Arrived {
            self.in_line = self.in_line.saturating_sub(1);
        }
    }

    /// Holds a message back until the next one was sent.
    pub(super) fn reorder(&mut self, bytes: &Bytes, waiting_max: usize) -> Passage {
        if self.reordered.len() >= waiting_max {
            return Passage::Full;
        }
        self.reordered.push(bytes.clone());
        Passage::Later
    }

    /// The messages that follow the one that was sent.
    pub(super) fn take_reordered(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.reordered)
    }
}
