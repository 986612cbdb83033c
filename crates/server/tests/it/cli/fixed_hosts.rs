//! TLS and fixed hosts of a sandbox, and `stagedoor run`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use testkit::patiently;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::cli::process::{CommandOutput, Sandbox, run, stagedoor_in};

const HOSTS: &str = "api.example,auth.example";

/// A sandbox with fixed hosts, whose authority is in the folder.
pub(super) async fn sandbox(folder: &Path, arguments: &[&str]) -> Sandbox {
    let tls = folder.join("tls").display().to_string();
    let mut all = vec!["--tls", "--tls-folder", &tls, "--host", HOSTS];
    all.extend(arguments);
    Sandbox::start(folder, &all).await
}

/// A client that trusts the certificates of a file, and asks for a name.
pub(super) async fn connect(
    sandbox: &Sandbox,
    trusted: &str,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(trusted).expect("a file") {
        let _ = roots.add(certificate.expect("a certificate"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(sandbox.api.address()).await?;
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// The status and the body of the answer to a GET.
async fn get(sandbox: &Sandbox, name: &str, host: &str, target: &str, headers: &str) -> (u16, String) {
    let authority = sandbox.world["tls"]["authority"].as_str().expect("a file");
    let mut stream = connect(sandbox, authority, name).await.expect("the certificate is good");
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    patiently("an answer over TLS", stream.read_to_string(&mut answer)).await.expect("ended properly");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

pub(super) async fn session_url(sandbox: &Sandbox, name: &str, host: &str) -> String {
    let (_, tokens) = sandbox.user(0, "demo");
    let bearer = format!("Authorization: Bearer {}\r\n", tokens.access);
    let (status, body) = get(sandbox, name, host, "/open/v1/sessions/auth", &bearer).await;
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    answer["content"]["url"].as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_url_has_the_origin_that_the_client_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), &[]).await;
    let port = sandbox.api.address().port();
    for (name, host) in [
        ("api.example", "api.example".to_owned()),
        ("api.example", format!("api.example:{port}")),
        ("auth.example", "auth.example:8443".to_owned()),
        ("localhost", format!("localhost:{port}")),
        ("127.0.0.1", format!("127.0.0.1:{port}")),
    ] {
        let url = session_url(&sandbox, name, &host).await;
        assert!(url.starts_with(&format!("https://{host}?auth=")), "{url}");
    }
    // The same port answers plain HTTP.
    let (_, tokens) = sandbox.user(0, "demo");
    let plain = sandbox.api.user_session_url(&tokens.access).await.content()["url"].clone();
    assert!(
        plain.as_str().expect("a text").starts_with(&format!("http://127.0.0.1:{port}?auth=")),
        "{plain}"
    );
    let (status, body) = get(&sandbox, "localhost", "evil.example", "/health/live", "").await;
    assert_eq!(status, 403, "{body}");
    let (status, page) = get(&sandbox, "auth.example", "auth.example", "/account-interlock", "").await;
    assert_eq!(status, 400, "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_works_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path(), &[]).await;
    let url = session_url(&sandbox, "api.example", "api.example").await;
    let query = url.split_once('?').expect("a query").1;
    let bundle = sandbox.world["tls"]["bundle"].as_str().expect("a file");
    let mut stream = connect(&sandbox, bundle, "api.example").await.expect("the bundle has the authority");
    let request = format!(
        "GET /socket.io/?{query}&EIO=3&transport=websocket HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut received = String::new();
    patiently("SYSTEM connected", async {
        while !received.contains("connected") {
            let mut bytes = [0; 1_024];
            let read = stream.read(&mut bytes).await.expect("received");
            assert!(read > 0, "ended after {received}");
            received.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    })
    .await;
    assert!(received.starts_with("HTTP/1.1 101") && received.contains("SYSTEM"), "{received}");
    // A ping of the client: a masked text frame with the packet `2`.
    stream.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'2']).await.expect("sent");
    let mut pong = [0; 3];
    patiently("a pong", stream.read_exact(&mut pong)).await.expect("received");
    assert_eq!(pong, [0x81, 1, b'3']);
    // The end of the sandbox reaches the client.
    sandbox.signal("TERM").await;
    let mut rest = Vec::new();
    patiently("the end", stream.read_to_end(&mut rest)).await.expect("ended properly");
    assert!(rest.contains(&0x88), "a close frame: {rest:?}");
    assert_eq!(sandbox.end().await.0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_kept_and_no_other_name_is_certified() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = sandbox(folder.path(), &[]).await;
    let tls = &first.world["tls"];
    let authority = tls["authority"].as_str().expect("a file");
    let certificate = fs::read_to_string(authority).expect("a file");
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----") && !certificate.contains("PRIVATE"));
    let failed = connect(&first, authority, "other.example").await.expect_err("no certificate for this name");
    assert!(failed.to_string().contains("certificate"), "{failed}");
    let port = first.api.address().port();
    assert_eq!(tls["hosts"][0]["url"], format!("https://api.example:{port}"));
    assert_eq!(tls["hostsLines"], json!(["127.0.0.1 api.example", "127.0.0.1 auth.example"]));
    assert_eq!(tls["environment"]["NODE_EXTRA_CA_CERTS"], authority);
    assert_eq!(tls["environment"]["SSL_CERT_FILE"], tls["bundle"]);
    let second = sandbox(folder.path(), &[]).await;
    assert_eq!(fs::read_to_string(authority).expect("a file"), certificate);
    connect(&second, authority, "api.example").await.expect("signed by the same authority");
    let key = fs::read_to_string(folder.path().join("tls/authority.key")).expect("the key");
    let key = key.lines().nth(1).expect("a line");
    assert!(!first.first_line.contains(key));
    assert!(!fs::read_to_string(first.log_path()).expect("the log").contains(key));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_file_is_written_and_taken_back_also_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hosts");
    let hosts_file = path.display().to_string();
    let before = b"127.0.0.1 localhost\r\n# no newline at the end".as_slice();
    fs::write(&path, before).expect("written");
    let read = || fs::read(&path).expect("the file");
    let text = || String::from_utf8_lossy(&read()).into_owned();

    let arguments = ["--write-hosts", "--hosts-file", &hosts_file];
    let first = sandbox(folder.path(), &arguments).await;
    assert!(text().contains("127.0.0.1 api.example\n127.0.0.1 auth.example\n"), "{}", text());
    assert!(read().ends_with(before));
    first.signal("TERM").await;
    assert_eq!(first.end().await.0.code(), Some(0));
    assert_eq!(read(), before);

    let killed = sandbox(folder.path(), &arguments).await;
    killed.signal("KILL").await;
    killed.end().await;
    assert!(text().contains("api.example"));
    // Any next sandbox takes them back.
    let next = Sandbox::start(folder.path(), &["--hosts-file", &hosts_file]).await;
    assert_eq!(read(), before);
    next.signal("TERM").await;
    next.end().await;
    assert_eq!(read(), before);
}

/// Runs `stagedoor run` without any running sandbox.
async fn run_with(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let mut all = vec!["run"];
    all.extend(arguments);
    let mut command = stagedoor_in(folder, &all);
    command.env("XDG_DATA_HOME", folder.join("data"));
    run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn run_gives_a_command_the_fixed_hosts_and_its_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_stagedoor");
    // Offline it needs no privilege, and nothing but the sandbox answers.
    let own = ["--host", HOSTS, "--offline", "--"];
    let clock = [program, "clock", "--json", "--server", "https://auth.example"];
    let output = run_with(folder.path(), &[&own[..], &clock].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    let shown: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(shown["mode"], "real", "{shown}");

    let script =
        "echo $STAGEDOOR_SERVER; test -f \"$SSL_CERT_FILE\" && test -f \"$NODE_EXTRA_CA_CERTS\" && exit 7";
    let output = run_with(folder.path(), &[&own[..], &["sh", "-c", script]].concat()).await;
    assert_eq!(output.status.code(), Some(7), "{}", output.stderr);
    assert!(output.stdout.starts_with("http://127.0.0.1:"), "{}", output.stdout);
    assert_eq!(output.stderr, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_says_why_a_command_was_not_started() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, code, part) in [
        (&["--", "/no/such/program"][..], 127, "/no/such/program"),
        (&["--", "/"][..], 126, "/: "),
        (&["--", "sh", "-c", "kill -9 $$"][..], 137, ""),
        (&["--server", "http://127.0.0.1:1", "--operator-key", "key", "--", "true"][..], 3, "127.0.0.1:1"),
        (&["--sandbox", "missing", "--", "true"][..], 3, "missing"),
        (&["--sandbox", "missing", "--host", "a.example", "--", "true"][..], 2, "--host"),
        (&["--host", "a b", "--", "true"][..], 2, "--host"),
        (&["--profile", "nosuch", "--", "true"][..], 2, "--profile"),
        (&[][..], 2, "COMMAND"),
    ] {
        let output = run_with(folder.path(), arguments).await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{arguments:?}: {}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_passes_signals_on_and_ends_its_sandbox() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "trap 'echo got it; exit 5' TERM; echo $STAGEDOOR_SERVER; while :; do sleep 0.05; done";
    let mut command = stagedoor_in(folder.path(), &["run", "--", "sh", "-c", script]);
    command.env("XDG_DATA_HOME", folder.path().join("data"));
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut stdout = child.stdout.take().expect("piped");
    let mut line = [0; 64];
    let read = patiently("the command's first line", stdout.read(&mut line)).await.expect("a line");
    let server = String::from_utf8_lossy(&line[..read]).trim().to_owned();
    let address = server.strip_prefix("http://").expect("a URL").to_owned();
    TcpStream::connect(&address).await.expect("the sandbox runs");
    let id = child.id().expect("it runs").to_string();
    tokio::process::Command::new("kill").args(["-TERM", &id]).status().await.expect("kill is there");
    let mut rest = String::new();
    patiently("the rest", stdout.read_to_string(&mut rest)).await.expect("text");
    assert_eq!(rest, "got it\n");
    assert_eq!(patiently("the end", child.wait()).await.expect("a status").code(), Some(5));
    TcpStream::connect(&address).await.expect_err("the sandbox has ended");
}
