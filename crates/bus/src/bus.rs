//! The bus as its users see it.

use domain::{ChannelId, Timestamp};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::{Delivery, Message};

/// Messages that wait for one subscriber before publishers wait too.
pub const QUEUE_MAX: usize = 16_384;

/// Delivers messages to every subscriber, on this node or on all nodes.
pub trait Bus: Send + Sync {
    /// Publishes in order and waits for confirmation. Returns the channels of unconfirmed events, one for
    /// each event. Changes of sessions are not reported, because gateways read those from the store.
    ///
    /// On a bus that [is not shared](Self::is_shared) the first poll needs no runtime and never blocks. It
    /// publishes as many messages as the subscribers have room for.
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>>;

    /// [`publish_all`](Self::publish_all) for one message.
    fn publish(&self, message: Message) -> BoxFuture<'_, Vec<ChannelId>> {
        self.publish_all(vec![message])
    }

    /// Reports lost events of these channels to this node's subscribers, where no other node has subscribers.
    /// On a shared bus gateways read lost events from the store.
    fn report_lost(&self, _: Vec<ChannelId>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Subscribes to every later message that this node has an interest in.
    fn subscribe(&self) -> Subscriber;

    /// Makes this node receive the events of a channel while the guard is held.
    fn interest(&self, channel: &ChannelId) -> Interest;

    /// Whether other nodes use this bus, so that messages between nodes can be lost.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether this node receives the messages of other nodes.
    fn is_receiving(&self) -> bool {
        true
    }

    /// Whether the server of the bus refuses this node: its login, or what it has to do. An operator has to
    /// act.
    fn is_refused(&self) -> bool {
        false
    }

    /// A snapshot of the counters.
    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// The counters of a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Messages that were confirmed.
    pub published: u64,
    /// Events that were given up because no confirmation arrived in time.
    pub lost: u64,
    /// Messages received, whether or not there was a subscriber.
    pub received: u64,
    /// Channels that this node is subscribed to now.
    pub interests: u64,
    /// Open connections that the server lets do their work. Normally one to publish and, with a subscriber,
    /// one to receive; none on a single node.
    pub connections: u64,
    /// Connections that ended, of both kinds.
    pub disconnects: u64,
    /// When a connection last ended.
    pub disconnected_at: Option<Timestamp>,
    /// Messages that could not be decoded.
    pub malformed: u64,
}

/// The receiving end of one subscriber.
#[derive(Debug)]
pub struct Subscriber(pub(crate) mpsc::Receiver<Delivery>);

impl Subscriber {
    /// The next delivery; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.0.recv().await
    }

    /// Moves the deliveries that have arrived, up to `limit`, to the end of `deliveries`. Waits for the first
    /// one. `false` when the bus is gone.
    pub async fn next_many(&mut self, deliveries: &mut Vec<Delivery>, limit: usize) -> bool {
        self.0.recv_many(deliveries, limit).await > 0
    }
}

/// Keeps this node subscribed to the events of a channel. The subscription ends with the last interest of the
/// node.
#[derive(Debug, Default)]
pub struct Interest(Option<Box<dyn Guard>>);

/// The guard behind an [`Interest`] that has to be confirmed.
pub trait Guard: Send + Sync + std::fmt::Debug {
    /// Whether the interest is confirmed.
    fn is_ready(&self) -> bool;

    /// Returns when the interest is confirmed.
    fn ready(&self) -> BoxFuture<'_, ()>;
}

impl Interest {
    /// An interest that has to be confirmed.
    pub fn with_guard(guard: impl Guard + 'static) -> Self {
        Self(Some(Box::new(guard)))
    }

    /// Whether every later event arrives, or a gap is reported.
    pub fn is_ready(&self) -> bool {
        self.0.as_ref().is_none_or(|guard| guard.is_ready())
    }

    /// Returns when the interest [is ready](Self::is_ready).
    pub async fn ready(&self) {
        if let Some(guard) = &self.0 {
            guard.ready().await;
        }
    }
}
