//! The publication of a transaction's messages. On a single node it begins between the commit and the sync.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bus::{Bus, Message};
use domain::ChannelId;
use futures_util::future::BoxFuture;

/// The messages of one transaction on their way to the bus.
pub(crate) struct Publication {
    publishing: BoxFuture<'static, Vec<ChannelId>>,
    /// The result, if the bus took every message at the commit.
    unconfirmed: Option<Vec<ChannelId>>,
}

impl Publication {
    /// Makes the publication, without starting it.
    pub(crate) fn new(bus: Arc<dyn Bus>, messages: Vec<Message>) -> Self {
        Self { publishing: Box::pin(async move { bus.publish_all(messages).await }), unconfirmed: None }
    }

    /// Publishes the messages that the bus takes without waiting. Only for a bus that [is not
    /// shared](Bus::is_shared). SQLite's writer thread calls this function between a commit and its sync.
    /// That thread has no runtime and must not block.
    pub(crate) fn begin(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(unconfirmed) = self.publishing.as_mut().poll(&mut context) {
            self.unconfirmed = Some(unconfirmed);
        }
    }

    /// Publishes the remaining messages. Returns the channels of unconfirmed events, one for each event.
    pub(crate) async fn finish(self) -> Vec<ChannelId> {
        match self.unconfirmed {
            Some(unconfirmed) => unconfirmed,
            None => self.publishing.await,
        }
    }
}
