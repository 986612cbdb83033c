//! What the commands of a sandbox have in common: flags, exit codes, waits, a clock that never goes back.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::Request;

use super::trigger::subscribed;
use crate::cli::process::{CommandOutput, Sandbox, run, stagedoor_in};

/// A sandbox that commands find.
pub async fn sandbox(folder: &std::path::Path, arguments: &[&str]) -> Sandbox {
    let mut dev = stagedoor_in(folder, &["dev", "--json", "--listen", "127.0.0.1:0"]);
    dev.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
    Sandbox::of(dev, folder.join("log")).await
}

/// Runs a command.
pub async fn command(folder: &std::path::Path, line: &str) -> CommandOutput {
    run(stagedoor_in(folder, &line.split(' ').collect::<Vec<_>>())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_use_has_the_exit_code_2_and_what_did_not_happen_has_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let _sandbox = sandbox(folder.path(), &[]).await;
    let webhook = "webhook listen --client-id drops --forward-to";
    for (line, code) in [
        ("trigger donatin", 2),
        ("trigger chat --mesage hi", 2),
        ("trigger chat --from nobody", 2),
        ("trigger donation --anonymous maybe", 2),
        ("trigger close-session --user haneul", 1),
        ("trigger cut-connection --user haneul --wait 1ms", 1),
        ("trigger expire --what code", 1),
        ("clock advance 5", 2),
        ("clock to tomorrow", 2),
        ("clock to 2001-01-01T00:00:00Z", 2),
        ("clock advance --until webhook.sent", 2),
        ("clock advance --until webhook.attempt", 1),
        ("clock run --rate 0", 2),
        ("fault add --status 200", 2),
        ("fault add --event chat --drop", 2),
        ("fault remove fault-9", 1),
        ("logs --kind requests", 2),
        ("logs --where status", 2),
        ("logs --where message~=(", 2),
        ("token --user nobody", 2),
        ("env --client nobody", 2),
        ("env --prefix 9BAD", 2),
        ("listen --user nobody", 2),
        ("listen --forward-to nowhere", 2),
        ("expect", 2),
        ("expect --kind requests", 2),
        ("expect /open/v1/lives", 1),
        ("explain nothing-like-this", 1),
        ("world new no/name", 2),
        ("world reset nothing", 1),
        ("scenario run nothing", 2),
        (&format!("{webhook} nowhere"), 2),
        ("drops watch --channel a --viewer b --minutes 0", 2),
        ("drops watch --channel nobody --viewer b --minutes 1", 2),
        ("clock --sandbox other", 3),
    ] {
        let output = command(folder.path(), line).await;
        assert_eq!(output.status.code(), Some(code), "{line}: {}{}", output.stdout, output.stderr);
        assert!(!output.stderr.is_empty(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_take_true_and_false_and_stand_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), &[]).await;
    for (target, flag, temporary) in [
        ("dal", "--temporary", true),
        ("mina", "--temporary true", true),
        ("gureum", "--temporary=true", true),
        ("nuri", "--temporary false", false),
        ("sol", "--temporary=false", false),
    ] {
        let done = command(folder.path(), &format!("trigger restrict --target {target} {flag} --json")).await;
        let done: Value =
            serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{flag}: {}", done.stderr));
        assert_eq!(done["temporary"], temporary, "{flag}");
    }
    // A scenario and a call have them too.
    let body = json!({ "channel": "bada", "target": "mina", "temporary": "true" });
    let call = Request::post("/sandbox/v1/trigger/restrict").json(&body);
    assert_eq!(sandbox.api.operator(call).await.content()["temporary"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_waits_for_a_session_and_says_which_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), &[]).await;
    let waiting = command(folder.path(), "trigger close-session --user haneul --wait 30s");
    let late = async {
        // The session comes while the trigger waits, or just before.
        let (_, tokens) = sandbox.user(0, "demo");
        let mut socket = sandbox.api.open_user_session(&tokens.access).await;
        while socket.next_packet().await.is_some() {}
    };
    let (closed, ()) = tokio::join!(waiting, late);
    assert!(closed.status.success() && closed.stdout.contains("sessionKeys"), "{}", closed.stderr);
    let socket = subscribed(&sandbox, &["chat"]).await;
    let refused = command(folder.path(), "trigger cut-connection --user nuri").await;
    assert_eq!(refused.status.code(), Some(1));
    for part in [socket.session_key(), "streamer-haneul", "demo"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let heard = command(folder.path(), "trigger chat --channel haneul --wait 30s").await;
    assert!(heard.stdout.contains("delivered 1"), "{}{}", heard.stdout, heard.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_of_the_clock_are_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let _sandbox = sandbox(folder.path(), &["--clock", "2027-01-01T00:00:00Z"]).await;
    for line in ["clock advance 31d", "clock to 2027-03-01T00:00:00Z"] {
        assert!(command(folder.path(), line).await.status.success());
    }
    let met = command(folder.path(), "expect --kind clock --where what=moved --times 2 --json").await;
    let met: Value = serde_json::from_str(&met.stdout).expect("JSON");
    let times: Vec<_> =
        (0..2).map(|at| (met["data"][at]["from"].clone(), met["data"][at]["to"].clone())).collect();
    let at = |day: &str| json!(format!("2027-{day}T00:00:00.000Z"));
    assert_eq!(times, [(at("01-01"), at("02-01")), (at("02-01"), at("03-01"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_a_kept_world_never_goes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("world");
    let data = ["--data", data.to_str().expect("UTF-8")];
    let now = async || {
        let clock = command(folder.path(), "clock --json").await;
        let clock: Value = serde_json::from_str(&clock.stdout).unwrap_or_else(|_| panic!("{}", clock.stderr));
        let time = clock["now"].as_str().expect("a time").to_owned();
        (time, clock["mode"].as_str().expect("a mode").to_owned())
    };
    // The clock runs, and was moved; the process is killed.
    let first = sandbox(folder.path(), &data).await;
    let begun = now().await.0;
    assert!(command(folder.path(), "clock advance 40d").await.status.success());
    let moved = now().await.0;
    first.signal("KILL").await;
    first.end().await;
    let second = sandbox(folder.path(), &data).await;
    let (resumed, mode) = now().await;
    assert!(resumed >= moved && moved > begun, "{begun} {moved} {resumed}");
    assert_eq!(mode, "real");
    // It stands still, and ends by a signal.
    assert!(command(folder.path(), "clock freeze").await.status.success());
    let frozen = now().await;
    second.signal("TERM").await;
    assert!(second.end().await.0.success());
    let third = sandbox(folder.path(), &data).await;
    assert_eq!(now().await, frozen);
    // It runs fast, and the process is killed.
    assert!(command(folder.path(), "clock run --rate 1000").await.status.success());
    let fast = now().await.0;
    third.signal("KILL").await;
    third.end().await;
    let fourth = sandbox(folder.path(), &[data[0], data[1], "--clock", "2020-01-01T00:00:00Z"]).await;
    let (kept, mode) = now().await;
    assert!(kept >= fast, "{fast} {kept}");
    assert_eq!(mode, "frozen", "--clock says how it goes on, but not back");
    fourth.signal("TERM").await;
    assert!(fourth.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_stays_used_up_for_a_while() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), &["--clock", "2027-01-01T00:00:00Z"]).await;
    let done = command(folder.path(), "trigger exhaust-quota --user haneul --for 10s --json").await;
    let done: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!((&done["until"], &done["retryAfter"]), (&json!("2027-01-01T00:00:10.000Z"), &json!(10)));
    let (_, tokens) = sandbox.user(0, "demo");
    let status = async || {
        let answer = sandbox.api.me(&tokens.access).await;
        (answer.status, answer.header("retry-after").map(str::to_owned))
    };
    assert_eq!(status().await, (429, Some("10".to_owned())));
    assert!(command(folder.path(), "clock advance 9s").await.status.success());
    assert_eq!(status().await, (429, Some("1".to_owned())));
    assert!(command(folder.path(), "clock advance 1s").await.status.success());
    assert_eq!(status().await.0, 200);
}

/// The same storm twice, in two processes, at a rate that no machine keeps up with in order by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_repeats_byte_for_byte_with_a_seed() {
    let storm = async || {
        let folder = tempfile::tempdir().expect("a folder");
        let sandbox = sandbox(folder.path(), &["--seed", "7", "--clock", "2027-01-01T00:00:00Z"]).await;
        let mut socket = subscribed(&sandbox, &["chat", "donation", "subscription"]).await;
        let body = json!({ "rate": 400, "duration": "500ms", "seed": 4, "mix": { "chat": 4, "donation": 1, "subscription": 3 } });
        let done =
            sandbox.api.operator(Request::post("/sandbox/v1/trigger/storm").json(&body)).await.content();
        assert_eq!(done["unsent"], 0, "{done}");
        let mut packets = Vec::new();
        for _ in 0..done["events"].as_u64().expect("a number") {
            let packet = socket.next_packet().await.expect("an event");
            // The addresses of badges name the port.
            packets.push(packet.replace(&sandbox.api.address().to_string(), "HOST"));
        }
        packets
    };
    let (first, second) = (storm().await, storm().await);
    assert_eq!(first.len(), 200);
    let differs = first.iter().zip(&second).find(|(one, other)| one != other);
    assert_eq!(differs, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_and_drops_find_the_sandbox() {
    let folder = tempfile::tempdir().expect("a folder");
    let _sandbox = sandbox(folder.path(), &["--platform-listen", "127.0.0.1:0", "--name", "bot"]).await;
    let watched = "drops watch --channel streamer-haneul --viewer viewer-nuri --minutes 1 --sandbox bot";
    let watched = command(folder.path(), watched).await;
    assert!(watched.status.success(), "{}", watched.stderr);
    let mut listen = stagedoor_in(folder.path(), &["webhook", "listen", "--client-id", "drops", "--json"]);
    listen.args(["--forward-to", "http://127.0.0.1:9/webhook"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = listen.spawn().expect("it starts");
    let mut lines = tokio::io::BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    let read = tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut line);
    testkit::patiently("it listens", read).await.expect("a line");
    assert!(line.contains("listening"), "{line}");
}
