//! Each change of a subscription causes one SYSTEM message, in order, also when the bus loses messages.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use bus::Delivery;
use domain::event::EventType;
use socketio::CloseReason;

use super::client::{change, payload};
use super::world::{LossyBus, World, eventually, settle};

#[tokio::test(flavor = "multi_thread")]
async fn repeated_changes_are_one_message_each_and_one_delivery() {
    let world = World::new().await;
    let me = world.person("me").await;
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    for _ in 0..3 {
        world.subscribe(&me, &key, EventType::Chat).await;
        assert_eq!(change(&client.packet().await), "subscribed CHAT");
    }
    world.chat(&me, "once").await;
    assert_eq!(payload("CHAT", &client.packet().await)["content"], "once");
    for _ in 0..2 {
        world.unsubscribe(&me, &key, EventType::Chat).await;
        assert_eq!(change(&client.packet().await), "unsubscribed CHAT");
    }
    world.chat(&me, "never").await;
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_tokens_end_their_subscriptions() {
    let world = World::new().await;
    let (me, you) = (world.person("me").await, world.person("you").await);
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    for person in [&me, &you] {
        world.subscribe(person, &key, EventType::Chat).await;
        assert_eq!(change(&client.packet().await), "subscribed CHAT");
    }
    let request = world.service.sign_in_request("app", testkit::REDIRECT, "s").await;
    let request = request.expect("the store answers").expect("it is registered");
    let code = world.service.consent(&request, &me.channel).await.expect("consents");
    let tokens = world.service.exchange_code(&request.application, code.expose(), "s").await.expect("good");
    world.service.revoke(&request.application, tokens.access.expose()).await.expect("revokes");
    assert_eq!(change(&client.packet().await), "revoked CHAT");
    world.chat(&me, "not any more").await;
    world.chat(&you, "still").await;
    assert_eq!(payload("CHAT", &client.packet().await)["content"], "still");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_the_bus_lost_are_read_from_the_store_in_order() {
    let bus = Arc::new(LossyBus::default());
    let world = World::over(bus.clone(), |_| {}).await;
    let me = world.person("me").await;
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    bus.losing.store(true, SeqCst);
    for event in EventType::ALL {
        world.subscribe(&me, &key, event).await;
    }
    world.unsubscribe(&me, &key, EventType::Donation).await;
    client.ping().await;
    bus.losing.store(false, SeqCst);
    world.unsubscribe(&me, &key, EventType::Subscription).await;
    for expected in [
        "subscribed CHAT",
        "subscribed DONATION",
        "subscribed SUBSCRIPTION",
        "unsubscribed DONATION",
        "unsubscribed SUBSCRIPTION",
    ] {
        assert_eq!(change(&client.packet().await), expected);
    }
    world.chat(&me, "here").await;
    assert_eq!(payload("CHAT", &client.packet().await)["content"], "here");
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_in_quick_succession_keep_their_order_among_events() {
    let world = Arc::new(World::new().await);
    let me = Arc::new(world.person("me").await);
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    let producer = tokio::spawn({
        let (world, me) = (world.clone(), me.clone());
        async move {
            for round in 0..100 {
                world.subscribe(&me, &key, EventType::Chat).await;
                world.chat(&me, &round.to_string()).await;
                world.unsubscribe(&me, &key, EventType::Chat).await;
                world.chat(&me, "never").await;
            }
        }
    });
    for round in 0..100 {
        assert_eq!(change(&client.packet().await), "subscribed CHAT");
        assert_eq!(payload("CHAT", &client.packet().await)["content"], round.to_string());
        assert_eq!(change(&client.packet().await), "unsubscribed CHAT");
    }
    producer.await.expect("everything was posted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_ends_sessions_that_missed_an_event_and_sends_missed_changes() {
    let bus = Arc::new(LossyBus::default());
    let world = World::over(bus.clone(), |_| {}).await;
    let (loud, quiet) = (world.person("loud").await, world.person("quiet").await);
    let other = world.person("other").await;
    let (mut missed_event, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&loud, &key, EventType::Chat).await;
    assert_eq!(change(&missed_event.packet().await), "subscribed CHAT");
    let (mut stays, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&quiet, &key, EventType::Chat).await;
    assert_eq!(change(&stays.packet().await), "subscribed CHAT");
    let (mut idle, _) = world.address.session(&world.client_url().await).await;
    let (mut missed_change, key) = world.address.session(&world.client_url().await).await;
    let since = world.service.clock().now();
    world.manual_clock.advance(Duration::from_secs(1));
    bus.losing.store(true, SeqCst);
    world.subscribe(&other, &key, EventType::Donation).await;
    world.chat(&loud, "lost").await;
    bus.losing.store(false, SeqCst);
    world.gateway.dispatch(Delivery::Gap { since }).await;
    assert_eq!(missed_event.closed().await, (1013, "gap".into()));
    assert_eq!(change(&missed_change.packet().await), "subscribed DONATION");
    idle.ping().await;
    world.chat(&quiet, "after").await;
    assert_eq!(payload("CHAT", &stays.packet().await)["content"], "after");
    world.closed(CloseReason::Gap, 1).await;
    assert_eq!(world.stats().gaps, 1);
    eventually("its end is recorded", async || world.connected().await == 3).await;
    settle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_without_a_store_ends_every_session_with_a_subscription() {
    let world = World::new().await;
    let me = world.person("me").await;
    let (mut subscribed, key) = world.address.session(&world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    assert_eq!(change(&subscribed.packet().await), "subscribed CHAT");
    let (mut idle, _) = world.address.session(&world.client_url().await).await;
    world.store.close().await;
    world.gateway.dispatch(Delivery::Gap { since: world.service.clock().now() }).await;
    assert_eq!(subscribed.closed().await, (1013, "gap".into()));
    idle.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_event_ends_the_sessions_of_its_channel() {
    let world = World::new().await;
    let (loud, quiet) = (world.person("loud").await, world.person("quiet").await);
    let mut clients = Vec::new();
    for (person, event) in [(&loud, EventType::Chat), (&loud, EventType::Donation), (&quiet, EventType::Chat)]
    {
        let (mut client, key) = world.address.session(&world.client_url().await).await;
        world.subscribe(person, &key, event).await;
        assert!(change(&client.packet().await).starts_with("subscribed"));
        clients.push(client);
    }
    world.gateway.dispatch(Delivery::Lost(loud.channel.clone())).await;
    let mut stays = clients.pop().expect("three");
    for mut client in clients {
        assert_eq!(client.closed().await, (1013, "gap".into()));
    }
    world.chat(&quiet, "after").await;
    assert_eq!(payload("CHAT", &stays.packet().await)["content"], "after");
}
