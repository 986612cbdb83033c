//! The delivery promise under failures: producers and clients on two nodes, while links are cut and the bus
//! is restarted. Every session's record is checked against the ledger.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use testkit::{Application, Cluster, Network, Setup, Socket, nodes, while_running};

use super::ledger::{Life, Said, Seen, faults, text};

const CHANNELS: usize = 3;
const PRODUCERS: usize = 8;
/// Number of applications. Each may have ten sessions.
const APPLICATIONS: usize = 3;
const CLIENTS: usize = 18;
/// Number of messages of one channel after which some clients unsubscribe and subscribe again.
const LEAVE_AFTER: usize = 40;
/// The time from the end of the failures until every client has an open session. A loss is found within 4 s;
/// the other seconds are for a slow machine.
const ALL_HEAR_WITHIN: Duration = Duration::from_secs(60);

/// The state that all tasks share.
struct Scene {
    cluster: Arc<Cluster>,
    apps: Vec<Application>,
    /// The tokens of each application for each channel.
    tokens: Vec<Vec<String>>,
    moments: AtomicU64,
    said: Mutex<Vec<Said>>,
    lives: Mutex<Vec<Life>>,
    /// Whether the producers have stopped. Only last messages follow.
    is_said: AtomicBool,
}

impl Scene {
    async fn set(cluster: Arc<Cluster>) -> Self {
        let node = &cluster.nodes[0];
        let mut people = Vec::new();
        for channel in 0..CHANNELS {
            people.push(node.person(&name(channel)).create().await);
        }
        let (mut apps, mut tokens) = (Vec::new(), Vec::new());
        for n in 0..APPLICATIONS {
            let app = node.application(&format!("bot{n}")).create().await;
            let mut of_app = Vec::new();
            for person in &people {
                of_app.push(node.sign_in(&app, person).await.access);
            }
            apps.push(app);
            tokens.push(of_app);
        }
        let (said, lives) = Default::default();
        let (moments, is_said) = (AtomicU64::new(1), AtomicBool::new(false));
        Self { cluster, apps, tokens, moments, said, lives, is_said }
    }

    fn now(&self) -> u64 {
        self.moments.fetch_add(1, SeqCst)
    }

    /// Sends one message on a node, and records it.
    async fn say(&self, node: usize, channel: usize, producer: usize, number: usize) -> bool {
        let begun = self.now();
        let (name, message) = (name(channel), text(producer, number));
        let answer = self.cluster.nodes[node].say(&name, &name, &message).await;
        let acknowledged = (answer.status == 200).then(|| self.now());
        let said = Said { channel, producer, number, begun, acknowledged };
        self.said.lock().expect("nobody panicked").push(said);
        acknowledged.is_some()
    }

