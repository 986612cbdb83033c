//! The bus of a single node: queues in this process.

use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use domain::ChannelId;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::{Bus, Delivery, DirectSink, Interest, Message, QUEUE_MAX, Subscriber};

/// The bus of a single node. It never loses a message. Events that were lost before they were published are
/// [reported](Bus::report_lost). Every interest is ready at once.
#[derive(Default)]
pub struct LocalBus(Mutex<Vec<Queue>>);

/// The queue of one subscriber.
#[derive(Clone)]
struct Queue {
    sender: mpsc::Sender<Delivery>,
    /// Number of deliveries that the subscriber has not processed. Raised before a delivery is queued.
    unfinished: Arc<AtomicUsize>,
    sink: Option<Weak<dyn DirectSink>>,
}

impl LocalBus {
    /// The subscribers that are still there.
    fn subscribers(&self) -> MutexGuard<'_, Vec<Queue>> {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| !subscriber.sender.is_closed());
        subscribers
    }

    fn add(&self, sink: Option<Weak<dyn DirectSink>>) -> Subscriber {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let unfinished = Arc::<AtomicUsize>::default();
        self.subscribers().push(Queue { sender, unfinished: unfinished.clone(), sink });
        Subscriber::new(receiver, Some(unfinished))
    }
}

impl Queue {
    /// Passes everything to the sink, if there is one and no earlier delivery is unfinished.
    fn is_delivered_directly(&self, messages: &[Message]) -> bool {
        let Some(sink) = &self.sink else { return false };
        self.unfinished.load(Acquire) == 0 && sink.upgrade().is_some_and(|sink| sink.try_deliver(messages))
    }

    fn put(&self, permit: mpsc::Permit<'_, Delivery>, delivery: Delivery) {
        self.unfinished.fetch_add(1, Relaxed);
        permit.send(delivery);
    }
}

impl std::fmt::Debug for LocalBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalBus").field("subscribers", &self.subscribers().len()).finish()
    }
}

