//! A node whose database is away at its start waits for it. A wrong configuration ends at once.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use testkit::{Network, Wire, patiently};
use tokio::process::{Child, Command};

use crate::cli::process::{run, stagedoor};
use crate::cli::serving::{KEY, stop};

/// `serve` on this database.
fn command(url: &str) -> Command {
    let mut command = stagedoor(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("STAGEDOOR_OPERATOR_KEY", KEY).env("STAGEDOOR_DATABASE_URL", url);
    command
}

fn start(url: &str, log: &Path) -> Child {
    let mut command = command(url);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(log).expect("a file"));
    command.spawn().expect("the program starts")
}

/// Waits until the log has a text, and returns the log.
async fn until_logged(log: &Path, text: &str) -> String {
    patiently(text, async {
        loop {
            let found = std::fs::read_to_string(log).expect("the log");
            if found.contains(text) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_waits_for_its_database_and_stops_at_once_when_it_is_told_to() {
    let (fresh, folder) = (store::testing::postgres().await, tempfile::tempdir().expect("a folder"));
    let wire = Wire::to(&fresh).await;
    wire.set(Network::Down);
    let log = folder.path().join("log");
    let child = start(&wire.url(), &log);
    until_logged(&log, "waiting for it").await;
    // Several attempts, and one line.
    tokio::time::sleep(Duration::from_secs(2)).await;
    wire.set(Network::Up);
    let text = until_logged(&log, "stagedoor serves").await;
    assert_eq!(
        (text.matches("waiting for it").count(), text.matches("the database answers").count()),
        (1, 1)
    );
    stop(child).await;

    wire.set(Network::Down);
    let second = folder.path().join("second");
    let child = start(&wire.url(), &second);
    until_logged(&second, "waiting for it").await;
    stop(child).await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_and_the_other_commands_do_not_wait() {
    let (fresh, folder) = (store::testing::postgres().await, tempfile::tempdir().expect("a folder"));
    let url = fresh.url().expect("PostgreSQL");
    let name = url.rsplit_once('/').expect("a database").1.split('?').next().expect("a name").to_owned();
    let refused = run(command(&url.replace(&format!("/{name}"), "/missing_database"))).await;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("the database does not exist"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("waiting for it"), "{}", refused.stderr);

    let wire = Wire::to(&fresh).await;
    wire.set(Network::Down);
    let data = folder.path().to_str().expect("a path");
    for arguments in [
        &["backup", "--to", data][..],
        &["doctor", "--deep"],
        &["migrate", "--from", "postgres", "--to", "sqlite", "--data", data],
    ] {
        let mut command = stagedoor(arguments);
        command.env("STAGEDOOR_DATABASE_URL", wire.url());
        let output = run(command).await;
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", output.stderr);
    }
    fresh.remove().await;
}
