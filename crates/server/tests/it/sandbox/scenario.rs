//! `stagedoor scenario`.

use std::path::Path;

use serde_json::Value;
use testkit::Request;

use crate::cli::process::{CommandOutput, Sandbox, run, stagedoor};

const SHIPPED: [&str; 8] = [
    "first-stream",
    "raid",
    "donation-burst",
    "drops-campaign",
    "consent-withdrawn",
    "deploy",
    "flaky-network",
    "year-of-a-bot",
];

async fn scenario(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let mut command = stagedoor(&["scenario", "run"]);
    let text = |name: &str| sandbox.world[name].as_str().expect("a text").to_owned();
    command.args(arguments).env("STAGEDOOR_SERVER", text("baseUrl"));
    command.env("STAGEDOOR_OPERATOR_KEY", text("operatorKey"));
    run(command).await
}

/// Number of fault rules, and how the clock runs.
async fn state(sandbox: &Sandbox) -> (usize, Value) {
    let rules = sandbox.api.operator(Request::get("/sandbox/v1/faults")).await.content();
    let clock = sandbox.api.operator(Request::get("/sandbox/v1/clock")).await.content();
    (rules["data"].as_array().expect("a list").len(), clock["mode"].clone())
}

fn file(folder: &Path, text: &str) -> String {
    let path = folder.join("scenario.yaml");
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shipped_scenario_runs_twice_in_a_fresh_world_and_restores_it() {
    let listed = run(stagedoor(&["scenario", "list", "--json"])).await;
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let names: Vec<_> = listed.as_array().expect("a list").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, SHIPPED);
    for name in SHIPPED {
        let folder = tempfile::tempdir().expect("a folder");
        let sandbox = Sandbox::start(folder.path(), &[]).await;
        for turn in 1..=2 {
            let ran = scenario(&sandbox, &[name]).await;
            assert!(ran.status.success(), "{name}, turn {turn}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stdout.contains("everything is as expected"), "{}", ran.stdout);
            assert_eq!(state(&sandbox).await, (0, "real".into()), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_is_shown_with_its_line_and_the_nearest_misses() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let path = file(
        folder.path(),
        "scenario: mine\nvalues: { word: hello }\nsteps:\n  - token: { as: bot }\n  - clock: { mode: frozen }\n  \
         - fault: { match: { path: /open/v1/lives }, do: { status: 500 } }\n  \
         - call: { request: POST /open/v1/chats/send, as: bot, body: { message: \"${word}\" } }\n  \
         - expect: { kind: request, where: { path: /open/v1/chats/send, message: bye } }\n  - say: unreached\n",
    );
    let report = folder.path().join("report.xml");
    let junit = report.display().to_string();
    let ran = scenario(&sandbox, &[&path, "--junit", &junit]).await;
    assert_eq!(ran.status.code(), Some(1), "{}", ran.stderr);
    for part in
        ["FAILED  expect request", "line 8: expected 1 matching records", "\"message\":\"hello\"", "message"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("mine failed at line 8"), "{}", ran.stderr);
    let xml = std::fs::read_to_string(&report).expect("a report");
    assert!(xml.contains("tests=\"6\" failures=\"1\"") && xml.contains("line 8: expect request"), "{xml}");
    assert_eq!(state(&sandbox).await, (0, "real".into()));

    let ran = scenario(&sandbox, &[&path, "--set", "word=bye", "--json"]).await;
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&report["passed"], &report["steps"][4]["outcome"]), (&true.into(), &"done".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_file_is_refused_before_anything_happens() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let head = "scenario: mine\nsteps:\n  - clock: { mode: frozen }\n";
    for (step, part) in [
        ("  - clock: { advanse: 1d }\n", ":4:14: "),
        ("  - clok: {}\n", ":4:5: "),
        ("  - trigger: { kind: chat, mesage: hi }\n", ":4:36: mesage: "),
        ("  - trigger: { kind: chats }\n", ":4:22: kind: "),
        ("  - trigger: { kind: donation, anonymous: 5 }\n", "anonymous: must be true or false"),
        ("  - clock: { advance: 1 month }\n", ":4:23: advance: "),
        ("  - fault: { do: { status: 100 } }\n", "do.status: "),
        ("  - call: { request: GET /open/v1/users/me, as: nobody }\n", "as: "),
        ("  - call: { request: \"GET /${where}\" }\n", "${where}"),
        ("  - expect: { kind: requests }\n", ":4:21: kind: "),
        ("  - expect: { kind: chat, within: 5 }\n", ": "),
        ("  - wait: soon\n", ":4:11: wait: "),
        ("  - wait: 5\n", ":4:11: wait: "),
        ("  - clock: { advance: 1d, mode: real }\n", ":4:12: body: must have exactly one"),
        ("  - clock: { advance: 1d }\n    clock: { advance: 1d }\n", ":5:5: "),
    ] {
        let ran = scenario(&sandbox, &[&file(folder.path(), &format!("{head}{step}"))]).await;
        assert_eq!(ran.status.code(), Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        assert_eq!(state(&sandbox).await.1, "real");
    }
    let path = file(folder.path(), head);
    for (arguments, part) in [
        (vec!["no-such-scenario"], "neither a file nor one of"),
        (vec![path.as_str(), "--set", "channel=sol"], "has no such value"),
    ] {
        let ran = scenario(&sandbox, &arguments).await;
        assert_eq!(ran.status.code(), Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let shown = run(stagedoor(&["scenario", "show", "raid"])).await;
    assert!(shown.stdout.starts_with("scenario: raid\n"), "{}", shown.stdout);
    let mut gone = stagedoor(&["scenario", "run", "raid", "--server", "http://127.0.0.1:9"]);
    gone.env("STAGEDOOR_OPERATOR_KEY", "a key");
    let gone = run(gone).await;
    assert_eq!(gone.status.code(), Some(3), "{}", gone.stderr);
}

/// Each value is one that its call refuses, and the file is refused with all of them before its first step.
#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_value_of_a_file_is_named_before_anything_happens() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let steps = [
        ("trigger: { kind: donation, amount: abc }", "amount: "),
        ("trigger: { kind: chat-settings, slowMode: 7 }", "slowMode: "),
        ("trigger: { kind: close-session, reason: nonsense }", "reason: "),
        ("trigger: { kind: expire, what: nothing }", "what: "),
        ("trigger: { kind: storm, rate: 9999 }", "rate: "),
        ("trigger: { kind: restart, for: 1h }", "for: "),
        ("trigger: { kind: webhook, url: notaurl }", "url: "),
        ("trigger: { kind: claim, tamper: everything }", "tamper: "),
        ("trigger: { kind: claim, late: 1s, cut: after }", "cut: "),
        ("trigger: { kind: remove-scope, scope: nope-read }", "scope: "),
        ("trigger: { kind: watch, minutes: 0 }", "minutes: "),
        ("trigger: { kind: subscription, tier: 3 }", "tier: "),
        ("trigger: { kind: live, viewers: -1 }", "viewers: "),
        ("trigger: { kind: exhaust-quota, for: 25h }", "for: "),
        ("call: { request: FETCH /x }", "request: "),
        ("clock: { advance: 1d, happens: [access-token.expird] }", "happens: "),
        ("repeat: { times: 0, steps: [ say: a ] }", "times: "),
        ("wait: 5", "wait: "),
    ];
    let lines: String = steps.iter().map(|(step, _)| format!("  - {step}\n")).collect();
    let text = format!("scenario: mine\nsteps:\n  - clock: {{ mode: frozen }}\n{lines}");
    let ran = scenario(&sandbox, &[&file(folder.path(), &text)]).await;
    assert_eq!(ran.status.code(), Some(2), "{}", ran.stderr);
    for (line, (step, field)) in (4..).zip(steps) {
        let found = ran.stderr.lines().find(|said| said.contains(&format!(":{line}:")));
        assert!(found.is_some_and(|said| said.contains(field)), "{step}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.lines().count(), steps.len(), "{}", ran.stderr);
    assert_eq!(state(&sandbox).await.1, "real");
}

/// What a step before saves is known only when it has run.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_a_step_saves_is_not_checked_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let text = "scenario: mine\nsteps:\n  - trigger: { kind: watch, save: { where: channelId } }\n  \
                - trigger: { kind: webhook, url: \"http://127.0.0.1:9/${where}\" }\n";
    let ran = scenario(&sandbox, &[&file(folder.path(), text)]).await;
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_the_sandbox_refuses_fails_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    for (step, part) in [
        ("clock: { advance: 1h, happens: [application.deleted] }", "application.deleted did not happen"),
        ("token: { user: nobody, as: bot }", "user: "),
        ("call: { request: GET /open/v1/users/me }", "expected success, but it was answered with 401"),
        ("expect: { kind: clock, since: start, atMost: 0, within: 1s }", "too often"),
    ] {
        let text = format!("scenario: mine\nsteps:\n  - clock: {{ mode: frozen }}\n  - {step}\n");
        let ran = scenario(&sandbox, &[&file(folder.path(), &text)]).await;
        assert_eq!(ran.status.code(), Some(1), "{step}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("line 4: ") && ran.stdout.contains(part), "{step}: {}", ran.stdout);
    }
}
