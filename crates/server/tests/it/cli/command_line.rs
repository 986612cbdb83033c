//! The command line: `dev --json`, `--help`.

use std::time::{Duration, Instant};

use serde_json::Value;
use store::testing::database_url;
use testkit::{Request, Socket};

use crate::cli::process::{Sandbox, run, stagedoor};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_line_of_dev_is_one_json_object_of_a_ready_service() {
    let folder = folder();
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    sandbox.api.me(&sandbox.user(0, "demo").1.access).await.content();
    assert!(sandbox.first_line.ends_with("}\n"));

    let expected = ["applications", "authUrl", "baseUrl", "operatorKey", "platformUrl", "users"];
    assert_eq!(keys(&sandbox.world), expected);
    let base_url = sandbox.world["baseUrl"].as_str().expect("a text");
    assert!(base_url.starts_with("http://127.0.0.1:") && !base_url.ends_with(":0"), "{base_url}");
    for name in ["authUrl", "platformUrl"] {
        assert!(sandbox.world[name].as_str().expect("a text").starts_with("http://127.0.0.1:"));
    }
    for application in sandbox.list("applications") {
        assert_eq!(keys(application), ["clientId", "clientSecret", "name", "redirectUris", "scopes"]);
        let redirect_uris = ["http://127.0.0.1:9999/callback", "http://localhost:9999/callback"];
        assert_eq!(application["redirectUris"], serde_json::json!(redirect_uris));
    }
    let scopes =
        |index: usize| sandbox.list("applications")[index]["scopes"].as_array().expect("a list").len();
    let names: Vec<_> = sandbox.list("applications").iter().map(|entry| entry["name"].clone()).collect();
    assert_eq!((names, scopes(0), scopes(1)), (vec!["demo".into(), "drops".into()], 16, 17));
    assert_eq!(sandbox.list("users").len(), 8);
    for user in sandbox.list("users") {
        assert_eq!(keys(user), ["channelId", "channelName", "login", "password", "tokens"]);
        assert_eq!(keys(&user["tokens"]), ["demo", "drops"]);
        assert_eq!(keys(&user["tokens"]["demo"]), ["accessToken", "refreshToken"]);
    }
    sandbox.signal("TERM").await;
    let (status, rest) = sandbox.end().await;
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_api_can_have_its_own_listener() {
    let folder = folder();
    let sandbox = Sandbox::start(folder.path(), &["--platform-listen", "127.0.0.1:0"]).await;
    let text = |name: &str| sandbox.world[name].as_str().expect("a text").to_owned();
    assert_ne!(text("platformUrl"), text("baseUrl"));
    let platform = testkit::Api::new(&text("platformUrl"), &text("operatorKey")).of_a_part();
    let open = sandbox.api.of_a_part();
    let put = || Request::put("/platform/v1/channels/new").body(r#"{"channelName":"새"}"#);
    platform.operator(put()).await.content();
    for request in [put(), Request::get("/platform/v1/applications/demo")] {
        open.operator(request).await.assert_refused(404, "NOT_FOUND");
    }
    let (_, tokens) = sandbox.user(0, "demo");
    open.me(&tokens.access).await.content();
    let demo = sandbox.application("demo");
    assert_eq!(open.channels(&demo, "channelIds=new").await.content()["data"][0]["channelName"], "새");
    platform.me(&tokens.access).await.assert_refused(404, "NOT_FOUND");
    for (method, path) in [
        ("GET", "/account-interlock"),
        ("POST", "/auth/v1/token"),
        ("GET", "/socket.io/"),
        ("GET", "/socket.io/?EIO=3&transport=polling"),
        ("GET", "/"),
    ] {
        let answer = platform.send(Request::new(method, path)).await;
        answer.assert_refused(404, "NOT_FOUND");
        assert!(answer.header("x-request-id").is_some());
    }
    let _socket = sandbox.api.open_user_session(&tokens.access).await;
    sandbox.signal("TERM").await;
    let (status, _) = sandbox.end().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_secret_token_and_password_of_the_first_line_works() {
    let folder = folder();
    let sandbox = Sandbox::start(folder.path(), &["--no-quota"]).await;
    for name in ["demo", "drops"] {
        let app = sandbox.application(name);
        for index in 0..8 {
            let (person, tokens) = sandbox.user(index, name);
            let me = sandbox.api.me(&tokens.access).await.content();
            assert_eq!(
                (&me["channelId"], &me["channelName"]),
                (&person.channel_id.into(), &person.name.into())
            );
            sandbox.api.refresh(&app, &tokens.refresh).await.content();
        }
    }
    let (person, _) = sandbox.user(7, "demo");
    sandbox.api.sign_in(&sandbox.application("demo"), &person).await;
    let channel =
        sandbox.api.channels(&sandbox.application("demo"), "channelIds=streamer-haneul").await.content();
    assert!(channel["data"][0]["followerCount"].as_i64() >= Some(1), "{channel}");
    let claims = sandbox.api.reward_claims(&sandbox.application("drops"), "").await.content();
    assert_eq!(claims["data"][0]["categoryId"], "star-voyage", "{claims}");
    sandbox
        .api
        .reward_claims(&sandbox.application("demo"), "")
        .await
        .assert_refused(403, "드롭스 scope가 필요합니다.");
    sandbox
        .api
        .operator(Request::put("/platform/v1/channels/new").body(r#"{"channelName":"새"}"#))
        .await
        .content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_program_within_ten_seconds_also_with_open_sockets() {
    for signal in ["TERM", "INT"] {
        let folder = folder();
        let sandbox = Sandbox::start(folder.path(), &[]).await;
        let tokens = sandbox.user(0, "demo").1;
        let mut socket = sandbox.api.open_user_session(&tokens.access).await;
        #[allow(clippy::disallowed_methods, reason = "the promise is about real seconds")]
        let started = Instant::now();
        sandbox.signal(signal).await;
        while socket.next_packet().await.is_some() {}
        let (status, _) = sandbox.end().await;
        assert_eq!(status.code(), Some(0), "{signal}");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_world_survives_a_kill() {
    let folder = folder();
    let data = folder.path().join("new/world");
    let data = data.to_str().expect("a path");
    let first = Sandbox::start(folder.path(), &["--data", data]).await;
    let app = first.application("demo");
    let (_, tokens) = first.user(0, "demo");
    first.api.send_chat(&tokens.access, "kept").await.content();
    first
        .api
        .operator(Request::put("/platform/v1/channels/mine").body(r#"{"channelName":"내 채널"}"#))
        .await
        .content();
    let url = first.api.user_session_url(&tokens.access).await.content()["url"].clone();
    let _socket = Socket::open(url.as_str().expect("a text")).await;
    let (operator_key, applications) =
        (first.world["operatorKey"].clone(), first.world["applications"].clone());
    first.signal("KILL").await;
    let (status, _) = first.end().await;
    assert_eq!(status.code(), None);

    let second = Sandbox::start(folder.path(), &["--data", data]).await;
    for (name, before) in [("operatorKey", operator_key), ("applications", applications)] {
        assert_eq!(second.world[name], before, "{name}");
    }
    second.api.me(&tokens.access).await.content();
    let channels = second.api.channels(&app, "channelIds=mine").await.content();
    assert_eq!(channels["data"][0]["channelName"], "내 채널");
    // The session ended with its process.
    let sessions = second.api.user_sessions(&tokens.access, "").await.content();
    assert!(sessions["data"][0]["disconnectedDate"].is_string(), "{sessions}");
    second.signal("TERM").await;
    second.end().await;

    let third = Sandbox::start(folder.path(), &["--data", data, "--profile", "observed"]).await;
    assert!(third.api.me(&tokens.access).await.content()["nickname"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_world_is_used_by_one_process_at_a_time() {
    let folder = folder();
    let data = folder.path().join("data");
    let data = data.to_str().expect("a path");
    let sandbox = Sandbox::start(folder.path(), &["--data", data]).await;
    for command in ["dev", "serve"] {
        let output = run(stagedoor(&[command, "--data", data, "--listen", "127.0.0.1:0"])).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stderr.contains("another process has it open"), "{}", output.stderr);
    }
    sandbox.api.me(&sandbox.user(0, "demo").1.access).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_world_is_deleted_at_exit() {
    let folder = folder();
    let mut command = stagedoor(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", folder.path()).stdout(std::process::Stdio::piped());
    let log = tempfile::NamedTempFile::new().expect("a file");
    command.stderr(log.reopen().expect("a file"));
    let sandbox = Sandbox::of(command, log.path().to_owned()).await;
    let left = || std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left(), 1);
    sandbox.signal("TERM").await;
    sandbox.end().await;
    assert_eq!(left(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_occupied_address_and_a_missing_store_are_reported_in_a_sentence() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    for (arguments, code, part) in [
        (vec!["dev", "--listen", &taken], 1, "cannot listen on"),
        (vec!["dev", "--listen", "127.0.0.1:0", "--platform-listen", &taken], 1, "cannot listen on"),
        (vec!["dev", "--database-url", "mysql://x"], 2, "--database-url must begin with postgres://"),
        (vec!["dev", "--data", "/dev/null/x"], 2, "--data /dev/null/x"),
        (vec!["dev", "--log", "=[", "--listen", "127.0.0.1:0"], 2, "--log"),
        (vec!["dev", "--brand-color", "red"], 2, "--brand-color"),
        (vec!["dev", "--world", "/nowhere.yaml"], 2, "--world /nowhere.yaml"),
    ] {
        let output = run(stagedoor(&arguments)).await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", output.stderr);
        let last = output.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("stagedoor: ") && last.contains(part), "{}", output.stderr);
        assert_eq!(output.stdout, "");
    }
    let unreachable = "postgres://someone:hunter2-password@127.0.0.1:1/x";
    // `serve` waits for its database.
    let output = run(stagedoor(&["doctor", "--deep", "--database-url", unreachable])).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    // No name has a label so long, so no server is asked.
    let host = format!("{}.invalid", "n".repeat(64));
    let nowhere = format!("postgres://someone:hunter2-password@{host}/x");
    let output = run(stagedoor(&["doctor", "--deep", "--database-url", &nowhere])).await;
    assert_eq!(output.status.code(), Some(3));
    let words = format!("the name of its host was not found: {host}");
    assert!(output.stderr.contains(&words) && !output.stderr.contains("hunter2"), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_changes_no_exit_code() {
    for (arguments, code) in [
        (&["completions", "bash"][..], 0),
        (&["scenario", "list"][..], 0),
        (&["doctor", "--deep", "--data", "/nowhere"][..], 1),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = stagedoor(arguments);
        command.stdout(writer.try_clone().expect("a pipe")).stderr(writer);
        let status = command.status().await.expect("it runs");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_help_is_the_manual_of_every_option() {
    let output = run(stagedoor(&["--help"])).await;
    for part in ["dev", "serve", "check-config"] {
        assert!(output.stdout.contains(part), "{part}");
    }
    let common = [
        ("--listen", "STAGEDOOR_LISTEN"),
        ("--platform-listen", "STAGEDOOR_PLATFORM_LISTEN"),
        ("--trusted-proxies", "STAGEDOOR_TRUSTED_PROXIES"),
        ("--proxy-protocol", "STAGEDOOR_PROXY_PROTOCOL"),
        ("--profile", "STAGEDOOR_PROFILE"),
        ("--language", "STAGEDOOR_LANGUAGE"),
        ("--no-quota", "STAGEDOOR_NO_QUOTA"),
        ("--database-url", "STAGEDOOR_DATABASE_URL_FILE"),
        ("--log", "STAGEDOOR_LOG"),
        ("--log-format", "STAGEDOOR_LOG_FORMAT"),
        ("--data", "STAGEDOOR_DATA"),
    ];
    let serve = [
        ("--bus-url", "STAGEDOOR_BUS_URL_FILE"),
        ("--bus-prefix", "STAGEDOOR_BUS_PREFIX"),
        ("--base-url", "STAGEDOOR_BASE_URL"),
        ("--session-base", "STAGEDOOR_SESSION_BASE"),
        ("--roles", "STAGEDOOR_ROLES"),
        ("--drain-delay", "STAGEDOOR_DRAIN_DELAY"),
        ("--operator-key", "STAGEDOOR_OPERATOR_KEY_FILE"),
        ("--webhook-allow", "STAGEDOOR_WEBHOOK_ALLOW"),
        ("--webhook-header-prefix", "STAGEDOOR_WEBHOOK_HEADER_PREFIX"),
    ];
    for (command, own) in [("dev", &[("--json", "JSON")][..]), ("serve", &serve), ("check-config", &serve)] {
        // The help never shows secrets from the environment.
        let mut help = stagedoor(&[command, "--help"]);
        help.env("STAGEDOOR_DATABASE_URL", "postgres://hunter2").env("STAGEDOOR_OPERATOR_KEY", "hunter2");
        let output = run(help).await;
        assert_eq!(output.status.code(), Some(0));
        for (option, variable) in common.iter().chain(own) {
            assert!(
                output.stdout.contains(option) && output.stdout.contains(variable),
                "{command} {option} {variable}"
            );
        }
        assert!(!output.stdout.contains("hunter2"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_url_stores_the_world_in_postgresql() {
    let fresh = store::testing::postgres().await;
    assert!(!database_url().is_empty());
    let folder = folder();
    let file = folder.path().join("url");
    std::fs::write(&file, fresh.url().expect("a URL")).expect("a file");
    let data = folder.path().join("data");
    let mut command =
        stagedoor(&["dev", "--json", "--listen", "127.0.0.1:0", "--data", data.to_str().expect("a path")]);
    command.env("STAGEDOOR_DATABASE_URL_FILE", &file).stdout(std::process::Stdio::piped());
    let log = folder.path().join("log");
    command.stderr(std::fs::File::create(&log).expect("a file"));
    let sandbox = Sandbox::of(command, log).await;
    sandbox.api.me(&sandbox.user(0, "demo").1.access).await.content();
    let files: Vec<_> =
        std::fs::read_dir(&data).expect("a folder").map(|f| f.expect("a file").file_name()).collect();
    assert!(!files.iter().any(|name| name.to_string_lossy().contains(".db")), "{files:?}");
    sandbox.signal("TERM").await;
    assert_eq!(sandbox.end().await.0.code(), Some(0));
    fresh.remove().await;
}
