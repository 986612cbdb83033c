//! Codes, tokens and session URLs that end before their time.

use serde_json::{Value, json};
use testkit::{Request, Response, Socket};

use crate::cli::process::Sandbox;

async fn expire(sandbox: &Sandbox, body: Value) -> Response {
    sandbox.api.operator(Request::post("/sandbox/v1/trigger/expire").json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_ends_now_and_open_sockets_live_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (person, tokens) = sandbox.user(0, "demo");
    let mut socket = sandbox.api.open_user_session(&tokens.access).await;
    let key = socket.session_key().to_owned();
    sandbox.api.subscribe(&tokens.access, "chat", &key).await.content();
    socket.system("subscribed").await;
    let expired = expire(&sandbox, json!({ "what": "access-token", "token": tokens.access })).await.content();
    assert_eq!(expired["expired"], 1);
    assert_eq!(expired["data"][0], json!({ "clientId": "demo", "channelId": person.channel_id }));
    let refused = sandbox.api.me(&tokens.access).await;
    refused.assert_refused(401, "INVALID_TOKEN");
    assert!(refused.header("stagedoor-reason").is_some_and(|reason| reason.contains("expired")));
    // As in production: the subscription stands on the consent, and the refresh token is good.
    let (viewer, _) = sandbox.user(1, "demo");
    sandbox.api.say(&person.channel_id, &viewer.channel_id, "still here").await.content();
    assert_eq!(socket.event("CHAT").await["content"], "still here");
    let demo = sandbox.application("demo");
    let refreshed = sandbox.api.refresh(&demo, &tokens.refresh).await.content();
    let refresh = refreshed["refreshToken"].as_str().expect("a token");
    assert_eq!(sandbox.api.me(refreshed["accessToken"].as_str().expect("a token")).await.status, 200);

    let given = json!({ "what": "refresh-token", "user": "haneul", "client": "demo" });
    assert_eq!(expire(&sandbox, given.clone()).await.content()["expired"], 1);
    sandbox.api.refresh(&demo, refresh).await.assert_refused(401, "INVALID_TOKEN");
    let none = expire(&sandbox, given).await;
    assert_eq!(none.status, 409, "{}", none.text());
    // Without fields the access tokens of the first person end.
    let access = refreshed["accessToken"].as_str().expect("a token");
    assert_eq!(expire(&sandbox, json!({})).await.content()["what"], "access-token");
    sandbox.api.me(access).await.assert_refused(401, "INVALID_TOKEN");
    // No other user is affected.
    assert_eq!(sandbox.api.me(&sandbox.user(1, "demo").1.access).await.status, 200);
    let records = sandbox.api.operator(Request::get("/sandbox/v1/log?trigger=expire")).await;
    assert!(!records.text().contains(&tokens.access), "{}", records.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_and_a_session_url_end_now() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (demo, (person, tokens)) = (sandbox.application("demo"), sandbox.user(0, "demo"));
    let code = sandbox.api.consent(&demo, &person, "a-state").await;
    expire(&sandbox, json!({ "what": "code", "token": code })).await.content();
    assert_eq!(sandbox.api.exchange(&demo, &code, "a-state").await.status, 400);

    let url = sandbox.api.user_session_url(&tokens.access).await.content()["url"].clone();
    let url = url.as_str().expect("a URL");
    expire(&sandbox, json!({ "what": "session-url", "token": url })).await.content();
    assert!(Socket::connect(url).await.is_err());
    let url = sandbox.api.user_session_url(&tokens.access).await.content()["url"].clone();
    let url = url.as_str().expect("a URL");
    expire(&sandbox, json!({ "what": "session-url", "user": "haneul" })).await.content();
    assert!(Socket::connect(url).await.is_err());

    for (body, field, status) in [
        (json!({ "what": "consent", "user": "haneul" }), "what", 400),
        // The first person has no code.
        (json!({ "what": "code" }), "what", 409),
        (json!({ "what": "code", "token": "unknown" }), "token", 409),
        (json!({ "what": "code", "user": "nobody" }), "user", 400),
        (json!({ "what": "code", "client": "none" }), "client", 400),
        (json!({ "what": "code", "tokn": "x" }), "tokn", 400),
    ] {
        let answer = expire(&sandbox, body.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, status, "{body}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{body}: {message}");
    }
}
