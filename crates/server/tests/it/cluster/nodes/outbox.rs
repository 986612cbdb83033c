//! Events that were committed and not published: their sessions are closed before any caller gets a 200.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Api, Cluster, ClusterNode, Network, Request, Response, Setup, Socket, nodes, over_a_wire, while_running,
};

use super::bus::{Cast, until};
use crate::fixture::Fixture;
use store::Tx;

/// The time that a node may take to find an unpublished batch: 8 s, a poll each second, and a slow machine.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(30);

/// A session on a node, subscribed to one channel's chat.
async fn listening(cast: &Cast, on: &ClusterNode, by: &ClusterNode, streamer: usize) -> Socket {
    let mut socket = on.open_client_session(&cast.app).await;
    by.subscribe(cast.token(streamer), "chat", socket.session_key()).await.content();
    socket.system("subscribed").await;
    socket
}

async fn ended_without_event(socket: &mut Socket) {
    let end = while_running(TAKEN_OVER_WITHIN, socket.next_event()).await;
    assert_eq!(end.expect("the session is closed"), None);
}

async fn is_intact(node: &ClusterNode, cast: &Cast, streamer: usize, socket: &mut Socket) {
    node.send_chat(cast.token(streamer), "goes on").await.content();
    assert_eq!(socket.event("CHAT").await["content"], "goes on");
}

/// Posts with a key.
async fn post(api: &Api, path: &str, key: &str, body: &Value) -> Response {
    api.operator(Request::post(path).header("Idempotency-Key", key).json(body)).await
}

fn message(sender: &str, text: &str) -> Value {
    json!({ "senderChannelId": sender, "message": text })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_posting_node_closes_sessions_that_miss_an_event_of_an_unanswered_commit() {
    nodes(2, Setup::hurried(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 2).await;
        let mut here = listening(&cast, one, two, 0).await;
        let mut there = listening(&cast, two, two, 0).await;
        let mut gone = listening(&cast, two, two, 0).await;
        let mut quiet = listening(&cast, two, two, 1).await;
        one.database_wire.set(Network::LosesCommits);
        assert_eq!(one.send_chat(cast.token(0), "committed").await.status, 500);
        one.database_wire.set(Network::Down);
        // The session was subscribed when the event happened.
        two.unsubscribe(cast.token(0), "chat", gone.session_key()).await.content();
        gone.system("unsubscribed").await;
        one.database_wire.set(Network::Up);
        for socket in [&mut here, &mut there, &mut gone] {
            ended_without_event(socket).await;
        }
        is_intact(two, &cast, 1, &mut quiet).await;
        assert_eq!(cluster_closed_for_gaps(&cluster).await, 3);
    })
    .await;
}