    async fn produce(self: Arc<Self>, producer: usize) {
        let mut number = 0;
        while !self.is_said.load(SeqCst) {
            self.say(producer % 2, producer % CHANNELS, producer, number).await;
            number += 1;
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    }

    /// One client. When its session ends, it opens another on the other node, until one session receives the
    /// last messages.
    async fn consume(self: Arc<Self>, client: usize) {
        for node in (client..).map(|n| n % 2) {
            let app = &self.apps[client % APPLICATIONS];
            let url = self.cluster.nodes[node].client_session_url(app).await;
            if url.status != 200 {
                // The place of the last session may not be free yet.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            let url = url.content()["url"].as_str().expect("a URL").to_owned();
            let Ok(socket) = Socket::connect(&url).await else { continue };
            let life = self.live(client, 1 - node, socket).await;
            let lived = life.lived;
            self.lives.lock().expect("nobody panicked").push(life);
            if lived {
                return;
            }
        }
    }

    /// One session, subscribed to two channels by calls to the other node. Returns when it is closed or has
    /// received the last message of each channel.
    async fn live(&self, client: usize, calls: usize, mut socket: Socket) -> Life {
        let mut life = Life { seen: vec![Seen::Connected], lived: false };
        let channels = [client % CHANNELS, (client + 1) % CHANNELS];
        let tokens = &self.tokens[client % APPLICATIONS];
        for channel in channels {
            let calls = &self.cluster.nodes[calls];
            if calls.subscribe(&tokens[channel], "chat", socket.session_key()).await.status != 200 {
                // The session was already closed, or the store did not answer.
                return life;
            }
        }
        let (mut ends, mut heard, mut has_left) = (BTreeSet::new(), 0, false);
        while let Some((name, payload)) = socket.next_event().await {
            let seen = self.read(&name, &payload);
            match &seen {
                Seen::Message(channel, text) if text.starts_with("end:") => {
                    ends.insert(*channel);
                    if ends.len() == channels.len() {
                        life.lived = true;
                        return life;
                    }
                    continue;
                }
                Seen::Message(channel, _) if *channel == channels[0] => heard += 1,
                _ => {}
            }
            let is_back = matches!(seen, Seen::Unsubscribed(..));
            life.seen.push(seen);
            let token = &tokens[channels[0]];
            // Every other client leaves its first channel once, and subscribes again.
            if client.is_multiple_of(2) && heard == LEAVE_AFTER && !has_left {
                has_left = true;
                self.cluster.nodes[calls].unsubscribe(token, "chat", socket.session_key()).await;
            }
            if is_back {
                self.cluster.nodes[calls].subscribe(token, "chat", socket.session_key()).await;
            }
        }
        life
    }

    fn read(&self, name: &str, payload: &str) -> Seen {
        let payload: serde_json::Value = serde_json::from_str(payload).expect("JSON");
        if name == "CHAT" {
            let content = payload["content"].as_str().expect("a text").to_owned();
            return Seen::Message(number(&payload["channelId"]), content);
        }
        let channel = number(&payload["data"]["channelId"]);
        match payload["type"].as_str() {
            Some("subscribed") => Seen::Subscribed(channel, self.now()),
            Some("unsubscribed") => Seen::Unsubscribed(channel),
            _ => panic!("{payload}"),
        }
    }

    async fn cut(&self, node: usize, network: Network, for_ms: u64) {
        self.cluster.nodes[node].bus_wire.set(network);
        tokio::time::sleep(Duration::from_millis(for_ms)).await;
        self.cluster.nodes[node].bus_wire.set(Network::Up);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }

    async fn restart_bus(&self, for_ms: u64) {
        self.cluster.nats.lock().await.stop().await;
        tokio::time::sleep(Duration::from_millis(for_ms)).await;
        self.cluster.nats.lock().await.restart().await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }

    /// Sends the last message on each channel repeatedly. An earlier loss may still close sessions, whose
    /// clients open new ones that need the last message too.
    async fn end(self: Arc<Self>) {
        loop {
            for channel in 0..CHANNELS {
                let (name, message) = (name(channel), format!("end:{channel}"));
                self.cluster.nodes[0].say(&name, &name, &message).await.content();
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
}

fn name(channel: usize) -> String {
    format!("channel.{channel}")
}

fn number(id: &serde_json::Value) -> usize {
    let id = id.as_str().expect("an id");
    id.strip_prefix("channel.").and_then(|n| n.parse().ok()).expect("a channel of this test")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_has_a_hole_a_repetition_or_disorder_whatever_happens_to_the_bus() {
    nodes(2, Setup::default(), |cluster: Arc<Cluster>| async move {
        let scene = Arc::new(Scene::set(cluster).await);
        let clients: Vec<_> = (0..CLIENTS).map(|n| tokio::spawn(scene.clone().consume(n))).collect();
        let producers: Vec<_> = (0..PRODUCERS).map(|n| tokio::spawn(scene.clone().produce(n))).collect();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        scene.cut(0, Network::Down, 400).await;
        scene.cut(1, Network::Down, 400).await;
        scene.restart_bus(200).await;
        scene.cut(0, Network::Silent, 4_500).await;
        scene.restart_bus(2_500).await;
        scene.cut(1, Network::Down, 3_000).await;
        scene.is_said.store(true, SeqCst);
        for producer in producers {
            producer.await.expect("a producer goes on whatever happens");
        }
        let ends = tokio::spawn(scene.clone().end());
        for client in clients {
            let ended = while_running(ALL_HEAR_WITHIN, client).await;
            ended.expect("every client hears the last words in the end").expect("no client panics");
        }
        ends.abort();
        let (said, lives) = (scene.said.lock().expect("mine"), scene.lives.lock().expect("mine"));
        for life in lives.iter() {
            assert_eq!(faults(&said, life), [], "{life:?}");
        }
        let acknowledged = said.iter().filter(|one| one.acknowledged.is_some()).count();
        let heard = |life: &Life| life.seen.iter().filter(|seen| matches!(seen, Seen::Message(..))).count();
        let heard: usize = lives.iter().map(heard).sum();
        let lived = lives.iter().filter(|life| life.lived).count();
        println!("{acknowledged} of {} acknowledged, {heard} heard in {} lives", said.len(), lives.len());
        // With too few messages the test would prove nothing. An idle machine has ten times as many.
        assert!(acknowledged > 200 && heard > 500, "{acknowledged} {heard}");
        assert!(lives.len() > CLIENTS && lived == CLIENTS, "{} {lived}", lives.len());
    })
    .await;
}
