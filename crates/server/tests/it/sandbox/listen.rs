//! The events of a session on a terminal, and forwarded to a program.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Receiver, Request, patiently};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::cli::process::{Sandbox, run, stagedoor_in};

async fn sandbox(folder: &Path) -> Sandbox {
    let log = folder.join("log");
    let mut command = stagedoor_in(folder, &["dev", "--json", "--listen", "0"]);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
    Sandbox::of(command, log).await
}

/// A running `stagedoor listen`.
struct Listening {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Listening {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = stagedoor_in(folder, &[&["listen"][..], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped")).lines();
        let stderr = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self { child, stdout, stderr }
    }

    async fn line(&mut self) -> String {
        patiently("a line", self.stdout.next_line()).await.expect("text").expect("a line")
    }

    async fn error(&mut self) -> String {
        patiently("a line of stderr", self.stderr.next_line()).await.expect("text").expect("a line")
    }

    async fn event(&mut self) -> Value {
        serde_json::from_str(&self.line().await).expect("JSON")
    }

    /// Waits for `connected` and for this number of subscriptions. Returns the key of the session.
    async fn subscribed(&mut self, subscriptions: usize) -> String {
        let connected = self.event().await;
        assert_eq!(
            (&connected["event"], &connected["data"]["type"]),
            (&json!("SYSTEM"), &json!("connected"))
        );
        for _ in 0..subscriptions {
            assert_eq!(self.event().await["data"]["type"], "subscribed");
        }
        connected["data"]["data"]["sessionKey"].as_str().expect("a key").to_owned()
    }

    async fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().expect("it runs").to_string();
        let signalled = Command::new("kill").args(["-INT", &id]).status().await;
        assert!(signalled.expect("kill is there").success());
        patiently("it ends", self.child.wait()).await.expect("a status").code()
    }
}

async fn trigger(sandbox: &Sandbox, kind: &str, fields: Value) -> Value {
    sandbox.api.operator(Request::post(format!("/sandbox/v1/trigger/{kind}")).json(&fields)).await.content()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_a_line_and_the_session_is_a_real_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let mut listening = Listening::start(folder.path(), &["--user", "bada", "--json"]);
    let key = listening.subscribed(3).await;
    let session = format!("/platform/v1/sessions/{key}");
    let details = sandbox.api.operator(Request::get(session.as_str())).await.content();
    assert_eq!((&details["clientId"], &details["channelId"]), (&json!("demo"), &json!("streamer-bada")));
    let said = json!({ "channel": "bada", "from": "byeol", "message": "hello" });
    assert_eq!(trigger(&sandbox, "chat", said).await["delivered"], 1);
    trigger(&sandbox, "chat", json!({ "channel": "haneul" })).await;
    trigger(&sandbox, "donation", json!({ "to": "bada", "amount": 2_000 })).await;
    let chat = listening.event().await;
    assert_eq!((&chat["event"], &chat["data"]["content"]), (&json!("CHAT"), &json!("hello")));
    let donation = listening.event().await;
    assert_eq!((&donation["event"], &donation["data"]["payAmount"]), (&json!("DONATION"), &json!("2000")));

    trigger(&sandbox, "close-session", json!({ "user": "bada" })).await;
    assert!(listening.error().await.contains("evicted"));
    let second = listening.subscribed(3).await;
    assert_ne!(second, key);
    trigger(&sandbox, "subscription", json!({ "to": "bada" })).await;
    assert_eq!(listening.event().await["event"], "SUBSCRIPTION");
    assert_eq!(listening.interrupt().await, Some(0));
    let session = format!("/platform/v1/sessions/{second}");
    patiently("the goodbye", async {
        loop {
            let details = sandbox.api.operator(Request::get(session.as_str())).await.content();
            if details["closeReason"] == "client_goodbye" {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_before_its_subscription_is_followed_by_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let gone = json!({
        "match": { "path": "/open/v1/sessions/events/subscribe/donation" },
        "times": 1,
        "do": { "status": 404 },
    });
    sandbox.api.operator(Request::post("/sandbox/v1/faults").json(&gone)).await.content();
    let mut listening = Listening::start(folder.path(), &["--events", "donation", "--json"]);
    let first = listening.subscribed(0).await;
    assert!(listening.error().await.contains("the session ended"));
    assert_ne!(listening.subscribed(1).await, first);
    assert_eq!(listening.interrupt().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_forwarded_to_a_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let receiver = Receiver::start().await;
    let url = receiver.url("/events");
    let mut listening = Listening::start(folder.path(), &["--events", "chat", "--forward-to", &url]);
    assert!(listening.line().await.starts_with("SYSTEM        connected"));
    assert!(listening.line().await.contains("eventType CHAT"));
    trigger(&sandbox, "chat", json!({ "from": "nuri", "message": "hello" })).await;
    assert_eq!(listening.line().await, "CHAT          누리 (viewer-nuri): hello");
    for _ in 0..2 {
        assert_eq!(receiver.next().await.header("stagedoor-event"), "SYSTEM");
    }
    let last = receiver.next().await;
    assert_eq!((last.line.as_str(), last.header("stagedoor-event")), ("POST /events HTTP/1.1", "CHAT"));
    let body: Value = serde_json::from_slice(&last.body).expect("JSON");
    assert_eq!((&body["event"], &body["data"]["content"]), (&json!("CHAT"), &json!("hello")));
    assert_eq!(listening.interrupt().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_cannot_begin_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = run(stagedoor_in(folder.path(), &["listen"])).await;
    assert_eq!(refused.status.code(), Some(3), "{}", refused.stderr);
    let sandbox = sandbox(folder.path()).await;
    for (arguments, code, part) in [
        (&["--forward-to", "9999"][..], 2, "http://127.0.0.1:9999/"),
        (&["--events", "follow"], 2, "possible values"),
        (&["--user", "nobody"], 2, "nobody"),
    ] {
        let refused = run(stagedoor_in(folder.path(), &[&["listen"][..], arguments].concat())).await;
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{arguments:?}: {}", refused.stderr);
    }
    trigger(&sandbox, "remove-scope", json!({ "client": "demo", "scope": "후원 조회" })).await;
    let refused = run(stagedoor_in(folder.path(), &["listen"])).await;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("subscribing to donation") && refused.stderr.contains("--events"));
}
