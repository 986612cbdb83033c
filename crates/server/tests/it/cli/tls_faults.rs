//! Faults of a sandbox over TLS.

use std::time::Duration;

use serde_json::{Value, json};
use service::Clock;
use testkit::{Request, patiently};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::fixed_hosts::{connect, sandbox, session_url};
use super::process::Sandbox;

const HOST: &str = "api.example";
const SEND: &str = "/open/v1/chats/send";

async fn add(sandbox: &Sandbox, rule: Value) {
    sandbox.api.operator(Request::post("/sandbox/v1/faults").json(&rule)).await.content();
}

async fn opened(sandbox: &Sandbox) -> TlsStream<TcpStream> {
    let authority = sandbox.world["tls"]["authority"].as_str().expect("a file");
    connect(sandbox, authority, HOST).await.expect("the certificate is good")
}

/// Everything that arrives after a request, until the connection ends.
async fn answered(sandbox: &Sandbox, method: &str, path: &str, body: &str) -> String {
    let token = sandbox.user(0, "demo").1.access;
    let mut stream = opened(sandbox).await;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    patiently("the end of the connection", stream.read_to_end(&mut answer)).await.expect("ended properly");
    String::from_utf8(answer).expect("text")
}

/// A session over TLS that is subscribed to chat, and its key.
async fn listener(sandbox: &Sandbox) -> (TlsStream<TcpStream>, String) {
    let url = session_url(sandbox, HOST, HOST).await;
    let query = url.split_once('?').expect("a query").1;
    let mut stream = opened(sandbox).await;
    let request = format!(
        "GET /socket.io/?{query}&EIO=3&transport=websocket HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let received = until(&mut stream, "\\\"}}\"]").await;
    let key = received.split(r#"sessionKey\":\""#).nth(1).and_then(|rest| rest.split('\\').next());
    let key = key.expect("a key").to_owned();
    sandbox.api.subscribe(&sandbox.user(0, "demo").1.access, "chat", &key).await.content();
    until(&mut stream, "subscribed").await;
    (stream, key)
}

/// Reads until a text has arrived; everything to the end without it.
async fn until(stream: &mut TlsStream<TcpStream>, text: &str) -> String {
    patiently(text, async {
        let mut received = String::new();
        while !received.contains(text) {
            let mut bytes = [0; 1_024];
            let Ok(read @ 1..) = stream.read(&mut bytes).await else { break };
            received.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        received
    })
    .await
}

/// Waits for a record of the sandbox.
async fn expect(sandbox: &Sandbox, kind: &str, fields: Value) -> Value {
    let expected = json!({ "kind": kind, "where": fields, "within": "5s" });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&expected)).await.content()["data"][0]
        .take()
}

async fn say(sandbox: &Sandbox, message: &str) {
    sandbox.api.send_chat(&sandbox.user(0, "demo").1.access, message).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_fail_over_tls_as_they_do_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), &[]).await;
    let me = async || answered(&sandbox, "GET", "/open/v1/users/me", "").await;
    add(&sandbox, json!({ "times": 1, "do": { "status": 429, "retryAfter": 5 } })).await;
    let refused = me().await.to_lowercase();
    assert!(refused.starts_with("http/1.1 429 ") && refused.contains("retry-after: 5\r\n"), "{refused}");
    assert!(refused.contains("sandbox-fault: fault-1\r\n"), "{refused}");

    add(&sandbox, json!({ "times": 1, "do": { "delay": "300ms" } })).await;
    let begun = Clock::system();
    assert!(me().await.starts_with("HTTP/1.1 200 "));
    assert!(begun.monotonic() >= Duration::from_millis(300));

    add(&sandbox, json!({ "times": 1, "do": { "truncate": 7 } })).await;
    let half = me().await;
    let (head, body) = half.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 ") && !head.contains("content-length: 7\r\n"), "{half}");
    assert_eq!(body.len(), 7, "{half}");

    let (mut socket, _) = listener(&sandbox).await;
    for moment in ["before", "after"] {
        add(&sandbox, json!({ "match": { "path": SEND }, "times": 1, "do": { "cut": moment } })).await;
        let body = json!({ "message": format!("cut {moment}") }).to_string();
        assert_eq!(answered(&sandbox, "POST", SEND, &body).await, "", "{moment}");
    }
    say(&sandbox, "last").await;
    let heard = until(&mut socket, "last").await;
    assert!(heard.contains("cut after") && !heard.contains("cut before"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_fail_over_tls_as_they_do_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), &[]).await;
    let rule = |effect: Value| json!({ "match": { "event": "CHAT" }, "times": 1, "do": effect });
    let (mut socket, _) = listener(&sandbox).await;
    add(&sandbox, rule(json!({ "close": "slow_consumer" }))).await;
    say(&sandbox, "one").await;
    let end = until(&mut socket, "nothing more").await;
    assert!(end.ends_with("slow_consumer") && !end.contains("one\\"), "{end:?}");

    let (mut socket, key) = listener(&sandbox).await;
    add(&sandbox, rule(json!({ "cut": "before" }))).await;
    say(&sandbox, "two").await;
    assert_eq!(until(&mut socket, "nothing more").await, "", "no close frame");
    let ended = expect(&sandbox, "frame", json!({ "session": key, "event": "ended" })).await;
    assert_eq!(ended["reason"], "transport_closed");

    let (mut socket, key) = listener(&sandbox).await;
    add(&sandbox, rule(json!({ "silence": true }))).await;
    say(&sandbox, "three").await;
    expect(&sandbox, "fault", json!({ "session": key })).await;
    // A ping of the client: a masked text frame with the packet `2`.
    socket.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'2']).await.expect("sent");
    let silence = tokio::time::timeout(Duration::from_millis(500), socket.read_u8()).await;
    assert!(silence.is_err(), "{silence:?}");
}