impl Bus for LocalBus {
    /// Publishes all messages, or none if a subscriber has no room for all of them.
    fn try_publish(&self, messages: &mut Vec<Message>) {
        let subscribers = self.subscribers();
        // With several subscribers, one might take messages that another has no room for.
        if let [only] = &subscribers[..]
            && only.is_delivered_directly(messages)
        {
            return messages.clear();
        }
        let permits = subscribers.iter().map(|subscriber| subscriber.sender.try_reserve_many(messages.len()));
        let Ok(permits) = permits.collect::<Result<Vec<_>, _>>() else { return };
        let messages = std::mem::take(messages);
        for (subscriber, permits) in subscribers.iter().zip(permits) {
            for (permit, message) in permits.zip(&messages) {
                subscriber.put(permit, Delivery::Message(message.clone()));
            }
        }
    }

    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(async move {
            let subscribers = self.subscribers().clone();
            for message in messages {
                for subscriber in &subscribers {
                    // A subscriber that has gone misses nothing.
                    if let Ok(permit) = subscriber.sender.reserve().await {
                        subscriber.put(permit, Delivery::Message(message.clone()));
                    }
                }
            }
            Vec::new()
        })
    }

    fn report_lost(&self, channels: Vec<ChannelId>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let subscribers = self.subscribers().clone();
            for channel in channels {
                for subscriber in &subscribers {
                    if let Ok(permit) = subscriber.sender.reserve().await {
                        subscriber.put(permit, Delivery::Lost(channel.clone()));
                    }
                }
            }
        })
    }

    fn subscribe(&self) -> Subscriber {
        self.add(None)
    }

    fn subscribe_with_sink(&self, sink: Weak<dyn DirectSink>) -> Subscriber {
        self.add(Some(sink))
    }

    fn interest(&self, _: &ChannelId) -> Interest {
        Interest::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

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
    async fn try_publish_delivers_to_all_in_order_or_leaves_the_messages() {
        let bus = LocalBus::default();
        let (mut one, mut two) = (bus.subscribe(), bus.subscribe());
        let mut messages = vec![change(1), change(2)];
        bus.try_publish(&mut messages);
        assert!(messages.is_empty());
        for v in 1..=2 {
            assert_eq!((version(one.next().await), version(two.next().await)), (Some(v), Some(v)));
        }
        for _ in 1..QUEUE_MAX {
            bus.try_publish(&mut vec![change(3)]);
        }
        assert!(one.next().await.is_some());
        // The first subscriber has room for two, the second for one.
        messages.extend([change(4), change(5)]);
        bus.try_publish(&mut messages);
        assert_eq!(messages.len(), 2);
        drop(two);
        bus.try_publish(&mut messages);
        assert!(messages.is_empty());
    }

    /// Takes messages while it is willing, and records their versions.
    #[derive(Default)]
    struct TestSink {
        is_willing: AtomicBool,
        took: Mutex<Vec<i64>>,
    }

    impl DirectSink for TestSink {
        fn try_deliver(&self, messages: &[Message]) -> bool {
            let is_willing = self.is_willing.load(Relaxed);
            if is_willing {
                let versions = messages.iter().map(|one| version(Some(Delivery::Message(one.clone()))));
                self.took.lock().unwrap().extend(versions.flatten());
            }
            is_willing
        }
    }

    #[tokio::test]
    async fn direct_delivery_overtakes_no_queued_message() {
        let (bus, sink) = (LocalBus::default(), Arc::new(TestSink::default()));
        let weak: Weak<dyn DirectSink> = Arc::<TestSink>::downgrade(&sink);
        let mut subscriber = bus.subscribe_with_sink(weak);
        let publish = |version| {
            let mut messages = vec![change(version)];
            bus.try_publish(&mut messages);
            assert!(messages.is_empty());
        };
        let took = |versions: &[i64]| assert_eq!(*sink.took.lock().unwrap(), versions);
        publish(1);
        sink.is_willing.store(true, Relaxed);
        publish(2);
        took(&[]);
        assert_eq!(version(subscriber.next().await), Some(1));
        publish(3);
        took(&[]);
        assert_eq!(version(subscriber.next().await), Some(2));
        assert_eq!(version(subscriber.next().await), Some(3));
        // The third may still be in progress.
        publish(4);
        took(&[]);
        assert_eq!(version(subscriber.next().await), Some(4));
        let idle = tokio::time::timeout(Duration::ZERO, subscriber.next()).await;
        assert!(idle.is_err(), "the fourth is processed, and there is no other");
        publish(5);
        bus.publish(change(6)).await;
        publish(7);
        took(&[5]);
        for expected in [6, 7] {
            assert_eq!(version(subscriber.next().await), Some(expected));
        }
    }

    #[tokio::test]
    async fn direct_delivery_needs_a_single_subscriber() {
        let (bus, sink) = (LocalBus::default(), Arc::new(TestSink::default()));
        sink.is_willing.store(true, Relaxed);
        let weak: Weak<dyn DirectSink> = Arc::<TestSink>::downgrade(&sink);
        let (mut one, other) = (bus.subscribe_with_sink(weak), bus.subscribe());
        bus.try_publish(&mut vec![change(1)]);
        assert_eq!((version(one.next().await), sink.took.lock().unwrap().len()), (Some(1), 0));
        drop(other);
        // The request for the next delivery marks the first as processed.
        assert!(tokio::time::timeout(Duration::ZERO, one.next()).await.is_err());
        bus.try_publish(&mut vec![change(2)]);
        assert_eq!(*sink.took.lock().unwrap(), [2]);
        // Without its sink, a subscriber receives everything from its queue.
        drop(sink);
        bus.try_publish(&mut vec![change(3)]);
        assert_eq!(version(one.next().await), Some(3));
    }

    #[tokio::test]
    async fn a_loss_is_reported_before_later_messages() {
        let (bus, sink) = (LocalBus::default(), Arc::new(TestSink::default()));
        sink.is_willing.store(true, Relaxed);
        let weak: Weak<dyn DirectSink> = Arc::<TestSink>::downgrade(&sink);
        let mut subscriber = bus.subscribe_with_sink(weak);
        let channel = ChannelId::stored("c".into());
        bus.report_lost(vec![channel.clone()]).await;
        bus.try_publish(&mut vec![change(1)]);
        assert!(matches!(subscriber.next().await, Some(Delivery::Lost(lost)) if lost == channel));
        assert_eq!(version(subscriber.next().await), Some(1));
        assert!(sink.took.lock().unwrap().is_empty());
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
