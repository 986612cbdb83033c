//! Triggers that claim a reward: what they refuse changes nothing, and what they break is their own message.

use serde_json::{Value, json};
use testkit::{Receiver, Reply, Request};

use super::deliveries::deliveries;
use super::usage::{command, sandbox};
use super::webhook::{claim, claim_of, put_campaign, register};
use crate::cli::process::Sandbox;

/// Runs a command that is refused with exit code 1. Returns what it says.
async fn refused(folder: &std::path::Path, line: &str) -> String {
    let output = command(folder, line).await;
    assert_eq!(output.status.code(), Some(1), "{line}: {}{}", output.stdout, output.stderr);
    output.stderr
}

async fn rules(sandbox: &Sandbox) -> Value {
    sandbox.api.operator(Request::get("/sandbox/v1/faults")).await.content()["data"].clone()
}

const CLAIMS: [&str; 5] = [
    "trigger dead-letter --viewer nuri",
    "trigger claim --viewer nuri --tamper signature",
    "trigger claim --viewer nuri --duplicate",
    "trigger claim --viewer nuri --cut before",
    "trigger claim --viewer nuri --late 1s",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_a_receiver_of_its_message_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (sandbox(folder.path(), &[]).await, Receiver::start().await);
    for line in CLAIMS.into_iter().chain(["trigger disable-webhook"]) {
        let said = refused(folder.path(), line).await;
        assert!(said.contains("webhook") && said.contains("`stagedoor trigger webhook --url URL`"), "{said}");
        assert!(!said.contains("is not a sandbox"), "{said}");
    }
    // It has no address, and no listener.
    let webhook = Request::put("/platform/v1/applications/drops/webhook").json(&json!({ "enabled": true }));
    sandbox.api.operator(webhook).await.content();
    for line in ["trigger dead-letter --viewer nuri", "trigger disable-webhook"] {
        assert!(refused(folder.path(), line).await.contains("neither an address nor a listener"), "{line}");
    }
    let url = receiver.url("/hook");
    assert!(command(folder.path(), &format!("trigger webhook --url {url}")).await.status.success());
    receiver.usually(Reply::Status(503));
    let done = command(folder.path(), "trigger disable-webhook --viewer mina").await;
    assert!(done.status.success(), "{}", done.stderr);
    for line in CLAIMS.into_iter().chain(["trigger disable-webhook"]) {
        let said = refused(folder.path(), line).await;
        assert!(said.contains("is disabled") && said.contains("trigger webhook --client drops"), "{said}");
    }
    assert_eq!(rules(&sandbox).await, json!([]));
    let enabled = command(folder.path(), "trigger webhook --client drops --json").await;
    let enabled: Value = serde_json::from_str(&enabled.stdout).expect("JSON");
    assert_eq!(enabled["url"], url);
    // Nothing has used the reward up.
    let done = command(folder.path(), "trigger claim --viewer nuri --duplicate --json").await;
    let done: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr));
    let rule = rules(&sandbox).await[0].clone();
    assert_eq!((&rule["id"], &rule["match"]["claimId"]), (&done["fault"], &done["claimId"]), "{rule}");
    deliveries(&sandbox, json!({ "claimId": done["claimId"], "copy": "true" }), 1).await;
    // A reward is claimed once, whichever command claims it.
    let claimed = format!(
        "--campaign {} --reward {}",
        done["campaignId"].as_str().expect("an id"),
        done["rewardId"].as_str().expect("an id")
    );
    for line in ["trigger claim --viewer nuri", "drops claim --viewer viewer-nuri"] {
        refused(folder.path(), &format!("{line} {claimed}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_that_of_its_own_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (sandbox(folder.path(), &[]).await, Receiver::start().await);
    register(&sandbox, &receiver).await;
    receiver.usually(Reply::Status(503));
    command(folder.path(), "clock freeze").await;
    put_campaign(&sandbox, "early", 1).await;
    let early = claim_of(&sandbox, "early", 0, 1).await;
    deliveries(&sandbox, json!({ "claimId": early, "number": 1 }), 1).await;
    command(folder.path(), "clock advance 12h").await;
    let done = command(folder.path(), "trigger dead-letter --viewer nuri --json").await;
    let done: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr));
    let message = done["messageId"].as_str().expect("its message");
    let path = format!("/platform/v1/applications/drops/webhook/deliveries/{message}");
    assert_eq!(sandbox.api.operator(Request::get(&path)).await.content()["state"], "DEAD");
    // The earlier one was sent, and failed by itself.
    let dead = deliveries(&sandbox, json!({ "claimId": early, "next": "dead" }), 1).await;
    assert_eq!((&dead[0]["status"], &dead[0]["fault"]), (&json!(503), &Value::Null), "{dead:?}");
    assert_eq!(rules(&sandbox).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_disabled_before_the_dead_letter_keeps_the_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (sandbox(folder.path(), &[]).await, Receiver::start().await);
    register(&sandbox, &receiver).await;
    receiver.usually(Reply::Status(503));
    command(folder.path(), "clock freeze").await;
    let mut early = claim(&sandbox, "early-0").await;
    for day in 1..=4 {
        deliveries(&sandbox, json!({ "claimId": early, "number": 1 }), 1).await;
        command(folder.path(), "clock advance 24h").await;
        early = claim(&sandbox, &format!("early-{day}")).await;
    }
    deliveries(&sandbox, json!({ "claimId": early, "number": 1 }), 1).await;
    command(folder.path(), "clock advance 20h").await;
    let said = refused(folder.path(), "trigger dead-letter --viewer sol").await;
    assert!(said.contains("was disabled on the way") && said.contains("--client drops"), "{said}");
    // Its claim is made, and the message is sent after the webhook is enabled.
    receiver.usually(Reply::Status(204));
    assert!(command(folder.path(), "trigger webhook --client drops").await.status.success());
    command(folder.path(), "clock advance 24h").await;
    let named = said.split("The claim ").nth(1).and_then(|rest| rest.split(' ').next()).expect("its claim");
    deliveries(&sandbox, json!({ "claimId": named, "status": 204 }), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_what_there_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let _sandbox = sandbox(folder.path(), &[]).await;
    let said = refused(folder.path(), "trigger close-session --session unknown").await;
    assert!(
        said.contains("session: is no connected session") && said.contains("No session is connected"),
        "{said}"
    );
    let said = refused(folder.path(), "trigger claim --viewer nuri --campaign unknown").await;
    assert!(said.contains("there is no such campaign"), "{said}");
    assert!(
        command(folder.path(), "trigger revoke-consent --user haneul --client demo").await.status.success()
    );
    let said = refused(folder.path(), "trigger revoke-consent --user haneul --client demo").await;
    assert!(said.contains("has given no consent to"), "{said}");
    let wrong = command(folder.path(), "trigger webhook --url notaurl").await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stderr.contains("http://"), "{}", wrong.stderr);
    let done = command(folder.path(), "trigger claim --viewer gureum --duplicate false --json").await;
    assert!(done.status.success() && !done.stdout.contains("fault"), "{}{}", done.stdout, done.stderr);
}
