//! The first minutes with `stagedoor dev`: its address, its overview, its log.

use std::path::Path;
use std::process::Stdio;

use testkit::{Request, patiently};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout};

use crate::cli::process::{Sandbox, run, stagedoor, stagedoor_in};

/// The lines and columns of a small screen. The address of the sign-in alone may be longer.
const SCREEN: (usize, usize) = (24, 100);

/// `dev` for a person: the process and its overview. Its state file is in `runtime`.
async fn overview(runtime: &Path, arguments: &[&str]) -> (Child, String) {
    let mut command = stagedoor_in(runtime, &["dev", "--listen", "127.0.0.1:0"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdout = child.stdout.take().expect("piped");
    let mut output = Vec::new();
    let ended = || "\n  ".to_owned() + env!("CARGO_BIN_EXE_stagedoor");
    patiently("the overview", async {
        let is_whole = |output: &[u8]| {
            let text = String::from_utf8_lossy(output);
            text.ends_with('\n') && text.matches(&ended()).count() == 3
        };
        while !is_whole(&output) {
            assert!(stdout.read_buf(&mut output).await.expect("text") > 0);
        }
    })
    .await;
    (child, String::from_utf8(output).expect("UTF-8"))
}

/// Reads until this text has come.
async fn until(stdout: &mut ChildStdout, text: &str) {
    let mut output = Vec::new();
    patiently(text, async {
        while !String::from_utf8_lossy(&output).contains(text) {
            assert!(stdout.read_buf(&mut output).await.expect("text") > 0, "no {text}");
        }
    })
    .await;
}

/// The value behind a label of the overview.
fn value<'a>(overview: &'a str, label: &str) -> &'a str {
    let line = overview.lines().find_map(|line| line.trim_start().strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label}: {overview}")).trim()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_fits_one_screen_and_what_it_names_exists() {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, overview) = overview(folder.path(), &[]).await;
    assert!(overview.lines().count() <= SCREEN.0, "{overview}");
    // The path of the program depends on the machine.
    let program = env!("CARGO_BIN_EXE_stagedoor");
    let text = overview.replace(program, "stagedoor");
    for line in text.lines().filter(|line| !line.contains("/account-interlock")) {
        assert!(line.chars().count() <= SCREEN.1, "{line}");
    }
    assert!(!overview.contains("INFO"), "{overview}");
    let sign_in = value(&overview, "Sign in");
    let (base, _) = sign_in.split_once("/account-interlock").expect("an address");
    let api = testkit::Api::new(base, value(&overview, "Operator key"));
    for address in [sign_in, value(&overview, "Documentation")] {
        let page = api.send(Request::get(address.strip_prefix(base).expect("the same address"))).await;
        assert_eq!(page.status, 200, "{address}");
    }
    api.operator(Request::get("/sandbox/v1/clock")).await.content();
    drop(child);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_overview_work_as_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, option) in [(&[][..], ""), (&["--name", "two"][..], " --sandbox two")] {
        let (child, overview) = overview(folder.path(), arguments).await;
        let (_, commands) = overview.split_once("third terminal:").expect("commands");
        let commands: Vec<&str> = commands.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(commands.len(), 3, "{overview}");
        let expected =
            [("env ", "ACCESS_TOKEN="), ("listen ", "SUBSCRIPTION"), ("trigger donation ", "delivered 1")];
        let mut running = Vec::new();
        for (command, (begin, printed)) in commands.into_iter().zip(expected) {
            let (command, _) = command.split_once("  #").expect("a comment");
            let arguments = command.strip_prefix(env!("CARGO_BIN_EXE_stagedoor")).expect("the program");
            assert!(arguments.trim_start().starts_with(begin) && arguments.ends_with(option), "{command}");
            let arguments: Vec<&str> = arguments.split_whitespace().collect();
            let mut command = stagedoor_in(folder.path(), &arguments);
            let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
            let mut stdout = child.stdout.take().expect("piped");
            until(&mut stdout, printed).await;
            running.push((child, stdout));
        }
        until(&mut running[1].1, "DONATION").await;
        drop(child);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_given_in_many_ways() {
    for (given, begin) in [
        ("0", "http://127.0.0.1:"),
        (":0", "http://127.0.0.1:"),
        ("localhost:0", "http://127.0.0.1:"),
        ("[::1]:0", "http://[::1]:"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let mut command = stagedoor_in(folder.path(), &["dev", "--json", "--listen", given]);
        command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
        let sandbox = Sandbox::of(command, log).await;
        let base = sandbox.world["baseUrl"].as_str().expect("a text");
        assert!(base.starts_with(begin) && !base.ends_with(":0"), "{given}: {base}");
    }
    for command in ["dev", "serve"] {
        for (arguments, part) in [
            (["--listen", "nowhere"], "'--listen <ADDR>'"),
            (["--listen", "127.0.0.1"], "the port is missing: 127.0.0.1:8080"),
            (["--port", "9000"], "`--listen 9000`"),
            (["-p", "9000"], "`--listen 9000`"),
        ] {
            let refused = run(stagedoor(&[&[command][..], &arguments].concat())).await;
            assert_eq!(refused.status.code(), Some(2), "{command} {arguments:?}");
            assert!(refused.stderr.contains(part), "{command} {arguments:?}: {}", refused.stderr);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_address_is_reported_first_with_its_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, overview) = overview(folder.path(), &["--name", "first"]).await;
    let base = value(&overview, "Documentation").trim_end_matches("/docs").to_owned();
    let sandbox = base.trim_start_matches("http://");
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let other = other.local_addr().expect("an address").to_string();
    let data = folder.path().join("data");
    for (command, address, parts) in [
        ("dev", sandbox, vec!["sandbox first has the address", "`kill ", "`--listen 127.0.0.1:0`"]),
        ("dev", &other, vec!["Another program has the address", "`--listen 127.0.0.1:0`"]),
        ("serve", &other, vec!["Another program has the address"]),
    ] {
        let mut command = stagedoor_in(folder.path(), &[command, "--listen", address]);
        if parts.len() == 1 {
            command.arg("--data").arg(&data);
        }
        let refused = run(command).await;
        assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""));
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        for part in parts {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
    }
    assert!(!data.exists(), "nothing was created");
    drop(child);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_sandbox_is_quiet_and_names_refusals() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let started = std::fs::read_to_string(sandbox.log_path()).expect("the log");
    assert!(started.lines().count() <= 1, "{started}");
    let demo = sandbox.application("demo");
    let secret = "a-wrong-secret-of-an-application";
    let body = serde_json::json!({ "grantType": "refresh_token", "clientId": demo.client_id, "clientSecret": secret,
        "refreshToken": "a-refresh-token-that-nobody-has" });
    sandbox.api.send(Request::post("/auth/v1/token?state=in-the-query").json(&body)).await;
    let (_, tokens) = sandbox.user(0, "demo");
    sandbox.api.send(Request::get("/open/v1/nothing").bearer(&tokens.access)).await;
    let log = patiently("the lines", async {
        loop {
            let log = std::fs::read_to_string(sandbox.log_path()).expect("the log");
            if log.contains("/open/v1/nothing") {
                return log;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    for part in [
        "refused POST /auth/v1/token: 401 INVALID_CLIENT, reason secret-wrong, application demo, request ",
        "refused GET /open/v1/nothing: 404 NOT_FOUND, reason not-found; what=path, application demo, user \
         streamer-haneul, request ",
    ] {
        assert_eq!(log.matches(part).count(), 1, "{part}: {log}");
    }
    for hidden in [secret, "a-refresh-token", "in-the-query", &tokens.access] {
        assert!(!log.contains(hidden), "{hidden}: {log}");
    }
}
