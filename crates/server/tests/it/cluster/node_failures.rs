//! The places of sessions are freed after any failure of a peer or a node.

use std::time::Duration;

use server::{Node, Settings, StoreSettings};
use service::Clock;
use store::DatabaseUrl;
use store::testing::Wire;
use testkit::{Api, Network, Response, Setup, Socket, World, over_a_wire, patiently};

use crate::cli::process::stagedoor;
use crate::fixture::Fixture;

const SECOND: Duration = Duration::from_secs(1);
/// The ping times, and the time to detect a missing ping.
const VANISHED_WITHIN_S: u32 = 25 + 60 + 5;

fn connected(list: &Response) -> usize {
    let content = list.content();
    let data = content["data"].as_array().expect("a list");
    data.iter().filter(|session| session["disconnectedDate"].is_null()).count()
}

/// Another node, with a direct connection to the store that does not use the wire.
async fn a_node_past(wire: &Wire, world: &World) -> (Node, Api) {
    let past = wire.past();
    let change = |settings: &mut Settings| {
        settings.store = StoreSettings::Postgres { url: DatabaseUrl::from(past) };
    };
    world.another_node_with(change).await
}

/// Advances the clock in steps, so that every task runs its due work.
async fn pass(world: &World, seconds: u32) {
    for second in 0..seconds {
        world.advance(SECOND);
        // A running heartbeat takes as long on this clock as the clock advances meanwhile.
        let pause = if second % 5 == 0 { 100 } else { 20 };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

async fn until_connected(api: &Api, token: &str, count: usize) {
    patiently("places are free", async {
        while connected(&api.user_sessions(token, "size=50").await) != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Three sessions, the maximum of a user.
async fn three(api: &Api, token: &str) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(api.open_user_session(token).await);
    }
    api.user_session_url(token).await.assert_refused(429, "TOO_MANY_REQUESTS");
    sockets
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_disappear_free_their_places_on_every_node() {
    over_a_wire(Setup::default(), |world, _| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        // The peers keep their connections and send nothing.
        let silent = three(&elsewhere, &tokens.access).await;
        let here = world.open_client_session(&app).await;
        pass(&world, VANISHED_WITHIN_S).await;
        until_connected(&world, &tokens.access, 0).await;
        assert_eq!(connected(&world.client_sessions(&app, "").await), 0);
        drop((silent, here));
        for socket in three(&world, &tokens.access).await {
            socket.close().await;
        }
        until_connected(&world, &tokens.access, 0).await;
        node.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_store_loses_its_places_and_then_its_sockets() {
    over_a_wire(Setup::default(), |world, wire| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = a_node_past(&wire, &world).await;
        let mut sockets = three(&world, &tokens.access).await;
        wire.set(Network::Down);
        // 20 s without a heartbeat, and one more heartbeat of the other node.
        pass(&world, 26).await;
        until_connected(&elsewhere, &tokens.access, 0).await;
        let taken = three(&elsewhere, &tokens.access).await;

        wire.set(Network::Up);
        for socket in &mut sockets {
            patiently("the sockets of the cut-off node end", async {
                loop {
                    world.advance(SECOND / 4);
                    let end = tokio::time::timeout(Duration::from_millis(50), socket.next_packet()).await;
                    if let Ok(None) = end {
                        break;
                    }
                }
            })
            .await;
        }
        assert_eq!(connected(&elsewhere.user_sessions(&tokens.access, "size=50").await), 3);
        drop(taken);
        until_connected(&elsewhere, &tokens.access, 0).await;
        node.stop().await;
        // The node takes sessions again.
        drop(three(&world, &tokens.access).await);
        until_connected(&world, &tokens.access, 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_lost_the_store_together_do_not_declare_each_other_dead() {
    over_a_wire(Setup::default(), |world, wire| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        let mut here = world.open_user_session(&tokens.access).await;
        let mut there = elsewhere.open_user_session(&tokens.access).await;
        wire.set(Network::Down);
        pass(&world, 40).await;
        wire.set(Network::Up);
        pass(&world, 30).await;
        here.ping().await;
        there.ping().await;
        until_connected(&world, &tokens.access, 2).await;
        drop((here, there));
        until_connected(&world, &tokens.access, 0).await;
        node.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_without_the_store_leaks_nothing() {
    over_a_wire(Setup::default(), |world, wire| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = a_node_past(&wire, &world).await;
        let sockets = three(&world, &tokens.access).await;
        wire.set(Network::Down);
        world.stop().await;
        drop(sockets);
        assert_eq!(
            connected(&elsewhere.user_sessions(&tokens.access, "size=50").await),
            3,
            "no node has found the problem yet"
        );
        pass(&world, 26).await;
        until_connected(&elsewhere, &tokens.access, 0).await;
        drop(three(&elsewhere, &tokens.access).await);
        until_connected(&elsewhere, &tokens.access, 0).await;
        node.stop().await;
        wire.set(Network::Up);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_detected_within_30_seconds() {
    over_a_wire(Setup { system_clock: true, ..Setup::default() }, |world, wire| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let mut command = stagedoor(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("STAGEDOOR_DATABASE_URL", wire.past()).env("STAGEDOOR_OPERATOR_KEY", World::OPERATOR_KEY);
        command.env("STAGEDOOR_SERVICE_KEY", World::SERVICE_KEY);
        command.stderr(std::fs::File::create(&log).expect("a file"));
        let mut process = command.spawn().expect("the program starts");
        let address = patiently("it says where it serves", async {
            loop {
                let output = std::fs::read_to_string(&log).expect("the log");
                if let Some((_, rest)) = output.split_once("stagedoor serves address=")
                    && let Some((address, _)) = rest.split_once('\n')
                {
                    return format!("http://{}", address.trim());
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let elsewhere = Api::new(&address, World::OPERATOR_KEY);
        let sockets = three(&elsewhere, &tokens.access).await;
        assert_eq!(connected(&world.user_sessions(&tokens.access, "size=50").await), 3);
        process.kill().await.expect("it is killed");
        let since_then = Clock::system();
        while connected(&world.user_sessions(&tokens.access, "size=50").await) > 0 {
            assert!(since_then.monotonic() < Duration::from_secs(30));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        drop(sockets);
        drop(three(&world, &tokens.access).await);
        until_connected(&world, &tokens.access, 0).await;
    })
    .await;
}
