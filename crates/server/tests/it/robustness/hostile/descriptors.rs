//! A process without free descriptors: sessions continue, new connections are refused or wait, no task
//! busy-loops, and every closed connection makes room.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use testkit::{Connection, Socket, patiently, websocket_request};
use tokio::process::Command;

use super::crowd::Crowd;
use super::sessions::session_queries;
use crate::cli::process::{Sandbox, stagedoor};

/// The limit of descriptors of the program.
const LIMIT: usize = 200;
/// The number of sessions that it accepts with this limit.
const SESSIONS: usize = 88;
/// Number of peers, more than there is room for.
const PEERS: usize = 50;
/// Maximum CPU time in two idle seconds. A busy loop would use all of it.
const IDLE_CPU_MAX: Duration = Duration::from_millis(500);

/// The program with a low limit of descriptors.
pub async fn limited(folder: &tempfile::TempDir, limit: usize) -> Sandbox {
    let log = folder.path().join("log");
    let program = stagedoor(&["dev", "--json", "--listen", "127.0.0.1:0", "--no-quota"]);
    let mut command = with_limit(&program, limit);
    command.stdout(Stdio::piped()).stderr(File::create(&log).expect("a file for the log"));
    Sandbox::of(command, log).await
}

/// A program with a low limit of descriptors, without the environment of the test.
pub fn with_limit(program: &Command, limit: usize) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]);
    command.arg(program.as_std().get_program()).args(program.as_std().get_args());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("STAGEDOOR_"))
    {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn open_sessions(sandbox: &Sandbox, queries: &[String]) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for query in queries {
        sockets.push(Socket::open(&format!("http://{}?{query}", sandbox.api.address())).await);
    }
    sockets
}

/// The least CPU time of two seconds, out of three measurements: other work of the node ends, a busy loop
/// does not.
async fn cpu_of_two_seconds(sandbox: &Sandbox) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let before = sandbox.cpu();
        tokio::time::sleep(Duration::from_secs(2)).await;
        least = least.min(sandbox.cpu() - before);
        if least < IDLE_CPU_MAX {
            break;
        }
    }
    least
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_keeps_its_sessions_and_refuses_more_until_some_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = limited(&folder, LIMIT).await;
    let crowd = Crowd::gather(&sandbox.api, "haneul", 8).await;
    let queries = session_queries(&sandbox.api, "filling", SESSIONS).await;
    let mut sockets = open_sessions(&sandbox, &queries[..SESSIONS - 8]).await;
    for (query, transport) in queries[SESSIONS - 8..].iter().zip(["websocket", "polling"]) {
        let mut connection = Connection::open(sandbox.api.address()).await;
        let request = websocket_request(&format!("{query}&EIO=3&transport={transport}"));
        let refused = connection.send(&request).await;
        refused.assert_refused(503, "SERVICE_UNAVAILABLE");
        assert!(refused.number("retry-after") > 0);
    }
    // Peers that send no request cannot keep out those that do.
    let mut idle = Vec::new();
    for _ in 0..PEERS {
        idle.push(Connection::open(sandbox.api.address()).await);
    }
    let demo = sandbox.user(0, "demo").1.access;
    sandbox.api.me(&demo).await.content();

    // Peers with unfinished requests cannot either, after a second for their bodies.
    let mut busy = Vec::new();
    for _ in 0..PEERS {
        let mut peer = Connection::open(sandbox.api.address()).await;
        peer.write(b"POST /auth/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{").await;
        busy.push(peer);
    }
    let cpu = cpu_of_two_seconds(&sandbox).await;
    assert!(cpu < IDLE_CPU_MAX, "two seconds of waiting cost {cpu:?}");
    for socket in &mut sockets {
        socket.ping().await;
    }
    sandbox.api.me(&demo).await.content();
    drop((idle, busy));
    // Closed sessions make room, and the refused session URL is still valid.
    for socket in sockets.drain(..10) {
        socket.close().await;
    }
    patiently("a newcomer gets in", async {
        let url = format!("http://{}?{}", sandbox.api.address(), queries[SESSIONS - 8]);
        while Socket::connect(&url).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    for socket in &mut sockets {
        socket.ping().await;
    }
    crowd.disperse().await;
    sandbox.signal("TERM").await;
    assert_eq!(sandbox.end().await.0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_free_descriptors_waits_for_some() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--no-quota"]).await;
    let queries = session_queries(&sandbox.api, "before", 20).await;
    let mut sockets = open_sessions(&sandbox, &queries[..10]).await;
    sandbox.limit_descriptors(sandbox.descriptors()).await;
    // The system accepts the connections for the program, so these peers connect, and wait.
    let mut waiting = Vec::new();
    for query in &queries[10..] {
        let url = format!("http://{}?{query}", sandbox.api.address());
        waiting.push(tokio::spawn(async move { Socket::open(&url).await }));
    }
    let cpu = cpu_of_two_seconds(&sandbox).await;
    assert!(cpu < IDLE_CPU_MAX, "two seconds of waiting cost {cpu:?}");
    for socket in &mut sockets {
        socket.ping().await;
    }
    assert!(waiting.iter().filter(|task| task.is_finished()).count() <= 4);
    sandbox.limit_descriptors(1_000).await;
    for task in waiting {
        task.await.expect("it gets in").ping().await;
    }
    for socket in &mut sockets {
        socket.ping().await;
    }
    let log = std::fs::read_to_string(sandbox.log_path()).expect("the log");
    let lines = log.matches("failed to accept connections").count();
    assert!((1..=12).contains(&lines), "it was lines {lines} times");
}
