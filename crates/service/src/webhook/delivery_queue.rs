//! The part of webhook delivery that this node keeps in memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::watch;

use crate::LogLimit;

/// Wakes the webhook senders of this node, and counts the webhooks that this node disabled.
#[derive(Debug, Default)]
pub(crate) struct DeliveryQueue {
    /// Signals each commit that may have written messages for the senders.
    written: watch::Sender<()>,
    /// Webhooks that this node disabled.
    disabled: AtomicU64,
    /// Limits the log lines about secrets that were sealed with another service key.
    pub sealed_otherwise: LogLimit,
}

impl DeliveryQueue {
    /// Wakes the webhook senders of this node.
    pub fn wake_senders(&self) {
        self.written.send_replace(());
    }

    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.written.subscribe()
    }

    pub fn note_disabled(&self) {
        self.disabled.fetch_add(1, Relaxed);
    }

    pub fn disabled(&self) -> u64 {
        self.disabled.load(Relaxed)
    }
}
