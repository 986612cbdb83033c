//! Faults of the attempts of a listener: the same as of those that the sandbox sends itself.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Received, Receiver, Reply, Request, patiently};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::deliveries::deliveries;
use super::webhook::claim;
use crate::cli::process::{CommandOutput, Sandbox, run, stagedoor_in};

/// A running `stagedoor webhook listen`, which found its sandbox.
struct Listening {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    secret: String,
}

impl Listening {
    async fn start(runtime: &Path, receiver: &Receiver) -> Self {
        let url = receiver.url("/hook");
        let arguments = ["webhook", "listen", "--json", "--client-id", "drops", "--forward-to", &url];
        let mut command = stagedoor_in(runtime, &arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut listening = Self { _child: child, lines, secret: String::new() };
        let first = listening.line().await;
        listening.secret = first["secret"].as_str().expect("the secret of a new webhook").to_owned();
        listening
    }

    async fn line(&mut self) -> Value {
        let line = patiently("a line", self.lines.next_line()).await.expect("text").expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    }
}

async fn sandbox(folder: &Path) -> Sandbox {
    let mut dev = stagedoor_in(folder, &["dev", "--json", "--listen", "127.0.0.1:0"]);
    dev.stdout(Stdio::piped()).stderr(Stdio::null());
    Sandbox::of(dev, folder.join("log")).await
}

async fn command(folder: &Path, line: &str) -> CommandOutput {
    let done = run(stagedoor_in(folder, &line.split(' ').collect::<Vec<_>>())).await;
    assert!(done.status.success(), "{line}: {}{}", done.stdout, done.stderr);
    done
}

fn id(received: &Received) -> String {
    received.header("Service-Event-Message-Id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_webhook_hits_a_listener_and_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (sandbox(folder.path()).await, Receiver::start().await);
    command(folder.path(), "clock freeze").await;
    let mut listening = Listening::start(folder.path(), &receiver).await;
    let fault = async |effect: &str| {
        command(folder.path(), &format!("fault add --webhook drops --times 1 {effect}")).await
    };

    // Nothing is wrong. The attempt is recorded like any other, without an address.
    let good = claim(&sandbox, "zero").await;
    assert!(receiver.next().await.is_signed_with(&listening.secret));
    assert_eq!(listening.line().await["state"], "DELIVERED");
    let record = &deliveries(&sandbox, json!({ "claimId": good }), 1).await[0];
    assert_eq!((&record["status"], &record["next"]), (&json!(200), &json!("delivered")));
    assert_eq!((&record["url"], &record["fault"]), (&Value::Null, &Value::Null), "{record}");

    for (part, campaign) in [("signature", "one"), ("body", "two"), ("timestamp", "three")] {
        fault(&format!("--tamper {part}")).await;
        receiver.reply([Reply::Status(401)]);
        let claim_id = claim(&sandbox, campaign).await;
        let wrong = receiver.next().await;
        let line = listening.line().await;
        assert_eq!((&line["status"], &line["state"]), (&json!(401), &json!("WAITING")), "{line}");
        let is_signed = wrong.is_signed_with(&listening.secret);
        assert_eq!(is_signed, part == "timestamp", "{part}");
        let changed = String::from_utf8_lossy(&wrong.body).contains(&format!("changed-{claim_id}"));
        assert_eq!(changed, part == "body", "{part}");
        let record = &deliveries(&sandbox, json!({ "claimId": claim_id }), 1).await[0];
        assert_eq!((&record["status"], &record["next"]), (&json!(401), &json!("retry")), "{record}");
        assert!(record["fault"].is_string(), "{record}");
        // The next attempt has the right bytes.
        command(folder.path(), "clock advance --until webhook.delivered").await;
        let again = receiver.next().await;
        assert!(again.is_signed_with(&listening.secret) && id(&again) == id(&wrong));
        assert_eq!(listening.line().await["state"], "DELIVERED");
    }

    fault("--duplicate").await;
    let twice = claim(&sandbox, "four").await;
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert_eq!((&first.headers, &first.body), (&second.headers, &second.body));
    for _ in 0..2 {
        assert_eq!(listening.line().await["state"], "DELIVERED");
    }
    let records = deliveries(&sandbox, json!({ "claimId": twice }), 2).await;
    assert_eq!((&records[0]["next"], &records[0]["copy"]), (&json!("delivered"), &Value::Null));
    assert_eq!((&records[1]["status"], &records[1]["copy"]), (&json!(200), &json!(true)));

    fault("--late 700ms").await;
    let since = service::Clock::system();
    claim(&sandbox, "five").await;
    receiver.next().await;
    let took = since.monotonic();
    assert!(took >= std::time::Duration::from_millis(700), "{took:?}");
    assert_eq!(listening.line().await["state"], "DELIVERED");

    // The receiver has answered, and its answer is lost: the message comes again.
    fault("--cut after").await;
    let lost = claim(&sandbox, "six").await;
    let answered = receiver.next().await;
    assert_eq!(listening.line().await["state"], "WAITING");
    let record = &deliveries(&sandbox, json!({ "claimId": lost }), 1).await[0];
    assert_eq!((&record["failure"], &record["next"]), (&json!("closed"), &json!("retry")), "{record}");
    command(folder.path(), "clock advance --until webhook.attempt").await;
    let again = receiver.next().await;
    assert_eq!((id(&again), again.header("Service-Event-Message-Retry")), (id(&answered), "1"));
    assert_eq!(listening.line().await["number"], 2);

    // It is never sent: the listener gets the second attempt only.
    fault("--cut before").await;
    let unsent = claim(&sandbox, "seven").await;
    let record = &deliveries(&sandbox, json!({ "claimId": unsent }), 1).await[0];
    assert_eq!((&record["failure"], &record["number"]), (&json!("closed"), &json!(1)), "{record}");
    command(folder.path(), "clock advance --until webhook.attempt").await;
    assert_eq!(receiver.next().await.header("Service-Event-Message-Retry"), "1");
    assert_eq!(listening.line().await["number"], 2);

    let rules = sandbox.api.operator(Request::get("/sandbox/v1/faults")).await.content();
    let hits: Vec<&Value> = rules["data"].as_array().expect("a list").iter().map(|r| &r["hits"]).collect();
    assert_eq!(hits, [&json!(1); 7], "{rules}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_goes_through_the_retries_of_a_listener_to_the_dead_letter() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (sandbox(folder.path()).await, Receiver::start().await);
    let _listening = Listening::start(folder.path(), &receiver).await;
    receiver.usually(Reply::Status(503));
    command(folder.path(), "clock freeze").await;
    let claim_id = claim(&sandbox, "one").await;
    deliveries(&sandbox, json!({ "claimId": claim_id, "number": 1 }), 1).await;
    let moved = command(folder.path(), "clock advance 31h --json").await;
    let moved: Value = serde_json::from_str(&moved.stdout).expect("JSON");
    let happened = moved["happened"].as_array().expect("a list");
    let what = |name: &str| happened.iter().filter(|one| one["what"] == name).count();
    assert!(what("webhook.attempt") >= 6 && what("webhook.dead") == 1, "{moved}");
    let dead = deliveries(&sandbox, json!({ "claimId": claim_id, "next": "dead" }), 1).await;
    assert_eq!(dead[0]["status"], 503);
    // One command each, as for a webhook with an address.
    let done = command(folder.path(), "trigger dead-letter --viewer nuri --json").await;
    assert!(done.stdout.contains("claimId"), "{}", done.stdout);
    command(folder.path(), "trigger disable-webhook").await;
    let webhook = Request::get("/platform/v1/applications/drops/webhook");
    assert_eq!(sandbox.api.operator(webhook).await.content()["enabled"], false);
}
