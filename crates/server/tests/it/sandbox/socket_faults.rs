//! Faults of socket messages.

use std::time::Duration;

use serde_json::{Value, json};
use service::Clock;
use testkit::{Connection, Request, Response, Socket, WebSocket, patiently};

use crate::cli::process::Sandbox;

const FAULTS: &str = "/sandbox/v1/faults";

async fn add(sandbox: &Sandbox, rule: Value) -> Value {
    sandbox.api.operator(Request::post(FAULTS).json(&rule)).await.content()
}

async fn hits(sandbox: &Sandbox) -> Vec<u64> {
    let rules = sandbox.api.operator(Request::get(FAULTS)).await.content();
    rules["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|rule| rule["hits"].as_u64().expect("a number"))
        .collect()
}

async fn clear(sandbox: &Sandbox) {
    sandbox.api.operator(Request::new("DELETE", FAULTS)).await.content();
}

async fn started(folder: &tempfile::TempDir) -> Sandbox {
    Sandbox::start(folder.path(), &["--no-quota"]).await
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

async fn subscribe(sandbox: &Sandbox, session: &str) -> Response {
    sandbox.api.subscribe(&sandbox.user(0, "demo").1.access, "chat", session).await
}

/// A session of the first person that is subscribed to chat.
async fn listener(sandbox: &Sandbox) -> Socket {
    let mut socket = sandbox.api.open_user_session(&sandbox.user(0, "demo").1.access).await;
    subscribe(sandbox, socket.session_key()).await.content();
    socket.system("subscribed").await;
    socket
}

async fn say(sandbox: &Sandbox, messages: &[&str]) {
    for message in messages {
        sandbox.api.send_chat(&sandbox.user(0, "demo").1.access, message).await.content();
    }
}

/// The contents of the chat messages up to `last`.
async fn heard(socket: &mut Socket, last: &str) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.last().is_none_or(|message| message != last) {
        heard.push(socket.event("CHAT").await["content"].as_str().expect("a text").to_owned());
    }
    heard
}

async fn fault_records(sandbox: &Sandbox) -> Vec<Value> {
    let found = sandbox.api.operator(Request::get("/sandbox/v1/log?kind=fault")).await.content();
    found["data"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_dropped_doubled_and_reordered_for_the_meant_sessions() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let mut socket = listener(&sandbox).await;
    let key = socket.session_key().to_owned();
    for (effect, expected) in [
        ("drop", vec!["two", "end"]),
        ("duplicate", vec!["one", "one", "two", "end"]),
        ("reorder", vec!["two", "one", "end"]),
    ] {
        let meant = json!({ "event": "CHAT", "clientId": "demo", "user": "haneul", "channelId": "haneul" });
        let rule = add(&sandbox, json!({ "match": meant, "times": 1, "do": { effect: true } })).await;
        assert_eq!(rule["match"]["user"], "streamer-haneul");
        for (field, value) in [("user", "bada"), ("channelId", "bada"), ("event", "DONATION")] {
            let mut meant = meant.clone();
            meant[field] = value.into();
            add(&sandbox, json!({ "match": meant, "do": { "drop": true } })).await;
        }
        say(&sandbox, &["one", "two", "end"]).await;
        assert_eq!(heard(&mut socket, "end").await, expected, "{effect}");
        assert_eq!(hits(&sandbox).await, [1, 0, 0, 0], "{effect}");
        clear(&sandbox).await;
    }
    let faults = fault_records(&sandbox).await;
    assert_eq!(faults.len(), 3);
    assert_eq!(
        (&faults[0]["fault"], &faults[0]["do"], &faults[0]["session"], &faults[0]["event"]),
        (&json!("fault-1"), &json!({ "drop": true }), &json!(key), &json!("CHAT"))
    );
    let events = sandbox.api.operator(Request::get("/sandbox/v1/log?kind=event&content=one")).await.content();
    assert_eq!(events["data"][0]["missed"][0]["why"], "dropped by fault-1");
    assert_eq!((&events["data"][0]["delivered"], &events["data"][1]["delivered"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_reordered_swaps_pairs() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let mut socket = listener(&sandbox).await;
    add(&sandbox, json!({ "match": { "event": "CHAT" }, "do": { "reorder": true } })).await;
    say(&sandbox, &["one", "two", "three", "four"]).await;
    assert_eq!(heard(&mut socket, "three").await, ["two", "one", "four", "three"]);
    assert_eq!(hits(&sandbox).await, [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reordered_message_without_a_next_one_is_sent_after_two_seconds() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let mut socket = listener(&sandbox).await;
    add(&sandbox, json!({ "match": { "event": "CHAT" }, "do": { "reorder": true } })).await;
    let begun = Clock::system();
    say(&sandbox, &["alone"]).await;
    assert_eq!(heard(&mut socket, "alone").await, ["alone"]);
    let took = begun.monotonic();
    assert!((Duration::from_secs(2)..Duration::from_secs(10)).contains(&took), "{took:?}");
    // The next messages are a pair of their own.
    say(&sandbox, &["one", "two"]).await;
    assert_eq!(heard(&mut socket, "one").await, ["two", "one"]);
    assert_eq!(hits(&sandbox).await, [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_messages_are_overtaken() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let late = json!({ "late": "400ms" });
    add(&sandbox, json!({ "match": { "event": "SYSTEM/connected" }, "times": 1, "do": late })).await;
    let begun = Clock::system();
    let mut socket = sandbox.api.open_user_session(&sandbox.user(0, "demo").1.access).await;
    assert!(begun.monotonic() >= Duration::from_millis(400));

    add(&sandbox, json!({ "match": { "event": "SYSTEM/subscribed" }, "times": 1, "do": late })).await;
    let begun = Clock::system();
    subscribe(&sandbox, socket.session_key()).await.content();
    say(&sandbox, &["early"]).await;
    assert_eq!(socket.event("CHAT").await["content"], "early");
    socket.system("subscribed").await;
    assert!(begun.monotonic() >= Duration::from_millis(400));

    add(&sandbox, json!({ "match": { "event": "CHAT" }, "times": 1, "do": late })).await;
    say(&sandbox, &["late", "next"]).await;
    assert_eq!(heard(&mut socket, "late").await, ["next", "late"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_session_is_half_open() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let mut socket = listener(&sandbox).await;
    add(&sandbox, json!({ "match": { "event": "CHAT" }, "nth": 2, "do": { "silence": true } })).await;
    say(&sandbox, &["one", "two", "three"]).await;
    assert_eq!(socket.event("CHAT").await["content"], "one");
    let silenced = json!({ "kind": "fault", "where": { "session": socket.session_key() }, "within": "5s" });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&silenced)).await.content();
    socket.send("2").await;
    let silence = tokio::time::timeout(Duration::from_millis(700), socket.next_packet()).await;
    assert!(silence.is_err(), "{silence:?}");
    let pinged = json!({ "kind": "frame", "where": { "event": "ping", "direction": "in" }, "within": "5s" });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&pinged)).await.content();
    let three = json!({ "kind": "event", "where": { "content": "three" } });
    let three = sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&three)).await.content();
    let why = three["data"][0]["missed"][0]["why"].as_str().expect("a text");
    assert!(why.starts_with("silent since fault-"), "{why}");
    // Another session is not affected.
    let mut other = listener(&sandbox).await;
    say(&sandbox, &["four"]).await;
    assert_eq!(other.event("CHAT").await["content"], "four");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_closed_with_a_reason_or_cut_without_a_goodbye() {
    let folder = folder();
    let sandbox = started(&folder).await;
    for (reason, code) in [("slow_consumer", 1013), ("server_shutdown", 1001), ("revoked", 1008)] {
        let mut socket = listener(&sandbox).await;
        add(&sandbox, json!({ "match": { "event": "CHAT" }, "times": 1, "do": { "close": reason } })).await;
        say(&sandbox, &["one"]).await;
        assert_eq!(socket.next_packet().await, None);
        assert_eq!(listed_reason(&sandbox, socket.session_key()).await, reason);
        drop(socket);
        // The code stands in the close frame.
        let socket = listener(&sandbox).await;
        add(&sandbox, json!({ "match": { "event": "CHAT" }, "times": 1, "do": { "close": reason } })).await;
        say(&sandbox, &["two"]).await;
        assert_eq!(socket.closed().await, (code, reason.to_owned()));
    }
    clear(&sandbox).await;
    for (moment, arrives) in [("before", false), ("after", true)] {
        add(&sandbox, json!({ "match": { "event": "CHAT" }, "times": 1, "do": { "cut": moment } })).await;
        let url = sandbox.api.user_session_url(&sandbox.user(0, "demo").1.access).await.content();
        let (_, query) = url["url"].as_str().expect("a URL").split_once('?').expect("a query");
        let query = format!("{query}&EIO=3&transport=websocket");
        let mut socket = WebSocket::open(sandbox.api.address(), &query).await.expect("a websocket");
        let mut packets = Vec::new();
        while packets.len() < 3 {
            packets.push(socket.packet().await);
        }
        let (_, key) = packets[2].split_once(r#"sessionKey\":\""#).expect("a key");
        let key = key.split('\\').next().expect("a key").to_owned();
        subscribe(&sandbox, &key).await.content();
        assert!(socket.packet().await.contains("subscribed"));
        say(&sandbox, &["one"]).await;
        let frame = patiently("the connection ends", socket.frame()).await;
        assert_eq!(frame.is_some(), arrives, "{moment}: {frame:?}");
        assert!(!arrives || socket.frame().await.is_none(), "no close frame follows");
        assert_eq!(listed_reason(&sandbox, &key).await, "transport_closed");
    }
}

/// The close reason of a session, once its end is recorded.
async fn listed_reason(sandbox: &Sandbox, key: &str) -> String {
    let ended = json!({ "kind": "frame", "where": { "session": key, "event": "ended" }, "within": "5s" });
    let ended = sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&ended)).await.content();
    ended["data"][0]["reason"].as_str().expect("a reason").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_is_refused_or_cut_by_the_rules_of_requests() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let token = sandbox.user(0, "demo").1.access;
    let url = async || {
        let url = sandbox.api.user_session_url(&token).await.content();
        url["url"].as_str().expect("a URL").to_owned()
    };
    let meant = json!({ "path": "/socket.io/*", "clientId": "demo", "user": "haneul" });
    let rule = json!({ "match": meant, "times": 1, "do": { "status": 503, "retryAfter": 3 } });
    let added = add(&sandbox, rule).await;
    let same = url().await;
    let refused = Socket::connect(&same).await.expect_err("a refusal");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("3")));
    assert_eq!(refused.header("sandbox-fault"), added["id"].as_str());
    // The refused handshake has not used the URL up.
    Socket::open(&same).await;
    // Another user's handshake is not meant.
    add(&sandbox, json!({ "match": meant, "do": { "status": 500 } })).await;
    sandbox.api.open_user_session(&sandbox.user(1, "demo").1.access).await;
    assert_eq!(hits(&sandbox).await, [1, 0]);
    clear(&sandbox).await;

    add(&sandbox, json!({ "match": meant, "times": 1, "do": { "cut": "after" } })).await;
    let url = url().await;
    let (_, query) = url.split_once('?').expect("a query");
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.begin(&testkit::websocket_request(&format!("{query}&EIO=3&transport=websocket"))).await;
    assert_eq!(connection.rest().await, b"");
    // The handshake took effect: the URL is used.
    assert_eq!(Socket::connect(&url).await.expect_err("a used URL").status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_polling_session_has_the_same_faults() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let token = sandbox.user(0, "demo").1.access;
    let open = async || {
        let url = sandbox.api.user_session_url(&token).await.content();
        let (_, query) = url["url"].as_str().expect("a URL").split_once('?').expect("a query");
        let path = format!("/socket.io/?{query}&EIO=3&transport=polling&b64=1");
        let opened = sandbox.api.send(Request::get(path.clone())).await.text().to_owned();
        let sid = opened.split(r#""sid":""#).nth(1).and_then(|rest| rest.split('"').next()).expect("a sid");
        let path = format!("{path}&sid={sid}");
        let connected = sandbox.api.send(Request::get(path.clone())).await.text().to_owned();
        let key = connected.split(r#"sessionKey\":\""#).nth(1).and_then(|rest| rest.split('\\').next());
        subscribe(&sandbox, key.expect("a key")).await.content();
        assert!(sandbox.api.send(Request::get(path.clone())).await.text().contains("subscribed"));
        path
    };
    let path = open().await;
    add(&sandbox, json!({ "match": { "event": "CHAT" }, "times": 1, "do": { "drop": true } })).await;
    say(&sandbox, &["one", "two"]).await;
    let polled = sandbox.api.send(Request::get(path.clone())).await.text().to_owned();
    assert!(!polled.contains("one") && polled.contains("two"), "{polled}");

    add(&sandbox, json!({ "match": { "event": "CHAT" }, "times": 1, "do": { "cut": "before" } })).await;
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.begin(&Request::get(path.clone())).await;
    say(&sandbox, &["three"]).await;
    assert_eq!(connection.rest().await, b"", "the poll has no answer");

    let path = open().await;
    add(&sandbox, json!({ "match": { "event": "CHAT" }, "times": 1, "do": { "silence": true } })).await;
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.begin(&Request::get(path)).await;
    say(&sandbox, &["four"]).await;
    let silence = tokio::time::timeout(Duration::from_millis(500), connection.rest()).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_affects_the_same_messages() {
    let folder = folder();
    let sandbox = started(&folder).await;
    let mut socket = listener(&sandbox).await;
    let mut run = async |seed: u64| {
        clear(&sandbox).await;
        let rule =
            json!({ "match": { "event": "CHAT" }, "probability": 0.5, "seed": seed, "do": { "drop": true } });
        add(&sandbox, rule).await;
        let numbers: Vec<String> = (0..16).map(|number| number.to_string()).collect();
        say(&sandbox, &numbers.iter().map(String::as_str).collect::<Vec<_>>()).await;
        clear(&sandbox).await;
        say(&sandbox, &["end"]).await;
        heard(&mut socket, "end").await
    };
    let first = run(7).await;
    assert!(first.len() > 1 && first.len() < 17, "{first:?}");
    assert_eq!(run(7).await, first);
    assert_ne!(run(8).await, first);
}
