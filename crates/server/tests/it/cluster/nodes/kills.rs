//! Nodes are killed while they publish. Every stored event was delivered to each session that stayed open.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use service::lost_events::LOST_EVENTS_KNOWN_WITHIN;
use store::{Store, StoreError, Tx, params};
use tempfile::TempDir;
use testkit::{Cluster, Connection, Network, Request, Setup, Socket, Wire, World, nodes, patiently};
use tokio::process::Child;
use tokio::task::{JoinHandle, JoinSet};

use super::bus::until;
use super::outbox::{cluster_closed_for_gaps, count, open_store};
use crate::cli::process::{listening_address, stagedoor};

const KILLS: usize = 10;
/// Number of channels of each killed node. Each has a caller and a session.
const CHANNELS_PER_KILL: usize = 3;
/// Maximum number of sessions of an application.
const SESSIONS_MAX: usize = 10;
/// How long a node publishes before it is killed.
const LOAD: Duration = Duration::from_millis(400);
/// How long the bus is unreachable before every other kill. No event is confirmed in this time, so some
/// events are committed and not published.
const SILENCE: Duration = Duration::from_millis(200);

/// A node in a separate process.
struct Victim {
    process: Child,
    address: SocketAddr,
    bus_wire: Wire,
    _folder: TempDir,
}

impl Victim {
    async fn start(cluster: &Cluster) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let nats = cluster.nats.lock().await;
        let bus_wire = Wire::of_url(&nats.url(), &nats.address().to_string()).await;
        drop(nats);
        let mut command = stagedoor(&["serve", "--listen", "127.0.0.1:0", "--roles", "web"]);
        command
            .env("STAGEDOOR_DATABASE_URL", cluster.nodes[0].database_wire.past())
            .env("STAGEDOOR_BUS_URL", bus_wire.url())
            .env("STAGEDOOR_OPERATOR_KEY", World::OPERATOR_KEY)
            .env("STAGEDOOR_SERVICE_KEY", World::SERVICE_KEY)
            .stderr(std::fs::File::create(&log).expect("a file"));
        let process = command.spawn().expect("the program starts");
        let address = listening_address(&log).await;
        Self { process, address, bus_wire, _folder: folder }
    }

    /// Posts on these channels and kills the node meanwhile. Returns the messages that were answered with
    /// 200.
    async fn publish_and_die(mut self, channels: Vec<usize>, is_silenced: bool) -> BTreeSet<(usize, String)> {
        let mut callers = JoinSet::new();
        for channel in channels {
            callers.spawn(post_until_it_dies(self.address, channel));
        }
        tokio::time::sleep(LOAD).await;
        if is_silenced {
            self.bus_wire.set(Network::Silent);
            tokio::time::sleep(SILENCE).await;
        }
        self.process.kill().await.expect("it is killed");
        let mut answered = BTreeSet::new();
        while let Some(of_caller) = callers.join_next().await {
            answered.extend(of_caller.expect("a caller goes on"));
        }
        answered
    }
}

async fn post_until_it_dies(address: SocketAddr, channel: usize) -> BTreeSet<(usize, String)> {
    let (name, mut answered) = (name(channel), BTreeSet::new());
    let mut connection = Connection::open(address).await;
    for n in 0.. {
        let text = format!("{n}");
        let body = json!({ "senderChannelId": name, "message": text });
        let target = format!("/platform/v1/channels/{name}/chats");
        let request = Request::post(target).bearer(World::OPERATOR_KEY).json(&body);
        match connection.try_send(&request).await {
            Some(answer) if answer.status == 200 => _ = answered.insert((channel, text)),
            Some(_) => {}
            None => break,
        }
    }
    answered
}

pub fn name(channel: usize) -> String {
    format!("streamer.{channel}")
}

/// The messages that a session of one channel received until the last message, or until its end.
pub fn listen(mut socket: Socket) -> JoinHandle<(BTreeSet<String>, bool)> {
    tokio::spawn(async move {
        let mut received = BTreeSet::new();
        while let Some((_, payload)) = socket.next_event().await {
            let payload: Value = serde_json::from_str(&payload).expect("JSON");
            let text = payload["content"].as_str().expect("a text").to_owned();
            if text == "end" {
                return (received, true);
            }
            assert!(received.insert(text), "twice");
        }
        (received, false)
    })
}

pub async fn stored(store: &Store, channel: usize) -> BTreeSet<String> {
    patiently("the store answers", async {
        loop {
            let texts: Result<BTreeSet<String>, StoreError> = store
                .read(async move |tx: &mut Tx| {
                    let sql = "SELECT content FROM chat_messages WHERE channel_id = $1";
                    let rows = tx.query(sql, params![name(channel)]).await?;
                    rows.iter().map(|row| row.get(0)).collect()
                })
                .await;
            if let Ok(texts) = texts {
                return texts;
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_publishers_leave_no_silent_gap() {
    nodes(1, Setup::hurried(), |cluster: Arc<Cluster>| async move {
        let survivor = &cluster.nodes[0];
        // One more channel, which has no events.
        let channels = KILLS * CHANNELS_PER_KILL + 1;
        let (mut apps, mut listeners) = (Vec::new(), Vec::new());
        for n in 0..channels.div_ceil(SESSIONS_MAX) {
            apps.push(survivor.application(&format!("bot{n}")).create().await);
        }
        for channel in 0..channels {
            let app = &apps[channel / SESSIONS_MAX];
            let person = survivor.person(&name(channel)).create().await;
            let tokens = survivor.sign_in(app, &person).await;
            let mut socket = survivor.open_client_session(app).await;
            survivor.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
            socket.system("subscribed").await;
            listeners.push(listen(socket));
        }
        let mut answered = BTreeSet::new();
        for kill in 0..KILLS {
            let victim = Victim::start(&cluster).await;
            let own = kill * CHANNELS_PER_KILL..(kill + 1) * CHANNELS_PER_KILL;
            answered.extend(victim.publish_and_die(own.collect(), kill % 2 == 1).await);
        }
        let store = open_store(survivor).await;
        until("nothing is left in the outbox", || async {
            count(&store, "SELECT COUNT(*) FROM event_outbox WHERE taken_over_at IS NULL").await == Some(0)
        })
        .await;
        tokio::time::sleep(LOST_EVENTS_KNOWN_WITHIN).await;
        let (mut closed, mut missed, mut all) = (0, 0, 0);
        for (channel, listener) in listeners.into_iter().enumerate() {
            let stored = stored(&store, channel).await;
            let name = name(channel);
            survivor.say(&name, &name, "end").await.content();
            let (received, survived) =
                patiently("the last word", listener).await.expect("a listener goes on");
            assert!(!survived || received == stored, "{channel}: received {received:?} of {stored:?}");
            assert!(received.is_subset(&stored), "{channel}: received {received:?} of {stored:?}");
            assert!(survived || channel < channels - 1, "the quiet channel's session lives");
            answered.retain(|(of, text)| *of != channel || !stored.contains(text));
            all += stored.len();
            missed += stored.len() - received.len();
            closed += usize::from(!survived);
        }
        assert_eq!(answered, BTreeSet::new(), "what was answered is stored");
        println!("{all} stored, {missed} of them missed in {closed} sessions that were closed");
        assert_eq!(cluster_closed_for_gaps(&cluster).await, closed as u64);
        // Without any missed events or with too few events, the test would prove nothing.
        assert!(missed > 0 && all > 3 * KILLS, "{missed} of {all}");
        store.close().await;
    })
    .await;
}
