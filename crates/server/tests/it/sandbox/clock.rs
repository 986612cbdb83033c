//! The clock of a sandbox, by call and by command.

use serde_json::{Value, json};
use testkit::Request;

use crate::cli::process::{Sandbox, run, stagedoor_in};

const CLOCK: &str = "/sandbox/v1/clock";

/// The time of an answer, in milliseconds.
fn now_ms(clock: &Value) -> i64 {
    let now = clock["now"].as_str().expect("a time");
    domain::Timestamp::parse_rfc3339(now).expect("RFC 3339").as_millis()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_stands_still_and_moves_forward_on_demand() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let call = async |body: Value| sandbox.api.operator(Request::post(CLOCK).json(&body)).await.content();
    let frozen = call(json!({ "mode": "frozen" })).await;
    assert_eq!((&frozen["mode"], &frozen["rate"]), (&json!("frozen"), &json!(0.0)));
    let later = call(json!({ "advance": "31d" })).await;
    assert_eq!(now_ms(&later) - now_ms(&frozen), 31 * 86_400_000);
    let shown = sandbox.api.operator(Request::get(CLOCK)).await.content();
    assert_eq!(now_ms(&shown), now_ms(&later));
    let to = call(json!({ "to": "2099-01-01T00:00:00Z" })).await;
    assert_eq!(to["now"], "2099-01-01T00:00:00.000Z");
    let scaled = call(json!({ "mode": "scaled", "rate": 1000 })).await;
    assert_eq!((&scaled["mode"], &scaled["rate"]), (&json!("scaled"), &json!(1000.0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_move_is_refused_by_its_field_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let frozen = Request::post(CLOCK).json(&json!({ "mode": "frozen" }));
    let before = now_ms(&sandbox.api.operator(frozen).await.content());
    for (body, field) in [
        (json!({ "advance": "1 month" }), "advance"),
        (json!({ "advance": 5 }), "advance"),
        (json!({ "to": "tomorrow" }), "to"),
        (json!({ "to": "2001-01-01T00:00:00Z" }), "to"),
        (json!({ "mode": "fast" }), "mode"),
        (json!({ "mode": "scaled" }), "rate"),
        (json!({ "mode": "scaled", "rate": 0 }), "rate"),
        (json!({ "mode": "real", "rate": 2 }), "rate"),
        (json!({ "advance": "1s", "mode": "real" }), "body"),
        (json!({}), "body"),
        (json!({ "advanse": "1s" }), "advanse"),
    ] {
        let answer = sandbox.api.operator(Request::post(CLOCK).json(&body)).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, 400, "{body}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{body}: {message}");
    }
    let after = sandbox.api.operator(Request::get(CLOCK)).await.content();
    assert_eq!((now_ms(&after), &after["mode"]), (before, &json!("frozen")));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_find_the_sandbox_that_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = |arguments: &[&str]| stagedoor_in(folder.path(), arguments);
    let none = run(command(&["clock"])).await;
    assert_eq!(none.status.code(), Some(3), "{}", none.stderr);
    assert!(none.stderr.contains("stagedoor dev"), "{}", none.stderr);

    let start = async |name: &str| {
        let mut dev = command(&["dev", "--json", "--listen", "127.0.0.1:0", "--name", name]);
        dev.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        Sandbox::of(dev, folder.path().join("log")).await
    };
    let one = start("one").await;
    let frozen = run(command(&["clock", "freeze"])).await;
    assert!(frozen.status.success() && frozen.stdout.contains("stands still"), "{}", frozen.stderr);
    let moved = run(command(&["clock", "advance", "36h", "--json"])).await;
    let moved: Value = serde_json::from_str(&moved.stdout).expect("JSON");
    let shown = one.api.operator(Request::get(CLOCK)).await.content();
    assert_eq!(moved["now"], shown["now"]);

    let two = start("two").await;
    let unclear = run(command(&["clock"])).await;
    assert_eq!(unclear.status.code(), Some(2), "{}", unclear.stderr);
    assert!(unclear.stderr.contains("one, two"), "{}", unclear.stderr);
    let chosen = run(command(&["clock", "--sandbox", "two", "--json"])).await;
    let chosen: Value = serde_json::from_str(&chosen.stdout).expect("JSON");
    assert_eq!(chosen["mode"], "real");
    for sandbox in [one, two] {
        sandbox.signal("TERM").await;
        assert!(sandbox.end().await.0.success());
    }
    let ended = run(command(&["clock"])).await;
    assert_eq!(ended.status.code(), Some(3), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_needs_the_operator_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    for (request, status) in [
        (Request::get(CLOCK), 401),
        (Request::get(CLOCK).bearer(&tokens.access), 401),
        (Request::get("/sandbox/v1/unknown").bearer("x"), 401),
    ] {
        assert_eq!(sandbox.api.send(request).await.status, status);
    }
    assert_eq!(sandbox.api.operator(Request::get("/sandbox/v1/unknown")).await.status, 404);
    let foreign = Request::get(CLOCK).header("origin", "https://evil.example");
    assert_eq!(sandbox.api.operator(foreign).await.status, 403);
}
