//! The state and counters that all threads of a run share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::clock::Clock;
use crate::http::Origin;
use crate::ledger::Uncertain;
use crate::plan::EventKind;
use crate::stats::{Counter, Tally};

/// An application that opens sessions. It has no `Debug`, because it contains a secret.
pub(crate) struct Application {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

/// A session that has received its key and can be subscribed.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The session's number.
    pub(crate) session: u32,
    pub(crate) key: String,
}

/// How sessions get their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Each receives its key with SYSTEM `connected`. Calls then subscribe it to this many channels.
    Subscribes { kinds: &'static [EventKind], channels_each: u32 },
    /// Each is in the room of its channel from the start, as with the peers.
    Joins,
}

/// One run.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// The server that issues session URLs.
    pub(crate) base: Origin,
    pub(crate) applications: Vec<Application>,
    /// The id of each channel.
    pub(crate) channels: Vec<String>,
    /// Number of publishers of one channel.
    pub(crate) streams: usize,
    pub(crate) entry: Entry,
    /// Number of source addresses, which sessions use in turn.
    pub(crate) sources: u32,

    /// Sessions that have received SYSTEM `connected`.
    pub(crate) connected: Counter,
    /// Sessions that failed before.
    pub(crate) failed: Counter,
    /// When the last session connected.
    pub(crate) last_connected: Counter,
    /// SYSTEM `subscribed` messages.
    pub(crate) subscribed: Counter,
    /// Number of sessions that are subscribed to the chat of each channel now.
    live: Vec<AtomicU64>,
    /// Keys of the connected sessions.
    pub(crate) opened: Mutex<Vec<Opened>>,
    /// Events received.
    pub(crate) deliveries: Counter,
    /// Expected events of all publish calls that have begun and have not failed.
    pub(crate) expected: AtomicU64,
    pub(crate) pings: Counter,
    pub(crate) pongs: Counter,
    /// Whether latencies are recorded now.
    pub(crate) measuring: AtomicBool,
    pub(crate) uncertain: Uncertain,

    /// Calls and handshakes that failed.
    pub(crate) errors: Tally,
    /// Sessions that ended unexpectedly.
    pub(crate) lost: Tally,
    /// Violations of the service's promises.
    pub(crate) violations: Tally,
}

impl Shared {
    /// The state of a run before its sessions are opened.
    pub(crate) fn new(
        (clock, base): (Clock, Origin),
        applications: Vec<Application>,
        channels: Vec<String>,
        streams: usize,
        entry: Entry,
        sources: u32,
    ) -> Self {
        Self {
            clock,
            base,
            applications,
            live: channels.iter().map(|_| AtomicU64::new(0)).collect(),
            channels,
            streams,
            entry,
            sources,
            connected: Counter::default(),
            failed: Counter::default(),
            last_connected: Counter::default(),
            subscribed: Counter::default(),
            opened: Mutex::default(),
            deliveries: Counter::default(),
            expected: AtomicU64::new(0),
            pings: Counter::default(),
            pongs: Counter::default(),
            measuring: AtomicBool::new(false),
            uncertain: Uncertain::default(),
            errors: Tally::default(),
            lost: Tally::default(),
            violations: Tally::default(),
        }
    }

    /// Counts a session that begins to receive the chat of this channel.
    pub(crate) fn chat_begins(&self, channel: u32) {
        self.live[channel as usize].fetch_add(1, Relaxed);
    }

    /// Counts a session that stops receiving the chat of this channel.
    pub(crate) fn chat_ends(&self, channel: u32) {
        self.live[channel as usize].fetch_sub(1, Relaxed);
    }

    /// The number of sessions that receive the chat of this channel.
    pub(crate) fn audience(&self, channel: u32) -> u64 {
        self.live[channel as usize].load(Relaxed)
    }

    /// Expected events that have not arrived.
    pub(crate) fn outstanding(&self) -> u64 {
        self.expected.load(Relaxed).saturating_sub(self.deliveries.get())
    }
}
