//! Triggers of a sandbox, by call and by command, with their effects on the public API and on sockets.

use serde_json::{Value, json};
use testkit::{Request, Response, Socket};

use crate::cli::process::{Sandbox, run, stagedoor};

async fn started(folder: &tempfile::TempDir) -> Sandbox {
    Sandbox::start(folder.path(), &[]).await
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

async fn trigger(sandbox: &Sandbox, kind: &str, body: Value) -> Response {
    sandbox.api.operator(Request::post(format!("/sandbox/v1/trigger/{kind}")).json(&body)).await
}

/// A session of haneul that is subscribed to events.
pub async fn subscribed(sandbox: &Sandbox, events: &[&str]) -> Socket {
    let (_, tokens) = sandbox.user(0, "demo");
    let mut socket = sandbox.api.open_user_session(&tokens.access).await;
    let key = socket.session_key().to_owned();
    for event in events {
        sandbox.api.subscribe(&tokens.access, event, &key).await.content();
        socket.system("subscribed").await;
    }
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn events_reach_the_subscribed_sessions_and_are_counted() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let unheard = trigger(&sandbox, "chat", json!({})).await.content();
    assert_eq!((&unheard["delivered"], &unheard["senderChannelId"]), (&json!(0), &json!("viewer-nuri")));

    let mut socket = subscribed(&sandbox, &["chat", "donation", "subscription"]).await;
    let chat = trigger(&sandbox, "chat", json!({ "channel": "haneul", "from": "Mina", "message": 7 })).await;
    let chat = chat.content();
    let heard = socket.event("CHAT").await;
    assert_eq!((&chat["delivered"], &chat["senderChannelId"]), (&json!(1), &json!("viewer-mina")));
    assert_eq!((&heard["content"], &heard["messageTime"]), (&json!("7"), &chat["messageTime"]));

    let given =
        json!({ "to": "haneul", "from": "nuri", "amount": 5000, "message": "힘내요", "type": "VIDEO" });
    let donation = trigger(&sandbox, "donation", given).await.content();
    let heard = socket.event("DONATION").await;
    assert_eq!((&donation["delivered"], &heard["donatorChannelId"]), (&json!(1), &json!("viewer-nuri")));
    assert_eq!((&heard["payAmount"], &heard["donationType"]), (&json!("5000"), &json!("VIDEO")));
    trigger(&sandbox, "donation", json!({ "anonymous": true })).await.content();
    assert_ne!(socket.event("DONATION").await["donatorChannelId"], "viewer-nuri");

    let given = json!({ "to": "하늘", "from": "nuri", "tier": 2, "month": 3 });
    let subscription = trigger(&sandbox, "subscription", given).await.content();
    let heard = socket.event("SUBSCRIPTION").await;
    assert_eq!(subscription["delivered"], 1);
    assert_eq!((&heard["tierNo"], &heard["month"]), (&json!(2), &json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_an_event_can_be_set() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let mut socket = subscribed(&sandbox, &["chat", "donation", "subscription"]).await;
    let emojis = json!({ "smile": "https://e.example/smile.png" });
    let badges = json!(["https://e.example/badge.png"]);
    let chat = trigger(&sandbox, "chat", json!({ "emojis": emojis, "badges": badges })).await.content();
    let heard = socket.event("CHAT").await;
    assert_eq!((&heard["emojis"], &chat["eventId"]), (&emojis, &chat["messageId"]));
    assert_eq!(heard["profile"]["badges"], json!([{ "imageUrl": badges[0] }]));
    let without = json!({ "badges": [], "emojis": emojis.to_string() });
    trigger(&sandbox, "chat", without).await.content();
    let heard = socket.event("CHAT").await;
    assert_eq!((&heard["profile"]["badges"], &heard["emojis"]), (&json!([]), &emojis));

    let donation = trigger(&sandbox, "donation", json!({ "emojis": emojis, "message": "" })).await.content();
    let heard = socket.event("DONATION").await;
    assert_eq!((&heard["emojis"], &heard["donationText"]), (&emojis, &json!("")));
    assert!(donation["eventId"].is_string(), "{donation}");

    let given = json!({ "tierName": "별지기", "month": 0, "since": "2026-01-02T03:04:05Z" });
    let subscription = trigger(&sandbox, "subscription", given).await.content();
    assert_eq!(socket.event("SUBSCRIPTION").await["tierName"], "별지기");
    assert!(subscription["eventId"].is_string(), "{subscription}");

    let claim = trigger(&sandbox, "claim", json!({ "claim": "my-claim" })).await.content();
    assert_eq!((&claim["eventId"], &claim["campaignId"]), (&json!("my-claim"), &json!("first-voyage")));
    trigger(&sandbox, "restrict", json!({ "target": "nuri", "temporary": true })).await.content();
    let refused = trigger(&sandbox, "chat", json!({ "from": "nuri" })).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    sandbox
        .api
        .operator(Request::post("/sandbox/v1/clock").json(&json!({ "advance": "1m" })))
        .await
        .content();
    trigger(&sandbox, "chat", json!({ "from": "nuri" })).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_lives_and_drops_change_as_in_production() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let (demo, (_, tokens)) = (sandbox.application("demo"), sandbox.user(0, "demo"));
    let followers = async || sandbox.api.channels(&demo, "channelIds=streamer-haneul").await.content();
    let count = async || followers().await["data"][0]["followerCount"].as_i64().expect("a number");
    let before = count().await;
    trigger(&sandbox, "follow", json!({})).await.content();
    assert_eq!(count().await, before + 1);
    trigger(&sandbox, "unfollow", json!({ "from": "nuri" })).await.content();
    assert_eq!(count().await, before);

    let given = json!({ "channel": "bada", "title": "축구", "category": "football", "viewers": 9 });
    trigger(&sandbox, "live", given).await.content();
    let lives = async || sandbox.api.lives(&demo, "size=20").await.content()["data"].clone();
    let of_bada = |lives: &Value| {
        lives.as_array().expect("a list").iter().find(|live| live["channelId"] == "streamer-bada").cloned()
    };
    let live = of_bada(&lives().await).expect("bada is on air");
    assert_eq!((&live["liveTitle"], &live["concurrentUserCount"]), (&json!("축구"), &json!(9)));
    trigger(&sandbox, "live-end", json!({ "channel": "bada" })).await.content();
    assert!(of_bada(&lives().await).is_none());

    let watched = trigger(&sandbox, "watch", json!({ "minutes": 30 })).await.content();
    assert_eq!(watched["campaigns"], json!([{ "campaignId": "first-voyage", "minutes": 30 }]));
    let claim = json!({ "campaign": "first-voyage", "viewer": "nuri" });
    for _ in 0..3 {
        let claimed = trigger(&sandbox, "claim", claim.clone()).await.content();
        let query = format!("claimId={}", claimed["claimId"].as_str().expect("an id"));
        let claims = sandbox.api.reward_claims(&sandbox.application("drops"), &query).await.content();
        assert_eq!(claims["data"][0]["channelId"], "viewer-nuri", "{claims}");
    }
    assert_eq!(trigger(&sandbox, "claim", claim).await.status, 409);

    trigger(&sandbox, "restrict", json!({ "target": "nuri" })).await.content();
    let restricted = sandbox.api.restricted(&tokens.access, "").await.text().to_owned();
    assert!(restricted.contains("viewer-nuri"), "{restricted}");
    let refused = trigger(&sandbox, "chat", json!({ "from": "nuri" })).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn access_ends_as_in_production() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let token = |index| sandbox.user(index, "demo").1.access;
    let mut socket = subscribed(&sandbox, &["chat"]).await;
    let key = socket.session_key().to_owned();
    let closed = trigger(&sandbox, "close-session", json!({ "user": "haneul" })).await.content();
    assert_eq!(closed["sessionKeys"], json!([key]));
    while socket.next_packet().await.is_some() {}

    trigger(&sandbox, "exhaust-quota", json!({ "user": "bada", "client": "demo" })).await.content();
    assert_eq!(sandbox.api.me(&token(1)).await.status, 429);
    assert_eq!(sandbox.api.me(&token(2)).await.status, 200);

    trigger(&sandbox, "revoke-consent", json!({ "user": "sol", "client": "demo" })).await.content();
    assert_eq!(sandbox.api.me(&token(2)).await.status, 401);

    let scopes = sandbox.list("applications")[0]["scopes"].clone();
    let removed = trigger(&sandbox, "remove-scope", json!({ "client": "demo", "scope": scopes[0] })).await;
    let left = removed.content()["scopes"].as_array().expect("a list").len();
    assert_eq!(left, scopes.as_array().expect("a list").len() - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_triggers_are_refused_by_name() {
    let folder = folder();
    let sandbox = started(&folder).await;
    for (kind, body, status, start, part) in [
        ("rain", json!({}), 404, "kind: ", "chat, donation"),
        ("chat", json!({ "to": "haneul" }), 400, "to: ", "channel, from, message"),
        ("chat", json!({ "from": "nobody" }), 400, "from: ", "viewer-nuri"),
        ("chat", json!({ "channel": true }), 400, "channel: ", ""),
        ("donation", json!({ "from": "nuri", "anonymous": true }), 400, "anonymous: ", ""),
        ("donation", json!({ "anonymous": "yes" }), 400, "anonymous: ", "true or false"),
        ("donation", json!({ "amount": -5 }), 400, "amount: ", ""),
        ("donation", json!({ "type": "AUDIO" }), 400, "type: ", "VIDEO"),
        ("donation", json!({ "emojis": [] }), 400, "emojis: ", "object"),
        ("donation", json!({ "emojis": { "smile": "no address" } }), 400, "emojis: ", ""),
        ("chat", json!({ "message": "" }), 400, "message: ", ""),
        ("chat", json!({ "badges": "no address" }), 400, "badges: ", ""),
        ("subscription", json!({ "tier": 3 }), 400, "tier: ", ""),
        ("subscription", json!({ "since": "today" }), 400, "since: ", "RFC 3339"),
        ("live", json!({ "viewers": -1 }), 400, "viewers: ", ""),
        ("live", json!({ "category": "none" }), 400, "category: ", ""),
        ("watch", json!({ "minutes": "many" }), 400, "minutes: ", ""),
        ("claim", json!({ "reward": "sail" }), 400, "campaign: ", ""),
        ("claim", json!({ "campaign": "first-voyage", "reward": "gold" }), 400, "reward: ", ""),
        ("remove-scope", json!({ "scope": "none" }), 400, "scope: ", ""),
        ("close-session", json!({ "user": "unknown" }), 400, "user: ", "viewer-nuri"),
        ("close-session", json!({ "user": "nuri" }), 409, "user: ", "No session is connected"),
        ("cut-connection", json!({ "client": "drops" }), 409, "client: ", "No session is connected"),
        ("chat", json!({ "wait": "1ms" }), 409, "wait: ", "no session is subscribed to CHAT"),
        ("exhaust-quota", json!({ "for": "25h" }), 400, "for: ", "24h"),
        ("revoke-consent", json!({ "client": "none" }), 400, "client: ", "demo, drops"),
    ] {
        let answer = trigger(&sandbox, kind, body.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, status, "{kind} {body}: {message}");
        assert!(message.starts_with(start) && message.contains(part), "{kind} {body}: {message}");
    }
    let kinds = sandbox.api.operator(Request::get("/sandbox/v1/trigger")).await.content();
    assert_eq!(kinds[1]["types"]["anonymous"], "flag", "{}", kinds[1]);
    assert!(kinds.as_array().expect("a list").iter().any(|kind| kind["fields"]["amount"].is_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_triggers_and_prints_one_line() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let mut socket = subscribed(&sandbox, &["donation"]).await;
    let command = |arguments: &[&str]| {
        let mut command = stagedoor(arguments);
        command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a text"));
        command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a text"));
        command
    };
    let donation = ["trigger", "donation", "--to", "haneul", "--from", "nuri", "--amount", "1000"];
    let done = run(command(&donation)).await;
    assert!(done.status.success(), "{}", done.stderr);
    assert!(done.stdout.starts_with("donation: ") && done.stdout.contains("delivered 1"), "{}", done.stdout);
    assert_eq!(done.stdout.lines().count(), 1);
    assert_eq!(socket.event("DONATION").await["payAmount"], "1000");
    let json = run(command(&["trigger", "chat", "--from", "nuri", "--json"])).await;
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["delivered"], 0);
    let refused = run(command(&["trigger", "chat", "--from", "nobody"])).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("viewer-nuri"), "{}", refused.stderr);
    let help = run(command(&["trigger", "--help"])).await;
    assert!(help.stdout.contains("revoke-consent"), "{}", help.stdout);
}
