//! A storm of events, by call and by command.

use serde_json::{Value, json};
use testkit::{Request, Response};

use super::trigger::subscribed;
use crate::cli::process::{Sandbox, run, stagedoor};

async fn storm(sandbox: &Sandbox, body: Value) -> Response {
    sandbox.api.operator(Request::post("/sandbox/v1/trigger/storm").json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_has_its_mix_and_every_event_arrives() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let mut socket = subscribed(&sandbox, &["chat", "donation", "subscription"]).await;
    let given = json!({
        "channel": "haneul", "rate": 50, "duration": "2s", "seed": 7,
        "mix": { "chat": 3, "donation": 1, "subscription": 1 },
    });
    let done = storm(&sandbox, given.clone()).await.content();
    assert_eq!((&done["events"], &done["failed"], &done["unsent"]), (&json!(100), &json!(0), &json!(0)));
    assert_eq!(done["sessions"], json!({ "CHAT": 1, "DONATION": 1, "SUBSCRIPTION": 1 }));
    let ms = |name: &str| done["latencyMs"][name].as_f64().expect("a number");
    assert!(0.0 < ms("p50") && ms("p50") <= ms("p95") && ms("p95") <= ms("p99"), "{done}");
    for kind in ["chat", "donation", "subscription"] {
        assert!(done["counts"][kind].as_u64().is_some_and(|count| count > 5), "{done}");
    }
    let mut heard = std::collections::BTreeMap::<String, u64>::new();
    for _ in 0..100 {
        let (event, _) = socket.next_event().await.expect("an event");
        *heard.entry(event).or_default() += 1;
    }
    assert_eq!(
        json!(heard),
        json!({
            "CHAT": done["counts"]["chat"],
            "DONATION": done["counts"]["donation"],
            "SUBSCRIPTION": done["counts"]["subscription"],
        })
    );
    let again = storm(&sandbox, given).await.content();
    assert_eq!(again["counts"], done["counts"], "the same seed gives the same mix");
    // Refused events are counted by their reason.
    let one = json!({ "from": "nuri", "rate": 20, "duration": "500ms", "mix": { "chat": 1 } });
    sandbox
        .api
        .operator(Request::post("/sandbox/v1/trigger/restrict").json(&json!({ "target": "nuri" })))
        .await;
    let refused = storm(&sandbox, one).await.content();
    assert_eq!((&refused["events"], &refused["failed"]), (&json!(0), &json!(10)));
    assert_eq!(refused["errors"].as_object().expect("an object").len(), 1, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_storm_is_refused_and_only_one_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    for (body, field) in [
        (json!({ "rate": 0 }), "rate"),
        (json!({ "rate": 1_001 }), "rate"),
        (json!({ "rate": "many" }), "rate"),
        (json!({ "duration": "0s" }), "duration"),
        (json!({ "duration": "11m" }), "duration"),
        (json!({ "duration": 5 }), "duration"),
        (json!({ "seed": -1 }), "seed"),
        (json!({ "mix": { "rain": 1 } }), "mix.rain"),
        (json!({ "mix": { "chat": -1 } }), "mix.chat"),
        (json!({ "mix": { "chat": 0 } }), "mix"),
        (json!({ "mix": "chat" }), "mix"),
        (json!({ "channel": "nobody" }), "channel"),
        (json!({ "to": "haneul" }), "to"),
    ] {
        let answer = storm(&sandbox, body.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, 400, "{body}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{body}: {message}");
    }
    let first = storm(&sandbox, json!({ "duration": "2s" }));
    let second = async {
        let began = json!({ "kind": "trigger", "where": { "trigger": "storm" }, "within": "10s" });
        sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&began)).await.content();
        storm(&sandbox, json!({ "duration": "1s" })).await.status
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.status, second), (200, 409));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_shows_the_progress_and_the_percentiles() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let words = ["trigger", "storm", "--channel", "haneul", "--rate", "20", "--duration", "2s", "--mix"];
    let mut command = stagedoor(&words);
    command.arg(r#"{"chat":1}"#);
    command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a text"));
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a text"));
    let done = run(command).await;
    assert!(done.status.success(), "{}", done.stderr);
    assert!(done.stdout.starts_with("storm: 40 events in 2."), "{}", done.stdout);
    assert!(done.stdout.contains("publication: p50 ") && done.stdout.contains("p99 "), "{}", done.stdout);
    assert!(done.stderr.contains(" of 40 events, 0 failed"), "{}", done.stderr);
}
