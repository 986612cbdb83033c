//! `serve` with HTTPS on its own listener.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use testkit::{Api, Request, Socket, patiently};
use time::OffsetDateTime;
use tls_files::testing::{Holder, TestAuthority, far_future};
use tls_files::{Check, PairFiles, client_config, read_roots, validity};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::process::{run, stagedoor};
use super::serving::{KEY, command, serve, stop};

/// How often the certificate is replaced under load.
const REPLACED: usize = 8;

/// A client that trusts one authority.
#[derive(Clone)]
struct Client {
    server: SocketAddr,
    tls: TlsConnector,
}

impl Client {
    fn new(server: &str, authority: &Path) -> Self {
        let roots = Arc::new(read_roots(authority).expect("an authority"));
        let mut config = client_config(Check::AuthorityAndName(roots), None).expect("a configuration");
        // A resumed session shows the certificate of the first one.
        config.resumption = Resumption::disabled();
        let server = server.trim_start_matches("http://").parse().expect("an address");
        Self { server, tls: TlsConnector::from(Arc::new(config)) }
    }

    async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").expect("a name");
        self.tls.connect(name, TcpStream::connect(self.server).await?).await
    }

    /// When the certificate that the server shows expires.
    async fn expiry(&self) -> i64 {
        let stream = self.connect().await.expect("a handshake");
        let shown = stream.get_ref().1.peer_certificates().expect("a certificate");
        validity(&shown[0]).expect("a certificate").1
    }

    /// An address on loopback from which connections go on over TLS, for clients without it.
    async fn tunnel(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = self.clone();
        tokio::spawn(async move {
            while let Ok((mut plain, _)) = listener.accept().await {
                let client = client.clone();
                tokio::spawn(async move {
                    let mut secure = client.connect().await.expect("a handshake");
                    let _ = copy_bidirectional(&mut plain, &mut secure).await;
                });
            }
        });
        format!("http://{address}")
    }
}

/// The time of a certificate's end, some days after a fixed one.
fn until(days: usize) -> OffsetDateTime {
    far_future() + time::Duration::days(i64::try_from(days).expect("few"))
}

/// `stagedoor serve` with a certificate.
fn https(folder: &tempfile::TempDir, pair: &PairFiles) -> Command {
    let mut command = command(folder);
    command.arg("--tls-certificate").arg(&pair.certificate).arg("--tls-key").arg(&pair.key);
    command.arg("--no-quota").env("STAGEDOOR_OPERATOR_KEY", KEY);
    command
}

