//! The bounded queue between requests and the exporter. Nothing waits for room: what does not fit is dropped
//! and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::mpsc;

use crate::record::TelemetryRecord;

/// Maximum number of records that wait. A record takes about a KiB.
pub(crate) const QUEUE_MAX: usize = 8_192;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A span.
    Traces,
    /// A line of the log.
    Logs,
}

impl Signal {
    /// Every signal.
    pub const ALL: [Self; 2] = [Self::Traces, Self::Logs];

    /// Its name in metrics and paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Logs => "logs",
        }
    }

    pub(crate) fn of(record: &TelemetryRecord) -> Self {
        match record {
            TelemetryRecord::Span(_) => Self::Traces,
            TelemetryRecord::Log(_) => Self::Logs,
        }
    }
}

/// The counters of the export, one for each signal.
#[derive(Debug, Default)]
pub struct ExportFigures {
    sent: [AtomicU64; Signal::ALL.len()],
    found_no_room: [AtomicU64; Signal::ALL.len()],
    not_taken: [AtomicU64; Signal::ALL.len()],
}

impl ExportFigures {
    /// Records that the collector has taken.
    pub fn sent(&self, signal: Signal) -> u64 {
        self.sent[signal as usize].load(Relaxed)
    }

    /// Records that were dropped because the queue was full.
    pub fn found_no_room(&self, signal: Signal) -> u64 {
        self.found_no_room[signal as usize].load(Relaxed)
    }

    /// Records that were dropped because the collector did not take them.
    pub fn not_taken(&self, signal: Signal) -> u64 {
        self.not_taken[signal as usize].load(Relaxed)
    }

    pub(crate) fn count_sent(&self, signal: Signal, by: usize) {
        self.sent[signal as usize].fetch_add(by as u64, Relaxed);
    }

    pub(crate) fn count_not_taken(&self, signal: Signal, by: usize) {
        self.not_taken[signal as usize].fetch_add(by as u64, Relaxed);
    }
}

/// The end of the queue into which requests put records.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<TelemetryRecord>,
    figures: Arc<ExportFigures>,
}

impl Queue {
    /// A queue, and its other end.
    pub fn new(room: usize, figures: Arc<ExportFigures>) -> (Self, mpsc::Receiver<TelemetryRecord>) {
        let (sender, receiver) = mpsc::channel(room);
        (Self { sender, figures }, receiver)
    }

    /// Puts a record into the queue, or drops it.
    pub fn put(&self, record: TelemetryRecord) {
        let signal = Signal::of(&record);
        if self.sender.try_send(record).is_err() {
            self.figures.found_no_room[signal as usize].fetch_add(1, Relaxed);
        }
    }
}
