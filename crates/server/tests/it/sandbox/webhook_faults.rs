//! Faults of webhook attempts: the bytes that a receiver gets.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Received, Receiver, Reply, Request, Response};

use super::deliveries::deliveries;
use super::webhook::{claim, register};
use crate::cli::process::{Sandbox, run, stagedoor};

const FAULTS: &str = "/sandbox/v1/faults";

async fn add(sandbox: &Sandbox, rule: Value) -> Response {
    sandbox.api.operator(Request::post(FAULTS).json(&rule)).await
}

/// Adds a rule for the next attempt at the webhook of `drops`. Returns its id.
async fn next_attempt(sandbox: &Sandbox, effect: Value) -> String {
    let rule = json!({ "match": { "webhook": "drops" }, "times": 1, "do": effect });
    add(sandbox, rule).await.content()["id"].as_str().expect("an id").to_owned()
}

fn age_ms(received: &Received) -> i64 {
    let signed = received.header("Service-Event-Message-Timestamp");
    let signed = domain::Timestamp::parse_rfc3339(signed).expect("RFC 3339");
    service::Clock::system().now().as_millis() - signed.as_millis()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tampered_message_is_wrong_in_one_thing_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (Sandbox::start(folder.path(), &[]).await, Receiver::start().await);
    let secret = register(&sandbox, &receiver).await;
    let id = |received: &Received| received.header("Service-Event-Message-Id").to_owned();
    let json_body = |received: &Received| serde_json::from_slice::<Value>(&received.body).expect("JSON");

    let rule = next_attempt(&sandbox, json!({ "tamper": "signature" })).await;
    let claim_id = claim(&sandbox, "one").await;
    let wrong = receiver.next().await;
    let signature = wrong.header("Service-Event-Message-Signature");
    assert!(!wrong.is_signed_with(&secret) && signature.starts_with("sha256="), "{signature}");
    assert_eq!(signature.len(), "sha256=".len() + 64);
    assert_eq!(json_body(&wrong)["event"]["data"]["claimId"], json!(claim_id));
    assert!(age_ms(&wrong) < 60_000);
    let record = &deliveries(&sandbox, json!({ "claimId": claim_id }), 1).await[0];
    assert_eq!(record["fault"], json!(rule));

    next_attempt(&sandbox, json!({ "tamper": "timestamp" })).await;
    claim(&sandbox, "two").await;
    let old = receiver.next().await;
    assert!(old.is_signed_with(&secret), "the signature is right");
    assert!((600_000..660_000).contains(&age_ms(&old)), "{}", age_ms(&old));
    assert_eq!(json_body(&old)["timestamp"], old.header("Service-Event-Message-Timestamp"));

    next_attempt(&sandbox, json!({ "tamper": "body" })).await;
    let claim_id = claim(&sandbox, "three").await;
    let changed = receiver.next().await;
    assert!(!changed.is_signed_with(&secret));
    assert_eq!(json_body(&changed)["event"]["data"]["claimId"], format!("changed-{claim_id}"));

    // The rules are used up.
    claim(&sandbox, "four").await;
    let right = receiver.next().await;
    assert!(right.is_signed_with(&secret) && right.find("Service-Event-Message-Retry").is_none());
    let rules = sandbox.api.operator(Request::get(FAULTS)).await.content();
    let hits: Vec<&Value> = rules["data"].as_array().expect("a list").iter().map(|r| &r["hits"]).collect();
    assert_eq!(hits, [&json!(1); 3]);
    assert_eq!(rules["data"][0]["match"], json!({ "webhook": "drops" }));
    assert_eq!(rules["data"][0]["do"], json!({ "tamper": "signature" }));
    let faults = sandbox.api.operator(Request::get("/sandbox/v1/log?kind=fault")).await.content();
    assert_eq!(faults["data"][0]["messageId"], id(&wrong), "{faults}");

    // A message that a good receiver refuses is sent again.
    next_attempt(&sandbox, json!({ "tamper": "signature" })).await;
    receiver.reply([Reply::Status(401)]);
    claim(&sandbox, "five").await;
    let refused = receiver.next().await;
    let until = Request::post("/sandbox/v1/clock").json(&json!({ "until": "webhook.attempt" }));
    sandbox.api.operator(until).await.content();
    let again = receiver.next().await;
    assert!(again.is_signed_with(&secret));
    assert_eq!((id(&again), again.header("Service-Event-Message-Retry")), (id(&refused), "1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_comes_twice_or_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (Sandbox::start(folder.path(), &[]).await, Receiver::start().await);
    let secret = register(&sandbox, &receiver).await;
    next_attempt(&sandbox, json!({ "duplicate": true })).await;
    receiver.reply([Reply::Status(200), Reply::Status(500)]);
    let claim_id = claim(&sandbox, "one").await;
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert_eq!((&first.headers, &first.body), (&second.headers, &second.body));
    let records = deliveries(&sandbox, json!({ "claimId": claim_id }), 2).await;
    assert_eq!(
        (&records[0]["status"], &records[0]["next"], &records[0]["copy"]),
        (&json!(200), &json!("delivered"), &Value::Null)
    );
    assert_eq!((&records[1]["status"], &records[1]["copy"]), (&json!(500), &json!(true)));

    let webhook_id = records[0]["webhookId"].clone();
    let late = json!({ "match": { "webhook": webhook_id }, "times": 1, "do": { "late": "600ms" } });
    add(&sandbox, late).await.content();
    let since = service::Clock::system();
    claim(&sandbox, "two").await;
    let late = receiver.next().await;
    assert!(since.monotonic() >= Duration::from_millis(600), "{:?}", since.monotonic());
    assert!(late.is_signed_with(&secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_not_sent_or_whose_answer_was_lost_comes_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (Sandbox::start(folder.path(), &[]).await, Receiver::start().await);
    let clock = async |body: Value| {
        sandbox.api.operator(Request::post("/sandbox/v1/clock").json(&body)).await.content()
    };
    clock(json!({ "mode": "frozen" })).await;
    register(&sandbox, &receiver).await;
    let id = |received: &Received| received.header("Service-Event-Message-Id").to_owned();
    let (mut seen, retry) = (Vec::new(), "Service-Event-Message-Retry");
    for (moment, campaign) in [("before", "one"), ("after", "two")] {
        let rule = next_attempt(&sandbox, json!({ "cut": moment })).await;
        let claim_id = claim(&sandbox, campaign).await;
        let lost = deliveries(&sandbox, json!({ "claimId": claim_id }), 1).await[0].clone();
        assert_eq!(
            (&lost["failure"], &lost["next"], &lost["fault"]),
            (&json!("closed"), &json!("retry"), &json!(rule))
        );
        assert_eq!(lost["status"], Value::Null, "{lost}");
        if moment == "after" {
            let answered = receiver.next().await;
            assert!(answered.find(retry).is_none());
            seen.push(id(&answered));
        }
        clock(json!({ "until": "webhook.attempt" })).await;
        let again = receiver.next().await;
        assert_eq!((again.header(retry), json!(id(&again))), ("1", lost["messageId"].clone()));
        seen.push(id(&again));
        let record = &deliveries(&sandbox, json!({ "claimId": claim_id }), 2).await[1];
        assert_eq!((&record["status"], &record["next"]), (&json!(200), &json!("delivered")));
    }
    // The receiver saw the message whose answer was lost twice, with one id.
    assert!(seen.len() == 3 && seen[1] == seen[2] && seen[0] != seen[1], "{seen:?}");
    let rules = sandbox.api.operator(Request::get(FAULTS)).await.content();
    assert_eq!(
        (&rules["data"][0]["do"], &rules["data"][1]["do"]),
        (&json!({ "cut": "before" }), &json!({ "cut": "after" }))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_means_one_webhook_and_counts_its_attempts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (Sandbox::start(folder.path(), &[]).await, Receiver::start().await);
    let secret = register(&sandbox, &receiver).await;
    for (rule, field) in [
        (json!({ "match": { "webhook": "drops" }, "do": { "status": 500 } }), "do"),
        (json!({ "match": { "webhook": "drops" }, "do": { "late": "9s" } }), "do.late"),
        (json!({ "match": { "webhook": "drops" }, "do": { "duplicate": false } }), "do"),
        (json!({ "match": { "webhook": "" }, "do": { "duplicate": true } }), "match.webhook"),
        (json!({ "match": { "webhook": "drops", "path": "/a" }, "do": { "tamper": "body" } }), "match.path"),
        (json!({ "match": { "user": "haneul" }, "do": { "tamper": "body" } }), "match.user"),
        (json!({ "match": { "event": "CHAT" }, "do": { "tamper": "body" } }), "match.event"),
        (json!({ "do": { "tamper": "nonce" } }), "do.tamper"),
        (json!({ "do": { "tamper": "body", "duplicate": true } }), "do"),
    ] {
        let answer = add(&sandbox, rule.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, 400, "{rule}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{rule}: {message}");
        assert!(field != "do.late" || message.contains("at most 8s for a webhook"), "{message}");
    }
    add(&sandbox, json!({ "match": { "webhook": "demo" }, "do": { "tamper": "body" } })).await.content();
    // The same seed affects the same attempts.
    let mut command =
        stagedoor(&["fault", "add", "--webhook", "drops", "--tamper", "signature", "--nth", "2"]);
    command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a text"));
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a text"));
    let added = run(command).await;
    assert!(added.status.success(), "{}", added.stderr);
    for (campaign, is_right) in [("one", true), ("two", false), ("three", true)] {
        claim(&sandbox, campaign).await;
        assert_eq!(receiver.next().await.is_signed_with(&secret), is_right, "{campaign}");
    }
}
