//! The bus of a single node: queues in this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::ChannelId;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::{Bus, Delivery, Interest, Message, QUEUE_MAX, Subscriber};

/// The bus of a single node. It never loses a message, so it never reports one lost; every interest is ready at once.
#[derive(Debug, Default)]
pub struct LocalBus(Mutex<Vec<mpsc::Sender<Delivery>>>);

impl LocalBus {
    /// Those that have not gone.
    fn subscribers(&self) -> MutexGuard<'_, Vec<mpsc::Sender<Delivery>>> {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| !subscriber.is_closed());
        subscribers
    }
}

impl Bus for LocalBus {
    /// All of it, or nothing where a subscriber has no room for all.
    fn publish_now(&self, messages: &mut Vec<Message>) {
        let subscribers = self.subscribers();
        let places = subscribers.iter().map(|subscriber| subscriber.try_reserve_many(messages.len()));
        let Ok(places) = places.collect::<Result<Vec<_>, _>>() else { return };
        let messages = std::mem::take(messages);
        for places in places {
            for (place, message) in places.zip(&messages) {
                place.send(Delivery::Message(message.clone()));
            }
        }
    }

    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(async move {
            let subscribers = self.subscribers().clone();
            for message in messages {
                for subscriber in &subscribers {
                    // A subscriber that has gone in the meantime misses nothing.
                    let _ = subscriber.send(Delivery::Message(message.clone())).await;
                }
            }
            Vec::new()
        })
    }

    fn subscribe(&self) -> Subscriber {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        self.subscribers().push(sender);
        Subscriber(receiver)
    }

    fn interest(&self, _: &ChannelId) -> Interest {
        Interest::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::session::{ChangeKind, EventType, SessionChange, Subscription};
    use domain::{ChannelId, NodeId, SessionKey};

    use super::*;

    fn change(version: i64) -> Message {
        let subscription =
            Subscription { event_type: EventType::Chat, channel_id: ChannelId::stored("c".into()) };
        Message::SessionChanged {
            node: NodeId::stored("n".into()),
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
        assert!(bus.publish(change(1)).await.is_empty());
        assert!(bus.publish_all(vec![change(2), change(3)]).await.is_empty());
        for v in 1..=3 {
            assert_eq!((version(one.next().await), version(two.next().await)), (Some(v), Some(v)));
        }
    }

    #[tokio::test]
    async fn what_is_published_now_comes_to_all_in_order_or_stays_where_it_is() {
        let bus = LocalBus::default();
        let (mut one, mut two) = (bus.subscribe(), bus.subscribe());
        let mut messages = vec![change(1), change(2)];
        bus.publish_now(&mut messages);
        assert!(messages.is_empty());
        for v in 1..=2 {
            assert_eq!((version(one.next().await), version(two.next().await)), (Some(v), Some(v)));
        }
        for _ in 1..QUEUE_MAX {
            bus.publish_now(&mut vec![change(3)]);
        }
        assert!(one.next().await.is_some());
        // There is room for two at the one, and for one at the other.
        messages.extend([change(4), change(5)]);
        bus.publish_now(&mut messages);
        assert_eq!(messages.len(), 2);
        drop(two);
        bus.publish_now(&mut messages);
        assert!(messages.is_empty());
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

    #[tokio::test]
    async fn every_interest_is_ready_at_once() {
        let interest = LocalBus::default().interest(&ChannelId::stored("c".into()));
        assert!(interest.is_ready());
        interest.ready().await;
    }
}
