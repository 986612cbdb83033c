//! Messages between the parts of the service after a commit, on one node ([`LocalBus`]) or on many
//! ([`NatsBus`]).
//!
//! The store is the truth. A message only makes a node read the store, or carries an event to connected
//! sessions. The contract of the bus:
//!
//! - **At most once.** A message may be lost. It never comes twice.
//! - **In order** for one publisher and one channel or session. A message that was confirmed before another
//!   one was published comes before it.
//! - **By interest.** A node receives the events of a channel while an [`Interest`] in it is held, and every
//!   event once the interest is ready. Changes of a session come to the node that has the session.
//! - **No silent loss.** A publisher gets the channels of unconfirmed events, and records them. A subscriber
//!   that may have missed an event receives [`Delivery::Lost`] or [`Delivery::Gap`] before any later message,
//!   and closes the affected sessions.
//! - **Bounded.** On one node a full subscriber slows publishers down (backpressure). On many nodes the bus
//!   disconnects a full subscriber in the end, which is a gap.

mod local;
mod nats_bus;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

use std::sync::Arc;

use domain::event::Event;
use domain::session::SessionChange;
use domain::{ChannelId, NodeId, SessionKey, Timestamp};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

pub use local::LocalBus;
pub use nats::{Address, BadAddress};
pub use nats_bus::{BadPrefix, NatsBus, Options, Prefix, Unreachable};

/// Messages that wait for one subscriber before publishers wait too.
pub const QUEUE_MAX: usize = 16_384;

/// A committed fact. Between nodes it travels in the encoding of `wire.rs`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Something that happened on a channel.
    Event(Arc<Event>),
    /// A change of a session's subscriptions. The node of the session need not read it in the store, unless
    /// the session misses the version before it.
    SessionChanged {
        /// The node that has the session's socket.
        node: NodeId,
        /// The session.
        session_key: SessionKey,
        /// The change.
        change: SessionChange,
    },
    /// The operator ended a session. The session's node would find that in the store later.
    SessionEvicted {
        /// The node that has the session's socket.
        node: NodeId,
        /// The session.
        session_key: SessionKey,
    },
    /// The other nodes declared a node dead, because its heartbeat was missing, and ended its sessions in the
    /// store. The node itself finds that out with its next heartbeat. It finds out sooner from this message,
    /// if it cannot reach the store but can reach the bus.
    NodeDeclaredDead {
        /// The node.
        node: NodeId,
    },
}

impl Message {
    /// The channel of an event.
    pub fn channel(&self) -> Option<&ChannelId> {
        match self {
            Self::Event(event) => Some(&event.channel_id),
            Self::SessionChanged { .. } | Self::SessionEvicted { .. } | Self::NodeDeclaredDead { .. } => None,
        }
    }
}

/// A delivery to a subscriber.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// A message.
    Message(Message),
    /// Events of this channel arrived and could not be decoded.
    Lost(ChannelId),
    /// Messages of any kind may have been lost since this time.
    Gap {
        /// Every message published up to this time is known to have arrived, by this node's clock.
        since: Timestamp,
    },
}

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
    /// Open connections. Normally one to publish and, with a subscriber, one to receive; none on a single
    /// node.
    pub connections: u64,
    /// Connections that ended, of both kinds.
    pub disconnects: u64,
    /// Messages that could not be decoded.
    pub malformed: u64,
}

/// The receiving end of one subscriber.
#[derive(Debug)]
pub struct Subscriber(mpsc::Receiver<Delivery>);

impl Subscriber {
    /// The next delivery; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.0.recv().await
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
