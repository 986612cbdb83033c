//! A full disk: reads work, writes are refused with 503 and change nothing, the log has one line a minute,
//! and writes work again when there is room.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command as Blocking;
use std::time::Duration;

use serde_json::json;
use store::{Options, Store, StoreError, Target, Tx};
use testkit::{Api, Application, Browser, Request, Response, Setup, Socket, Tokens, over_a_wire, patiently};
use tokio::process::Child;

use crate::cli::process::{run, stagedoor};
use crate::fixture::Fixture;

const OPERATOR_KEY: &str = "operator-key-of-a-test-0123456789";
const SERVICE_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
/// The size of the disk.
const DISK_MIB: usize = 16;
/// Number of writes on the full disk.
const WRITES: usize = 200;

/// A separate disk: a tmpfs. Mounting it needs root, or sudo without a password.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn mount() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let size = format!("size={DISK_MIB}m,mode=0777");
        let mount = ["mount", "-t", "tmpfs", "-o", &size, "tmpfs"];
        assert!(as_root(&mount, folder.path()), "this test mounts a tmpfs: run it as root, or with sudo -n");
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Fills the free space.
    fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("a file");
        for size in [65_536, 4_096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("the file was there");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        as_root(&["umount", "--lazy"], self.path());
    }
}

fn as_root(command: &[&str], path: &Path) -> bool {
    [&[][..], &["sudo", "-n"]].iter().any(|before| {
        let words: Vec<_> = before.iter().chain(command).collect();
        Blocking::new(words[0]).args(&words[1..]).arg(path).status().is_ok_and(|status| status.success())
    })
}

/// A running `stagedoor serve` with its data on the disk.
struct Server {
    child: Child,
    api: Api,
}

fn serve(disk: &Disk) -> tokio::process::Command {
    let data = disk.path().to_str().expect("a path");
    let mut command = stagedoor(&["serve", "--listen", "127.0.0.1:0", "--data", data]);
    command.env("STAGEDOOR_OPERATOR_KEY", OPERATOR_KEY).env("STAGEDOOR_SERVICE_KEY", SERVICE_KEY);
    command
}

