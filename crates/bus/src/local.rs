//! The bus of a single node: queues in this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::ChannelId;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::{Bus, Delivery, Interest, Message, QUEUE_MAX, Subscriber};

/// The bus of a single node. It never loses a message. Events that were lost before they were published are
/// [reported](Bus::report_lost). Every interest is ready at once.
#[derive(Default)]
pub struct LocalBus(Mutex<Vec<mpsc::Sender<Delivery>>>);

impl LocalBus {
    /// The queues of the subscribers that are not dropped.
    fn subscribers(&self) -> MutexGuard<'_, Vec<mpsc::Sender<Delivery>>> {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| !subscriber.is_closed());
        subscribers
    }

    /// Sends deliveries to every subscriber, in order. Waits for a subscriber without room.
    async fn send(&self, deliveries: impl Iterator<Item = Delivery>) {
        let subscribers = self.subscribers().clone();
        for delivery in deliveries {
            for subscriber in &subscribers {
                // A dropped subscriber needs no message.
                let _ = subscriber.send(delivery.clone()).await;
            }
        }
    }
}

impl std::fmt::Debug for LocalBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalBus").field("subscribers", &self.subscribers().len()).finish()
    }
}

impl Bus for LocalBus {
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(async move {
            self.send(messages.into_iter().map(Delivery::Message)).await;
            Vec::new()
        })
    }

    fn report_lost(&self, channels: Vec<ChannelId>) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.send(channels.into_iter().map(Delivery::Lost)).await })
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

    use domain::event::EventType;
    use domain::session::{ChangeKind, SessionChange, Subscription};
    use domain::{ChannelId, NodeId, SessionKey};
    use futures_util::FutureExt;

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

    /// Publishes on a thread without a runtime, as a store does during its commit.
    #[test]
    fn the_first_poll_publishes_as_much_as_fits() {
        let bus = LocalBus::default();
        let (mut one, mut two) = (bus.subscribe(), bus.subscribe());
        let room = QUEUE_MAX as i64;
        assert_eq!(bus.publish_all((1..room).map(change).collect()).now_or_never(), Some(Vec::new()));
        let mut rest = bus.publish_all(vec![change(room), change(room + 1)]);
        assert_eq!((&mut rest).now_or_never(), None);
        let mut later = bus.publish(change(room + 2));
        assert_eq!((&mut later).now_or_never(), None, "it overtakes nothing");
        let next = |subscriber: &mut Subscriber| version(subscriber.next().now_or_never().flatten());
        for expected in 1..=2 {
            assert_eq!((next(&mut one), next(&mut two)), (Some(expected), Some(expected)));
        }
        assert_eq!((rest.now_or_never(), later.now_or_never()), (Some(Vec::new()), Some(Vec::new())));
        for expected in 3..=room + 2 {
            assert_eq!((next(&mut one), next(&mut two)), (Some(expected), Some(expected)));
        }
    }

    #[tokio::test]
    async fn a_loss_is_reported_before_later_messages() {
        let bus = LocalBus::default();
        let mut subscriber = bus.subscribe();
        let channel = ChannelId::stored("c".into());
        bus.report_lost(vec![channel.clone()]).await;
        bus.publish(change(1)).await;
        assert!(matches!(subscriber.next().await, Some(Delivery::Lost(lost)) if lost == channel));
        assert_eq!(version(subscriber.next().await), Some(1));
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
