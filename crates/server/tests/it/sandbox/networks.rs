//! Network profiles.

use std::time::Duration;

use serde_json::{Value, json};
use service::Clock;
use testkit::{Connection, Request, Socket, patiently};

use crate::cli::process::{Sandbox, run, stagedoor};

const FAULTS: &str = "/sandbox/v1/faults";

async fn add(sandbox: &Sandbox, rule: Value) -> Value {
    sandbox.api.operator(Request::post(FAULTS).json(&rule)).await.content()
}

async fn listener(sandbox: &Sandbox, index: usize) -> Socket {
    let token = sandbox.user(index, "demo").1.access;
    let mut socket = sandbox.api.open_user_session(&token).await;
    sandbox.api.subscribe(&token, "chat", socket.session_key()).await.content();
    socket.system("subscribed").await;
    socket
}

/// The whole answer to a call; empty if the connection ends without one.
async fn called(sandbox: &Sandbox, token: &str) -> Vec<u8> {
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.begin(&Request::get("/open/v1/users/me").bearer(token).header("Connection", "close")).await;
    connection.rest().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_sessions_are_lost_and_nothing_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (mut lost, mut kept) = (listener(&sandbox, 0).await, listener(&sandbox, 1).await);
    let (meant, other) = (sandbox.user(0, "demo").1.access, sandbox.user(1, "demo").1.access);
    let session_url = sandbox.api.user_session_url(&meant).await.content();
    let added = add(&sandbox, json!({ "profile": "offline", "match": { "user": "haneul" } })).await;
    assert_eq!(
        added,
        json!({ "id": "fault-1", "hits": 0, "match": { "user": "streamer-haneul" }, "seed": 1, "profile": "offline" })
    );
    assert_eq!(lost.next_packet().await, None);
    kept.ping().await;
    assert_eq!(called(&sandbox, &meant).await, b"");
    assert!(called(&sandbox, &other).await.starts_with(b"HTTP/1.1 200"));
    let (_, query) = session_url["url"].as_str().expect("a URL").split_once('?').expect("a query");
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.begin(&testkit::websocket_request(&format!("{query}&EIO=3&transport=websocket"))).await;
    assert_eq!(connection.rest().await, b"");

    let rules = sandbox.api.operator(Request::get(FAULTS)).await.content();
    assert_eq!(rules["data"][0]["hits"], 3);
    let faults = sandbox.api.operator(Request::get("/sandbox/v1/log?kind=fault")).await.content();
    let [session, call, handshake] = faults["data"].as_array().expect("a list").as_slice() else {
        panic!("{faults}")
    };
    assert_eq!(session["do"], json!({ "profile": "offline", "cut": true }));
    assert_eq!(
        (&session["session"], &session["user"]),
        (&json!(lost.session_key()), &json!("streamer-haneul"))
    );
    assert_eq!((&call["path"], &handshake["path"]), (&json!("/open/v1/users/me"), &json!("/socket.io/")));

    sandbox.api.operator(Request::new("DELETE", format!("{FAULTS}/fault-1"))).await.content();
    assert!(called(&sandbox, &meant).await.starts_with(b"HTTP/1.1 200"));
    Socket::open(session_url["url"].as_str().expect("a URL")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_network_delays_calls_and_messages_and_keeps_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--no-quota"]).await;
    let mut socket = listener(&sandbox, 0).await;
    let token = sandbox.user(0, "demo").1.access;
    add(&sandbox, json!({ "profile": "slow", "match": { "clientId": "demo" }, "seed": 7 })).await;
    let begun = Clock::system();
    assert!(called(&sandbox, &token).await.starts_with(b"HTTP/1.1 200"));
    assert!(begun.monotonic() >= Duration::from_millis(800));

    let begun = Clock::system();
    for number in 0..10 {
        let body = json!({ "channel": "haneul", "message": number.to_string() });
        sandbox.api.operator(Request::post("/sandbox/v1/trigger/chat").json(&body)).await.content();
    }
    for number in 0..10 {
        assert_eq!(socket.event("CHAT").await["content"], number.to_string());
    }
    assert!(begun.monotonic() >= Duration::from_millis(800));
    // A packet of the client takes longer, and so does its answer.
    let begun = Clock::system();
    for packet in ["2one", "2two", "2three"] {
        socket.send(packet).await;
    }
    for answer in ["3one", "3two", "3three"] {
        assert_eq!(socket.next_packet().await.as_deref(), Some(answer));
    }
    assert!(begun.monotonic() >= Duration::from_millis(1_600), "{:?}", begun.monotonic());
    // The end of the connection does not overtake the close frame before it.
    let key = socket.session_key().to_owned();
    socket.send("41").await;
    drop(socket);
    let ended = json!({ "kind": "frame", "where": { "session": key, "event": "ended" }, "within": "5s" });
    let ended = sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&ended)).await.content();
    assert_eq!(ended["data"][0]["reason"], "client_goodbye");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handover_silences_and_loses_every_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let mut socket = listener(&sandbox, 0).await;
    let begun = Clock::system();
    add(&sandbox, json!({ "profile": "handover", "match": { "clientId": "demo" } })).await;
    assert_eq!(patiently("the connection is lost", socket.next_packet()).await, None);
    assert!(begun.monotonic() >= Duration::from_secs(17), "{:?}", begun.monotonic());
    let faults = sandbox.api.operator(Request::get("/sandbox/v1/log?kind=fault")).await.content();
    let effects: Vec<&Value> =
        faults["data"].as_array().expect("a list").iter().map(|fault| &fault["do"]).collect();
    let expected =
        [json!({ "profile": "handover", "silence": true }), json!({ "profile": "handover", "cut": true })];
    assert_eq!(effects, expected.iter().collect::<Vec<_>>());
    // The network works again.
    listener(&sandbox, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_chosen_by_option_and_by_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--net", "offline"]).await;
    let fault = async |words: &[&str]| {
        let mut command = stagedoor(&[&["fault"], words].concat());
        command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a URL"));
        command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a key"));
        run(command).await
    };
    assert_eq!(fault(&[]).await.stdout, "fault-1  hits 0  net=offline\n");
    let token = sandbox.user(0, "demo").1.access;
    assert_eq!(called(&sandbox, &token).await, b"");
    // What the operator does is not behind the network.
    assert_eq!(sandbox.api.operator(Request::get("/platform/v1/applications")).await.status, 200);
    fault(&["reset"]).await;
    let added = fault(&["add", "--net", "subway", "--client", "demo", "--seed", "3"]).await;
    assert_eq!(added.stdout, "fault-2  hits 0  net=subway  when clientId=demo\n");
    let profiles = fault(&["profiles"]).await.stdout;
    for name in ["slow", "subway", "handover", "tunnel", "offline"] {
        assert!(profiles.lines().any(|line| line.starts_with(name)), "{profiles}");
    }
    let wrong = run(stagedoor(&["dev", "--net", "train"])).await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stderr.contains("subway"), "{}", wrong.stderr);
}
