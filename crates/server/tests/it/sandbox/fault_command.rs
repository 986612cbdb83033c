//! `stagedoor fault`.

use serde_json::{Value, json};
use testkit::{Connection, Request};

use crate::cli::process::{CommandOutput, Sandbox, run, stagedoor};

async fn fault(sandbox: &Sandbox, words: &str) -> CommandOutput {
    let words: Vec<&str> = ["fault"].into_iter().chain(words.split_whitespace()).collect();
    let mut command = stagedoor(&words);
    command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a URL"));
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a key"));
    run(command).await
}

/// The output of a command that succeeds.
async fn text_of(sandbox: &Sandbox, words: &str) -> String {
    let output = fault(sandbox, words).await;
    assert!(output.status.success(), "{words}: {}", output.stderr);
    output.stdout
}

async fn json_of(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&text_of(sandbox, &format!("{words} --json")).await).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_added_listed_and_removed_by_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    assert_eq!(text_of(&sandbox, "").await, "no rules\n");
    let added = json_of(&sandbox, "add --path /open/v1/* --status 429 --retry-after 5 --times 1").await;
    assert_eq!(
        (&added["match"], &added["times"], &added["do"]),
        (
            &json!({ "path": "/open/v1/*" }),
            &json!(1),
            &json!({ "status": 429, "message": null, "retryAfter": 5 })
        )
    );
    let token = sandbox.user(0, "demo").1.access;
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.begin(&Request::get("/open/v1/users/me").bearer(&token)).await;
    assert_eq!(connection.read_response(false).await.expect("an answer").status, 429);
    let line = "fault-1  hits 1  retryAfter=5 status=429  when path=/open/v1/*  times 1\n";
    assert_eq!(text_of(&sandbox, "list").await, line);

    let late = text_of(&sandbox, "add --event SYSTEM/subscribed --user haneul --late 5s").await;
    assert_eq!(late, "fault-2  hits 0  late=5000ms  when event=SYSTEM/subscribed user=streamer-haneul\n");
    for (words, effect) in [
        ("--drop --probability 0.5 --seed 7 --channel haneul", json!({ "drop": true })),
        ("--event CHAT --drop true", json!({ "drop": true })),
        ("--event CHAT --duplicate=true", json!({ "duplicate": true })),
        ("--event CHAT --cut after", json!({ "cut": "after" })),
        ("--truncate", json!({ "truncate": true })),
        ("--truncate true", json!({ "truncate": true })),
        ("--truncate 7", json!({ "truncate": 7 })),
        ("--delay 1s --when after", json!({ "delay": "1000ms", "when": "after" })),
        ("--close gap", json!({ "close": "gap" })),
        ("--silence", json!({ "silence": true })),
    ] {
        assert_eq!(json_of(&sandbox, &format!("add {words}")).await["do"], effect, "{words}");
    }
    assert_eq!(text_of(&sandbox, "remove fault-1 fault-2").await, "removed fault-1, fault-2\n");
    assert_eq!(json_of(&sandbox, "list").await["data"].as_array().map(Vec::len), Some(10));
    text_of(&sandbox, "reset").await;
    assert_eq!(json_of(&sandbox, "list").await, json!({ "data": [] }));

    for (words, code, told) in [
        ("add", 2, "--status"),
        ("add --drop --silence", 2, "cannot be used"),
        ("add --drop --retry-after 5", 2, "--status"),
        ("add --event chat --drop", 2, "match.event"),
        ("add --drop maybe", 2, "true, false"),
        ("add --path /sandbox/v1/* --status 500", 2, "no rule hits"),
        ("add --status 200", 2, "status"),
        ("remove fault-9", 1, "fault-9"),
        ("remove ../log", 2, "no id"),
    ] {
        let output = fault(&sandbox, words).await;
        assert_eq!(output.status.code(), Some(code), "{words}: {}", output.stderr);
        assert!(output.stderr.contains(told), "{words}: {}", output.stderr);
    }
}
