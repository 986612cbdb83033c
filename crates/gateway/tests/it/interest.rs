//! Subscriptions that wait until the bus has confirmed the interest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bus::{BoxFuture, Bus, Guard, Interest, LocalBus, Message, Subscriber};
use domain::ChannelId;
use domain::event::EventType;
use tokio::sync::watch;

use super::client::{change, payload};
use super::world::{World, eventually, settle};

/// A bus that confirms interests on demand and lists the held ones.
struct SlowBus {
    inner: LocalBus,
    confirms: watch::Sender<bool>,
    held: Arc<Mutex<BTreeMap<ChannelId, usize>>>,
}

impl SlowBus {
    fn new() -> Self {
        Self { inner: LocalBus::default(), confirms: watch::Sender::new(false), held: Arc::default() }
    }

    fn held(&self) -> Vec<ChannelId> {
        self.held.lock().expect("no panic").keys().cloned().collect()
    }
}

#[derive(Debug)]
struct Held {
    channel: ChannelId,
    confirms: watch::Receiver<bool>,
    held: Arc<Mutex<BTreeMap<ChannelId, usize>>>,
}

impl Guard for Held {
    fn is_ready(&self) -> bool {
        *self.confirms.borrow()
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        let mut confirms = self.confirms.clone();
        Box::pin(async move { _ = confirms.wait_for(|confirms| *confirms).await })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.held.lock().expect("no panic");
        let count = held.get_mut(&self.channel).expect("it was held");
        *count -= 1;
        if *count == 0 {
            held.remove(&self.channel);
        }
    }
}

impl Bus for SlowBus {
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        self.inner.publish_all(messages)
    }

    fn subscribe(&self) -> Subscriber {
        self.inner.subscribe()
    }

    fn interest(&self, channel: &ChannelId) -> Interest {
        *self.held.lock().expect("no panic").entry(channel.clone()).or_default() += 1;
        let (channel, confirms, held) = (channel.clone(), self.confirms.subscribe(), self.held.clone());
        Interest::with_guard(Held { channel, confirms, held })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_waits_for_its_interest_and_changes_keep_their_order() {
    let bus = Arc::new(SlowBus::new());
    let world = World::over(bus.clone(), |_| {}).await;
    let me = world.person("me").await;
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    world.subscribe(&me, &key, EventType::Donation).await;
    world.unsubscribe(&me, &key, EventType::Chat).await;
    world.chat(&me, "too early").await;
    client.ping().await;
    bus.confirms.send_replace(true);
    for expected in ["subscribed CHAT", "subscribed DONATION", "unsubscribed CHAT"] {
        assert_eq!(change(&client.packet().await), expected);
    }
    world.subscribe(&me, &key, EventType::Chat).await;
    assert_eq!(change(&client.packet().await), "subscribed CHAT");
    world.chat(&me, "here").await;
    assert_eq!(payload("CHAT", &client.packet().await)["content"], "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_waits_two_seconds_for_its_interest() {
    let bus = Arc::new(SlowBus::new());
    let world = World::over(bus.clone(), |_| {}).await;
    let me = world.person("me").await;
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    for _ in 0..19 {
        world.manual_clock.advance(Duration::from_millis(100));
        settle().await;
    }
    client.ping().await;
    let text = tokio::select! {
        text = client.packet() => text,
        () = world.pass(60) => panic!("it waits for a minute"),
    };
    assert_eq!(change(&text), "subscribed CHAT");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interest_is_held_exactly_while_a_session_is_subscribed() {
    let bus = Arc::new(SlowBus::new());
    bus.confirms.send_replace(true);
    let world = World::over(bus.clone(), |_| {}).await;
    let (a, b) = (world.person("a").await, world.person("b").await);
    let (mut one, one_key) = world.address.session(&world.client_url().await).await;
    let (mut two, two_key) = world.address.session(&world.client_url().await).await;
    assert_eq!(bus.held(), []);
    for (person, event) in [(&a, EventType::Chat), (&a, EventType::Donation), (&b, EventType::Chat)] {
        world.subscribe(person, &one_key, event).await;
        assert!(change(&one.packet().await).starts_with("subscribed"));
    }
    world.subscribe(&a, &two_key, EventType::Chat).await;
    assert_eq!(change(&two.packet().await), "subscribed CHAT");
    assert_eq!(bus.held(), [a.channel.clone(), b.channel.clone()]);
    world.unsubscribe(&b, &one_key, EventType::Chat).await;
    assert_eq!(change(&one.packet().await), "unsubscribed CHAT");
    eventually("the interest goes", async || bus.held() == [a.channel.clone()]).await;
    world.unsubscribe(&a, &one_key, EventType::Chat).await;
    assert_eq!(change(&one.packet().await), "unsubscribed CHAT");
    one.send("41").await;
    one.closed().await;
    settle().await;
    assert_eq!(bus.held(), std::slice::from_ref(&a.channel));
    two.send("41").await;
    two.closed().await;
    eventually("the last interest goes", async || bus.held().is_empty()).await;
}
