//! Triggers that end sessions and lose connections.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Request, Response};

use crate::cli::process::{Sandbox, run, stagedoor};

async fn trigger(sandbox: &Sandbox, kind: &str, body: Value) -> Response {
    sandbox.api.operator(Request::post(format!("/sandbox/v1/trigger/{kind}")).json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_with_each_close_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let token = sandbox.user(0, "demo").1.access;
    let reasons =
        ["ping_timeout", "connect_timeout", "invalid_utf8", "poll_conflict", "gap", "internal_error"];
    for (reason, code) in reasons.into_iter().zip([1000, 1008, 1007, 1002, 1013, 1011]) {
        let socket = sandbox.api.open_user_session(&token).await;
        let key = socket.session_key().to_owned();
        // The sessions of the first person, haneul.
        let closed = trigger(&sandbox, "close-session", json!({ "reason": reason })).await.content();
        assert_eq!((&closed["sessionKeys"], &closed["reason"]), (&json!([key]), &json!(reason)));
        assert_eq!(socket.closed().await, (code, reason.to_owned()));
        let ended = json!({ "kind": "frame", "where": { "session": key, "reason": reason }, "within": "5s" });
        sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&ended)).await.content();
    }
    let socket = sandbox.api.open_user_session(&token).await;
    let closed =
        trigger(&sandbox, "close-session", json!({ "session": socket.session_key() })).await.content();
    assert_eq!(closed["reason"], "evicted");
    assert_eq!(socket.closed().await, (1008, "evicted".to_owned()));

    let wrong = trigger(&sandbox, "close-session", json!({ "user": "haneul", "reason": "tired" })).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.json()["message"].as_str().expect("a text").starts_with("reason: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_lost_without_goodbye_or_stays_half_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let token = sandbox.user(0, "demo").1.access;
    let mut lost = sandbox.api.open_user_session(&token).await;
    let other = sandbox.api.open_user_session(&sandbox.user(1, "demo").1.access).await;
    let mut command = stagedoor(&["trigger", "cut-connection", "--user", "haneul", "--json"]);
    command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a URL"));
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a key"));
    let cut = run(command).await;
    let cut: Value = serde_json::from_str(&cut.stdout).expect("JSON");
    assert_eq!((&cut["sessionKeys"], &cut["silent"]), (&json!([lost.session_key()]), &json!(false)));
    assert_eq!(lost.next_packet().await, None);
    let ended = json!({ "kind": "frame", "where": { "session": lost.session_key(), "reason": "transport_closed" },
                        "within": "5s" });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&ended)).await.content();

    let mut silent = other;
    let cut =
        trigger(&sandbox, "cut-connection", json!({ "client": "demo", "silent": true })).await.content();
    assert_eq!(cut["sessionKeys"], json!([silent.session_key()]));
    silent.send("2").await;
    let silence = tokio::time::timeout(Duration::from_millis(500), silent.next_packet()).await;
    assert!(silence.is_err(), "{silence:?}");
    let cut = trigger(&sandbox, "cut-connection", json!({ "session": silent.session_key() })).await.content();
    assert_eq!(cut["sessionKeys"], json!([silent.session_key()]));
    assert_eq!(silent.next_packet().await, None);

    for (body, field) in [(json!({ "user": "unknown" }), "user"), (json!({ "silent": "yes" }), "silent")] {
        let wrong = trigger(&sandbox, "cut-connection", body).await;
        assert_eq!(wrong.status, 400, "{field}");
        let message = wrong.json()["message"].as_str().expect("a text").to_owned();
        assert!(message.starts_with(&format!("{field}: ")), "{message}");
    }
    assert_eq!(trigger(&sandbox, "cut-connection", json!({ "session": "unknown" })).await.status, 409);
}
