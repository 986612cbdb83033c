//! Requests that take effect although their answer is lost: the effect is there once, and a repetition does
//! what the documentation says.

use domain::reason::REASON_HEADER;
use serde_json::{Value, json};
use testkit::{Connection, Receiver, Request, Socket};

use super::webhook::{put_campaign, register};
use crate::cli::process::Sandbox;

const CLOCK: &str = "/sandbox/v1/clock";

/// Sends a request whose connection ends before its effect or after it.
async fn lose(sandbox: &Sandbox, moment: &str, request: &Request) {
    let path = request.target().split('?').next();
    let rule = json!({ "match": { "path": path }, "times": 1, "do": { "cut": moment } });
    sandbox.api.operator(Request::post("/sandbox/v1/faults").json(&rule)).await.content();
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.begin(request).await;
    assert_eq!(connection.rest().await, b"", "{moment} {}", request.target());
}

/// Moves the clock, and returns what happened.
async fn moved(sandbox: &Sandbox, body: Value) -> Vec<Value> {
    let moved = sandbox.api.operator(Request::post(CLOCK).json(&body)).await.content();
    moved["happened"].as_array().expect("a list").clone()
}

/// How often something happened to what `demo` has of a channel.
fn count(happened: &[Value], what: &str, channel: &str) -> usize {
    let is_meant = |one: &&Value| {
        (&one["what"], &one["channelId"], &one["clientId"]) == (&json!(what), &json!(channel), &json!("demo"))
    };
    happened.iter().filter(is_meant).count()
}

fn refresh(sandbox: &Sandbox, token: &str) -> Request {
    let demo = sandbox.application("demo");
    Request::post("/auth/v1/token").json(&json!({
        "grantType": "refresh_token", "clientId": demo.client_id, "clientSecret": demo.client_secret,
        "refreshToken": token,
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_refresh_uses_the_token_up_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    moved(&sandbox, json!({ "mode": "frozen" })).await;
    let demo = sandbox.application("demo");
    let ((one, of_one), (other, of_other)) = (sandbox.user(0, "demo"), sandbox.user(1, "demo"));
    // Without the effect the repetition succeeds.
    lose(&sandbox, "before", &refresh(&sandbox, &of_one.refresh)).await;
    let next = sandbox.api.refresh(&demo, &of_one.refresh).await.content()["refreshToken"].clone();
    let next = next.as_str().expect("a token").to_owned();
    for (used, access) in [(&next, &of_one.access), (&of_other.refresh, &of_other.access)] {
        lose(&sandbox, "after", &refresh(&sandbox, used)).await;
        let repeated = sandbox.api.refresh(&demo, used).await;
        assert_eq!((repeated.status, repeated.header(REASON_HEADER)), (401, Some("token-used")));
        assert_eq!(sandbox.api.me(access).await.status, 200, "the earlier access token stays valid");
    }
    // More than 10 seconds later a repetition counts as theft.
    moved(&sandbox, json!({ "advance": "11s" })).await;
    let stolen = sandbox.api.refresh(&demo, &of_other.refresh).await;
    assert_eq!((stolen.status, stolen.header(REASON_HEADER)), (401, Some("token-reused")));
    assert_eq!(sandbox.api.me(&of_other.access).await.status, 401);
    // The seeded token, the one of the repetition, and the one whose answer was lost.
    let happened = moved(&sandbox, json!({ "advance": "1d" })).await;
    assert_eq!(count(&happened, "access-token.expired", &one.channel_id), 3, "{happened:?}");
    assert_eq!(count(&happened, "access-token.expired", &other.channel_id), 0, "{happened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_chat_message_was_sent_once_and_its_repetition_is_another_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let token = sandbox.user(0, "demo").1.access;
    let mut socket = sandbox.api.open_user_session(&token).await;
    sandbox.api.subscribe(&token, "chat", socket.session_key()).await.content();
    socket.system("subscribed").await;
    for (moment, message) in [("before", "one"), ("after", "two")] {
        let send = Request::post("/open/v1/chats/send").bearer(&token);
        lose(&sandbox, moment, &send.json(&json!({ "message": message }))).await;
        sandbox.api.send_chat(&token, message).await.content();
    }
    sandbox.api.send_chat(&token, "end").await.content();
    for message in ["one", "two", "two", "end"] {
        assert_eq!(socket.event("CHAT").await["content"], message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_url_exists_once_and_expires_unused() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    moved(&sandbox, json!({ "mode": "frozen" })).await;
    let (person, tokens) = sandbox.user(0, "demo");
    for moment in ["before", "after"] {
        lose(&sandbox, moment, &Request::get("/open/v1/sessions/auth").bearer(&tokens.access)).await;
        let repeated = sandbox.api.user_session_url(&tokens.access).await.content();
        Socket::open(repeated["url"].as_str().expect("a URL")).await;
    }
    let happened = moved(&sandbox, json!({ "advance": "31s" })).await;
    assert_eq!(count(&happened, "session-url.expired", &person.channel_id), 1, "{happened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_claim_exists_once_with_one_message_and_a_lost_update_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (Sandbox::start(folder.path(), &[]).await, Receiver::start().await);
    register(&sandbox, &receiver).await;
    put_campaign(&sandbox, "lighthouse", 1).await;
    let (person, _) = sandbox.user(0, "demo");
    let body = json!({ "campaignId": "lighthouse", "rewardId": "reward-0", "channelId": person.channel_id });
    let claim =
        || Request::post("/platform/v1/drops/claims").header("Idempotency-Key", "a-claim").json(&body);
    let key = sandbox.world["operatorKey"].as_str().expect("a key");
    for moment in ["before", "after"] {
        lose(&sandbox, moment, &claim().bearer(key)).await;
    }
    let message = receiver.next().await;
    let repeated = sandbox.api.operator(claim()).await.content();
    let claim_id = repeated["claimId"].as_str().expect("an id").to_owned();
    let event: Value = serde_json::from_slice(&message.body).expect("JSON");
    assert_eq!(event["event"]["data"]["claimId"], claim_id, "the claim whose answer was lost");
    assert_eq!(sandbox.api.claim(&body).await.status, 400, "without the key it is a second claim");

    let drops = sandbox.application("drops");
    let update = json!({ "claimIds": [claim_id], "fulfillmentState": "FULFILLED" });
    let lost = Request::put("/open/v1/drops/reward-claims").client(&drops.client_id, &drops.client_secret);
    lose(&sandbox, "after", &lost.json(&update)).await;
    let shown = async || {
        let claims = sandbox.api.reward_claims(&drops, &format!("claimId={claim_id}")).await.content();
        assert_eq!(claims["data"].as_array().map(Vec::len), Some(1), "{claims}");
        claims["data"][0].clone()
    };
    let updated = shown().await;
    assert_eq!(updated["fulfillmentState"], "FULFILLED");
    let again = sandbox.api.update_claims(&drops, &update).await.content();
    assert_eq!(again["data"][0], json!({ "status": "SUCCESS", "ids": [claim_id] }), "{again}");
    assert_eq!(shown().await, updated, "the repetition changes nothing");
    let deliveries = Request::get("/platform/v1/applications/drops/webhook/deliveries");
    let deliveries = sandbox.api.operator(deliveries).await.content();
    assert_eq!(deliveries["data"].as_array().map(Vec::len), Some(1), "{deliveries}");
}
