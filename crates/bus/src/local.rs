//! The bus of a single node: queues in this process.

use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use domain::ChannelId;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::{Bus, Delivery, Interest, Message, QUEUE_MAX, Subscriber, Taker};

/// The bus of a single node. It never loses a message; what was lost before it came here is [reported](Bus::report_lost); every interest is ready at once.
#[derive(Default)]
pub struct LocalBus(Mutex<Vec<Queue>>);

/// The way to one subscriber.
#[derive(Clone)]
struct Queue {
    sender: mpsc::Sender<Delivery>,
    /// Deliveries that the subscriber has not done with. Counted up before one is queued.
    unfinished: Arc<AtomicUsize>,
    taker: Option<Weak<dyn Taker>>,
}

impl LocalBus {
    /// Those that have not gone.
    fn subscribers(&self) -> MutexGuard<'_, Vec<Queue>> {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| !subscriber.sender.is_closed());
        subscribers
    }

    fn add(&self, taker: Option<Weak<dyn Taker>>) -> Subscriber {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let unfinished = Arc::<AtomicUsize>::default();
        self.subscribers().push(Queue { sender, unfinished: unfinished.clone(), taker });
        Subscriber::new(receiver, Some(unfinished))
    }
}

impl Queue {
    /// Hands everything to the taker, if there is one and nothing is on its way that this would overtake.
    fn is_taken_now(&self, messages: &[Message]) -> bool {
        let Some(taker) = &self.taker else { return false };
        self.unfinished.load(Acquire) == 0 && taker.upgrade().is_some_and(|taker| taker.take_now(messages))
    }

    fn put(&self, place: mpsc::Permit<'_, Delivery>, delivery: Delivery) {
        self.unfinished.fetch_add(1, Relaxed);
        place.send(delivery);
    }
}

impl std::fmt::Debug for LocalBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalBus").field("subscribers", &self.subscribers().len()).finish()
    }
}

impl Bus for LocalBus {
    /// All of it, or nothing where a subscriber has no room for all.
    fn publish_now(&self, messages: &mut Vec<Message>) {
        let subscribers = self.subscribers();
        // With several, some might take what others have no room for.
        if let [only] = &subscribers[..]
            && only.is_taken_now(messages)
        {
            return messages.clear();
        }
        let places = subscribers.iter().map(|subscriber| subscriber.sender.try_reserve_many(messages.len()));
        let Ok(places) = places.collect::<Result<Vec<_>, _>>() else { return };
        let messages = std::mem::take(messages);
        for (subscriber, places) in subscribers.iter().zip(places) {
            for (place, message) in places.zip(&messages) {
                subscriber.put(place, Delivery::Message(message.clone()));
            }
        }
    }

    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(async move {
            let subscribers = self.subscribers().clone();
            for message in messages {
                for subscriber in &subscribers {
                    // A subscriber that has gone in the meantime misses nothing.
                    if let Ok(place) = subscriber.sender.reserve().await {
                        subscriber.put(place, Delivery::Message(message.clone()));
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
                    if let Ok(place) = subscriber.sender.reserve().await {
                        subscriber.put(place, Delivery::Lost(channel.clone()));
                    }
                }
            }
        })
    }

    fn subscribe(&self) -> Subscriber {
        self.add(None)
    }

    fn subscribe_taking(&self, taker: Weak<dyn Taker>) -> Subscriber {
        self.add(Some(taker))
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

    /// Takes what it is willing to, and remembers the versions.
    #[derive(Default)]
    struct Willing {
        is_willing: AtomicBool,
        took: Mutex<Vec<i64>>,
    }

    impl Taker for Willing {
        fn take_now(&self, messages: &[Message]) -> bool {
            let is_willing = self.is_willing.load(Relaxed);
            if is_willing {
                let versions = messages.iter().map(|one| version(Some(Delivery::Message(one.clone()))));
                self.took.lock().unwrap().extend(versions.flatten());
            }
            is_willing
        }
    }

    #[tokio::test]
    async fn what_a_subscriber_takes_at_once_overtakes_nothing() {
        let (bus, taker) = (LocalBus::default(), Arc::new(Willing::default()));
        let weak: Weak<dyn Taker> = Arc::<Willing>::downgrade(&taker);
        let mut subscriber = bus.subscribe_taking(weak);
        let publish = |version| {
            let mut messages = vec![change(version)];
            bus.publish_now(&mut messages);
            assert!(messages.is_empty());
        };
        let took = |versions: &[i64]| assert_eq!(*taker.took.lock().unwrap(), versions);
        publish(1);
        taker.is_willing.store(true, Relaxed);
        publish(2);
        took(&[]);
        assert_eq!(version(subscriber.next().await), Some(1));
        publish(3);
        took(&[]);
        assert_eq!(version(subscriber.next().await), Some(2));
        assert_eq!(version(subscriber.next().await), Some(3));
        // The third may still be at work.
        publish(4);
        took(&[]);
        assert_eq!(version(subscriber.next().await), Some(4));
        let idle = tokio::time::timeout(Duration::ZERO, subscriber.next()).await;
        assert!(idle.is_err(), "the fourth is done, and there is no other");
        publish(5);
        bus.publish(change(6)).await;
        publish(7);
        took(&[5]);
        for expected in [6, 7] {
            assert_eq!(version(subscriber.next().await), Some(expected));
        }
    }

    #[tokio::test]
    async fn nobody_takes_at_once_what_others_have_no_room_for() {
        let (bus, taker) = (LocalBus::default(), Arc::new(Willing::default()));
        taker.is_willing.store(true, Relaxed);
        let weak: Weak<dyn Taker> = Arc::<Willing>::downgrade(&taker);
        let (mut one, other) = (bus.subscribe_taking(weak), bus.subscribe());
        bus.publish_now(&mut vec![change(1)]);
        assert_eq!((version(one.next().await), taker.took.lock().unwrap().len()), (Some(1), 0));
        drop(other);
        // It asks for the next one, so the first is done with.
        assert!(tokio::time::timeout(Duration::ZERO, one.next()).await.is_err());
        bus.publish_now(&mut vec![change(2)]);
        assert_eq!(*taker.took.lock().unwrap(), [2]);
        // One that is gone gets what it would have taken by its queue, to the end.
        drop(taker);
        bus.publish_now(&mut vec![change(3)]);
        assert_eq!(version(one.next().await), Some(3));
    }

    #[tokio::test]
    async fn what_was_lost_is_told_before_what_comes_later() {
        let (bus, taker) = (LocalBus::default(), Arc::new(Willing::default()));
        taker.is_willing.store(true, Relaxed);
        let weak: Weak<dyn Taker> = Arc::<Willing>::downgrade(&taker);
        let mut subscriber = bus.subscribe_taking(weak);
        let channel = ChannelId::stored("c".into());
        bus.report_lost(vec![channel.clone()]).await;
        bus.publish_now(&mut vec![change(1)]);
        assert!(matches!(subscriber.next().await, Some(Delivery::Lost(lost)) if lost == channel));
        assert_eq!(version(subscriber.next().await), Some(1));
        assert!(taker.took.lock().unwrap().is_empty());
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
