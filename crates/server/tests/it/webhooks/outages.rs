//! Webhooks during failures of the process, the database and a node. A message is delivered at least once,
//! under one id, and never by two nodes at once (`docs/spec/drops.md#webhook`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::outbound::Reach;
use serde_json::{Value, json};
use service::nodes::Roles;
use testkit::{
    Api, Network, Received, Receiver, Reply, Request, ReservedPort, Setup, Wire, World, both, nodes,
    over_a_wire, patiently,
};

use crate::cli::process::Sandbox;
use crate::fixture::Fixture;
use crate::webhooks::delivery::{Shop, count, id, register};

/// The duration of a lease.
const LEASE: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_claim_is_delivered_after_kill_9() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().expect("a path")];
    let sandbox = Sandbox::start(folder.path(), &arguments).await;
    let receiver = Receiver::start().await;
    receiver.reply([Reply::Hang]);
    let claim = publish_and_claim(&sandbox.api, &receiver.url("/")).await;
    sandbox.signal("KILL").await;
    sandbox.end().await;

    receiver.usually(Reply::Status(204));
    let _again = Sandbox::start(folder.path(), &arguments).await;
    // The first process may or may not have sent the message before it was killed.
    let came = patiently("the message", async {
        loop {
            let received = receiver.next().await;
            if received.find("Service-Event-Message-Retry").is_some() || receiver.count() > 1 {
                break received;
            }
        }
    });
    let received = came.await;
    let body: Value = serde_json::from_slice(&received.body).expect("JSON");
    assert_eq!(body["event"]["data"]["claimId"], claim["claimId"]);
    let ids: BTreeSet<_> = receiver.received().iter().map(|received| id(received).to_owned()).collect();
    assert_eq!(ids.len(), 1, "under one id");
}

/// A publisher in a sandbox, and a claim of its reward.
async fn publish_and_claim(api: &Api, url: &str) -> Value {
    let put = async |path: &str, body: Value| api.operator(Request::put(path).json(&body)).await.content();
    put("/platform/v1/categories/g", json!({ "categoryType": "GAME", "categoryValue": "g" })).await;
    put("/platform/v1/organizations/g", json!({ "organizationName": "g", "verified": true })).await;
    let app = json!({
        "name": "g", "redirectUris": ["http://127.0.0.1:9/"], "scopes": ["드롭스"], "organizationId": "g",
    });
    put("/platform/v1/applications/g", app).await;
    let campaign = json!({
        "campaignName": "g", "organizationId": "g", "categoryId": "g",
        "rewards": [{ "rewardId": "r", "rewardName": "r" }],
    });
    put("/platform/v1/drops/campaigns/g", campaign).await;
    put("/platform/v1/applications/g/webhook", json!({ "url": url })).await;
    put("/platform/v1/channels/v", json!({ "channelName": "v" })).await;
    api.claim(&json!({ "campaignId": "g", "rewardId": "r", "channelId": "v" })).await.content()
}

