//! What the parts of the service tell each other after a commit.
//!
//! The store is the truth; the bus only says "look", or carries an event to whoever is connected right now. Its contract:
//!
//! - **At most once.** A message may be lost; it never comes twice.
//! - **In order** for one publisher and one channel or session.
//! - **No silent loss.** A subscriber that may have missed something receives [`Delivery::Gap`], re-reads what it can from
//!   the store, and ends the sessions that it cannot repair.
//! - **Bounded.** A full subscriber slows publishers down rather than growing.

use std::sync::{Arc, Mutex, PoisonError};

use domain::SessionKey;
use domain::event::Event;
use domain::session::SessionChange;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

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
        /// The session.
        session_key: SessionKey,
        /// The change.
        change: SessionChange,
    },
}

/// What a subscriber receives.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// A message.
    Message(Message),
    /// Messages may have been lost since the last delivery.
    Gap,
}

/// A way for messages to reach every subscriber, on this node or on all of them.
pub trait Bus: Send + Sync {
    /// Hands a message to every subscriber. Waits while one of them is full.
    fn publish(&self, message: Message) -> BoxFuture<'_, ()>;

    /// Everything published from now on.
    fn subscribe(&self) -> Subscriber;
}

/// One subscriber's end of the bus.
#[derive(Debug)]
pub struct Subscriber(mpsc::Receiver<Delivery>);

impl Subscriber {
    /// The next delivery; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.0.recv().await
    }
}

/// The bus of a single node: queues in this process. It never loses a message, so it never reports a gap.
#[derive(Debug, Default)]
pub struct LocalBus(Mutex<Vec<mpsc::Sender<Delivery>>>);

impl Bus for LocalBus {
    fn publish(&self, message: Message) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let subscribers = {
                let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                subscribers.retain(|subscriber| !subscriber.is_closed());
                subscribers.clone()
            };
            for subscriber in subscribers {
                // A subscriber that has gone in the meantime misses nothing.
                let _ = subscriber.send(Delivery::Message(message.clone())).await;
            }
        })
    }

    fn subscribe(&self) -> Subscriber {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        Subscriber(receiver)
    }
}

#[cfg(test)]
mod tests {
    use domain::session::{ChangeKind, EventType, Subscription};
    use domain::{ChannelId, SessionKey};

    use super::*;

    fn change(version: i64) -> Message {
        let subscription =
            Subscription { event_type: EventType::Chat, channel_id: ChannelId::stored("c".into()) };
        Message::SessionChanged {
            session_key: SessionKey::stored("s".into()),
            change: SessionChange { version, kind: ChangeKind::Subscribed, subscription },
        }
    }

    fn version(delivery: Option<Delivery>) -> Option<i64> {
        match delivery? {
            Delivery::Message(Message::SessionChanged { change, .. }) => Some(change.version),
            _ => None,
        }
    }

    #[tokio::test]
    async fn every_subscriber_receives_every_message_in_order() {
        let bus = LocalBus::default();
        let (mut one, mut two) = (bus.subscribe(), bus.subscribe());
        for v in 1..=3 {
            bus.publish(change(v)).await;
        }
        for v in 1..=3 {
            assert_eq!((version(one.next().await), version(two.next().await)), (Some(v), Some(v)));
        }
    }

    #[tokio::test]
    async fn a_full_subscriber_slows_the_publisher_and_a_dropped_one_frees_it() {
        let bus = Arc::new(LocalBus::default());
        let slow = bus.subscribe();
        let publisher = tokio::spawn({
            let bus = bus.clone();
            async move {
                for v in 0..=QUEUE_MAX as i64 {
                    bus.publish(change(v)).await;
                }
            }
        });
        for _ in 0..QUEUE_MAX * 4 {
            tokio::task::yield_now().await;
        }
        assert!(!publisher.is_finished());
        drop(slow);
        publisher.await.expect("the publisher goes on");
    }
}
