//! Events and changes across nodes, and the end of sessions when the connection between nodes fails
//! (`docs/delivery.md`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Application, Cluster, ClusterNode, Network, Person, Request, Setup, Socket, Tokens, nodes, patiently,
    while_running,
};

/// An application and people who have signed in to it.
pub struct Cast {
    pub app: Application,
    pub streamers: Vec<(Person, Tokens)>,
}

impl Cast {
    pub async fn set(node: &ClusterNode, streamers: usize) -> Self {
        let app = node.application("bot").create().await;
        let mut cast = Self { app, streamers: Vec::new() };
        for n in 0..streamers {
            // The id has a dot, because subjects contain dots too.
            let person = node.person(&format!("streamer.{n}")).create().await;
            let tokens = node.sign_in(&cast.app, &person).await;
            cast.streamers.push((person, tokens));
        }
        cast
    }

    pub fn token(&self, at: usize) -> &str {
        &self.streamers[at].1.access
    }
}

/// A client's session on one node, subscribed by calls to another.
async fn listening(cast: &Cast, on: &ClusterNode, by: &ClusterNode, to: &[usize]) -> Socket {
    let mut socket = on.open_client_session(&cast.app).await;
    for &streamer in to {
        by.subscribe(cast.token(streamer), "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
    }
    socket
}

async fn chat(node: &ClusterNode, cast: &Cast, streamer: usize, message: &str) {
    node.send_chat(cast.token(streamer), message).await.content();
}

async fn assert_receives(socket: &mut Socket, message: &str) {
    assert_eq!(socket.event("CHAT").await["content"], message);
}

/// The session ends, and no message comes before the end.
async fn ended(socket: &mut Socket) {
    assert_eq!(socket.next_event().await, None, "the session is closed");
}

/// Waits for a condition.
pub async fn until<Fut: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> Fut) {
    patiently(what, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Waits until a node has detected a gap.
async fn until_told_of_a_gap(node: &ClusterNode) {
    until("the node detects the gap", || async { node.socket_stats().await.gaps > 0 }).await;
}

/// What `/health` of a node says of the bus.
async fn bus_health(node: &ClusterNode) -> Value {
    let health = node.send(Request::get("/health")).await.content();
    let parts = health["parts"].as_array().expect("parts");
    parts.iter().find(|part| part["name"] == "bus").cloned().unwrap_or_default()
}

/// Waits until a node can publish and receive.
async fn until_connected(node: &ClusterNode) {
    until("the node has found the bus again", || async { node.bus_stats().await.connections == 2 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_one_node_changes_a_session_on_another() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 1).await;
        let mut socket = listening(&cast, two, one, &[0]).await;
        chat(one, &cast, 0, "안녕 👋").await;
        assert_receives(&mut socket, "안녕 👋").await;
        chat(two, &cast, 0, "둘").await;
        assert_receives(&mut socket, "둘").await;
        one.unsubscribe(cast.token(0), "chat", socket.session_key()).await.content();
        socket.system("unsubscribed").await;
        chat(two, &cast, 0, "never").await;
        one.subscribe(cast.token(0), "donation", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let donation = json!({ "donationType": "CHAT", "payAmount": "1000", "donationText": "힘내세요" });
        one.happen("streamer.0", "donations", &donation).await.content();
        assert_eq!(socket.event("DONATION").await["donationText"], "힘내세요");
        two.revoke(&cast.app, cast.token(0)).await.content();
        socket.system("revoked").await;
        socket.ping().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_receives_the_channels_of_its_sessions_only() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 3).await;
        let _on_one = listening(&cast, one, two, &[0, 1]).await;
        let on_two = listening(&cast, two, one, &[1]).await;
        let subjects = || async {
            let mut subjects = cluster.nats.lock().await.subjects().await;
            subjects.retain(|subject| subject.starts_with("stagedoor.event."));
            subjects
        };
        let of = |n: usize| format!("stagedoor.event.streamer~2E{n}");
        assert_eq!(subjects().await, [of(0), of(1), of(1)]);
        let before = cluster.nats.lock().await.delivered().await;
        for streamer in 0..3 {
            chat(two, &cast, streamer, "x").await;
        }
        let delivered = cluster.nats.lock().await.delivered().await - before;
        assert_eq!(delivered, 3, "one for the first channel, two for the second, none for the third");
        on_two.close().await;
        until("its interest goes with the session", || async { subjects().await == [of(0), of(1)] }).await;
        assert_eq!((one.bus_stats().await.interests, two.bus_stats().await.interests), (2, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_restart_closes_only_sessions_that_missed_an_event() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 2).await;
        let mut on_one = listening(&cast, one, two, &[0]).await;
        let mut on_two = listening(&cast, two, one, &[0]).await;
        let mut idle = listening(&cast, two, one, &[1]).await;
        cluster.nats.lock().await.stop().await;
        chat(one, &cast, 0, "lost").await;
        cluster.nats.lock().await.restart().await;
        ended(&mut on_one).await;
        ended(&mut on_two).await;
        until_told_of_a_gap(two).await;
        until_connected(one).await;
        idle.ping().await;
        chat(one, &cast, 1, "still here").await;
        assert_receives(&mut idle, "still here").await;
        assert_eq!(one.bus_stats().await.lost, 1);
        let mut again = listening(&cast, two, one, &[0]).await;
        chat(one, &cast, 0, "again").await;
        assert_receives(&mut again, "again").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_restart_without_events_closes_no_session() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 1).await;
        let mut sockets = [listening(&cast, one, two, &[0]).await, listening(&cast, two, one, &[0]).await];
        assert_eq!(bus_health(one).await["state"], "ok");
        cluster.nats.lock().await.stop().await;
        until("the node shows that the bus is away", || async {
            bus_health(one).await["problem"] == "BUS_DISCONNECTED"
        })
        .await;
        let health = one.send(Request::get("/health")).await.content();
        assert_eq!(health["status"], "degraded", "calls are served: {health}");
        assert!(bus_health(one).await["lastSuccess"].is_string(), "{health}");
        cluster.nats.lock().await.restart().await;
        for node in [one, two] {
            until_told_of_a_gap(node).await;
            until_connected(node).await;
        }
        chat(one, &cast, 0, "after").await;
        for socket in &mut sockets {
            assert_receives(socket, "after").await;
            socket.ping().await;
        }
        assert_eq!(one.bus_stats().await.lost, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_is_disconnected_loses_no_event_silently() {
    for network in [Network::Down, Network::Silent] {
        nodes(2, Setup::default(), move |cluster: Arc<Cluster>| async move {
            let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
            let cast = Cast::set(one, 2).await;
            let mut loud = listening(&cast, two, two, &[0]).await;
            let mut quiet = listening(&cast, two, two, &[1]).await;
            chat(one, &cast, 0, "before").await;
            assert_receives(&mut loud, "before").await;
            one.bus_wire.set(network);
            let call = while_running(Duration::from_secs(6), chat(one, &cast, 0, "lost"));
            call.await.expect("the call is answered all the same");
            assert_eq!(one.bus_stats().await.lost, 1);
            // The other node finds the lost event in the store, while the publisher is still cut off.
            ended(&mut loud).await;
            quiet.ping().await;
            chat(two, &cast, 1, "goes on").await;
            assert_receives(&mut quiet, "goes on").await;
            until("both connections are seen to be broken", || async {
                one.bus_stats().await.connections == 0
            })
            .await;
            one.bus_wire.set(Network::Up);
            until_connected(one).await;
            chat(one, &cast, 1, "back").await;
            assert_receives(&mut quiet, "back").await;
            assert_eq!(one.bus_stats().await.lost, 1);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_is_disconnected_briefly_loses_no_event() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 1).await;
        let mut socket = listening(&cast, two, two, &[0]).await;
        one.bus_wire.set(Network::Down);
        let sending = tokio::spawn({
            let (cluster, token) = (cluster.clone(), cast.token(0).to_owned());
            async move { cluster.nodes[0].send_chat(&token, "late").await.content() }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!sending.is_finished(), "the server has not confirmed it yet");
        one.bus_wire.set(Network::Up);
        sending.await.expect("it is answered");
        assert_receives(&mut socket, "late").await;
        assert_eq!(one.bus_stats().await.lost, 0);
        chat(one, &cast, 0, "next").await;
        assert_receives(&mut socket, "next").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_receiver_closes_the_sessions_that_missed_an_event() {
    for network in [Network::Down, Network::Silent] {
        nodes(2, Setup::default(), move |cluster: Arc<Cluster>| async move {
            let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
            let cast = Cast::set(one, 2).await;
            let mut here = listening(&cast, one, one, &[0]).await;
            let mut loud = listening(&cast, two, one, &[0]).await;
            let mut quiet = listening(&cast, two, one, &[1]).await;
            two.bus_wire.set(network);
            chat(one, &cast, 0, "missed").await;
            assert_receives(&mut here, "missed").await;
            if network == Network::Silent {
                // Long enough for the silence to be detected.
                until("it is noticed", || async { two.bus_stats().await.disconnects >= 2 }).await;
            }
            two.bus_wire.set(Network::Up);
            ended(&mut loud).await;
            quiet.ping().await;
            chat(one, &cast, 1, "heard").await;
            assert_receives(&mut quiet, "heard").await;
            chat(one, &cast, 0, "here").await;
            assert_receives(&mut here, "here").await;
            assert_eq!(one.bus_stats().await.lost, 0);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_bus_changes_arrive_within_5_s_and_no_event_is_missed_silently() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
        let cast = Cast::set(one, 1).await;
        let mut socket = listening(&cast, two, two, &[]).await;
        two.bus_wire.set(Network::Down);
        two.subscribe(cast.token(0), "chat", socket.session_key()).await.content();
        // The change is found in the store at the latest when the bus is back.
        chat(one, &cast, 0, "before the bus is back").await;
        two.bus_wire.set(Network::Up);
        socket.system("subscribed").await;
        chat(one, &cast, 0, "after").await;
        // The session was either subscribed when the bus was back, or closed by the gap.
        match socket.next_event().await {
            Some((_, payload)) => assert!(payload.contains("after"), "{payload}"),
            None => assert!(two.socket_stats().await.gaps > 0),
        }
    })
    .await;
}

/// Longer than the time after which the other nodes declare a silent node dead.
const DECLARED_DEAD_WITHIN: Duration = Duration::from_secs(40);

/// Opens three sessions of a user on the first node, and then cuts connections of that node. Returns the
/// sessions when the other nodes have freed their places.
async fn given_away(cluster: &Cluster, cast: &Cast, cut: impl FnOnce(&ClusterNode)) -> Vec<Socket> {
    let (one, two) = (&cluster.nodes[0], &cluster.nodes[1]);
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(one.open_user_session(cast.token(0)).await);
    }
    cut(one);
    let given_away = async {
        while two.user_session_url(cast.token(0)).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    while_running(DECLARED_DEAD_WITHIN, given_away).await.expect("their places are free");
    sockets
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_store_is_notified_that_its_sessions_ended() {
    nodes(2, Setup::hurried(), |cluster: Arc<Cluster>| async move {
        let cast = Cast::set(&cluster.nodes[1], 1).await;
        let sockets = given_away(&cluster, &cast, |one| one.database_wire.set(Network::Silent)).await;
        for mut socket in sockets {
            ended(&mut socket).await;
        }
        assert!(
            cluster.nodes[0].user_session_url(cast.token(0)).await.status >= 500,
            "still without a store"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_isolated_node_ends_its_sessions_before_their_places_are_freed() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let cast = Cast::set(&cluster.nodes[1], 1).await;
        let cut = |one: &ClusterNode| {
            one.database_wire.set(Network::Down);
            one.bus_wire.set(Network::Silent);
        };
        for mut socket in given_away(&cluster, &cast, cut).await {
            let end = while_running(Duration::from_millis(100), socket.next_event()).await;
            assert_eq!(end, Some(None), "it has ended by then");
        }
    })
    .await;
}