/// Has a message delivered while the database cannot be reached, which can be reached again when the clock
/// has moved by `span`. Waits until the delivery is recorded.
async fn delivered_without_the_database(world: &World, wire: &Wire, span: Duration) -> (Shop, Received) {
    let shop = Shop::open(world).await;
    shop.receiver.reply([Reply::After(Duration::from_millis(300))]);
    shop.claim().await;
    let received = shop.receiver.next().await;
    wire.set(Network::Down);
    tokio::time::sleep(Duration::from_millis(600)).await;
    world.advance(span);
    wire.set(Network::Up);
    recorded(world, &shop, id(&received), Duration::from_millis(500)).await;
    (shop, received)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_recorded_after_a_short_outage_of_the_store() {
    over_a_wire(Setup::default(), |world, wire| async move {
        // Recording is retried during the lease.
        let (shop, _) = delivered_without_the_database(&world, &wire, Duration::from_secs(1)).await;
        assert_eq!(shop.receiver.count(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_result_was_lost_is_sent_again_under_its_id() {
    over_a_wire(Setup::default(), |world, wire| async move {
        let (shop, received) = delivered_without_the_database(&world, &wire, LEASE).await;
        let again = shop.receiver.next().await;
        assert_eq!(id(&again), id(&received));
        assert_eq!(again.header("Service-Event-Message-Retry"), "1");
    })
    .await;
}

/// Advances the clock in steps until a message is recorded as delivered.
async fn recorded(world: &World, shop: &Shop, id: &str, step: Duration) {
    patiently("the result is recorded", async {
        loop {
            let path = format!("/platform/v1/applications/publisher/webhook/deliveries/{id}");
            let answer = world.operator(Request::get(path)).await;
            if answer.status == 200 && answer.content()["state"] == "DELIVERED" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            world.advance(step);
        }
    })
    .await;
    assert!(shop.receiver.count() >= 1);
}

const WITHOUT_JOBS: Roles = Roles { jobs: false, ..Roles::ALL };

/// Runs the body on a world on PostgreSQL whose own node has no jobs.
async fn without_jobs<F, Fut>(body: F)
where
    F: FnOnce(World) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    over_a_wire(Setup { roles: WITHOUT_JOBS, ..Setup::default() }, |world, _| body(world)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_dead_node_are_sent_by_another() {
    without_jobs(|world| async move {
        let shop = Shop::open(&world).await;
        shop.receiver.reply([Reply::Hang]);
        shop.claim().await;
        let (dying, _) = world.another_node().await;
        let first = shop.receiver.next().await;
        drop(dying);
        let (living, _) = world.another_node().await;
        world.advance(LEASE - Duration::from_millis(1));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(shop.receiver.count(), 1, "it is the dead one's until its lease ends");
        world.advance(Duration::from_millis(500));
        let second = shop.receiver.next().await;
        assert_eq!(id(&second), id(&first));
        assert!(second.is_signed_with(&shop.secret));
        let message = shop.message(id(&first), |message| message["state"] == "DELIVERED").await;
        assert_eq!((count(&message), &message["attemptCount"]), (1, &json!(2)));
        world.stop_node(living).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_judged_by_the_configuration_of_the_sending_node() {
    without_jobs(|world| async move {
        let shop = Shop::open(&world).await;
        shop.claim().await;
        let strict = world.another_node_with(|settings| {
            settings.roles = Roles::ALL;
            settings.webhooks.reach = Reach::PUBLIC;
        });
        let (strict, _) = strict.await;
        let page = "/platform/v1/applications/publisher/webhook/deliveries";
        let message = patiently("an attempt", async {
            loop {
                let list = world.operator(Request::get(page)).await.content();
                let message = list["data"][0]["messageId"].as_str().expect("an id").to_owned();
                let message = shop.message(&message, |_| true).await;
                if count(&message) > 0 {
                    break message;
                }
            }
        })
        .await;
        assert_eq!(message["attempts"][0]["failure"], "address");
        assert_eq!(shop.receiver.connections(), 0);
        world.stop_node(strict).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_attempt_is_finished_before_the_node_stops() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        shop.receiver.reply([Reply::After(Duration::from_millis(200))]);
        shop.claim().await;
        let received = shop.receiver.next().await;
        world.stop().await;
        world.restart().await;
        let message = shop.message(id(&received), |_| true).await;
        // The clock may have advanced by more than 5 seconds during the stop. Then the attempt has timed out.
        assert_eq!((count(&message), &message["inFlight"]), (1, &json!(false)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_send_every_message_once() {
    const CLAIMS: usize = 200;
    nodes(2, Setup::default(), |cluster| async move {
        let api = &cluster.nodes[0];
        let receiver = Receiver::start().await;
        receiver.usually(Reply::After(Duration::from_millis(5)));
        publish_and_claim(api, &receiver.url("/")).await;
        for n in 0..CLAIMS {
            let path = format!("/platform/v1/channels/v{n}");
            api.operator(Request::put(path).json(&json!({ "channelName": "v" }))).await.content();
        }
        for n in 0..CLAIMS {
            let body = json!({ "campaignId": "g", "rewardId": "r", "channelId": format!("v{n}") });
            cluster.nodes[n % 2].claim(&body).await.content();
        }
        for _ in 0..=CLAIMS {
            receiver.next().await;
        }
        // Another poll of both nodes would find messages that are left.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut times = BTreeMap::<String, usize>::new();
        for received in receiver.received() {
            *times.entry(id(&received).to_owned()).or_default() += 1;
        }
        assert_eq!(times.len(), CLAIMS + 1);
        assert!(times.values().all(|times| *times == 1), "{times:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_was_down_for_hours_gets_every_message() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let port = ReservedPort::take();
        register(&world, "publisher", &port.url("/")).await;
        let body = json!({ "campaignId": "voyage", "rewardId": fixture.publisher.next_reward(), "channelId": "byeol" });
        let claim = world.claim(&body).await.content();
        let page = "/platform/v1/applications/publisher/webhook/deliveries?state=WAITING";
        let attempts = async || world.operator(Request::get(page)).await.content()["data"][0]["attemptCount"].clone();
        for (attempt, minutes) in [(1, 1), (2, 6), (3, 34), (4, 133)] {
            patiently("an attempt", async { while attempts().await != attempt {} }).await;
            // The attempt may still be running.
            tokio::time::sleep(Duration::from_millis(50)).await;
            world.advance(Duration::from_secs(60 * minutes));
        }
        let receiver = Receiver::at(port.address()).await;
        world.advance(Duration::from_secs(6 * 3_600));
        let received = receiver.next().await;
        let message_body: Value = serde_json::from_slice(&received.body).expect("JSON");
        assert_eq!(message_body["event"]["data"], claim);
    })
    .await;
}
