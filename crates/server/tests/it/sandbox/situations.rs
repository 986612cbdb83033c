//! Situations of a bot that one call of the sandbox provokes: codes, restarts, chat rules, dead letters.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use testkit::{Receiver, Reply, Request, Response};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::deliveries::deliveries;
use super::webhook::put_campaign;
use crate::cli::process::{Sandbox, run, stagedoor_in};

/// Number of sandboxes at the same time.
const TOGETHER: usize = 6;

async fn trigger(sandbox: &Sandbox, kind: &str, fields: Value) -> Response {
    sandbox.api.operator(Request::post(format!("/sandbox/v1/trigger/{kind}")).json(&fields)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_exchanged_once_with_its_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let demo = sandbox.application("demo");
    let code = async |fields: Value| {
        let issued = sandbox.api.operator(Request::post("/sandbox/v1/codes").json(&fields)).await.content();
        issued["code"].as_str().expect("a code").to_owned()
    };
    let mine = json!({ "user": "haneul", "client": "demo", "state": "mine" });
    for (end, state, status) in [
        (json!(null), "other", 400),
        (json!(null), "mine", 200),
        (json!("expired"), "mine", 400),
        (json!("used"), "mine", 400),
    ] {
        let mut fields = mine.clone();
        fields["end"] = end.clone();
        let answer = sandbox.api.exchange(&demo, &code(fields).await, state).await;
        assert_eq!(answer.status, status, "{end} {state}: {}", answer.text());
    }
    let wrong = json!({ "client": "demo", "redirectUri": "https://elsewhere.example/" });
    let answer = sandbox.api.operator(Request::post("/sandbox/v1/codes").json(&wrong)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("redirectUri: must be one of demo"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_ends_sessions_and_answers_no_call_for_a_while() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let socket = sandbox.api.open_user_session(&tokens.access).await;
    let session = socket.session_key().to_owned();
    let happened = trigger(&sandbox, "restart", json!({ "for": "300ms" })).await.content();
    assert_eq!((&happened["closedSessions"], &happened["awayMs"]), (&json!(1), &json!(300)));
    let ended = json!({ "kind": "frame", "within": "10s",
        "where": { "session": session, "event": "ended", "reason": "server_shutdown" } });
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&ended)).await.content();
    assert_eq!(sandbox.api.me(&tokens.access).await.status, 200);
    let long = trigger(&sandbox, "restart", json!({ "for": "1h" })).await;
    assert_eq!(long.status, 400, "{}", long.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_settings_and_scopes_are_changed_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let fields = json!({ "channel": "haneul", "slowMode": 30, "emojiMode": false });
    let settings = trigger(&sandbox, "chat-settings", fields).await.content();
    assert_eq!((&settings["slowMode"], &settings["group"]), (&json!(30), &json!("ALL")));
    let chat = json!({ "channel": "haneul", "from": "nuri", "message": "hello" });
    assert_eq!(trigger(&sandbox, "chat", chat.clone()).await.status, 200);
    assert_eq!(trigger(&sandbox, "chat", chat).await.status, 403);
    for (fields, field) in
        [(json!({ "slowMode": 7 }), "slowMode: "), (json!({ "group": "FRIENDS" }), "group: ")]
    {
        let answer = trigger(&sandbox, "chat-settings", fields).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(field), "{}", answer.text());
    }
    let removed =
        trigger(&sandbox, "remove-scope", json!({ "client": "demo", "scope": "chat-read" })).await.content();
    assert_eq!(removed["removed"], "채팅 메시지 조회");
    let answer = trigger(&sandbox, "remove-scope", json!({ "client": "demo", "scope": "chat-read" })).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("chat-write (채팅 메시지 쓰기)"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_tampered_with_dies_and_disables_its_webhook() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (Sandbox::start(folder.path(), &[]).await, Receiver::start().await);
    receiver.usually(Reply::Status(204));
    let registered = trigger(&sandbox, "webhook", json!({ "url": receiver.url("/hook") })).await.content();
    assert_eq!(registered["clientId"], "drops");
    assert!(registered["secret"].is_string(), "{registered}");
    put_campaign(&sandbox, "lighthouse", 3).await;
    let claim = async |kind: &str, reward: usize, more: Value| {
        let mut fields =
            json!({ "campaign": "lighthouse", "reward": format!("reward-{reward}"), "viewer": "nuri" });
        fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        trigger(&sandbox, kind, fields).await.content()
    };
    let claimed = claim("claim", 0, json!({ "tamper": "signature" })).await;
    let tampered = &deliveries(&sandbox, json!({ "claimId": claimed["claimId"] }), 1).await[0];
    assert_eq!(tampered["fault"], claimed["fault"], "{tampered}");
    let dead = claim("dead-letter", 1, json!({})).await;
    let last = json!({ "claimId": dead["claimId"], "next": "dead" });
    assert_eq!(deliveries(&sandbox, last, 1).await.len(), 1);
    let disabled = trigger(&sandbox, "disable-webhook", json!({})).await.content();
    assert!(disabled["now"].as_str() > dead["now"].as_str(), "{disabled}");
    let webhook = Request::get("/platform/v1/applications/drops/webhook");
    let webhook = sandbox.api.operator(webhook).await.content();
    assert_eq!(webhook["enabled"], false, "{webhook}");
    let rules = sandbox.api.operator(Request::get("/sandbox/v1/faults")).await.content();
    assert_eq!(rules["data"].as_array().map(Vec::len), Some(1), "{rules}");
}

/// The words of a command line, with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(letter),
        }
    }
    words
}

#[tokio::test(flavor = "multi_thread")]
async fn each_situation_of_the_page_is_one_command() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sandbox/situations.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows = page.lines().filter_map(|line| line.strip_suffix("` |")?.rsplit_once("| `stagedoor "));
    let commands: Vec<(&str, Vec<String>)> = rows.map(|(row, command)| (row, words(command))).collect();
    let number = |row: &str| row.split('|').nth(1).and_then(|cell| cell.trim().parse::<u32>().ok());
    let numbers: BTreeSet<u32> = commands.iter().filter_map(|(row, _)| number(row)).collect();
    assert_eq!(numbers, (1..=19).collect(), "each situation has a row");
    let receiver = Receiver::start().await;
    receiver.usually(Reply::Status(204));
    let (places, mut running) = (Arc::new(Semaphore::new(TOGETHER)), JoinSet::new());
    for (_, command) in commands {
        let (places, url) = (places.clone(), receiver.url("/hook"));
        running.spawn(async move {
            let _place = places.acquire_owned().await;
            provoke(&command, &url).await;
        });
    }
    while let Some(provoked) = running.join_next().await {
        provoked.expect("a command that succeeds");
    }
}

/// Runs a command in a sandbox of its own, with a bot and a receiver, because one may undo what another
/// needs.
async fn provoke(command: &[String], url: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut dev = stagedoor_in(folder.path(), &["dev", "--json", "--listen", "127.0.0.1:0"]);
    dev.stdout(Stdio::piped()).stderr(Stdio::null());
    let sandbox = Sandbox::of(dev, folder.path().join("log")).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let _bot = sandbox.api.open_user_session(&tokens.access).await;
    trigger(&sandbox, "webhook", json!({ "url": url })).await.content();
    let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    let ran = run(stagedoor_in(folder.path(), &arguments)).await;
    assert!(ran.status.success(), "{command:?}: {}{}", ran.stdout, ran.stderr);
}
