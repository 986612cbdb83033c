//! What all threads of a run know and count.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::clock::Clock;
use crate::http::Origin;
use crate::ledger::Uncertain;
use crate::plan::EventKind;
use crate::stats::{Counter, Tally};

/// An application that sessions are opened for. It has no Debug: it holds a secret.
pub(crate) struct Application {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

/// A session that has its key, and is to be subscribed with it.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The session's number.
    pub(crate) session: u32,
    pub(crate) key: String,
}

/// How sessions come to receive events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// SYSTEM `connected` tells each its key, with which it is subscribed to so many channels by calls.
    Subscribes { kinds: &'static [EventKind], channels_each: u32 },
    /// Each is in the room of its channel from the start, as peers do it.
    Joins,
}

/// One run.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// Where session URLs come from.
    pub(crate) base: Origin,
    pub(crate) applications: Vec<Application>,
    /// The id of each channel.
    pub(crate) channels: Vec<String>,
    /// Publishers that send to one channel.
    pub(crate) streams: usize,
    pub(crate) entry: Entry,
    /// Source addresses that sessions take turns in.
    pub(crate) sources: u32,

    /// Sessions that came as far as SYSTEM `connected`.
    pub(crate) connected: Counter,
    /// Sessions that did not.
    pub(crate) failed: Counter,
    /// When the last session connected.
    pub(crate) last_connected: Counter,
    /// SYSTEM `subscribed` messages.
    pub(crate) subscribed: Counter,
    /// Sessions subscribed to the chat of each channel, now.
    live: Vec<AtomicU64>,
    /// Keys of the sessions that connected.
    pub(crate) opened: Mutex<Vec<Opened>>,
    /// Events received.
    pub(crate) deliveries: Counter,
    /// Events that are to be received, for all publish calls that were begun and did not fail.
    pub(crate) expected: AtomicU64,
    pub(crate) pings: Counter,
    pub(crate) pongs: Counter,
    /// Whether latencies count now.
    pub(crate) measuring: AtomicBool,
    pub(crate) uncertain: Uncertain,

    /// Calls and handshakes that failed.
    pub(crate) errors: Tally,
    /// Sessions that ended without being told to.
    pub(crate) lost: Tally,
    /// What the service promises and did not keep.
    pub(crate) violations: Tally,
}

impl Shared {
    /// A run that is about to open its sessions.
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

    /// A session of that channel receives its chat from now on.
    pub(crate) fn chat_begins(&self, channel: u32) {
        self.live[channel as usize].fetch_add(1, Relaxed);
    }

    /// A session of that channel receives its chat no more.
    pub(crate) fn chat_ends(&self, channel: u32) {
        self.live[channel as usize].fetch_sub(1, Relaxed);
    }

    /// How many sessions receive the chat of that channel.
    pub(crate) fn audience(&self, channel: u32) -> u64 {
        self.live[channel as usize].load(Relaxed)
    }

    /// Events that were called for and have not arrived.
    pub(crate) fn outstanding(&self) -> u64 {
        self.expected.load(Relaxed).saturating_sub(self.deliveries.get())
    }
}
