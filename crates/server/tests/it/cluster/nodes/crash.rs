//! PostgreSQL crashes while nodes publish. Every committed event was delivered to each session that stayed
//! open.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use bus::testing::NatsServer;
use serde_json::json;
use server::{BusSettings, Environment, Node, Settings, StoreSettings};
use store::testing::PostgresServer;
use store::{Store, Target};
use testkit::{Api, Connection, Network, Request, Wire, World, patiently, settings_on};
use tokio::task::JoinSet;

use super::bus::until;
use super::kills::{listen, name, stored};
use super::outbox::count;

const CRASHES: usize = 3;
/// Number of channels. Each has a caller and a session on each node.
const CHANNELS: usize = 5;
/// How long nodes publish before the database crashes.
const LOAD: Duration = Duration::from_millis(600);
/// How long before the crash answers are withheld, so that some commits have no answer.
const UNANSWERED: Duration = Duration::from_millis(50);
fn target(postgres: &PostgresServer) -> Target {
    Target::Postgres { url: postgres.url().into() }
}

pub async fn start_node(postgres: &PostgresServer, wire: &Wire, nats: &NatsServer) -> (Node, Api) {
    let settings = Settings {
        store: StoreSettings::Postgres { url: wire.url().into() },
        store_deadline: store::DEADLINE,
        bus: BusSettings::Nats {
            access: bus::Address::parse(&nats.url()).expect("an address").into(),
            prefix: bus::Prefix::default(),
        },
        ..settings_on(&target(postgres))
    };
    let node = Node::start(settings, Environment::system()).await.expect("a node starts");
    let api = Api::new(node.base_url(), World::OPERATOR_KEY);
    (node, api)
}

/// The store of a server that is about to start.
pub async fn opened_store(postgres: &PostgresServer) -> Store {
    patiently("the database answers", async {
        loop {
            if let Ok(store) = Store::open(target(postgres), store::Options::default()).await {
                return store;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

/// Posts on a channel until it is stopped, whatever the answers are.
async fn post(node: std::net::SocketAddr, at: usize, channel: usize, is_enough: Arc<AtomicBool>) {
    let name = name(channel);
    let mut connection = Connection::open(node).await;
    for n in 0.. {
        if is_enough.load(SeqCst) {
            return;
        }
        let body = json!({ "senderChannelId": name, "message": format!("{at}:{n}") });
        let request = Request::post(format!("/platform/v1/channels/{name}/chats"));
        let request = request.bearer(World::OPERATOR_KEY).json(&body);
        if connection.try_send(&request).await.is_none() {
            connection = Connection::open(node).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_crashes_while_nodes_publish_leaves_no_silent_gap() {
    let mut postgres = PostgresServer::create().await;
    postgres.start(&[]);
    let nats = NatsServer::start().await;
    let store = opened_store(&postgres).await;
    let wire = Wire::of_url(&postgres.url(), &format!("127.0.0.1:{}", postgres.port())).await;
    let nodes = [start_node(&postgres, &wire, &nats).await, start_node(&postgres, &wire, &nats).await];
    let mut listeners = Vec::new();
    for (at, (_, api)) in nodes.iter().enumerate() {
        for crash in 0..CRASHES {
            let app = api.application(&format!("bot-{at}-{crash}")).create().await;
            for channel in crash * CHANNELS..(crash + 1) * CHANNELS {
                let person = api.person(&name(channel)).create().await;
                let tokens = api.sign_in(&app, &person).await;
                let mut socket = api.open_client_session(&app).await;
                api.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
                socket.system("subscribed").await;
                listeners.push((channel, listen(socket)));
            }
        }
    }
    for crash in 0..CRASHES {
        let (is_enough, mut callers) = (Arc::<AtomicBool>::default(), JoinSet::new());
        for channel in crash * CHANNELS..(crash + 1) * CHANNELS {
            for (at, (node, _)) in nodes.iter().enumerate() {
                callers.spawn(post(node.address(), at, channel, is_enough.clone()));
            }
        }
        tokio::time::sleep(LOAD).await;
        wire.set(Network::LosesCommits);
        tokio::time::sleep(UNANSWERED).await;
        postgres.stop("immediate").await;
        is_enough.store(true, SeqCst);
        wire.set(Network::Up);
        postgres.start(&[]);
        while callers.join_next().await.is_some() {}
    }
    let sql = "SELECT COUNT(*) FROM event_outbox WHERE taken_over_at IS NULL";
    until("nothing is left in the outbox", || async { count(&store, sql).await == Some(0) }).await;
    tokio::time::sleep(service::lost_events::LOST_EVENTS_KNOWN_WITHIN).await;
    let (mut all, mut missed, mut closed) = (0, 0, 0);
    for channel in 0..CRASHES * CHANNELS {
        patiently("the last word is posted", async {
            let name = name(channel);
            while nodes[0].1.say(&name, &name, "end").await.status != 200 {}
        })
        .await;
    }
    for (channel, listener) in listeners {
        let mut stored = stored(&store, channel).await;
        stored.remove("end");
        let (received, survived): (BTreeSet<String>, bool) =
            patiently("the last word", listener).await.expect("a listener goes on");
        assert!(!survived || received == stored, "{channel}: received {received:?} of {stored:?}");
        all += stored.len();
        missed += stored.difference(&received).count();
        closed += usize::from(!survived);
    }
    println!("{all} stored, {missed} of them missed in {closed} sessions that were closed");
    // Without any missed events or with too few events, the test would prove nothing.
    assert!(missed > 0 && all > 3 * CRASHES, "{missed} of {all}");
    for (node, _) in nodes {
        node.stop().await;
    }
    store.close().await;
    postgres.stop("immediate").await;
}