impl Server {
    /// Starts the server; its log is a file beside the disk.
    async fn start(disk: &Disk, log: &Path) -> Self {
        let mut command = serve(disk);
        command.stderr(File::create(log).expect("a file for the log"));
        let child = command.spawn().expect("the program starts");
        let address = patiently("the server says where it listens", async {
            loop {
                let output = std::fs::read_to_string(log).expect("a log");
                let line = output.lines().find(|line| line.contains("stagedoor serves"));
                if let Some((_, address)) = line.and_then(|line| line.split_once("address=")) {
                    break address.trim().to_owned();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        Self { child, api: Api::new(&format!("http://{address}"), OPERATOR_KEY) }
    }

    async fn stop(mut self) {
        let id = self.child.id().expect("it runs").to_string();
        assert!(Blocking::new("kill").args(["-TERM", &id]).status().expect("kill is there").success());
        assert!(patiently("it stops", self.child.wait()).await.expect("a status").success());
    }

    async fn kill(mut self) {
        self.child.kill().await.expect("it ends");
    }
}

fn channel(n: usize) -> String {
    format!("channel-{n}")
}

async fn put(api: &Api, n: usize) -> Response {
    let name = format!("{n} {}", "x".repeat(60));
    let request = Request::put(format!("/platform/v1/channels/{}", channel(n)));
    api.operator(request.json(&json!({ "channelName": name }))).await
}

async fn ready(api: &Api) -> (u16, String) {
    let answer = api.send(Request::get("/health/ready")).await;
    (answer.status, answer.text().to_owned())
}

fn disk_full() -> (u16, String) {
    (503, r#"{"code":503,"message":"STORE_DISK_FULL"}"#.to_owned())
}

async fn until_ready(api: &Api) {
    patiently("the node is ready again", async {
        while ready(api).await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

fn is_disk_full(answer: &Response) -> bool {
    answer.status == 503
        && answer.header("stagedoor-reason") == Some("disk-full")
        && answer.header("retry-after") == Some("10")
}

fn assert_disk_full(what: &str, answer: &Response) {
    let reason = answer.header("stagedoor-reason");
    assert!(is_disk_full(answer), "{what}: {} {reason:?} {}", answer.status, answer.text());
}

/// Every write is refused with 503; every read is answered.
async fn writes_are_refused(api: &Api, app: &Application, tokens: &Tokens, auth: &str) {
    assert_disk_full("a chat message", &api.send_chat(&tokens.access, "lost").await);
    assert_disk_full("a session URL", &api.user_session_url(&tokens.access).await);
    assert_disk_full("a refresh", &api.refresh(app, &tokens.refresh).await);
    let session_url = format!("http://{}?{auth}", api.address());
    assert_disk_full("a handshake", &Socket::connect(&session_url).await.expect_err("a refusal"));
    let line =
        json!({ "kind": "chat", "channelId": "haneul", "senderChannelId": "haneul", "message": "lost" });
    let bulk = Request::post("/platform/v1/events").body(format!("{line}\n").repeat(3));
    assert_disk_full("a bulk", &api.operator(bulk).await);
    let mut browser = Browser::new(api.address());
    let address = format!(
        "/account-interlock?clientId={}&redirectUri={}&state=x",
        app.client_id,
        testkit::encode(&app.redirect_uri)
    );
    let page = browser.open(&address).await;
    assert!(page.response.status == 200 || is_disk_full(&page.response), "{}", page.response.text());
    api.me(&tokens.access).await.content();
    api.channels(app, "channelIds=haneul").await.content();
    api.operator(Request::get("/platform/v1/sessions")).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_reads_continue_and_writes_recover_with_free_space() {
    let (disk, logs) = (Disk::mount(), tempfile::tempdir().expect("a temporary folder"));
    let log = logs.path().join("log");
    let server = Server::start(&disk, &log).await;
    let api = server.api.clone();
    let streamer = api.person("haneul").create().await;
    let app = api.application("bot").create().await;
    let tokens = api.sign_in(&app, &streamer).await;
    let session_url = api.user_session_url(&tokens.access).await.content();
    let (_, auth) = session_url["url"].as_str().and_then(|url| url.split_once('?')).expect("an address");
    let _socket = api.open_user_session(&tokens.access).await;
    until_ready(&api).await;

    disk.fill();
    let mut accepted = Vec::new();
    for n in 0..WRITES {
        let answer = put(&api, n).await;
        match answer.status {
            200 => accepted.push(n),
            _ => assert_disk_full("a channel", &answer),
        }
    }
    assert!(accepted.len() < WRITES / 2, "{accepted:?}: what is left of a page takes only a few");
    writes_are_refused(&api, &app, &tokens, auth).await;
    assert_eq!(ready(&api).await, disk_full());
    let output = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<_> =
        output.lines().filter(|line| line.contains(" WARN ") || line.contains("ERROR")).collect();
    assert!((1..=3).contains(&lines.len()), "{output}");
    assert!(lines.iter().any(|line| line.contains("the disk of the database is full")), "{output}");

    // A start on the full disk, after a kill that left the database's log in place.
    server.kill().await;
    let server = Server::start(&disk, &log).await;
    let api = server.api.clone();
    let output = std::fs::read_to_string(&log).expect("a log");
    assert!(output.contains("reads are answered, writes are refused until there is room"), "{output}");
    assert_eq!(ready(&api).await, disk_full());
    writes_are_refused(&api, &app, &tokens, auth).await;

    disk.make_room();
    patiently("writes come back by themselves", async {
        while !put(&api, WRITES).await.status.eq(&200) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    until_ready(&api).await;
    let sessions = api.user_sessions(&tokens.access, "").await.content();
    let ended = &sessions["data"][0]["disconnectedDate"];
    assert!(ended.is_string(), "the session of the process that died: {sessions}");
    for n in 0..WRITES {
        let found = api.channels(&app, &format!("channelIds={}", channel(n))).await.content();
        let count = found["data"].as_array().expect("a list").len();
        assert_eq!(count, usize::from(accepted.contains(&n)), "{n}");
    }
    api.refresh(&app, &tokens.refresh).await.content();
    api.send_chat(&tokens.access, "there is room").await.content();
    let metrics = api.operator(Request::get("/metrics")).await;
    let full = metrics.text().lines().find_map(|line| line.strip_prefix("stagedoor_store_disk_full_total "));
    assert!(full.is_some_and(|full| full != "0"), "{full:?}");
    server.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_on_a_full_disk_fails_with_a_sentence() {
    let (disk, logs) = (Disk::mount(), tempfile::tempdir().expect("a temporary folder"));
    // There is no database yet.
    start_is_refused(&disk).await;
    disk.make_room();
    Server::start(&disk, &logs.path().join("log")).await.stop().await;
    // The database was closed properly.
    start_is_refused(&disk).await;
}

async fn start_is_refused(disk: &Disk) {
    disk.fill();
    let output = run(serve(disk)).await;
    assert!(!output.status.success());
    let last = output.stderr.lines().last().unwrap_or_default();
    let path = disk.path().to_str().expect("a path");
    assert!(last.starts_with("stagedoor: "), "{}", output.stderr);
    assert!(last.contains("disk is full") && last.contains(path), "{}", output.stderr);
}

/// PostgreSQL reports a full disk with SQLSTATE 53100. Triggers simulate it here.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_postgresql_gets_the_same_answer() {
    const FAIL: &str = "CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$";
    const FILL: [&str; 3] = [
        FAIL,
        "CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON chat_messages EXECUTE FUNCTION disk_full()",
        "CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON nodes EXECUTE FUNCTION disk_full()",
    ];
    const MAKE_ROOM: [&str; 1] = ["DROP FUNCTION disk_full() CASCADE"];
    over_a_wire(Setup::default(), |world, wire| async move {
        let store = Store::open(Target::Postgres { url: wire.past().into() }, Options::default()).await;
        let store = store.expect("the store opens");
        let fixture = Fixture::set_up(&world).await;
        let say = || world.send_chat(&fixture.tokens.access, "hello");
        say().await.content();
        assert_eq!(ready(&world).await.0, 200);
        run_all(&store, &FILL).await;
        assert_disk_full("a chat message", &say().await);
        assert_eq!(ready(&world).await, disk_full());
        world.me(&fixture.tokens.access).await.content();
        // Waiting frees no space: the next heartbeat fails too.
        world.advance(Duration::from_secs(60));
        patiently("a heartbeat finds the disk full", async {
            while ready(&world).await != disk_full() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        run_all(&store, &MAKE_ROOM).await;
        say().await.content();
        assert_eq!(ready(&world).await, disk_full(), "a moment ago there was none");
        // A write that began before may note the full disk later. So the clock advances again.
        patiently("the node is ready again", async {
            while ready(&world).await.0 != 200 {
                world.advance(Duration::from_secs(10));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        store.close().await;
    })
    .await;
}

async fn run_all(store: &Store, statements: &'static [&'static str]) {
    for sql in statements {
        let done: Result<_, StoreError> =
            store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
        done.expect("the statement runs");
    }
}
