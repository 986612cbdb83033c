//! Changes and ends of sessions in the store reach the sessions within a second, also when the bus fails.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use domain::Timestamp;
use domain::event::EventType;
use socketio::CloseReason;

use super::client::{change, payload};
use super::world::{LossyBus, World, eventually};
use store::Tx;

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_the_bus_lost_arrive_within_a_second_each_once() {
    let bus = Arc::new(LossyBus::default());
    let world = World::over(bus.clone(), |_| {}).await;
    let me = world.person("me").await;
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    world.reconciled().await;
    for losing in [true, false, true] {
        bus.losing.store(losing, SeqCst);
        for event in EventType::ALL {
            world.subscribe(&me, &key, event).await;
        }
        world.unsubscribe(&me, &key, EventType::Donation).await;
        if losing {
            client.ping().await;
            world.pass(1).await;
        }
        for expected in
            ["subscribed CHAT", "subscribed DONATION", "subscribed SUBSCRIPTION", "unsubscribed DONATION"]
        {
            assert_eq!(change(&client.packet().await), expected);
        }
        world.pass(2).await;
        world.reconciled().await;
        client.ping().await;
    }
    bus.losing.store(false, SeqCst);
    world.chat(&me, "here").await;
    assert_eq!(payload("CHAT", &client.packet().await)["content"], "here");
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_before_the_introduction_is_not_lost() {
    let bus = Arc::new(LossyBus::default());
    let world = World::over(bus.clone(), |_| {}).await;
    let me = world.person("me").await;
    let query = format!("auth={}&EIO=4&transport=websocket", world.client_url().await);
    let mut client = world.address.websocket(&query).await.expect("it is let in");
    client.packet().await;
    let key = world.listed_key().await;
    bus.losing.store(true, SeqCst);
    world.subscribe(&me, &key, EventType::Chat).await;
    world.pass(2).await;
    client.send("40").await;
    client.packet().await;
    client.packet().await;
    assert_eq!(change(&client.packet().await), "subscribed CHAT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_ended_in_the_store_ends() {
    let world = World::new().await;
    super::world::put_application(&world.service, "other", None).await;
    let (mut client, _) = world.address.session(&world.client_url().await).await;
    let (mut others, _) = world.address.session(&world.client_url_of("other").await).await;
    let deleted = world.store.write(async move |tx: &mut Tx| {
        tx.execute("UPDATE applications SET deleted_at = 1 WHERE client_id = 'app'", &[]).await?;
        tx.end_sessions_of_deleted_applications(Timestamp::from_millis(1), "revoked").await
    });
    assert_eq!(deleted.await, Ok(1));
    client.ping().await;
    world.pass(1).await;
    assert_eq!(client.closed().await, (1008, "revoked".into()));
    world.closed(CloseReason::Revoked, 1).await;
    let left = "SELECT COUNT(*) FROM sessions WHERE closing_node IS NOT NULL";
    eventually("its socket is known to be gone", async || {
        let read = world.store.read(async move |tx: &mut Tx| tx.query_one(left, &[]).await?.get::<i64>(0));
        read.await == Ok(0)
    })
    .await;
    world.pass(2).await;
    others.ping().await;
}
