//! A developer's listener: the messages that it fetches, the results that it reports, and its command
//! (`docs/webhooks.md`).

use std::convert::Infallible;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Receiver, Reply, Request, ReservedPort, Response, Setup, World, both, patiently};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::task::JoinHandle;

use crate::cli::process::{Sandbox, run, stagedoor};
use crate::fixture::{Fixture, wrong};

const LISTENER: &str = "/open/v1/drops/webhook/listener";
const WEBHOOK: &str = "/platform/v1/applications/publisher/webhook";
/// The duration of a lease.
const LEASE: Duration = Duration::from_secs(15);
/// More than the first pause of the schedule with its maximum jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(5_501);

/// A publisher whose webhook has a listener.
struct Desk {
    world: World,
    fixture: Fixture,
}

impl Desk {
    async fn set(world: &World) -> Self {
        Self { world: world.clone(), fixture: Fixture::set_up(world).await }
    }

    async fn ask(&self, path: &str, body: &Value) -> Response {
        let app = &self.fixture.publisher.app;
        let request = Request::post(format!("{LISTENER}{path}")).client(&app.client_id, &app.client_secret);
        self.world.send(request.json(body)).await
    }

    async fn begin(&self) -> Value {
        self.ask("", &json!({})).await.content()
    }

    async fn claim(&self) -> String {
        let reward = self.fixture.publisher.next_reward();
        let body = json!({ "campaignId": "voyage", "rewardId": reward, "channelId": "byeol" });
        self.world.claim(&body).await.content()["claimId"].as_str().expect("a text").to_owned()
    }

    /// The attempts that are due now.
    async fn fetch(&self) -> Vec<Value> {
        let content = self.ask("/attempts", &json!({ "waitSeconds": 0 })).await.content();
        content["data"].as_array().expect("a list").clone()
    }

    /// The only attempt that is due now.
    async fn next(&self) -> Value {
        let mut attempts = self.fetch().await;
        assert_eq!(attempts.len(), 1, "{attempts:?}");
        attempts.remove(0)
    }

    async fn report(&self, attempt: &Value, more: Value) -> Response {
        let mut body = json!({ "number": attempt["number"], "durationMs": 7 });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.ask(&format!("/attempts/{}", text(&attempt["messageId"])), &body).await
    }

