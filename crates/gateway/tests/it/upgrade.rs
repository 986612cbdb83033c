//! Upgrades from polling to a websocket.

use std::time::Duration;

use domain::event::EventType;
use socketio::CloseReason;
use testkit::{Request, text};

use super::client::{change, payload, read_answer, system, target};
use super::polling::{open, text_packets};
use super::world::{World, eventually, settle};

#[tokio::test(flavor = "multi_thread")]
async fn messages_in_flight_during_an_upgrade_arrive_once_and_in_order() {
    let world = World::new().await;
    let me = world.person("me").await;
    let (query, key) = open(&world, &world.client_url().await).await;
    world.subscribe(&me, &key, EventType::Chat).await;
    eventually("it is applied", async || world.stats().queued_bytes > 0).await;
    let mut contents = Vec::new();
    let mut take = |packets: Vec<String>| {
        for packet in packets {
            match packet.as_str() {
                "6" => {}
                packet if packet.starts_with("42[\"SYSTEM\"") => {
                    assert_eq!(system(packet)["type"], "subscribed")
                }
                packet => contents.push(payload("CHAT", packet)["content"].as_str().unwrap().to_owned()),
            }
        }
    };
    let mut posted = 0;
    let mut say = async || {
        for _ in 0..3 {
            world.chat(&me, &format!("#{posted}")).await;
            posted += 1;
        }
        eventually("they are queued", async || world.stats().deliveries == posted).await;
    };
    say().await;
    take(text_packets(&world.address.get(&query).await));
    let mut waiting = world.address.poll(&query).await;
    settle().await;

    let websocket = query.replace("polling", "websocket");
    let mut client = world.address.websocket(&websocket).await.expect("it is let in");
    assert_eq!(world.address.websocket(&websocket).await.expect_err("one is enough").status, 400);
    client.send("2probe").await;
    assert_eq!(client.packet().await, "3probe");
    assert_eq!(text_packets(&read_answer(&mut waiting).await), ["6"]);
    // Between probe and upgrade, a last poll takes some events. The websocket gets the others.
    say().await;
    take(text_packets(&world.address.get(&query).await));
    assert_eq!(text_packets(&world.address.get(&query).await), ["6"]);
    say().await;
    // The upgrade packet and a ping in one write.
    client.write(&[text("5"), text("2")].concat()).await;
    take(vec![client.packet().await, client.packet().await, client.packet().await]);
    assert_eq!(client.packet().await, "3");
    say().await;
    take(vec![client.packet().await, client.packet().await, client.packet().await]);
    assert_eq!(contents, (0..12).map(|at| format!("#{at}")).collect::<Vec<_>>());

    let stats = world.stats();
    assert_eq!((stats.websocket_sessions, stats.polling_sessions), (1, 0));
    for method in ["GET", "POST"] {
        assert_eq!(world.address.send(Request::new(method, target(&query)).body("1:2")).await.status, 400);
    }
    world.unsubscribe(&me, &key, EventType::Chat).await;
    assert_eq!(change(&client.packet().await), "unsubscribed CHAT");
    client.send("1").await;
    assert_eq!(client.closed().await.1, "client_goodbye");
    world.empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_fails_leaves_the_polling_session_as_it_was() {
    let world = World::new().await;
    let me = world.person("me").await;
    let (query, key) = open(&world, &world.client_url().await).await;
    let websocket = query.replace("polling", "websocket");
    for wrong in ["5", "2", "2probe2", "42[\"x\"]"] {
        let mut client = world.address.websocket(&websocket).await.expect("it is let in");
        client.send(wrong).await;
        assert_eq!(client.closed().await, (1002, "upgrade_failed".into()));
        settle().await;
    }
    // Websockets that close before the probe, close after the probe, or stay silent.
    drop(world.address.websocket(&websocket).await.expect("it is let in"));
    eventually("the next may try", async || try_probe(&world, &websocket).await).await;
    eventually("the next may try", async || try_probe(&world, &websocket).await).await;
    settle().await;
    eventually("the next may try", async || world.address.websocket(&websocket).await.is_ok()).await;
    settle().await;
    world.pass(11).await;
    let mut client = None;
    eventually("the deadline freed the place", async || {
        client = world.address.websocket(&websocket).await.ok();
        client.is_some()
    })
    .await;

    world.subscribe(&me, &key, EventType::Chat).await;
    let poll = world.address.get(&query).await;
    assert_eq!(change(&text_packets(&poll)[0]), "subscribed CHAT");
    let mut client = client.expect("it is there");
    client.send("2probe").await;
    assert_eq!(client.packet().await, "3probe");
    client.send("5").await;
    client.ping().await;
    assert_eq!(world.stats().websocket_sessions, 1);
}

async fn try_probe(world: &World, websocket: &str) -> bool {
    let Ok(mut client) = world.address.websocket(websocket).await else { return false };
    client.send("2probe").await;
    client.packet().await == "3probe"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_while_it_is_upgraded_takes_the_websocket_with_it() {
    let world = World::new().await;
    let (query, _) = open(&world, &world.client_url().await).await;
    let mut client = world.address.websocket(&query.replace("polling", "websocket")).await.expect("in");
    client.send("2probe").await;
    assert_eq!(client.packet().await, "3probe");
    assert_eq!(world.address.post(&query, b"1:1").await.status, 200);
    world.closed(CloseReason::ClientGoodbye, 1).await;
    client.send("5").await;
    assert_eq!(client.closed().await.1, "upgrade_failed");
    world.manual_clock.advance(Duration::from_secs(20));
    world.empty().await;
}
