//! The counters of a gateway.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use socketio::CloseReason;

/// A snapshot of the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sessions on a websocket now.
    pub websocket_sessions: u64,
    /// Sessions on long polling now.
    pub polling_sessions: u64,
    /// Sessions opened so far.
    pub opened: u64,
    /// Handshakes refused so far.
    pub refused: u64,
    /// Events encoded so far: once for each profile that a subscriber on this node has.
    pub events_encoded: u64,
    /// Deliveries of an event to a session so far.
    pub deliveries: u64,
    /// Bytes queued for slow websockets and for the next polls now.
    pub queued_bytes: u64,
    /// Number of possible losses of messages on the bus.
    pub gaps: u64,
    /// Sessions closed so far, by reason; reasons with a count of 0 are omitted.
    pub closes: Vec<(CloseReason, u64)>,
}

impl Stats {
    /// Sessions connected now.
    pub fn sessions(&self) -> u64 {
        self.websocket_sessions + self.polling_sessions
    }

    /// Sessions closed for a reason so far.
    pub fn closed(&self, reason: CloseReason) -> u64 {
        self.closes.iter().find(|(other, _)| *other == reason).map_or(0, |(_, count)| *count)
    }
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) websocket: AtomicU64,
    pub(crate) polling: AtomicU64,
    /// Sockets that do not belong to a session: before its start, or after its end.
    pub(crate) sockets_beside: AtomicU64,
    pub(crate) opened: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) events_encoded: AtomicU64,
    pub(crate) deliveries: AtomicU64,
    pub(crate) queued_bytes: AtomicU64,
    pub(crate) gaps: AtomicU64,
    closes: [AtomicU64; CloseReason::ALL.len()],
}

/// Adds to a counter or gauge.
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Relaxed);
}

/// Subtracts from a gauge.
pub(crate) fn sub(gauge: &AtomicU64, count: usize) {
    gauge.fetch_sub(count as u64, Relaxed);
}

/// Counts one in a gauge until it is dropped.
pub(crate) struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    pub(crate) fn in_gauge(gauge: &'a AtomicU64) -> Self {
        add(gauge, 1);
        Self(gauge)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        sub(self.0, 1);
    }
}

impl Counters {
    pub(crate) fn closed(&self, reason: CloseReason) {
        add(&self.closes[reason as usize], 1);
    }

    pub(crate) fn stats(&self) -> Stats {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let closes = CloseReason::ALL.iter().map(|&reason| (reason, of(&self.closes[reason as usize])));
        Stats {
            websocket_sessions: of(&self.websocket),
            polling_sessions: of(&self.polling),
            opened: of(&self.opened),
            refused: of(&self.refused),
            events_encoded: of(&self.events_encoded),
            deliveries: of(&self.deliveries),
            queued_bytes: of(&self.queued_bytes),
            gaps: of(&self.gaps),
            closes: closes.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        let counters = Counters::default();
        for (times, &reason) in CloseReason::ALL.iter().enumerate() {
            (0..times).for_each(|_| counters.closed(reason));
        }
        let stats = counters.stats();
        for (times, &reason) in CloseReason::ALL.iter().enumerate() {
            assert_eq!(stats.closed(reason), times as u64, "{reason}");
        }
        assert_eq!(stats.closes.len(), CloseReason::ALL.len() - 1);
    }
}
