//! Records of events and of the packets of sockets.

use serde_json::{Value, json};
use testkit::{Request, Socket};

use crate::cli::process::{Sandbox, run, stagedoor};

async fn records(sandbox: &Sandbox, query: &str) -> Vec<Value> {
    let found = sandbox.api.operator(Request::get(format!("/sandbox/v1/log?{query}"))).await.content();
    found["data"].as_array().expect("a list").clone()
}

/// A session of a person that is subscribed to chat.
async fn listener(sandbox: &Sandbox, index: usize) -> Socket {
    let (_, tokens) = sandbox.user(index, "demo");
    let mut socket = sandbox.api.open_user_session(&tokens.access).await;
    sandbox.api.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
    socket.system("subscribed").await;
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn every_packet_of_a_session_is_recorded_in_order_without_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (person, tokens) = sandbox.user(0, "demo");
    let mut socket = listener(&sandbox, 0).await;
    let key = socket.session_key().to_owned();
    sandbox.api.send_chat(&tokens.access, "hello").await.content();
    socket.event("CHAT").await;
    socket.ping().await;
    socket.close().await;
    let ended = json!({ "kind": "frame", "where": { "session": key, "event": "ended" }, "within": "5s" });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&ended)).await.content();

    let found = records(&sandbox, &format!("kind=frame&session={key}")).await;
    let text = |record: &Value, name: &str| record[name].as_str().unwrap_or("-").to_owned();
    let told: Vec<_> =
        found.iter().map(|f| [text(f, "direction"), text(f, "event"), text(f, "type")].join(" ")).collect();
    assert_eq!(
        told,
        [
            "- opened -",
            "out open -",
            "out connect -",
            "out SYSTEM connected",
            "out SYSTEM subscribed",
            "out CHAT -",
            "in ping -",
            "out pong -",
            "in disconnect -",
            "- ended -",
        ]
    );
    assert!(found.iter().all(|f| f["user"] == *person.channel_id && f["clientId"] == "demo"));
    assert_eq!(
        (&found[5]["payload"]["content"], &found[9]["reason"]),
        (&json!("hello"), &json!("client_goodbye"))
    );
    assert!(text(&found[1]["payload"], "sid").starts_with("***"), "{:?}", found[1]);

    let expected = json!({ "kind": "frame", "where": { "event": "CHAT", "content": "~^hel" } });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&expected)).await.content();
    let mut command = stagedoor(&["logs", "--kind", "frame", "--where", "event=CHAT"]);
    command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a URL"));
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a key"));
    let logs = run(command).await;
    assert!(logs.status.success() && logs.stdout.contains("hello"), "{}{}", logs.stdout, logs.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_says_who_received_it_and_who_did_not_and_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (person, tokens) = sandbox.user(0, "demo");
    let token = &tokens.access;
    let happen = async |message: &str| {
        sandbox.api.send_chat(token, message).await.content();
        let expected = json!({ "kind": "event", "where": { "content": message }, "within": "5s" });
        let found = sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&expected)).await.content();
        found["data"][0].clone()
    };
    let nobody = happen("nobody").await;
    assert_eq!((&nobody["delivered"], &nobody["missed"]), (&json!(0), &json!([])));
    assert_eq!(nobody["channelId"], *person.channel_id);

    let mut idle = sandbox.api.open_user_session(token).await;
    let (left, heard) = (listener(&sandbox, 0).await, listener(&sandbox, 0).await);
    let (idle_key, left_key) = (idle.session_key().to_owned(), left.session_key().to_owned());
    let other = sandbox.api.open_user_session(&sandbox.user(1, "demo").1.access).await;
    let keys = [left_key.clone(), heard.session_key().to_owned()];
    let both = happen("both").await;
    assert_eq!((&both["delivered"], &both["sessions"]), (&json!(2), &json!(keys)));
    let missed = |session: &str, why: &str| json!({ "session": session, "clientId": "demo", "user": person.channel_id, "why": why });
    assert_eq!(both["missed"], json!([missed(&idle_key, "not subscribed to CHAT")]));

    sandbox.api.unsubscribe(token, "chat", &left_key).await.content();
    sandbox.api.subscribe(token, "donation", &idle_key).await.content();
    idle.system("subscribed").await;
    let one = happen("one").await;
    let two = [missed(&idle_key, "not subscribed to CHAT"), missed(&left_key, "unsubscribed from CHAT")];
    assert_eq!((&one["delivered"], &one["missed"]), (&json!(1), &json!(two)));

    let gone = heard.session_key().to_owned();
    heard.close().await;
    idle.close().await;
    left.close().await;
    let ended = json!({ "kind": "frame", "where": { "session": gone, "event": "ended" }, "within": "5s" });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&ended)).await.content();
    let none = happen("none").await;
    assert_eq!(none["missed"], json!([missed(&gone, "ended: client_goodbye")]));
    let _back = listener(&sandbox, 0).await;
    let again = happen("again").await;
    assert!(
        again["missed"].as_array().expect("a list").iter().all(|miss| miss["session"] != *gone),
        "{again}"
    );
    drop(other);
}
