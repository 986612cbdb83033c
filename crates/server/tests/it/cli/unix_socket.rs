//! `serve` on a Unix socket.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use testkit::patiently;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::process::{run, stagedoor};
use super::serving::{command, serve, stop};

/// The answer to a request over a Unix socket.
async fn ask(path: &Path, target: &str) -> String {
    let mut stream = UnixStream::connect(path).await.expect("it listens");
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    patiently("an answer", stream.read_to_string(&mut answer)).await.expect("ended properly");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_serves_what_the_address_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stagedoor.sock");
    // A process that was killed has left its file.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let mut first = command(&folder);
    first.arg("--listen-socket").arg(&path);
    let (child, _) = serve(first, &folder).await;
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let answer = ask(&path, "/health/ready").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("x-request-id: "), "{answer}");
    let answer = ask(&path, "/open/v1/users/me").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");

    let data = folder.path().join("second");
    let text = |path: &Path| path.display().to_string();
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--data", &text(&data), "--listen-socket", &text(&path)];
    let output = run(stagedoor(&arguments)).await;
    assert!(
        !output.status.success() && output.stderr.contains("another process listens"),
        "{}",
        output.stderr
    );
    stop(child).await;
    assert!(!path.exists(), "the file is gone");

    std::fs::write(&path, "not a socket").expect("written");
    let output = run(stagedoor(&arguments)).await;
    assert!(!output.status.success() && output.stderr.contains("no socket"), "{}", output.stderr);
    assert!(!std::fs::metadata(&path).expect("the file stays").file_type().is_socket());
}