    async fn message(&self, attempt: &Value) -> Value {
        let target = format!("{WEBHOOK}/deliveries/{}", text(&attempt["messageId"]));
        self.world.operator(Request::get(target)).await.content()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_creates_the_webhook_and_its_secret_is_returned_once() {
    both(Setup::default(), |world| async move {
        let desk = Desk::set(&world).await;
        let calls = (0..10).map(|_| desk.begin());
        let begun = futures(calls).await;
        let secrets: Vec<_> = begun.iter().filter_map(|begun| begun["secret"].as_str()).collect();
        assert_eq!(secrets.len(), 1, "{begun:?}");
        let webhook = world.operator(Request::get(WEBHOOK)).await.content();
        assert_eq!((&webhook["url"], &webhook["enabled"]), (&Value::Null, &json!(true)));
        let claim = desk.claim().await;
        let attempt = desk.next().await;
        let keys: Vec<_> = attempt.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["body", "eventType", "headers", "messageId", "number"]);
        assert_eq!(attempt["eventType"], "drop_reward_claim");
        let body: Value = serde_json::from_str(text(&attempt["body"])).expect("JSON");
        assert_eq!(body["event"]["data"]["claimId"], claim);
        let headers = attempt["headers"].as_object().expect("headers").iter();
        let headers = headers.map(|(name, value)| (name.clone(), text(value).to_owned())).collect();
        let body = text(&attempt["body"]).as_bytes().to_vec();
        let received = testkit::Received { line: String::new(), headers, body, connection: 0 };
        assert!(received.is_signed_with(secrets[0]));
    })
    .await;
}

/// Runs all calls concurrently.
async fn futures<T>(calls: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(calls).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listeners_report_is_recorded_as_an_attempt() {
    both(Setup::default(), |world| async move {
        let desk = Desk::set(&world).await;
        desk.begin().await;
        desk.claim().await;
        let first = desk.next().await;
        assert!(desk.fetch().await.is_empty(), "it is leased");
        let answer = json!({ "status": 500, "answer": "한글 오류", "retryAfter": "60" });
        let followed = desk.report(&first, answer).await.content();
        assert_eq!((&followed["recorded"], &followed["state"]), (&json!(true), &json!("WAITING")));
        assert_eq!(followed["nextAttemptDate"], "2026-07-18T14:33:12.345Z", "as Retry-After says");
        let again = desk.report(&first, json!({ "status": 200 })).await.content();
        let late = json!({ "recorded": false, "state": null, "nextAttemptDate": null });
        assert_eq!(again, late, "an attempt is recorded once");
        world.advance(Duration::from_secs(60));
        let second = desk.next().await;
        assert_eq!((&second["messageId"], &second["number"]), (&first["messageId"], &json!(2)));
        assert_eq!(second["headers"]["Service-Event-Message-Retry"], "1");
        assert_ne!(
            second["headers"]["Service-Event-Message-Signature"],
            first["headers"]["Service-Event-Message-Signature"]
        );
        assert_eq!(desk.report(&first, json!({ "status": 200 })).await.content(), late, "of the one before");
        let followed = desk.report(&second, json!({ "failure": "connect" })).await.content();
        assert_eq!(followed["state"], "WAITING");
        world.advance(Duration::from_secs(331));
        let third = desk.next().await;
        let followed = desk.report(&third, json!({ "status": 204 })).await.content();
        assert_eq!(followed, json!({ "recorded": true, "state": "DELIVERED", "nextAttemptDate": null }));
        let message = desk.message(&third).await;
        let seen: Vec<_> = message["attempts"].as_array().expect("attempts").iter().collect();
        assert_eq!((seen.len(), &message["state"]), (3, &json!("DELIVERED")), "{message}");
        assert_eq!((&seen[2]["status"], &seen[2]["durationMs"]), (&json!(500), &json!(7)));
        assert!(message.to_string().contains("한글 오류") && message.to_string().contains("connect"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_without_a_report_is_a_failed_attempt() {
    both(Setup::default(), |world| async move {
        let desk = Desk::set(&world).await;
        desk.begin().await;
        desk.claim().await;
        let first = desk.next().await;
        world.advance(LEASE);
        assert!(desk.fetch().await.is_empty(), "the schedule begins");
        let message = desk.message(&first).await;
        assert_eq!(message["attempts"].as_array().expect("attempts").len(), 1, "{message}");
        assert!(message["attempts"][0].to_string().contains("timeout"), "{message}");
        assert_eq!(desk.report(&first, json!({ "status": 200 })).await.content()["recorded"], false);
        world.advance(FIRST_PAUSE);
        let second = desk.next().await;
        assert_eq!(second["number"], 2);
        world.advance(LEASE);
        // A late report counts if no other attempt was made.
        assert_eq!(desk.report(&second, json!({ "status": 200 })).await.content()["state"], "DELIVERED");
    })
    .await;
}

/// Advances the clock in steps, because a waiting task may start at any time.
async fn time_goes_on(world: &World) -> Infallible {
    loop {
        world.advance(Duration::from_millis(500));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_listener_is_woken_by_a_claim_and_by_a_retry() {
    both(Setup::default(), |world| async move {
        let desk = std::sync::Arc::new(Desk::set(&world).await);
        desk.begin().await;
        let waiting = |desk: std::sync::Arc<Desk>| {
            tokio::spawn(async move {
                let content = desk.ask("/attempts", &json!({ "waitSeconds": 25 })).await.content();
                content["data"].as_array().expect("a list").clone()
            })
        };
        let first = waiting(desk.clone());
        // The clock does not advance: only the claim can wake the listener.
        desk.claim().await;
        let attempts = patiently("the claim", first).await.expect("attempts");
        assert_eq!(attempts.len(), 1);
        desk.report(&attempts[0], json!({ "status": 503 })).await.content();
        let answered = async |what: &str, waiting: JoinHandle<Vec<Value>>| {
            tokio::select! {
                answered = patiently(what, waiting) => answered.expect("attempts"),
                never = time_goes_on(&world) => match never {},
            }
        };
        assert_eq!(answered("what is due", waiting(desk.clone())).await[0]["number"], 2);
        assert!(answered("the end of the wait", waiting(desk.clone())).await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_listener_names_the_remedy() {
    both(Setup::default(), |world| async move {
        let desk = Desk::set(&world).await;
        let nothing = desk.ask("/attempts", &json!({ "waitSeconds": 0 })).await;
        nothing.assert_refused(404, "NOT_FOUND");
        let put = |body: Value| world.operator(Request::put(WEBHOOK).json(&body));
        put(json!({ "url": "http://127.0.0.1:1/hook" })).await.content();
        let address = wrong(
            "webhook",
            "주소가 등록된 웹훅에는 리스너를 쓸 수 없습니다. 먼저 DELETE /platform/v1/applications/{clientId}/webhook으로 \
             삭제해 주세요.",
        );
        let poll = json!({ "waitSeconds": 0 });
        let report = json!({ "number": 1, "status": 200, "durationMs": 1 });
        for (path, body) in [("", &json!({})), ("/attempts", &poll), ("/attempts/x", &report)] {
            desk.ask(path, body).await.assert_refused(400, &address);
        }
        world.operator(Request::delete(WEBHOOK)).await.content();
        desk.begin().await;
        let off = wrong(
            "webhook",
            "사용 중지된 웹훅입니다. 리스너를 다시 시작하거나, 운영자가 중지했다면 운영자에게 문의해 주세요.",
        );
        desk.claim().await;
        let gone = desk.next().await;
        assert_eq!(desk.report(&gone, json!({ "status": 410 })).await.content()["state"], "DEAD");
        desk.ask("/attempts", &poll).await.assert_refused(400, &off);
        desk.begin().await;
        assert!(desk.fetch().await.is_empty(), "it is enabled again");
        put(json!({ "enabled": false })).await.content();
        desk.ask("", &json!({})).await.assert_refused(400, &off);

        put(json!({ "enabled": true })).await.content();
        let either = "이 값과 failure 중 하나만 지정해야 합니다.";
        for (field, value, named, rule) in [
            ("number", json!(0), "number", "1 이상 4294967295 이하의 정수여야 합니다."),
            ("status", json!(99), "status", "100 이상 999 이하의 정수여야 합니다."),
            ("status", Value::Null, "status", either),
            ("failure", json!("timeout"), "status", either),
            ("durationMs", json!(60_001), "durationMs", "0 이상 60000 이하의 정수여야 합니다."),
            ("answer", json!("a\u{0}"), "answer", "NUL 문자(U+0000)가 있으면 안 됩니다."),
        ] {
            let mut body = report.clone();
            body[field] = value.clone();
            let answer = desk.ask("/attempts/x", &body).await;
            assert_eq!((answer.status, answer.message()), (400, wrong(named, rule)), "{field} = {value}");
        }
        for (field, value) in [("waitSeconds", json!(26)), ("waitSeconds", json!(-1)), ("size", json!(9))] {
            let mut body = poll.clone();
            body[field] = value;
            assert_eq!(desk.ask("/attempts", &body).await.status, 400, "{body}");
        }
    })
    .await;
}

/// A running `stagedoor webhook listen --json`.
struct Listening {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
    secret: Option<String>,
}

impl Listening {
    async fn start(server: &str, secret: &str, forward_to: &str) -> Self {
        let mut command = stagedoor(&["webhook", "listen", "--json", "--client-id", "drops"]);
        command.args(["--server", server, "--forward-to", forward_to]).env("STAGEDOOR_CLIENT_SECRET", secret);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped")).lines();
        let stderr = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut listening = Self { child, stdout, stderr, secret: None };
        let first = listening.line().await;
        assert_eq!(first["listening"], forward_to);
        listening.secret = first["secret"].as_str().map(str::to_owned);
        listening
    }

    async fn line(&mut self) -> Value {
        let line = patiently("a line", self.stdout.next_line()).await.expect("text").expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    }

    /// Interrupts it, and returns the rest of its output.
    async fn end(mut self) {
        let id = self.child.id().expect("it runs").to_string();
        tokio::process::Command::new("kill").args(["-INT", &id]).status().await.expect("kill is there");
        let status = patiently("the end", self.child.wait()).await.expect("a status");
        assert_eq!(status.code(), Some(0));
    }
}

async fn claim(sandbox: &Sandbox, viewer: &str) -> String {
    let body = json!({ "campaignId": "first-voyage", "rewardId": "sail", "channelId": viewer });
    sandbox.api.claim(&body).await.content()["claimId"].as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_forwards_each_message_unchanged_and_prints_the_outcome() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let port = ReservedPort::take();
    let receiver = Receiver::at(port.address()).await;
    let app = sandbox.application("drops");
    let base = sandbox.world["baseUrl"].as_str().expect("a text").to_owned();
    let forward_to = receiver.url("/hook?x=1");
    let mut listening = Listening::start(&base, &app.client_secret, &forward_to).await;
    let secret = listening.secret.clone().expect("a new webhook has a secret");

    let moved = vec!["Location: http://127.0.0.1:1/elsewhere".to_owned()];
    receiver.reply([Reply::Whole(302, moved, Vec::new())]);
    let claimed = claim(&sandbox, "viewer-dal").await;
    let received = receiver.next().await;
    assert_eq!(received.line, "POST /hook?x=1 HTTP/1.1");
    assert!(received.is_signed_with(&secret));
    let body: Value = serde_json::from_slice(&received.body).expect("JSON");
    assert_eq!(body["event"]["data"]["claimId"], claimed);
    let line = listening.line().await;
    assert_eq!((&line["status"], &line["state"]), (&json!(302), &json!("WAITING")), "{line}");
    assert_eq!(line["messageId"], received.header("Service-Event-Message-Id"));
    assert!(line["nextAttemptDate"].is_string() && line["number"] == 1, "{line}");

    // The next attempt is about five seconds later.
    let again = receiver.next().await;
    assert_eq!(again.header("Service-Event-Message-Id"), received.header("Service-Event-Message-Id"));
    assert_eq!(again.header("Service-Event-Message-Retry"), "1");
    let line = listening.line().await;
    assert_eq!((&line["status"], &line["state"]), (&json!(200), &json!("DELIVERED")), "{line}");
    listening.end().await;

    // A second listener prints no secret, and fetches the messages that have arrived. Its target does not
    // run.
    claim(&sandbox, "viewer-gureum").await;
    drop(receiver);
    let mut listening = Listening::start(&base, &app.client_secret, &forward_to).await;
    assert_eq!(listening.secret, None);
    let line = listening.line().await;
    assert_eq!((&line["failure"], &line["state"]), (&json!("connect"), &json!("WAITING")), "{line}");
    listening.end().await;
    sandbox.signal("TERM").await;
    sandbox.end().await;
}

/// A sandbox with a kept world.
async fn kept(folder: &Path, listen: &str) -> Sandbox {
    let mut command = stagedoor(&["dev", "--json", "--listen", listen, "--data"]);
    command.arg(folder).stdout(Stdio::piped()).stderr(Stdio::null());
    Sandbox::of(command, folder.join("log")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_reconnects_when_the_service_is_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let receiver = Receiver::start().await;
    let port = ReservedPort::take();
    let address = port.address().to_string();
    let sandbox = kept(folder.path(), &address).await;
    let app = sandbox.application("drops");
    let base = sandbox.world["baseUrl"].as_str().expect("a text").to_owned();
    let mut listening = Listening::start(&base, &app.client_secret, &receiver.url("/hook")).await;
    sandbox.signal("TERM").await;
    let (status, _) = sandbox.end().await;
    assert_eq!(status.code(), Some(0), "a waiting listener does not delay a stop");
    let output = patiently("a word", listening.stderr.next_line()).await.expect("text").expect("a line");
    assert!(output.contains("trying again in 1 s"), "{output}");
    let sandbox = kept(folder.path(), &address).await;
    claim(&sandbox, "viewer-dal").await;
    let received = receiver.next().await;
    assert_eq!(listening.line().await["messageId"], received.header("Service-Event-Message-Id"));
    listening.end().await;
    sandbox.signal("TERM").await;
    sandbox.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listen_command_that_is_refused_prints_the_remedy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start(folder.path(), &["--language", "en"]).await;
    let base = sandbox.world["baseUrl"].as_str().expect("a text").to_owned();
    let secret = |name: &str| sandbox.application(name).client_secret;
    let (drops, demo, wrong) = (secret("drops"), secret("demo"), "w".repeat(43));
    let put = |body: Value| {
        sandbox.api.operator(Request::put("/platform/v1/applications/drops/webhook").json(&body))
    };
    put(json!({ "url": "http://127.0.0.1:1/hook" })).await.content();
    for (client, secret, forward_to, part) in [
        ("drops", Some(&wrong), "http://127.0.0.1:1/", "printed by `stagedoor dev`"),
        ("demo", Some(&demo), "http://127.0.0.1:1/", "needs the scope 드롭스"),
        ("drops", Some(&drops), "http://127.0.0.1:1/", "Delete it first"),
        // The sandbox says the secret of its own application.
        ("drops", None, "http://127.0.0.1:1/", "Delete it first"),
        ("drops", Some(&drops), "ftp://127.0.0.1/", "--forward-to"),
    ] {
        let mut command = stagedoor(&["webhook", "listen", "--client-id", client, "--server", &base]);
        command.args(["--forward-to", forward_to]);
        if let Some(secret) = secret {
            command.env("STAGEDOOR_CLIENT_SECRET", secret);
        }
        let output = run(command).await;
        assert!(!output.status.success() && output.stderr.contains(part), "{part}: {}", output.stderr);
        assert!(secret.is_none_or(|secret| !output.stderr.contains(secret)), "{}", output.stderr);
    }
    sandbox.signal("TERM").await;
    sandbox.end().await;
}
