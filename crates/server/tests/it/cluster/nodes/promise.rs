//! The delivery promise under fire: producers and clients on two nodes, links cut and the bus restarted
//! meanwhile, and every session's life held against the ledger.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use testkit::{Application, Cluster, Network, Setup, Socket, nodes, while_running};

use super::ledger::{Life, Said, Seen, faults, text};

const CHANNELS: usize = 3;
const PRODUCERS: usize = 8;
/// Applications, because each may have ten sessions.
const APPLICATIONS: usize = 3;
const CLIENTS: usize = 18;
/// Messages of one channel after which some clients leave it and come back.
const LEAVE_AFTER: usize = 40;
/// From the end of the trouble until every client has a session that lives: what was lost is known within 4
/// s, and the rest is for a busy machine.
const ALL_HEAR_WITHIN: Duration = Duration::from_secs(60);

/// What everybody shares.
struct Scene {
    cluster: Arc<Cluster>,
    apps: Vec<Application>,
    /// By application and channel.
    tokens: Vec<Vec<String>>,
    moments: AtomicU64,
    said: Mutex<Vec<Said>>,
    lives: Mutex<Vec<Life>>,
    /// Nobody says anything any more, but the last words.
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

    /// Says one thing on a node, and writes it down.
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

    /// One client: whenever its session ends it makes another one, on the other node, until one lives to hear
    /// the last words.
    async fn consume(self: Arc<Self>, client: usize) {
        for node in (client..).map(|n| n % 2) {
            let app = &self.apps[client % APPLICATIONS];
            let url = self.cluster.nodes[node].client_session_url(app).await;
            if url.status != 200 {
                // The slot of the last session is not free yet.
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

    /// One session: subscribed to two channels by calls to the other node; it lives until it is closed or has
    /// heard the last word on each of them.
    async fn live(&self, client: usize, calls: usize, mut socket: Socket) -> Life {
        let mut life = Life { seen: vec![Seen::Connected], lived: false };
        let channels = [client % CHANNELS, (client + 1) % CHANNELS];
        let tokens = &self.tokens[client % APPLICATIONS];
        for channel in channels {
            let calls = &self.cluster.nodes[calls];
            if calls.subscribe(&tokens[channel], "chat", socket.session_key()).await.status != 200 {
                // It was closed already, or the store did not answer.
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
            // Every other client leaves its first channel once, and comes back.
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
        self.cluster.nats.lock().await.start_again().await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }

    /// The last word on each channel, again and again: what was lost before may still close sessions, whose
    /// clients come back and have to hear it too.
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
        // So that nothing was proven about nothing. An idle machine gets ten times as far.
        assert!(acknowledged > 200 && heard > 500, "{acknowledged} {heard}");
        assert!(lives.len() > CLIENTS && lived == CLIENTS, "{} {lived}", lives.len());
    })
    .await;
}
