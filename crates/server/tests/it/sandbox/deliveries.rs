//! The record of webhook attempts.

use serde_json::{Value, json};
use testkit::{Receiver, Reply, Request};

use super::webhook::{claim, register};
use crate::cli::process::Sandbox;

/// Waits for records of deliveries with these fields.
pub async fn deliveries(sandbox: &Sandbox, conditions: Value, times: usize) -> Vec<Value> {
    let expected = json!({ "kind": "delivery", "where": conditions, "within": "10s", "times": times });
    let expect = Request::post("/sandbox/v1/expect").json(&expected);
    sandbox.api.operator(expect).await.content()["data"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_is_recorded_with_its_outcome_and_what_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (Sandbox::start(folder.path(), &[]).await, Receiver::start().await);
    sandbox
        .api
        .operator(Request::post("/sandbox/v1/clock").json(&json!({ "mode": "frozen" })))
        .await
        .content();
    let secret = register(&sandbox, &receiver).await;
    receiver.reply([Reply::Status(503), Reply::Close]);
    let claim_id = claim(&sandbox, "lighthouse").await;
    let first = &deliveries(&sandbox, json!({ "claimId": claim_id }), 1).await[0];
    assert_eq!(
        (&first["clientId"], &first["number"], &first["status"], &first["next"]),
        (&json!("drops"), &json!(1), &json!(503), &json!("retry"))
    );
    assert!(first["webhookId"].is_string() && first["fault"].is_null(), "{first}");
    // The query may hold a secret of the receiver.
    assert_eq!(first["url"], json!(receiver.url("/hook")));
    let now = sandbox.api.operator(Request::get("/sandbox/v1/clock")).await.content()["now"].clone();
    assert!(first["nextAttempt"].as_str() > now.as_str(), "{first}");
    assert!(first["durationMs"].is_u64(), "{first}");

    let until = Request::post("/sandbox/v1/clock").json(&json!({ "until": "webhook.attempt" }));
    for _ in 0..2 {
        sandbox.api.operator(until.clone()).await.content();
    }
    let all = deliveries(&sandbox, json!({ "messageId": first["messageId"] }), 3).await;
    assert!(all[1]["failure"].is_string() && all[1]["status"].is_null(), "{}", all[1]);
    assert_eq!((&all[2]["status"], &all[2]["next"]), (&json!(200), &json!("delivered")));
    assert_eq!((&all[2]["number"], &all[2]["nextAttempt"]), (&json!(3), &Value::Null));
    let log = sandbox.api.operator(Request::get("/sandbox/v1/log?kind=delivery")).await.text().to_owned();
    assert!(!log.contains(&secret) && !log.contains("of-the-receiver"), "{log}");
}
