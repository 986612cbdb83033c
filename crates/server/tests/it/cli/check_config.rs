//! `stagedoor check-config` shows each option with its source, and refuses what `serve` refuses.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::process::{CommandOutput, run, stagedoor};

const DATABASE: &str = "postgres://database/x";
const LONG_KEY: &str = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";

/// A bad configuration: options, variables, and a part of the sentence that refuses it.
type Bad<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

/// Options that clap lets pass, and that mean nothing together or hold what cannot be used.
const BAD: &[Bad<'_>] = &[
    (&["--base-url", "api.example.com"], &[], "--base-url must be scheme and host"),
    (&["--session-base", "https://x/y"], &[], "--session-base must be scheme and host"),
    (&["--roles", "web,jobs"], &[], "--roles web,jobs needs --database-url: a SQLite store belongs to one"),
    (
        &["--roles", "gateway", "--database-url", "postgres://x/y", "--listen", "0.0.0.0:8080"],
        &[],
        "--roles gateway needs --session-base: clients cannot connect to 0.0.0.0:8080",
    ),
    (
        &["--roles", "jobs", "--database-url", "postgres://x/y", "--platform-listen", "127.0.0.1:1"],
        &[],
        "--platform-listen needs the role web, and --roles is jobs",
    ),
    (
        &["--listen", "0.0.0.0:8080", "--platform-listen", "127.0.0.1:8080"],
        &[],
        "--platform-listen 127.0.0.1:8080 is an address of --listen 0.0.0.0:8080",
    ),
    (
        &["--trusted-proxies", "10.0.0.5,proxy.internal"],
        &[],
        "--trusted-proxies holds 'proxy.internal', which is neither an address nor a network like 10.0.0.0/8",
    ),
    (&["--trusted-proxies", "0.0.0.0/0"], &[], "--trusted-proxies holds '0.0.0.0/0', which is every address"),
    (&["--proxy-protocol"], &[], "--proxy-protocol needs --trusted-proxies"),
    (&["--operator-key", "short"], &[], "the operator key must have 32"),
    (&["--operator-key", LONG_KEY, "--service-key", "short"], &[], "the service key must have 32"),
    (
        &["--webhook-header-prefix", "X Y-"],
        &[],
        "--webhook-header-prefix must be 1 to 64 letters, digits and '-'",
    ),
    (&["--database-url", "sqlite://x"], &[], "--database-url must begin with postgres://"),
    (&["--database-url", "postgres://kkkk@db:port/x"], &[], "--database-url: the store cannot be opened"),
    (&["--bus-url", "nats://kkkk@bus"], &[], "--bus-url needs --database-url: SQLite belongs to one node"),
    (&["--bus-url", "http://kkkk@bus", "--database-url", DATABASE], &[], "--bus-url must begin with nats://"),
    (
        &["--bus-url", "nats://bus", "--bus-prefix", "a b", "--database-url", DATABASE],
        &[],
        "--bus-prefix must be words",
    ),
    (&["--data", "/dev/null/x"], &[], "--data /dev/null/x: /dev/null is not a folder"),
    (&["--log", "=["], &[], "--log =["),
    (&["--registration", "open", "--local-passwords", "off"], &[], "--local-passwords off needs --upstreams"),
    (&["--upstreams", "/missing.yaml", "--base-url", "https://a.example"], &[], "/missing.yaml"),
    (&["--brand-logo", "/missing.png"], &[], "--brand-logo /missing.png"),
    (&["--brand-color", "red"], &[], "--brand-color must be"),
    (&["--help-url", "http://a.example"], &[], "--help-url must be an https address"),
    (&["--mail-hook", "https://mail.example/kkkk"], &[], "--mail-hook needs --mail-hook-secret"),
    (&["--mail-hook-secret-file", "/missing"], &[], "--mail-hook-secret-file /missing"),
    (&[], &[("STAGEDOOR_OPERATOR_KEY_FILE", "/nonexistent")], "STAGEDOOR_OPERATOR_KEY_FILE: /nonexistent"),
    (
        &["--operator-key", LONG_KEY],
        &[("STAGEDOOR_OPERATOR_KEY_FILE", "/nonexistent")],
        "give either STAGEDOOR_OPERATOR_KEY or STAGEDOOR_OPERATOR_KEY_FILE",
    ),
    // What clap refuses.
    (&["--listen", "api.example.com:80"], &[], "Other host names are not looked up"),
    (&["--roles", "web,cron"], &[], "invalid value 'cron'"),
    (&["--drain-delay", "601"], &[], "601 is not in 0..=600"),
    (&[], &[("STAGEDOOR_PASSWORD_MIN", "7")], "it must be 8 to 64"),
    (&[], &[("STAGEDOOR_LOG_FORMAT", "xml")], "invalid value 'xml'"),
];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Runs a command with a configuration.
async fn with(command: &str, folder: &Path, (arguments, variables, _): Bad<'_>) -> CommandOutput {
    let mut command = stagedoor(&[command]);
    command.env("STAGEDOOR_DATA", folder).args(arguments).envs(variables.iter().copied());
    run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_serve_refuses_is_refused_in_the_same_words() {
    let folder = folder();
    for bad in BAD {
        let checked = with("check-config", folder.path(), *bad).await;
        assert_eq!(checked.status.code(), Some(2), "{bad:?}: {}", checked.stderr);
        assert!(checked.stderr.contains(bad.2), "{bad:?}: {}", checked.stderr);
        assert!(!checked.stderr.contains("kkkk") && !checked.stdout.contains("kkkk"), "{bad:?}");
        assert!(!checked.stdout.contains("The configuration is good."), "{bad:?}");
        let served = with("serve", folder.path(), *bad).await;
        assert_eq!(served.status.code(), Some(2), "{bad:?}: {}", served.stderr);
        assert_eq!(checked.stderr.replace("check-config", "serve"), served.stderr, "{bad:?}");
    }
    let left = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 0, "neither command wrote anything");
}

