//! The delivery promise under failures: producers and clients on two nodes, while links are cut and the bus
//! is restarted. Every session's record is checked against the ledger.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use testkit::{Application, Cluster, Network, Setup, Socket, nodes, while_running};

use super::ledger::{LogEntry, SentMessage, SessionRecord, text, violations};

const CHANNELS: usize = 3;
const PRODUCERS: usize = 8;
/// Number of applications. Each may have ten sessions.
const APPLICATIONS: usize = 3;
const CLIENTS: usize = 18;
/// Number of messages of one channel after which some clients unsubscribe and subscribe again.
const LEAVE_AFTER: usize = 40;
/// The time from the end of the failures until every client has an open session. A loss is found within 4 s;
/// the other seconds are for a slow machine.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// The state that all tasks share.
struct Scene {
    cluster: Arc<Cluster>,
    apps: Vec<Application>,
    /// The tokens of each application for each channel.
    tokens: Vec<Vec<String>>,
    clock: AtomicU64,
    sent: Mutex<Vec<SentMessage>>,
    records: Mutex<Vec<SessionRecord>>,
    /// Whether the producers have stopped. Only last messages follow.
    producers_done: AtomicBool,
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
        let (sent, records) = Default::default();
        let (clock, producers_done) = (AtomicU64::new(1), AtomicBool::new(false));
        Self { cluster, apps, tokens, clock, sent, records, producers_done }
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    /// Sends one message on a node, and records it.
    async fn produce_one(&self, node: usize, channel: usize, producer: usize, number: usize) -> bool {
        let began = self.now();
        let (name, message) = (name(channel), text(producer, number));
        let answer = self.cluster.nodes[node].say(&name, &name, &message).await;
        let acknowledged = (answer.status == 200).then(|| self.now());
        let sent = SentMessage { channel, producer, number, began, acknowledged };
        self.sent.lock().expect("the lock is not poisoned").push(sent);
        acknowledged.is_some()
    }

    async fn produce(self: Arc<Self>, producer: usize) {
        let mut number = 0;
        while !self.producers_done.load(SeqCst) {
            self.produce_one(producer % 2, producer % CHANNELS, producer, number).await;
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
            let record = self.follow_session(client, 1 - node, socket).await;
            let survived = record.survived;
            self.records.lock().expect("the lock is not poisoned").push(record);
            if survived {
                return;
            }
        }
    }

    /// One session, subscribed to two channels by calls to the other node. Returns when it is closed or has
    /// received the last message of each channel.
    async fn follow_session(&self, client: usize, calls: usize, mut socket: Socket) -> SessionRecord {
        let mut record = SessionRecord { log: vec![LogEntry::Connected], survived: false };
        let channels = [client % CHANNELS, (client + 1) % CHANNELS];
        let tokens = &self.tokens[client % APPLICATIONS];
        for channel in channels {
            let calls = &self.cluster.nodes[calls];
            if calls.subscribe(&tokens[channel], "chat", socket.session_key()).await.status != 200 {
                // The session was already closed, or the store did not answer.
                return record;
            }
        }
        let (mut ends, mut received, mut has_left) = (BTreeSet::new(), 0, false);
        while let Some((name, payload)) = socket.next_event().await {
            let entry = self.read(&name, &payload);
            match &entry {
                LogEntry::Message(channel, text) if text.starts_with("end:") => {
                    ends.insert(*channel);
                    if ends.len() == channels.len() {
                        record.survived = true;
                        return record;
                    }
                    continue;
                }
                LogEntry::Message(channel, _) if *channel == channels[0] => received += 1,
                _ => {}
            }
            let is_back = matches!(entry, LogEntry::Unsubscribed(..));
            record.log.push(entry);
            let token = &tokens[channels[0]];
            // Every other client leaves its first channel once, and subscribes again.
            if client.is_multiple_of(2) && received == LEAVE_AFTER && !has_left {
                has_left = true;
                self.cluster.nodes[calls].unsubscribe(token, "chat", socket.session_key()).await;
            }
            if is_back {
                self.cluster.nodes[calls].subscribe(token, "chat", socket.session_key()).await;
            }
        }
        record
    }

    fn read(&self, name: &str, payload: &str) -> LogEntry {
        let payload: serde_json::Value = serde_json::from_str(payload).expect("JSON");
        if name == "CHAT" {
            let content = payload["content"].as_str().expect("a text").to_owned();
            return LogEntry::Message(number(&payload["channelId"]), content);
        }
        let channel = number(&payload["data"]["channelId"]);
        match payload["type"].as_str() {
            Some("subscribed") => LogEntry::Subscribed(channel, self.now()),
            Some("unsubscribed") => LogEntry::Unsubscribed(channel),
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
async fn no_session_has_gaps_repetitions_or_disorder_when_the_bus_fails() {
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
        scene.producers_done.store(true, SeqCst);
        for producer in producers {
            producer.await.expect("a producer goes on whatever happens");
        }
        let ends = tokio::spawn(scene.clone().end());
        for client in clients {
            let ended = while_running(RECOVERY_TIMEOUT, client).await;
            ended.expect("every client hears the last words in the end").expect("no client panics");
        }
        ends.abort();
        let (sent, records) = (scene.sent.lock().expect("mine"), scene.records.lock().expect("mine"));
        for record in records.iter() {
            assert_eq!(violations(&sent, record), [], "{record:?}");
        }
        let acknowledged = sent.iter().filter(|message| message.acknowledged.is_some()).count();
        let received = |record: &SessionRecord| {
            record.log.iter().filter(|log| matches!(log, LogEntry::Message(..))).count()
        };
        let received: usize = records.iter().map(received).sum();
        let survived = records.iter().filter(|record| record.survived).count();
        println!(
            "{acknowledged} of {} acknowledged, {received} received in {} records",
            sent.len(),
            records.len()
        );
        // With too few messages the test would prove nothing. An idle machine has ten times as many.
        assert!(acknowledged > 200 && received > 500, "{acknowledged} {received}");
        assert!(records.len() > CLIENTS && survived == CLIENTS, "{} {survived}", records.len());
    })
    .await;
}