/// Everything that a plain connection receives after these bytes.
async fn plain(server: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server).await.expect("connects");
    stream.write_all(request).await.expect("sent");
    let mut answer = String::new();
    patiently("the end", stream.read_to_string(&mut answer)).await.expect("ended properly");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_replaced_under_load_and_no_request_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = TestAuthority::new();
    let roots = authority.write(folder.path(), "ca.pem");
    let issue = |days| authority.issue(Holder::Server("localhost"), until(days));
    let pair = issue(0).write(folder.path(), "own");
    let (child, address) = serve(https(&folder, &pair), &folder).await;
    let client = Client::new(&address, &roots);
    let tunnel = client.tunnel().await;
    let api = Api::new(&tunnel, KEY);
    let app = api.application("bot").create().await;
    let person = api.person("someone").create().await;
    let tokens = api.sign_in(&app, &person).await;

    // The service gives out URLs of its scheme, and its answers demand it.
    let answer = api.user_session_url(&tokens.access).await;
    assert_eq!(answer.header("strict-transport-security"), Some("max-age=15552000"));
    let url = answer.content()["url"].as_str().expect("a text").to_owned();
    let here = address.replace("http://", "https://");
    assert!(url.starts_with(&format!("{here}?auth=")), "{url}");
    let mut socket = Socket::open(&url.replace(&here, &tunnel)).await;
    api.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
    socket.system("subscribed").await;

    // Each task has one connection for each request. The socket hears everything that was answered.
    let (stopped, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut load = JoinSet::new();
    for caller in 0..4 {
        let (api, token) = (Api::new(&tunnel, KEY), tokens.access.clone());
        let (stopped, answered) = (stopped.clone(), answered.clone());
        load.spawn(async move {
            let mut sent = 0;
            while !stopped.load(SeqCst) {
                api.send_chat(&token, &format!("{caller} {sent}")).await.content();
                (sent, _) = (sent + 1, answered.fetch_add(1, SeqCst));
            }
        });
    }
    let log = folder.path().join("log");
    let has_logged =
        |text: &str, times| std::fs::read_to_string(&log).expect("a log").matches(text).count() >= times;
    for round in 1..=REPLACED {
        issue(round).write(folder.path(), "own");
        // Every other time the program that renews certificates sends a signal.
        if round % 2 == 0 {
            let id = child.id().expect("it runs").to_string();
            Command::new("kill").args(["-HUP", &id]).status().await.expect("kill is there");
        }
        let before = answered.load(SeqCst);
        patiently("the new certificate", async {
            while client.expiry().await != until(round).unix_timestamp() || answered.load(SeqCst) < before + 8
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
    // A pair that does not fit leaves the former one in place, and so does an expired certificate.
    let expired = OffsetDateTime::from_unix_timestamp(1_700_000_000).expect("a time");
    for stays in 1..=2 {
        match stays {
            1 => std::fs::write(&pair.key, issue(99).key).expect("written"),
            _ => _ = authority.issue(Holder::Server("localhost"), expired).write(folder.path(), "own"),
        }
        patiently("the log names the pair", async {
            while !has_logged("the former one stays", stays) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
    assert!(has_logged("it has expired at 2023-11-14", 1));
    assert_eq!(client.expiry().await, until(REPLACED).unix_timestamp());
    stopped.store(true, SeqCst);
    while let Some(ended) = load.join_next().await {
        ended.expect("every request was answered");
    }
    for _ in 0..answered.load(SeqCst) {
        socket.event("CHAT").await;
    }
    let metrics = api.operator(Request::get("/metrics")).await;
    let metrics = metrics.text();
    let expires = format!("stagedoor_tls_certificate_expires_seconds {}", until(REPLACED).unix_timestamp());
    assert!(metrics.contains(&expires), "{metrics}");
    assert!(metrics.contains("stagedoor_tls_certificate_failures_total 2"), "{metrics}");

    // A plain HTTP request is answered with 400.
    let refused = plain(client.server, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("HTTPS"), "{refused}");
    stop(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_cannot_be_used_is_refused_at_the_start_and_by_check_config() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = TestAuthority::new();
    let one = authority.issue(Holder::Server("localhost"), far_future()).write(folder.path(), "one");
    let two = authority.issue(Holder::Server("localhost"), far_future()).write(folder.path(), "two");
    std::fs::write(folder.path().join("empty"), "").expect("written");
    let text = |path: &Path| path.display().to_string();
    let (certificate, empty) = (text(&one.certificate), text(&folder.path().join("empty")));
    let data = text(&folder.path().join("data"));
    for (arguments, words) in [
        (vec!["--tls-certificate", &certificate, "--tls-key", &text(&two.key)], "do not fit"),
        (vec!["--tls-certificate", &certificate, "--tls-key", &empty], "no private key"),
        (vec!["--tls-certificate", "/nowhere/a.pem", "--tls-key", &empty], "/nowhere/a.pem"),
        (vec!["--tls-certificate", &certificate], "--tls-key"),
        (
            vec![
                "--tls-certificate",
                &certificate,
                "--tls-key",
                &text(&one.key),
                "--base-url",
                "http://a.example",
            ],
            "https://",
        ),
    ] {
        for command in ["serve", "check-config"] {
            let output = run(stagedoor(&[&[command, "--data", &data], arguments.as_slice()].concat())).await;
            assert!(
                !output.status.success() && output.stderr.contains(words),
                "{command}: {}",
                output.stderr
            );
        }
    }
}
