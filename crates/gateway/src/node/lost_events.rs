//! Lost events: a node closes the sessions that may have missed one. On a shared bus it polls the store for
//! lost events, and holds deliveries while it cannot poll.

use std::sync::Arc;
use std::time::Duration;

use service::lost_events::{LOST_EVENTS_KNOWN_WITHIN, Lost, SeenLostEvents};
use tokio::sync::watch;

use crate::config::{GAP_LOOKUP_TIMEOUT, LOST_EVENTS_POLL_EVERY};
use crate::context::Context;
use crate::fanout::{Command, Shards};

/// The work of a node on lost events.
pub(super) struct LostEvents {
    context: Arc<Context>,
    shards: Arc<Shards>,
    /// Start of the last completed read, on the monotonic clock.
    read_at: watch::Sender<Duration>,
}

impl LostEvents {
    pub(super) fn new(context: Arc<Context>, shards: Arc<Shards>) -> Self {
        Self { context, shards, read_at: watch::Sender::new(Duration::ZERO) }
    }

    /// Closes the sessions that are subscribed to channels whose events were lost.
    pub(super) async fn close_subscribed_to(&self, lost: Lost) {
        let count = match &lost {
            Lost::Channels(channels) if channels.is_empty() => return,
            Lost::Channels(channels) => Some(channels.len()),
            Lost::Everything => None,
        };
        tracing::warn!(
            channels = count,
            "events were lost: closing the sessions subscribed to their channels"
        );
        let lost = Arc::new(lost);
        self.shards.send_to_all(|| Command::Lost(lost.clone())).await;
    }

    /// Waits until this node has read every loss that was recorded before the next event was published.
    pub(super) async fn wait_until_known(&self) {
        let clock = self.context.clock();
        let now = clock.monotonic();
        let is_known = |read_at: &Duration| *read_at + LOST_EVENTS_KNOWN_WITHIN >= now;
        if !self.context.service.shares_bus() || is_known(&self.read_at.borrow()) {
            return;
        }
        let mut read_at = self.read_at.subscribe();
        let known = tokio::select! {
            // The sender lives as long as this future, so the wait cannot fail.
            _ = read_at.wait_for(is_known) => true,
            () = clock.sleep(GAP_LOOKUP_TIMEOUT) => false,
        };
        if !known {
            // This node could not read the store, so any event may have been lost.
            self.close_subscribed_to(Lost::Everything).await;
            self.read_at.send_replace(clock.monotonic());
        }
    }

    /// Polls the store for lost events. Returns at once on a bus of one node, which records none.
    pub(super) async fn poll(&self) {
        let (service, clock) = (&self.context.service, self.context.clock());
        if !service.shares_bus() {
            return std::future::pending().await;
        }
        let mut seen = SeenLostEvents::default();
        loop {
            let began = clock.monotonic();
            match service.new_lost_events(&mut seen).await {
                Ok(lost) => {
                    self.close_subscribed_to(lost).await;
                    self.read_at.send_replace(began);
                }
                Err(error) => service.log_failure("failed to poll for lost events", &error),
            }
            clock.sleep(LOST_EVENTS_POLL_EVERY).await;
        }
    }
}
