//! The host names that a sandbox accepts, and its base URL.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use testkit::{Connection, Request, ReservedPort, Response, Setup, both};

use crate::cli::process::{Sandbox, run, stagedoor};

const TARGETS: [&str; 4] =
    ["/open/v1/lives", "/health/live", "/account-interlock", "/socket.io/?EIO=3&transport=polling&auth=x"];

/// A sandbox with further arguments, and the loopback address that it listens on.
async fn sandbox(folder: &Path, listen: &str, arguments: &[&str]) -> Sandbox {
    let port = ReservedPort::at(listen.parse().expect("an address"));
    let address = port.address();
    let log = folder.join("log");
    let mut command = stagedoor(&["dev", "--json", "--listen", &address.to_string()]);
    command.args(arguments).stdout(Stdio::piped());
    command.stderr(File::create(&log).expect("a file for the log"));
    Sandbox::reached_at(Some(&format!("http://127.0.0.1:{}", address.port())), command, log).await
}

/// The answer to a request with this name in `Host`.
async fn asked_as(sandbox: &Sandbox, target: &str, host: &str) -> Response {
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.write(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await;
    connection.read_response(false).await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_accepts_loopback_names_and_configured_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let given = ["--base-url", "https://sandbox.example:8443", "--allow-host", "dev.example,other.example"];
    let sandbox = sandbox(folder.path(), "127.0.0.1", &given).await;
    for target in TARGETS {
        for host in [
            "127.0.0.1",
            "localhost:1234",
            "a.localhost",
            "[::1]:80",
            "sandbox.example",
            "DEV.example:80",
            "other.example",
        ] {
            assert_ne!(asked_as(&sandbox, target, host).await.status, 403, "{target} {host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "192.0.2.1", ""] {
            let answer = asked_as(&sandbox, target, host).await;
            assert_eq!(answer.status, 403, "{target} {host}");
            assert!(answer.message().contains("--allow-host"));
            assert_eq!(answer.header("stagedoor-reason"), Some("host-not-allowed"));
            assert!(
                answer.header("x-request-id").is_some()
                    && answer.header("access-control-allow-origin").is_none()
            );
        }
    }
    // The connection is usable after a refusal, also of a request with a body.
    let mut connection = Connection::open(sandbox.api.address()).await;
    for _ in 0..3 {
        let body = "POST /auth/v1/token HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}";
        connection.write(body.as_bytes()).await;
        assert_eq!(connection.read_response(false).await.map(|answer| answer.status), Some(403));
    }
    let log = std::fs::read_to_string(sandbox.log_path()).expect("the log");
    assert!(!log.contains("not loopback"), "{log}");
    assert_eq!(log.matches("--allow-host adds hosts").count(), 1, "once a minute: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_behind_a_proxy_uses_the_proxys_base_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), "127.0.0.1", &["--base-url", "https://sandbox.example"]).await;
    for name in ["baseUrl", "authUrl", "platformUrl"] {
        assert_eq!(sandbox.world[name], json!("https://sandbox.example"), "{name}");
    }
    let (_, tokens) = sandbox.user(0, "demo");
    let request = Request::get("/open/v1/sessions/auth").bearer(&tokens.access);
    let url = sandbox.api.send(request).await.content()["url"].clone();
    assert!(url.as_str().is_some_and(|url| url.starts_with("https://sandbox.example?auth=")), "{url}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_other_machines_reach_logs_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), "0.0.0.0", &[]).await;
    let log = std::fs::read_to_string(sandbox.log_path()).expect("the log");
    assert!(log.contains("WARN") && log.contains("not loopback"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_host_is_refused_at_the_start() {
    let output = run(stagedoor(&["dev", "--allow-host", "no host"])).await;
    assert!(!output.status.success() && output.stderr.contains("--allow-host no host"), "{}", output.stderr);
    let output = run(stagedoor(&["dev", "--base-url", "sandbox.example"])).await;
    assert!(!output.status.success() && output.stderr.contains("--base-url must be"), "{}", output.stderr);
}

/// `serve` accepts every host name.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_accepts_every_host_name() {
    both(Setup::default(), |world| async move {
        let mut connection = Connection::open(world.address()).await;
        connection.write(b"GET /health/live HTTP/1.1\r\nHost: any.example\r\n\r\n").await;
        assert_eq!(connection.read_response(false).await.map(|answer| answer.status), Some(200));
    })
    .await;
}
