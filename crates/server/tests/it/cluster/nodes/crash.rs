//! PostgreSQL crashes while nodes publish. Every committed event was delivered to each session that stayed
//! open.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use bus::testing::NatsServer;
use serde_json::json;
use server::{BusSettings, Environment, Node, Settings, StoreSettings};
use store::{Store, Target};
use tempfile::TempDir;
use testkit::{Api, Connection, Network, Request, Wire, World, patiently, settings_on};
use tokio::process::{Child, Command};
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
const PASSWORD: &str = "crash";
/// The environment variable with the folder of PostgreSQL's programs, to test another version than the
/// installed one.
const PROGRAMS: &str = "STAGEDOOR_TEST_POSTGRES_BIN";
/// The user that runs PostgreSQL if root runs the tests, because PostgreSQL refuses root.
const UNPRIVILEGED: &str = "nobody";

/// A separate PostgreSQL server for this test.
struct Postgres {
    folder: TempDir,
    port: u16,
    process: Option<Child>,
}

impl Postgres {
    async fn start() -> Self {
        let folder = TempDir::with_prefix("crash").expect("a folder");
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = port.local_addr().expect("an address").port();
        std::fs::write(folder.path().join("password"), PASSWORD).expect("a file");
        if is_root() {
            let owner = ["--recursive", UNPRIVILEGED, folder.path().to_str().expect("a path")];
            assert!(Command::new("chown").args(owner).status().await.expect("chown").success());
        }
        let mut server = Self { folder, port, process: None };
        let mut initdb = server.program("initdb");
        initdb.args(["--username", "postgres", "--auth", "scram-sha-256", "--encoding", "UTF8"]);
        initdb
            .args(["--locale", "C.UTF-8", "--no-sync", "--pwfile"])
            .arg(server.folder.path().join("password"));
        assert!(initdb.status().await.expect("initdb runs").success());
        server.restart();
        server
    }

    fn restart(&mut self) {
        let mut command = self.program("postgres");
        let port = format!("port={}", self.port);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", &port, "-c", "unix_socket_directories="]);
        self.process = Some(command.args(["-c", "fsync=off"]).kill_on_drop(true).spawn().expect("it starts"));
    }

    /// Kills every process of the server at once, as a crash does.
    async fn crash(&mut self) {
        let mut stop = self.program("pg_ctl");
        assert!(stop.args(["stop", "--mode", "immediate"]).status().await.expect("pg_ctl").success());
        if let Some(mut process) = self.process.take() {
            process.wait().await.expect("it ends");
        }
    }

    fn program(&self, name: &str) -> Command {
        let path = programs().join(name);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", UNPRIVILEGED, "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.arg("-D").arg(self.folder.path().join("data")).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn target(&self) -> Target {
        Target::Postgres { url: self.url().into() }
    }

    fn url(&self) -> String {
        format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/postgres", self.port)
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// The folder of PostgreSQL's programs: that of [`PROGRAMS`], or Debian's newest.
fn programs() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAMS) {
        return named.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let bins = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let mut bins: Vec<_> = bins.filter(|bin| Path::new(&bin.join("postgres")).exists()).collect();
    bins.sort();
    bins.pop().expect("a server")
}

async fn start_node(postgres: &Postgres, wire: &Wire, nats: &NatsServer) -> (Node, Api) {
    let settings = Settings {
        store: StoreSettings::Postgres { url: wire.url().into() },
        store_deadline: store::DEADLINE,
        bus: BusSettings::Nats {
            address: bus::Address::parse(&nats.url()).expect("an address"),
            prefix: bus::Prefix::default(),
        },
        ..settings_on(&postgres.target())
    };
    let node = Node::start(settings, Environment::system()).await.expect("a node starts");
    let api = Api::new(node.base_url(), World::OPERATOR_KEY);
    (node, api)
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
    let mut postgres = Postgres::start().await;
    let nats = NatsServer::start().await;
    let store = patiently("the database answers", async {
        loop {
            if let Ok(store) = Store::open(postgres.target(), store::Options::default()).await {
                return store;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let wire = Wire::of_url(&postgres.url(), &format!("127.0.0.1:{}", postgres.port)).await;
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
        postgres.crash().await;
        is_enough.store(true, SeqCst);
        wire.set(Network::Up);
        postgres.restart();
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
    assert!(missed > 0 && all > 10 * CRASHES, "{missed} of {all}");
    for (node, _) in nodes {
        node.stop().await;
    }
    store.close().await;
    postgres.crash().await;
}