pub async fn cluster_closed_for_gaps(cluster: &Cluster) -> u64 {
    let mut closed = 0;
    for node in &cluster.nodes {
        closed += node.socket_stats().await.closed(gateway::CloseReason::Gap);
    }
    closed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_call_succeeds_when_its_first_event_is_recorded_as_lost() {
    for path in ["chats", "donations", "subscriptions"] {
        nodes(2, Setup::hurried(), move |cluster: Arc<Cluster>| async move {
            let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
            let cast = Cast::set(one, 2).await;
            let mut here = listening(&cast, two, two, 0).await;
            let mut quiet = listening(&cast, two, two, 1).await;
            let target = format!("/platform/v1/channels/streamer.0/{path}");
            let body = match path {
                "chats" => message("streamer.0", "first"),
                "donations" => json!({ "donationType": "CHAT", "payAmount": "1000", "donationText": "x" }),
                _ => json!({ "subscriberChannelId": "streamer.1", "tierNo": 1, "tierName": "t", "month": 1 }),
            };
            one.database_wire.set(Network::LosesCommits);
            assert_eq!(post(one, &target, "k", &body).await.status, 500);
            // The node cannot settle its own event, so the other node must.
            one.database_wire.set(Network::Down);
            post(two, &target, "k", &body).await.content();
            two.send_chat(cast.token(0), "after").await.content();
            ended_without_event(&mut here).await;
            is_intact(two, &cast, 1, &mut quiet).await;
            // From now on the answer comes at once.
            post(two, &target, "k", &body).await.content();
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_line_succeeds_when_its_first_event_is_recorded_as_lost() {
    nodes(2, Setup::hurried(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 2).await;
        let mut here = listening(&cast, two, two, 0).await;
        let mut quiet = listening(&cast, two, two, 1).await;
        let line = json!({
            "kind": "chat", "channelId": "streamer.0", "idempotencyKey": "k",
            "senderChannelId": "streamer.0", "message": "first",
        });
        let send = async |node: &ClusterNode| {
            node.operator(Request::post("/platform/v1/events").body(format!("{line}\n"))).await
        };
        one.database_wire.set(Network::LosesCommits);
        assert_eq!(send(one).await.status, 500);
        one.database_wire.set(Network::Down);
        assert_eq!(send(two).await.content()["accepted"], 1);
        two.send_chat(cast.token(0), "after").await.content();
        ended_without_event(&mut here).await;
        is_intact(two, &cast, 1, &mut quiet).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_with_one_key_send_one_event() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let cast = Cast::set(&cluster.nodes[0], 1).await;
        let mut socket = listening(&cast, &cluster.nodes[0], &cluster.nodes[1], 0).await;
        for round in 0..5 {
            let calls = (0..8).map(|n| {
                let cluster = cluster.clone();
                let (key, body) = (format!("k{round}"), message("streamer.0", &format!("m{round}")));
                tokio::spawn(async move {
                    let target = "/platform/v1/channels/streamer.0/chats";
                    post(&cluster.nodes[n % 2], target, &key, &body).await.content()
                })
            });
            for call in calls.collect::<Vec<_>>() {
                call.await.expect("it is answered");
            }
            assert_eq!(socket.event("CHAT").await["content"], format!("m{round}"));
        }
        assert_eq!(cluster_closed_for_gaps(&cluster).await, 0);
        socket.ping().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_node_closes_its_sessions_for_a_commit_without_an_answer() {
    let setup = Setup { system_clock: true, ..Setup::hurried() };
    over_a_wire(setup, |world, wire| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let other = world.person("other").create().await;
        let others = world.sign_in(&app, &other).await;
        for key in [None, Some("k")] {
            let mut loud = world.open_client_session(&app).await;
            let mut quiet = world.open_client_session(&app).await;
            world.subscribe(&tokens.access, "chat", loud.session_key()).await.content();
            world.subscribe(&others.access, "chat", quiet.session_key()).await.content();
            loud.system("subscribed").await;
            quiet.system("subscribed").await;
            let target = "/platform/v1/channels/haneul/chats";
            let say = async || {
                let request = Request::post(target).json(&message("haneul", "committed"));
                let request = match key {
                    Some(key) => request.header("Idempotency-Key", key),
                    None => request,
                };
                world.operator(request).await
            };
            wire.set(Network::LosesCommits);
            assert_eq!(say().await.status, 500);
            wire.set(Network::Up);
            if key.is_some() {
                say().await.content();
                world.send_chat(&tokens.access, "after").await.content();
            }
            let end = while_running(TAKEN_OVER_WITHIN, loud.next_event()).await;
            assert_eq!(end.expect("the session is closed"), None);
            world.send_chat(&others.access, "goes on").await.content();
            assert_eq!(quiet.event("CHAT").await["content"], "goes on");
            quiet.close().await;
        }
        assert_eq!(world.sockets().await.closed("gap"), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_whose_commit_had_no_answer_takes_effect() {
    nodes(2, Setup::hurried(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 1).await;
        let mut socket = two.open_client_session(&cast.app).await;
        one.database_wire.set(Network::LosesCommits);
        let answer = one.subscribe(cast.token(0), "chat", socket.session_key()).await;
        assert_eq!(answer.status, 500);
        one.database_wire.set(Network::Up);
        socket.system("subscribed").await;
        is_intact(two, &cast, 0, &mut socket).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn published_events_leave_no_rows_and_close_no_session() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 1).await;
        let mut socket = listening(&cast, two, one, 0).await;
        for n in 0..40 {
            one.send_chat(cast.token(0), &n.to_string()).await.content();
            assert_eq!(socket.event("CHAT").await["content"], n.to_string());
        }
        let store = open_store(two).await;
        until("the outbox is empty", || async {
            count(&store, "SELECT COUNT(*) FROM event_outbox").await == Some(0)
        })
        .await;
        // A node that stops settles its own events.
        one.send_chat(cast.token(0), "last").await.content();
        one.stop().await;
        assert_eq!(count(&store, "SELECT COUNT(*) FROM event_outbox").await, Some(0));
        assert_eq!(socket.event("CHAT").await["content"], "last");
        socket.ping().await;
        store.close().await;
    })
    .await;
}

/// Opens the database without a node.
pub async fn open_store(node: &ClusterNode) -> store::Store {
    let target = store::Target::Postgres { url: node.database_wire.past().into() };
    store::Store::open(target, store::Options::default()).await.expect("the store opens")
}

/// `None` while the store does not answer.
pub async fn count(store: &store::Store, sql: &'static str) -> Option<i64> {
    let counted: Result<i64, store::StoreError> =
        store.read(async move |tx: &mut Tx| tx.query_one(sql, &[]).await?.get(0)).await;
    counted.ok()
}
