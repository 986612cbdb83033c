//! A sandbox with a seed and a clock that stands still: the same calls give the same answers.

use std::path::Path;

use serde_json::json;
use testkit::Request;

use crate::cli::process::{Sandbox, stagedoor_in};

/// Starts a sandbox with these options at an address.
async fn start(folder: &Path, listen: &str, options: &[&str]) -> Sandbox {
    let mut dev = stagedoor_in(folder, &["dev", "--json", "--listen", listen]);
    dev.args(options).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    Sandbox::of(dev, folder.join("log")).await
}

/// The address of a sandbox.
fn address(sandbox: &Sandbox) -> String {
    sandbox.world["baseUrl"].as_str().expect("a text").replace("http://", "")
}

/// Everything that a script of calls and a socket are answered, with the headers.
async fn transcript(sandbox: &Sandbox) -> Vec<String> {
    let (streamer, tokens) = sandbox.user(0, "demo");
    let (viewer, _) = sandbox.user(7, "demo");
    let mut lines = vec![sandbox.first_line.clone()];
    let mut socket = sandbox.api.open_user_session(&tokens.access).await;
    let key = socket.session_key().to_owned();
    lines.push(key.clone());
    let subscribe = format!("/open/v1/sessions/events/subscribe/chat?sessionKey={key}");
    let calls = [
        Request::post(&subscribe).bearer(&tokens.access),
        Request::get("/open/v1/users/me").bearer(&tokens.access),
        Request::get("/open/v1/users/me").bearer("a wrong token"),
        Request::post("/open/v1/chats/send").bearer(&tokens.access).json(&json!({ "message": "hello" })),
        Request::get("/open/v1/nowhere"),
        Request::post("/open/v1/chats/send").bearer(&tokens.access).json(&json!({ "message": 5 })),
    ];
    for request in calls {
        lines.push(whole(&sandbox.api.send(request).await));
    }
    let donation = json!({ "to": streamer.channel_id, "from": viewer.channel_id, "amount": 1_000 });
    for (path, body) in [
        ("/sandbox/v1/tokens", json!({ "user": "bada" })),
        ("/sandbox/v1/trigger/donation", donation),
        ("/sandbox/v1/clock", json!({ "advance": "1h" })),
        ("/sandbox/v1/trigger/chat", json!({ "channel": "haneul", "from": "nuri", "message": "later" })),
    ] {
        lines.push(whole(&sandbox.api.operator(Request::post(path).json(&body)).await));
    }
    // SYSTEM, two messages of the chat.
    for _ in 0..3 {
        lines.push(socket.next_packet().await.expect("a packet"));
    }
    lines
}

fn whole(answer: &testkit::Response) -> String {
    format!("{} {:?} {}", answer.status, answer.headers, answer.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_calls_give_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--seed", "7", "--clock", "2027-01-01T00:00:00Z"];
    let one = start(folder.path(), "127.0.0.1:0", &options).await;
    let listen = address(&one);
    let first = transcript(&one).await;
    one.signal("TERM").await;
    assert!(one.end().await.0.success());
    let two = start(folder.path(), &listen, &options).await;
    let second = transcript(&two).await;
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first, second);
    }
    assert!(first[3].contains("Fri, 01 Jan 2027 00:00:00 GMT"), "{}", first[3]);
    two.signal("TERM").await;
    assert!(two.end().await.0.success());
    let other = ["--seed", "8", "--clock", "2027-01-01T00:00:00Z"];
    let three = start(folder.path(), &listen, &other).await;
    assert_ne!(three.first_line, first[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_alone_pins_ids_secrets_and_tokens_and_a_kept_world_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let claims = async |sandbox: &Sandbox| {
        let app = sandbox.application("drops");
        let claims = Request::get("/open/v1/drops/reward-claims").client(&app.client_id, &app.client_secret);
        sandbox.api.send(claims).await.content()["data"][0]["claimId"].clone()
    };
    let pinned = |sandbox: &Sandbox| {
        let mut world = sandbox.world.clone();
        for url in ["baseUrl", "authUrl", "platformUrl"] {
            world[url].take();
        }
        world
    };
    let kept = folder.path().join("kept");
    let data = kept.to_str().expect("UTF-8");
    let one = start(folder.path(), "127.0.0.1:0", &["--seed", "7", "--data", data]).await;
    let two = start(folder.path(), "127.0.0.1:0", &["--seed", "7"]).await;
    assert_eq!(pinned(&one), pinned(&two));
    assert_eq!(claims(&one).await, claims(&two).await);
    let clock = one.api.operator(Request::get("/sandbox/v1/clock")).await.content();
    assert_eq!(clock["mode"], "real");
    one.signal("TERM").await;
    assert!(one.end().await.0.success());
    // The tokens of the first start exist, so the second start issues others.
    let again = start(folder.path(), "127.0.0.1:0", &["--seed", "7", "--data", data]).await;
    assert_eq!(again.world["operatorKey"], two.world["operatorKey"]);
    assert_eq!(again.world["applications"], two.world["applications"]);
    assert_ne!(again.world["users"], two.world["users"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_seed_or_clock_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for options in [["--seed", "seven"], ["--seed", "1.5"], ["--clock", "tomorrow"]] {
        let refused = crate::cli::process::run(stagedoor_in(folder.path(), &["dev", options[0], options[1]]));
        let refused = refused.await;
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(options[0]), "{}", refused.stderr);
    }
}
