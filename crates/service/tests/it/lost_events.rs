//! Events that the bus did not confirm. They are recorded before the call is answered, and every node
//! finds them once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use bus::{BoxFuture, Bus, Delivery, Interest, LocalBus, Message, Subscriber};
use domain::ChannelId;
use domain::chat::{DonationType, Emojis, MessageText};
use service::channel_events::{Donation, PaidSubscription};
use service::lost_events::{Lost, SeenLostEvents};

use crate::world::World;

/// A bus that confirms nothing while it is down.
#[derive(Default)]
struct UnconfirmingBus {
    bus: LocalBus,
    is_down: AtomicBool,
}

impl Bus for UnconfirmingBus {
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(async move {
            if !self.is_down.load(SeqCst) {
                return self.bus.publish_all(messages).await;
            }
            let channel = |message| match message {
                Message::Event(event) => Some(event.channel_id.clone()),
                _ => None,
            };
            messages.into_iter().filter_map(channel).collect()
        })
    }

    fn subscribe(&self) -> Subscriber {
        self.bus.subscribe()
    }

    fn interest(&self, channel: &ChannelId) -> Interest {
        self.bus.interest(channel)
    }
}

async fn say(world: &World, channel: &ChannelId) {
    let text = MessageText::parse("x".to_owned()).unwrap();
    world.service.post_chat(channel, channel, text, Emojis::new(), None).await.unwrap();
}

/// Makes a call whose event is lost. The call is answered one second after the loss was recorded.
async fn say_with_lost_event(world: &World, channel: &ChannelId) {
    let recorded = world.count("SELECT COUNT(*) FROM lost_events").await;
    let call = tokio::spawn({
        let (world, channel) = (world.clone(), channel.clone());
        async move { say(&world, &channel).await }
    });
    while world.count("SELECT COUNT(*) FROM lost_events").await == recorded {
        assert!(!call.is_finished(), "the call was answered before the loss was recorded");
    }
    while !call.is_finished() {
        world.advance_ms(500);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    call.await.unwrap();
}

fn channels(lost: Lost) -> Vec<ChannelId> {
    match lost {
        Lost::Channels(mut channels) => {
            channels.sort();
            channels
        }
        Lost::Everything => panic!("a few were lost"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unconfirmed_events_are_recorded_and_found_once_by_each_node() {
    store::testing::both(|store| async move {
        let bus = Arc::new(UnconfirmingBus::default());
        let world = World::over(store, bus.clone());
        let (a, b) = (world.user("a").await, world.user("b").await);
        let other = world.node("other");
        let (mut here, mut there) = (SeenLostEvents::default(), SeenLostEvents::default());
        say(&world, &a).await;
        assert_eq!(channels(other.new_lost_events(&mut there).await.unwrap()), []);
        bus.is_down.store(true, SeqCst);
        say_with_lost_event(&world, &a).await;
        assert_eq!(channels(other.new_lost_events(&mut there).await.unwrap()), std::slice::from_ref(&a));
        assert_eq!(channels(other.new_lost_events(&mut there).await.unwrap()), []);
        say_with_lost_event(&world, &b).await;
        say_with_lost_event(&world, &a).await;
        assert_eq!(channels(other.new_lost_events(&mut there).await.unwrap()), [a.clone(), b.clone()]);
        assert_eq!(channels(world.service.new_lost_events(&mut here).await.unwrap()), [a, b]);
        // Each poll reads ten seconds back, because clocks differ.
        world.advance_ms(10_001);
        let mut late = SeenLostEvents::default();
        assert_eq!(channels(other.new_lost_events(&mut late).await.unwrap()), []);
        assert_eq!(world.count("SELECT COUNT(*) FROM lost_events").await, 3);
        world.advance_ms(3_600_000);
        world.service.sweep().await.unwrap();
        assert_eq!(world.count("SELECT COUNT(*) FROM lost_events").await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_losses_at_once_are_all_recorded() {
    store::testing::both(|store| async move {
        let bus = Arc::new(UnconfirmingBus::default());
        let world = World::over(store, bus.clone());
        let mut people = Vec::new();
        for n in 0..10 {
            people.push(world.user(&format!("c{n}")).await);
        }
        bus.is_down.store(true, SeqCst);
        let calls: Vec<_> = (0..60)
            .map(|n| {
                let (world, channel) = (world.clone(), people[n % 10].clone());
                tokio::spawn(async move { say(&world, &channel).await })
            })
            .collect();
        let mut seen = SeenLostEvents::default();
        let mut found = std::collections::BTreeSet::new();
        while !calls.iter().all(|call| call.is_finished()) {
            world.advance_ms(20);
            tokio::time::sleep(Duration::from_millis(5)).await;
            found.extend(channels(world.service.new_lost_events(&mut seen).await.unwrap()));
        }
        assert_eq!(found.into_iter().collect::<Vec<_>>(), people);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_with_events_of_any_kind_are_found_after_a_gap() {
    store::testing::both(|store| async move {
        let world = World::over(store, Arc::new(LocalBus::default()));
        let (a, b, c) = (world.user("a").await, world.user("b").await, world.user("c").await);
        let begun = world.service.clock().now();
        let since = async |ms: i64| channels(world.service.events_since(begun.plus_ms(ms)).await.unwrap());
        assert_eq!(since(0).await, []);
        world.advance_ms(20_000);
        say(&world, &a).await;
        let donation = Donation {
            donation_type: DonationType::Chat,
            donator: None,
            pay_amount: "1".into(),
            donation_text: String::new(),
            emojis: Emojis::new(),
        };
        world.service.donate(&b, donation, None).await.unwrap();
        // It began long ago, but its event is published now.
        let paid = PaidSubscription {
            subscriber: a.clone(),
            tier_no: 1,
            tier_name: "t".into(),
            month: 3,
            created: Some(begun.plus_ms(-1_000_000)),
        };
        world.service.subscribe_paid(&c, paid, None).await.unwrap();
        let all = [a, b, c];
        // Events are stamped up to 8 s before they are published.
        for (ms, expected) in [(0, &all[..]), (20_000, &all[..]), (28_000, &all[..]), (28_001, &[])] {
            assert_eq!(since(ms).await, expected, "{ms}");
        }
    })
    .await;
}

/// A published event is never recorded as lost, although a batch may be settled while overdue batches are
/// queried.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_are_settled_during_the_query_of_overdue_ones_are_not_lost() {
    const ROUNDS: usize = 200;
    store::testing::both(|store| async move {
        let bus = Arc::new(LocalBus::default());
        let world = World::over(store, bus.clone());
        let channel = world.user("a").await;
        let mut subscriber = bus.subscribe();
        let receiving = tokio::spawn(async move {
            for _ in 0..ROUNDS {
                match subscriber.next().await {
                    Some(Delivery::Message(_)) => {}
                    other => panic!("no event is lost: {other:?}"),
                }
            }
        });
        let settling = tokio::spawn({
            let world = world.clone();
            async move {
                loop {
                    world.service.has_events_to_settle().await;
                    world.service.settle_events().await.unwrap();
                }
            }
        });
        for _ in 0..ROUNDS {
            say(&world, &channel).await;
            world.advance_ms(60_000);
            world.service.take_over_overdue_events().await.unwrap();
        }
        receiving.await.unwrap();
        settling.abort();
        assert_eq!(world.service.event_batches_taken_over(), 0);
    })
    .await;
}
