//! The fault point of one session, with the packets that it holds back. Only a sandbox has one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::SessionKey;
use service::fault_points::{Direction, MessageAction, Packet, SocketFaultPoint, SystemMessage};
use socketio::Millis;
use tokio::sync::mpsc;

use super::send_queue::text_packets;

/// Maximum number of bytes from the peer that the network holds back. More are not read from the socket.
const RECEIVED_BYTES_MAX: usize = 256 * 1024;

/// Bytes that are sent or processed later.
pub(crate) struct LateBytes {
    /// When, on the monotonic clock.
    pub(crate) due: Duration,
    pub(super) bytes: Bytes,
    pub(super) stage: Stage,
}

/// What late bytes have already waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A message that an action made late. The network's latency follows.
    Delayed,
    /// A message that waited for its successor, which did not come.
    Overdue,
    /// Bytes to the peer that the network has held back.
    Sent,
    /// Bytes of the peer that the network has held back. No bytes are the end of its stream.
    Received,
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
    /// What the network holds back on the way to the peer.
    outgoing: Line,
    /// What the network holds back on the way from the peer.
    incoming: Line,
    /// Whether the end of the peer's stream is held back.
    has_end: bool,
    /// Messages that follow the next one, and when they are sent without it.
    reordered: Vec<(Duration, Bytes)>,
    /// Nothing is sent and nothing is read any more.
    pub(super) is_silent: bool,
    /// The connection ends without a close frame.
    pub(super) is_cut: bool,
}

/// One way of a network, which keeps the order.
#[derive(Default)]
struct Line {
    /// Number of waiting items.
    items: usize,
    bytes: usize,
    /// When the last of them arrives.
    end: Duration,
}

impl Line {
    /// When an item arrives, with the network's latency; `None` if nothing holds it back.
    fn due(&mut self, latency: Option<Duration>, bytes: usize, now: Millis) -> Option<Duration> {
        if latency.is_none() && self.items == 0 {
            return None;
        }
        self.end = self.end.max(Duration::from_millis(now) + latency.unwrap_or_default());
        self.items += 1;
        self.bytes += bytes;
        Some(self.end)
    }

    fn on_due(&mut self, bytes: usize) {
        self.items = self.items.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
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
            outgoing: Line::default(),
            incoming: Line::default(),
            has_end: false,
            reordered: Vec::new(),
            is_silent: false,
            is_cut: false,
        };
        (Box::new(tap), receiver)
    }

    pub(super) fn on_system(&self, message: SystemMessage<'_>) -> MessageAction {
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
        match self.outgoing.due(self.point.latency(&self.key), bytes.len(), now) {
            Some(due) => self.send_at(due, bytes, Stage::Sent, waiting_max),
            None => Passage::Now,
        }
    }

    /// Holds bytes of the peer back, as the network does. No bytes are the end of its stream. Returns `false`
    /// if they have arrived.
    pub(super) fn hold_received(&mut self, bytes: &[u8], now: Millis) -> bool {
        let Some(due) = self.incoming.due(self.point.latency(&self.key), bytes.len(), now) else {
            return false;
        };
        self.has_end |= bytes.is_empty();
        // The task that processes late bytes lives as long as the session.
        let _ =
            self.late.send(LateBytes { due, bytes: Bytes::copy_from_slice(bytes), stage: Stage::Received });
        true
    }

    /// Whether nothing more is read from the socket for now.
    pub(super) fn is_full_of_received(&self) -> bool {
        self.has_end || self.incoming.bytes >= RECEIVED_BYTES_MAX
    }

    /// Holds a message back for this time.
    pub(super) fn delay(&mut self, bytes: &Bytes, by: Duration, now: Millis, waiting_max: usize) -> Passage {
        self.send_at(Duration::from_millis(now) + by, bytes, Stage::Delayed, waiting_max)
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
    pub(super) fn on_due(&mut self, late: &LateBytes) {
        match late.stage {
            Stage::Received => self.incoming.on_due(late.bytes.len()),
            Stage::Sent => {
                self.waiting = self.waiting.saturating_sub(1);
                self.outgoing.on_due(late.bytes.len());
            }
            Stage::Delayed | Stage::Overdue => self.waiting = self.waiting.saturating_sub(1),
        }
    }

    /// Holds a message back until the next one was sent, or for this time.
    pub(super) fn reorder(
        &mut self,
        bytes: &Bytes,
        within: Duration,
        now: Millis,
        waiting_max: usize,
    ) -> Passage {
        let due = Duration::from_millis(now) + within;
        let passage = self.send_at(due, bytes, Stage::Overdue, waiting_max);
        if matches!(passage, Passage::Later) {
            self.reordered.push((due, bytes.clone()));
        }
        passage
    }

    /// The messages that follow the one that was sent.
    pub(super) fn take_reordered(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.reordered).into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// The messages whose wait is over.
    pub(super) fn take_overdue(&mut self, now: Duration) -> Vec<Bytes> {
        let overdue: Vec<_> = self.reordered.extract_if(.., |(due, _)| *due <= now).collect();
        if !overdue.is_empty() {
            self.point.on_wait_over(&self.key);
        }
        overdue.into_iter().map(|(_, bytes)| bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_the_order_and_ends_with_its_last_item() {
        let ms = Duration::from_millis;
        let mut line = Line::default();
        assert_eq!(line.due(None, 5, 0), None, "nothing holds it back");
        assert_eq!(line.due(Some(ms(800)), 5, 100), Some(ms(900)));
        assert_eq!(line.due(Some(ms(10)), 7, 200), Some(ms(900)), "it does not overtake");
        assert_eq!(line.due(None, 1, 300), Some(ms(900)), "also when the rule is gone");
        assert_eq!((line.items, line.bytes), (3, 13));
        for bytes in [5, 7, 1] {
            line.on_due(bytes);
        }
        assert_eq!((line.due(None, 5, 1_000), line.bytes), (None, 0));
    }
}
