//! Faults of requests.

use serde_json::{Value, json};
use testkit::{Connection, Request, Response};

use crate::cli::process::Sandbox;

const FAULTS: &str = "/sandbox/v1/faults";

async fn add(sandbox: &Sandbox, rule: Value) -> Response {
    sandbox.api.operator(Request::post(FAULTS).json(&rule)).await
}

async fn hits(sandbox: &Sandbox) -> Value {
    sandbox.api.operator(Request::get(FAULTS)).await.content()["data"][0]["hits"].clone()
}

fn chat(token: &str, message: &str) -> Request {
    Request::post("/open/v1/chats/send").bearer(token).json(&json!({ "message": message }))
}

async fn chat_records(sandbox: &Sandbox, kind: &str) -> usize {
    let records = Request::get(format!("/sandbox/v1/log?kind={kind}&path=/open/v1/chats/send"));
    sandbox.api.operator(records).await.content()["data"].as_array().expect("a list").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_answered_in_the_envelope_to_the_meant_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (person, tokens) = sandbox.user(0, "demo");
    let meant =
        json!({ "clientId": "demo", "user": person.channel_id, "method": "get", "path": "/open/v1/users/*" });
    let rule = json!({ "match": meant, "nth": 2, "times": 1, "do": { "status": 429, "retryAfter": 5 } });
    let added = add(&sandbox, rule).await.content();
    let mut connection = Connection::open(sandbox.api.address()).await;
    let me = Request::get("/open/v1/users/me").bearer(&tokens.access);
    assert_eq!(connection.send(&me).await.status, 200);
    connection.begin(&me).await;
    let faulted = connection.read_response(false).await.expect("an answer");
    assert_eq!((faulted.status, faulted.header("retry-after")), (429, Some("5")));
    assert_eq!(faulted.header("sandbox-fault"), added["id"].as_str());
    assert_eq!(faulted.json(), json!({ "code": 429, "message": "TOO_MANY_REQUESTS" }));
    assert_eq!(connection.send(&me).await.status, 200);
    assert_eq!(hits(&sandbox).await, 1);

    let removal = Request::new("DELETE", format!("{FAULTS}/{}", added["id"].as_str().expect("an id")));
    assert_eq!(sandbox.api.operator(removal.clone()).await.status, 200);
    assert_eq!(sandbox.api.operator(removal).await.status, 404);
    // A rule for everything leaves the sandbox API alone.
    add(&sandbox, json!({ "do": { "status": 503, "message": "later" } })).await.content();
    connection.begin(&me).await;
    let faulted = connection.read_response(false).await.expect("an answer");
    assert_eq!(faulted.json(), json!({ "code": 503, "message": "later" }));
    sandbox.api.operator(Request::new("DELETE", FAULTS)).await.content();
    assert_eq!(connection.send(&me).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_have_a_body_of_its_own_or_be_a_redirect() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    for (effect, status, header, body) in [
        (
            json!({ "status": 502, "body": "<html>502</html>" }),
            502,
            ("content-type", "text/html; charset=utf-8"),
            "<html>502</html>",
        ),
        (
            json!({ "status": 200, "body": "{\"code\":" }),
            200,
            ("content-type", "application/json"),
            "{\"code\":",
        ),
        (
            json!({ "status": 503, "body": "later", "contentType": "text/plain" }),
            503,
            ("content-type", "text/plain"),
            "later",
        ),
        (
            json!({ "status": 307, "location": "https://other.example/" }),
            307,
            ("location", "https://other.example/"),
            "",
        ),
    ] {
        add(&sandbox, json!({ "match": { "path": "/open/v1/users/me" }, "times": 1, "do": effect }))
            .await
            .content();
        let mut connection = Connection::open(sandbox.api.address()).await;
        connection.begin(&Request::get("/open/v1/users/me").bearer(&tokens.access)).await;
        let answer = connection.read_response(false).await.expect("an answer");
        assert_eq!((answer.status, answer.header(header.0), answer.text()), (status, Some(header.1), body));
    }
    for (effect, field) in [
        (json!({ "status": 199, "body": "" }), "do.status"),
        (json!({ "status": 204, "body": "" }), "do.status"),
        (json!({ "status": 200 }), "do.body"),
        (json!({ "status": 302 }), "do.location"),
        (json!({ "status": 404, "location": "/" }), "do.location"),
        (json!({ "status": 302, "location": "/", "body": "" }), "do.location"),
        (json!({ "status": 302, "location": "a\nb" }), "do.location"),
        (json!({ "status": 500, "body": "x", "message": "y" }), "do.message"),
        (json!({ "status": 500, "contentType": "text/plain" }), "do.contentType"),
        (json!({ "delay": "1s", "body": "x" }), "do.body"),
        (json!({ "status": 500, "body": "x".repeat(32 * 1024 + 1) }), "do.body"),
    ] {
        let refused = add(&sandbox, json!({ "do": effect })).await;
        assert_eq!(refused.status, 400, "{field}");
        assert!(refused.text().contains(&format!("{field}: ")), "{field}: {}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_request_has_no_answer_but_its_effects_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let mut socket = sandbox.api.open_user_session(&tokens.access).await;
    let session = socket.session_key().to_owned();
    sandbox.api.subscribe(&tokens.access, "chat", &session).await.content();
    socket.system("subscribed").await;
    for (moment, message) in [("before", "lost"), ("after", "kept")] {
        let meant = json!({ "path": "/open/v1/chats/send" });
        add(&sandbox, json!({ "match": meant, "times": 1, "do": { "cut": moment } })).await.content();
        let mut connection = Connection::open(sandbox.api.address()).await;
        connection.begin(&chat(&tokens.access, message)).await;
        assert_eq!(connection.rest().await, b"", "{moment}");
    }
    sandbox.api.send_chat(&tokens.access, "last").await.content();
    for message in ["kept", "last"] {
        assert_eq!(socket.event("CHAT").await["content"], message);
    }
    assert_eq!((chat_records(&sandbox, "fault").await, chat_records(&sandbox, "request").await), (2, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_ends_early_and_a_delayed_one_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    for (length, kept) in [(json!(true), None), (json!(7), Some(7)), (json!(1_000_000), None)] {
        add(&sandbox, json!({ "times": 1, "do": { "truncate": length } })).await.content();
        let mut connection = Connection::open(sandbox.api.address()).await;
        connection.begin(&Request::get("/open/v1/users/me").bearer(&tokens.access)).await;
        let read = String::from_utf8(connection.rest().await).expect("a text");
        let (head, body) = read.split_once("\r\n\r\n").expect("a head");
        let promised = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let promised: usize = promised.parse().expect("a number");
        assert!(body.len() < promised && !body.is_empty(), "{read}");
        assert!(kept.is_none_or(|kept| kept == body.len()), "{read}");
    }
    for when in ["before", "after"] {
        add(&sandbox, json!({ "times": 1, "do": { "delay": "50ms", "when": when } })).await.content();
        let answer = sandbox.api.me(&tokens.access).await;
        assert!(answer.status == 200 && answer.header("sandbox-fault").is_some());
    }
    let delayed = Request::get("/sandbox/v1/log?kind=request&fault=~.&durationMs=%3E%3D50");
    let delayed = sandbox.api.operator(delayed).await.content();
    assert_eq!(delayed["data"].as_array().map(Vec::len), Some(2), "{delayed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_affects_the_same_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let statuses = async |seed: u64| {
        sandbox.api.operator(Request::new("DELETE", FAULTS)).await.content();
        let meant = json!({ "path": "/open/v1/users/me" });
        let rule = json!({ "match": meant, "probability": 0.5, "seed": seed, "do": { "status": 500 } });
        add(&sandbox, rule).await.content();
        let mut connection = Connection::open(sandbox.api.address()).await;
        let mut statuses = Vec::new();
        for _ in 0..20 {
            connection.begin(&Request::get("/open/v1/users/me").bearer(&tokens.access)).await;
            statuses.push(connection.read_response(false).await.expect("an answer").status);
        }
        statuses
    };
    let first = statuses(7).await;
    assert!(first.contains(&200) && first.contains(&500), "{first:?}");
    assert_eq!(statuses(7).await, first);
    assert_ne!(statuses(8).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_rule_is_refused_by_its_field_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let status = json!({ "status": 500 });
    for (body, field) in [
        (json!({}), "do"),
        (json!({ "profile": "train" }), "profile"),
        (json!({ "profile": "slow", "do": status }), "profile"),
        (json!({ "profile": "slow", "times": 1 }), "times"),
        (json!({ "profile": "slow", "match": { "path": "/open/*" } }), "match.path"),
        (json!({ "profile": "slow", "match": { "event": "CHAT" } }), "match.event"),
        (json!({ "do": {} }), "do"),
        (json!({ "do": { "status": 500, "cut": "after" } }), "do"),
        (json!({ "do": { "status": 100 } }), "do.status"),
        (json!({ "do": { "cut": "after", "retryAfter": 1 } }), "do.retryAfter"),
        (json!({ "do": { "delay": "soon" } }), "do.delay"),
        (json!({ "do": { "cut": "now" } }), "do.cut"),
        (json!({ "do": { "cut": "after", "when": "before" } }), "do.when"),
        (json!({ "do": { "truncate": false } }), "do"),
        (json!({ "do": { "drop": false } }), "do"),
        (json!({ "do": { "drop": true, "late": "1s" } }), "do"),
        (json!({ "do": { "late": "soon" } }), "do.late"),
        (json!({ "do": { "late": "11m" } }), "do.late"),
        (json!({ "do": { "close": "tired" } }), "do.close"),
        (json!({ "match": { "path": "/open/*" }, "do": { "drop": true } }), "match.path"),
        (json!({ "match": { "method": "GET" }, "do": { "silence": true } }), "match.method"),
        (json!({ "match": { "event": "CHAT", "path": "/open/*" }, "do": { "cut": "after" } }), "match.path"),
        (json!({ "match": { "event": "chat" }, "do": { "drop": true } }), "match.event"),
        (json!({ "match": { "channelId": "" }, "do": { "drop": true } }), "match.channelId"),
        (json!({ "match": { "channelId": "c" }, "do": status }), "match.channelId"),
        (
            json!({ "match": { "event": "SYSTEM/connected", "channelId": "c" }, "do": { "drop": true } }),
            "match.channelId",
        ),
        (json!({ "match": { "path": "open" }, "do": status }), "match.path"),
        (json!({ "match": { "path": "/*/me" }, "do": status }), "match.path"),
        (json!({ "match": { "event": "CHAT" }, "do": status }), "match.event"),
        (json!({ "match": { "user": "unknown" }, "do": status }), "match.user"),
        (json!({ "match": { "clientId": "none" }, "do": status }), "match.clientId"),
        (json!({ "match": { "channelId": "none" }, "do": { "drop": true } }), "match.channelId"),
        (json!({ "match": { "webhook": "none" }, "do": { "tamper": "body" } }), "match.webhook"),
        (json!(["do"]), "body"),
        (json!({ "nth": 0, "do": status }), "nth"),
        (json!({ "times": 0, "do": status }), "times"),
        (json!({ "probability": 1.5, "do": status }), "probability"),
    ] {
        let answer = add(&sandbox, body.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, 400, "{body}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{body}: {message}");
    }
    assert_eq!(sandbox.api.operator(Request::get(FAULTS)).await.content(), json!({ "data": [] }));
    for _ in 0..100 {
        add(&sandbox, json!({ "match": { "path": "/none" }, "do": status })).await.content();
    }
    assert_eq!(add(&sandbox, json!({ "do": status })).await.status, 400);
}
