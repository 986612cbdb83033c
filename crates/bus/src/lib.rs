//! Messages between the parts of the service after a commit, on one node ([`LocalBus`]) or on many ([`NatsBus`]).
//!
//! The store is the truth. The bus only tells a node to read the store, or carries an event to connected sessions. Its
//! contract:
//!
//! - **At most once.** A message may be lost. It never comes twice.
//! - **In order** for one publisher and one channel or session. A message that was confirmed before another one was
//!   published comes before it.
//! - **By interest.** A node receives the events of a channel while an [`Interest`] in it is held, and every event once
//!   the interest is ready. Changes of a session come to the node that has the session.
//! - **No silent loss.** A publisher learns which events were not confirmed, and records them. A subscriber that may have
//!   missed an event receives [`Delivery::Lost`] or [`Delivery::Gap`] before any later message, and closes the affected
//!   sessions.
//! - **Bounded.** On one node a full subscriber slows publishers down (backpressure). On many nodes the bus disconnects
//!   it in the end, which is a gap.

mod local;
mod nats;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

use std::sync::atomic::{AtomicUsize, Ordering::Release};
use std::sync::{Arc, Weak};

use domain::event::Event;
use domain::session::SessionChange;
use domain::{ChannelId, NodeId, SessionKey, Timestamp};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

pub use local::LocalBus;
pub use nats::{Address, BadAddress, NatsBus, Options, Prefix, Unreachable};

/// Messages that wait for one subscriber before publishers wait too.
pub const QUEUE_MAX: usize = 16_384;

/// Something that was committed.
#[derive(Clone, Debug)]
pub enum Message {
    /// Something happened on a channel.
    Event(Arc<Event>),
    /// A session's subscriptions changed. The change itself is a courtesy that spares a look into the store; a session
    /// that has not applied the version before it looks there.
    SessionChanged {
        /// The node that has the session's socket.
        node: NodeId,
        /// The session.
        session_key: SessionKey,
        /// The change.
        change: SessionChange,
    },
    /// The operator wants a session ended. Its node would find that in the store by itself; this is sooner.
    SessionEvicted {
        /// The node that has the session's socket.
        node: NodeId,
        /// The session.
        session_key: SessionKey,
    },
    /// A node was silent for so long that the others ended its sessions in the store. It would learn that with its next
    /// heartbeat that arrives; this is sooner, when it is only the store that it does not reach.
    NodeStruckOff {
        /// The node.
        node: NodeId,
    },
}

impl Message {
    /// The channel, when it is an event.
    pub fn channel(&self) -> Option<&ChannelId> {
        match self {
            Self::Event(event) => Some(&event.channel_id),
            Self::SessionChanged { .. } | Self::SessionEvicted { .. } | Self::NodeStruckOff { .. } => None,
        }
    }
}

/// What a subscriber receives.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// A message.
    Message(Message),
    /// Events of this channel came that could not be read.
    Lost(ChannelId),
    /// Messages of any kind may have been lost from then on until now.
    Gap {
        /// When everything was well for the last time, by this node's clock.
        since: Timestamp,
    },
}

/// A way for messages to reach every subscriber, on this node or on all of them.
pub trait Bus: Send + Sync {
    /// Publishes in order and waits for confirmation. Returns the channels of unconfirmed events, one for each event.
    /// Changes of sessions are not reported, because gateways read those from the store.
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>>;

    /// Publishes without waiting, from any thread, and removes from the list what was published. The caller passes the
    /// rest to [`publish_all`](Self::publish_all).
    fn publish_now(&self, _: &mut Vec<Message>) {}

    /// [`publish_all`](Self::publish_all) of one.
    fn publish(&self, message: Message) -> BoxFuture<'_, Vec<ChannelId>> {
        self.publish_all(vec![message])
    }

    /// Tells this node's subscribers that events of these channels were lost, where no other node has any. On a shared bus
    /// gateways find that in the store.
    fn report_lost(&self, _: Vec<ChannelId>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Everything from now on that this node has an interest in.
    fn subscribe(&self) -> Subscriber;

    /// [`subscribe`](Self::subscribe) for a subscriber that need not be woken for what it takes at once, on the thread of
    /// the publisher. What it does not take comes to the [`Subscriber`], and nothing overtakes that.
    fn subscribe_taking(&self, _: Weak<dyn Taker>) -> Subscriber {
        self.subscribe()
    }

    /// Makes this node receive the events of a channel for as long as the guard is held.
    fn interest(&self, channel: &ChannelId) -> Interest;

    /// Whether other nodes are on it, so that something can be lost on the way to them.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether what others publish comes in.
    fn is_heard(&self) -> bool {
        true
    }

    /// A moment's figures.
    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// What a bus has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Messages that were confirmed.
    pub published: u64,
    /// Events that were given up because nobody confirmed them in time.
    pub lost: u64,
    /// Messages received, whether anybody was interested yet or not.
    pub received: u64,
    /// Channels that this node is subscribed to now.
    pub interests: u64,
    /// Connections that stand now. When all is well that is one to publish and, with a subscriber, one to receive; none on
    /// one node.
    pub connections: u64,
    /// Connections that ended, of both kinds.
    pub disconnects: u64,
    /// Messages that could not be read.
    pub malformed: u64,
}

/// A subscriber that takes messages on the thread of their publisher.
pub trait Taker: Send + Sync {
    /// Takes all of them, in order and without waiting for anything; or none, and gives `false`.
    fn take_now(&self, messages: &[Message]) -> bool;
}

/// One subscriber's end of the bus.
#[derive(Debug)]
pub struct Subscriber {
    queue: mpsc::Receiver<Delivery>,
    /// Deliveries that are queued or at work, where the bus counts them.
    unfinished: Option<Arc<AtomicUsize>>,
    /// Whether the last delivery is at work: it is until the next is asked for.
    is_at_work: bool,
}

impl Subscriber {
    /// `unfinished` is counted up before a delivery is queued, by a bus that counts.
    fn new(queue: mpsc::Receiver<Delivery>, unfinished: Option<Arc<AtomicUsize>>) -> Self {
        Self { queue, unfinished, is_at_work: false }
    }

    /// The next delivery; `None` when the bus is gone. Asking for it says that the one before is done with.
    pub async fn next(&mut self) -> Option<Delivery> {
        let was_at_work = std::mem::take(&mut self.is_at_work);
        if let Some(unfinished) = self.unfinished.as_ref().filter(|_| was_at_work) {
            unfinished.fetch_sub(1, Release);
        }
        let delivery = self.queue.recv().await?;
        self.is_at_work = true;
        Some(delivery)
    }
}

/// Keeps the events of a channel coming. Dropping it ends that, unless somebody else on this node holds one too.
#[derive(Debug, Default)]
pub struct Interest(Option<Box<dyn Guard>>);

/// What an [`Interest`] that has to be confirmed by somebody is made of.
pub trait Guard: Send + Sync + std::fmt::Debug {
    /// Whether it is confirmed.
    fn is_ready(&self) -> bool;

    /// Returns when it is.
    fn ready(&self) -> BoxFuture<'_, ()>;
}

impl Interest {
    /// An interest that somebody has to confirm.
    pub fn guarded(guard: impl Guard + 'static) -> Self {
        Self(Some(Box::new(guard)))
    }

    /// Whether every event that is published from now on comes, or a gap is told.
    pub fn is_ready(&self) -> bool {
        self.0.as_ref().is_none_or(|guard| guard.is_ready())
    }

    /// Returns when it [is ready](Self::is_ready).
    pub async fn ready(&self) {
        if let Some(guard) = &self.0 {
            guard.ready().await;
        }
    }
}