/// What `check-config --json` says of an option.
fn option<'a>(found: &'a Value, name: &str) -> &'a Value {
    let options = found["options"].as_array().expect("options");
    options.iter().find(|each| each["option"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_option_is_shown_with_its_value_and_its_source_and_no_secret() {
    let folder = folder();
    let file = folder.path().join("service-key");
    std::fs::write(&file, format!("{LONG_KEY}-of-the-service\r\n")).expect("a file");
    let data = folder.path().to_str().expect("a path");
    let command = |more: &[&str]| {
        let mut command = stagedoor(&["check-config", "--data", data, "--log", "info"]);
        command
            .args(more)
            .env("STAGEDOOR_OPERATOR_KEY", format!("{LONG_KEY}-of-the-operator"))
            .env("STAGEDOOR_SERVICE_KEY_FILE", &file)
            .env("STAGEDOOR_DATABASE_URL", "postgres://someone:hunter2-password@db.example/x")
            .env("STAGEDOOR_BUS_URL", "nats://someone:hunter3-password@bus.example,other.example:4333")
            .env("STAGEDOOR_TRUSTED_PROXIES", "10.0.0.5, fd00::/8")
            .env("STAGEDOOR_PROXY_PROTOCOL", "true")
            .env("STAGEDOOR_WEBHOOK_ALLOW", "private,loopback")
            .env("STAGEDOOR_MAIL_HOOK", "https://mail.example/hunter4")
            .env("STAGEDOOR_MAIL_HOOK_SECRET_FILE", &file)
            // Another command reads it.
            .env("STAGEDOOR_BACKUPS", "/backups");
        command
    };
    let output = run(command(&["--json"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    let found: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!((&found["ok"], &found["problem"]), (&json!(true), &Value::Null));
    let path = file.to_str().expect("a path");
    for (name, value, source, from) in [
        ("--listen", json!("127.0.0.1:8080"), json!("default"), Value::Null),
        ("--data", json!(data), json!("command line"), Value::Null),
        ("--log", json!("info"), json!("command line"), Value::Null),
        ("--base-url", Value::Null, Value::Null, Value::Null),
        ("--operator-key", json!("set"), json!("environment"), json!("STAGEDOOR_OPERATOR_KEY")),
        ("--service-key", json!("set"), json!("file"), json!(path)),
        ("--database-url", json!("set"), json!("environment"), json!("STAGEDOOR_DATABASE_URL")),
        (
            "--trusted-proxies",
            json!("10.0.0.5, fd00::/8"),
            json!("environment"),
            json!("STAGEDOOR_TRUSTED_PROXIES"),
        ),
        ("--proxy-protocol", json!("true"), json!("environment"), json!("STAGEDOOR_PROXY_PROTOCOL")),
        ("--no-quota", json!("false"), json!("default"), Value::Null),
        (
            "--webhook-allow",
            json!("private,loopback"),
            json!("environment"),
            json!("STAGEDOOR_WEBHOOK_ALLOW"),
        ),
        ("--mail-hook", json!("set"), json!("environment"), json!("STAGEDOOR_MAIL_HOOK")),
        ("--mail-hook-secret", json!("set"), json!("file"), json!(path)),
    ] {
        let shown = option(&found, name);
        assert_eq!((&shown["value"], &shown["source"], &shown["from"]), (&value, &source, &from), "{name}");
    }
    assert_eq!(found["unreadVariables"], json!([]));
    assert_eq!(option(&found, "--listen")["group"], "Networking");

    let text = run(command(&[])).await;
    assert_eq!(text.status.code(), Some(0), "{}", text.stderr);
    assert!(text.stdout.ends_with("The configuration is good.\n"), "{}", text.stdout);
    for line in [
        "Networking:".to_owned(),
        "127.0.0.1:8080  (default)".to_owned(),
        format!("set  (file {path})"),
        "true  (environment STAGEDOOR_PROXY_PROTOCOL)".to_owned(),
        "info  (command line)".to_owned(),
    ] {
        assert!(text.stdout.contains(&line), "{line}: {}", text.stdout);
    }
    for secret in ["hunter2", "hunter3", "hunter4", "kkkk"] {
        for output in [&output, &text] {
            assert!(!output.stdout.contains(secret) && !output.stderr.contains(secret), "{secret}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_an_attempt_or_the_names_of_variables_show_is_refused() {
    let folder = folder();
    let data = folder.path().to_str().expect("a path");
    for (arguments, variables, words) in [
        (&["--data", "/proc/x"][..], &[][..], "--data /proc/x: nothing can be made in /proc"),
        (&["--archive", "/proc/x/y"], &[], "--archive /proc/x/y: nothing can be made in /proc"),
        (&["--archive", "/dev/null/x"], &[], "--archive /dev/null/x: /dev/null is not a folder"),
        (&[], &[("STAGEDOOR_OPERATER_KEY", "kkkk")], "STAGEDOOR_OPERATER_KEY is set, and no command reads"),
        (&[], &[("STAGEDOOR_B", "x"), ("STAGEDOOR_A", "x")], "STAGEDOOR_A, STAGEDOOR_B are set"),
    ] {
        for json in [&[][..], &["--json"]] {
            let mut command = stagedoor(&["check-config"]);
            command.env("STAGEDOOR_DATA", data).args(arguments).args(json).envs(variables.iter().copied());
            let output = run(command).await;
            assert_eq!(output.status.code(), Some(2), "{words}: {}", output.stdout);
            assert!(output.stderr.contains(words) && !output.stdout.contains("is good"), "{}", output.stderr);
            assert!(!output.stderr.contains("kkkk") && !output.stdout.contains("kkkk"), "{words}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_configuration_is_shown_with_its_problem() {
    let output = run(stagedoor(&["check-config", "--json", "--base-url", "api.example.com"])).await;
    assert_eq!(output.status.code(), Some(2));
    let found: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let problem = found["problem"].as_str().expect("a sentence");
    assert_eq!((&found["ok"], output.stderr), (&json!(false), format!("stagedoor: {problem}\n")));
    assert_eq!(option(&found, "--base-url")["value"], "api.example.com");
}
