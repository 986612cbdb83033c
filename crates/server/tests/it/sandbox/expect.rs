//! Expectations on the log.

use serde_json::{Value, json};
use testkit::{Request, Response};

use crate::cli::process::Sandbox;

async fn expect(sandbox: &Sandbox, body: Value) -> Response {
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expectation_waits_for_records_and_names_the_nearest_misses() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let chat = |message: &str| {
        let conditions = json!({ "path": "/open/v1/chats/send", "message": message, "status": ">=200" });
        json!({ "kind": "request", "where": conditions })
    };
    sandbox.api.send_chat(&tokens.access, "hello").await.content();
    let met = expect(&sandbox, chat("~^hel")).await.content();
    assert_eq!(met["data"][0]["body"]["message"], "hello");

    let missed = expect(&sandbox, chat("bye")).await;
    let answer = missed.json();
    assert_eq!(missed.status, 400, "{answer}");
    let nearest = &answer["content"]["nearest"][0];
    assert_eq!(
        (&nearest["failed"], &nearest["record"]["body"]["message"]),
        (&json!(["message"]), &json!("hello"))
    );

    let mut later = chat("~later");
    later["within"] = json!("10s");
    later["times"] = json!(2);
    later["after"] = met["mark"].clone();
    let (met, ()) = tokio::join!(expect(&sandbox, later), async {
        for message in ["later", "still later"] {
            sandbox.api.send_chat(&tokens.access, message).await.content();
        }
    });
    assert_eq!(met.content()["data"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_expectation_is_refused_by_its_field() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    for (body, field) in [
        (json!({ "kind": "requests" }), "kind"),
        (json!({ "where": { "path": "~(" } }), "path"),
        (json!({ "where": [] }), "where"),
        (json!({ "within": "1 second" }), "within"),
        (json!({ "times": 0 }), "times"),
        (json!({ "until": "5s" }), "until"),
    ] {
        let answer = expect(&sandbox, body.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, 400, "{body}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{body}: {message}");
    }
}
