//! `stagedoor doctor`, with a bot that does well, and with bots that each commit one misdeed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use testkit::{Receiver, Reply, ReservedPort};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cli::process::{CommandOutput, stagedoor};

/// A check takes up to half a minute, and several run at the same time.
const DOCTOR_MAX: Duration = Duration::from_secs(240);

/// Number of doctors at the same time. Each mostly waits.
const TOGETHER: usize = 8;

async fn doctor(arguments: &[&str], misdeeds: &[&str]) -> CommandOutput {
    let bot = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/py/doctor_bot.py");
    let mut command = stagedoor(&["doctor", "--timeout", "10", "--fast-pings"]);
    command.args(arguments).args(["--", "python3"]).arg(bot).args(misdeeds);
    let output = timeout(DOCTOR_MAX, command.output()).await.expect("it ends").expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    CommandOutput { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The verdict of each check, with its misdeeds.
fn verdicts(report: &Value) -> BTreeMap<String, String> {
    let checks = report["checks"].as_array().expect("a list").iter();
    let verdict = |check: &Value| {
        let findings = check["findings"].as_array().expect("a list").iter();
        let misdeeds: Vec<_> = findings.map(|finding| finding["misdeed"].as_str().expect("a text")).collect();
        let name = check["check"].as_str().expect("a text").to_owned();
        let verdict = check["verdict"].as_str().expect("a text");
        (name, if misdeeds.is_empty() { verdict.to_owned() } else { misdeeds.join(" ") })
    };
    checks.map(verdict).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_bot_passes_every_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let junit = folder.path().join("report.xml");
    let junit_file = junit.display().to_string();
    let port = ReservedPort::take();
    let webhook = port.url("/hook");
    let arguments = ["--jobs", "16", "--webhook", &webhook, "--junit", &junit_file];
    let ran = doctor(&arguments, &[]).await;
    assert_eq!(ran.status.code(), Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("0 failed, 0 do not apply"), "{}", ran.stdout);
    let xml = std::fs::read_to_string(junit).expect("a report");
    assert!(xml.contains("failures=\"0\"") && xml.contains("name=\"token-expiry\""), "{xml}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_bot_fails_the_checks_of_its_misdeed() {
    let cases = [
        ("bad-path", "clean-run", "refused"),
        ("silent", "clean-run", "made-no-call"),
        ("no-refresh", "token-expiry", "did-not-refresh"),
        ("old-token", "token-expiry", "kept-old-token hammered"),
        ("reuse-refresh", "refresh-lost", "reused-refresh-token hammered"),
        ("hammer", "consent-withdrawn", "hammered"),
        ("hang", "consent-withdrawn", "did-not-notice"),
        ("hammer", "scope-lost", "hammered"),
        ("hang", "scope-lost", "did-not-reconnect"),
        ("crash", "scope-lost", "ended"),
        ("no-resubscribe", "scope-lost", "did-not-resubscribe"),
        ("ignore-retry-after", "rate-limit", "ignored-retry-after"),
        ("no-backoff", "server-errors", "did-not-back-off"),
        ("give-up", "server-errors", "gave-up"),
        ("no-reconnect", "socket-closed", "did-not-reconnect"),
        ("no-resubscribe", "socket-closed", "did-not-resubscribe"),
        ("reuse-url", "socket-closed", "reused-session-url"),
        ("rush", "socket-closed", "did-not-back-off"),
        ("rush", "evicted", "did-not-back-off"),
        ("no-resubscribe", "evicted", "did-not-resubscribe"),
        ("rush", "own-mistake", "did-not-back-off"),
        ("wait-forever", "silent-socket", "did-not-reconnect"),
        ("crash", "restart", "did-not-reconnect ended"),
        ("no-reconnect", "connection-lost", "did-not-reconnect"),
        ("subscribe-early", "late-connected", "subscribed-early"),
        ("subscribe-twice", "doubled-system", "subscribed-twice"),
        ("wait-forever", "subway", "did-not-reconnect"),
        ("no-resubscribe", "subway", "did-not-resubscribe"),
        ("refresh-each", "parallel-expiry", "reused-refresh-token did-not-resubscribe ended"),
        ("answer-twice", "doubled-event", "handled-twice"),
        ("answer-twice", "doubled-claim", "handled-twice"),
        ("refuse-good", "doubled-claim", "refused-good-message"),
        ("not-listening", "webhook", "not-listening"),
        ("refuse-good", "webhook", "refused-good-message"),
        ("accept-bad-signature", "webhook", "accepted-bad-signature accepted-bad-signature"),
        ("accept-old", "webhook", "accepted-old-timestamp"),
    ];
    let (places, mut running) = (Arc::new(Semaphore::new(TOGETHER)), JoinSet::new());
    for (misdeed, check, expected) in cases {
        let places = places.clone();
        running.spawn(async move {
            let _place = places.acquire_owned().await;
            let port = ReservedPort::take();
            let ran = doctor(&["--json", "--only", check, "--webhook", &port.url("/hook")], &[misdeed]).await;
            assert_eq!(ran.status.code(), Some(1), "{misdeed}: {}{}", ran.stdout, ran.stderr);
            let report = serde_json::from_str(&ran.stdout).expect("JSON");
            let expected = BTreeMap::from([(check.to_owned(), expected.to_owned())]);
            assert_eq!(verdicts(&report), expected, "{misdeed}: {}", ran.stdout);
        });
    }
    let mut failed = 0;
    while let Some(ran) = running.join_next().await {
        failed += usize::from(ran.is_err());
    }
    assert_eq!(failed, 0, "each of these misdeeds has printed its failure");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_that_ended_because_another_program_has_its_port_is_named() {
    let other = Receiver::start().await;
    other.usually(Reply::Status(404));
    let ran = doctor(&["--json", "--only", "webhook", "--webhook", &other.url("/hook")], &[]).await;
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let saw = report["checks"][0]["findings"][0]["saw"].as_str().expect("a text");
    assert!(saw.ends_with("a good message with 404; the bot has ended with exit code 1"), "{saw}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_with_built_in_addresses_is_checked_under_its_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls_folder = folder.path().display().to_string();
    // The address is in the program. Of the environment it has its tokens only.
    let bot = r#"
        printf 'header = "Authorization: Bearer %s"\n' "$STAGEDOOR_ACCESS_TOKEN" |
          curl --no-progress-meter --fail --config - https://api.example/open/v1/users/me && sleep 60"#;
    let command = ["doctor", "--host", "api.example,auth.example", "--only", "clean-run", "--json"];
    let mut command = stagedoor(&[&command[..], &["--", "sh", "-c", bot]].concat());
    let output = command.env("STAGEDOOR_TLS_FOLDER", tls_folder).output();
    let output = timeout(DOCTOR_MAX, output).await.expect("it ends").expect("it starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["checks"][0]["verdict"], "passed", "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_use_is_refused() {
    for (arguments, part) in [
        (vec!["doctor"], "COMMAND"),
        (vec!["doctor", "--only", "all", "--", "true"], "the checks are clean-run"),
        (vec!["doctor", "--jobs", "0", "--", "true"], "--jobs"),
        (vec!["doctor", "--host", "a b", "--", "true"], "host name"),
        (vec!["doctor", "--host", "", "--", "true"], "--host"),
        (vec!["doctor", "--prefix", "9 x", "--", "true"], "--prefix"),
        (vec!["doctor", "--webhook", "notaurl", "--", "true"], "http://"),
        (vec!["doctor", "--junit", "/nonexistent/x.xml", "--", "true"], "no folder /nonexistent"),
        (vec!["doctor", "--only", "clean-run", "--", "/no/such/bot"], "cannot be started"),
        (vec!["doctor", "--road", "proxy", "--", "true"], "--host"),
        (vec!["doctor", "--host", "api.example", "--road", "hosts-file", "--", "true"], "--jobs 1"),
    ] {
        let ran = crate::cli::process::run(stagedoor(&arguments)).await;
        assert_eq!(ran.status.code(), Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}
