//! `stagedoor backup`, `restore` and `migrate`: beside a running service, from one engine to the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use domain::StoreId;
use serde_json::Value;
use store::Target;
use store::testing::{Fresh, postgres};
use tempfile::TempDir;
use tokio::process::Command;

use super::process::{CommandOutput, Sandbox, run, stagedoor};

/// Runs a command to its end, and checks its exit code.
async fn ended(command: Command, code: i32) -> CommandOutput {
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(code), "{}{}", output.stdout, output.stderr);
    output
}

async fn json(command: Command) -> Value {
    serde_json::from_str(&ended(command, 0).await.stdout).expect("JSON")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn database_url(fresh: &Fresh) -> String {
    fresh.url().expect("PostgreSQL")
}

/// A sandbox whose world is kept in `folder`/data.
async fn sandbox(folder: &TempDir) -> (Sandbox, PathBuf) {
    let data = folder.path().join("data");
    let sandbox = Sandbox::start(folder.path(), &["--data", text(&data)]).await;
    (sandbox, data)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_beside_writes_has_every_message_that_was_acknowledged_before() {
    let folder = TempDir::new().expect("a folder");
    let (sandbox, data) = sandbox(&folder).await;
    let app = sandbox.application("demo");
    let (_, tokens) = sandbox.user(0, &app.client_id);
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writer = {
        let (api, token) = (sandbox.api.of_a_part(), tokens.access.clone());
        let (stop, sent) = (stop.clone(), sent.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                if api.send_chat(&token, "under load").await.status == 200 {
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let backups = folder.path().join("backups");
    let mut rows = Vec::new();
    for _ in 0..3 {
        let acknowledged = sent.load(Ordering::Relaxed);
        let taken = json(stagedoor(&[
            "backup",
            "--json",
            "--data",
            text(&data),
            "--to",
            text(&backups),
            "--keep",
            "2",
        ]))
        .await;
        let manifest = Path::new(taken["backup"].as_str().expect("a folder")).join("manifest.json");
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(manifest).expect("a manifest")).expect("JSON");
        let tables = manifest["tables"].as_array().expect("tables");
        let chat = tables.iter().find(|table| table["table"] == "chat_messages").expect("the table");
        let found = chat["rows"].as_u64().expect("a number") as usize;
        assert!(found >= acknowledged, "{found} of {acknowledged} acknowledged messages");
        rows.push(found);
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.expect("the writer ends");
    assert!(sent.load(Ordering::Relaxed) > 0, "the service answers beside the backups");
    let listed = json(stagedoor(&["backup", "--list", "--json", "--to", text(&backups)])).await;
    assert_eq!(listed["backups"].as_array().map(Vec::len), Some(2), "{listed}");

    // The machine's folder is gone; the drill proves the backup, and a service starts on it.
    drop(sandbox);
    std::fs::remove_dir_all(&data).expect("deleted");
    let proved = json(stagedoor(&["restore", text(&backups), "--drill", "--json"])).await;
    assert_eq!(proved["ok"], true);
    let names: Vec<_> = std::fs::read_dir(&backups).expect("the folder").collect();
    assert_eq!(names.len(), 3, "two backups and the lock: the drill leaves nothing");
    ended(stagedoor(&["restore", text(&backups), "--data", text(&data)]), 0).await;
    let again = ended(stagedoor(&["restore", text(&backups), "--data", text(&data)]), 1).await;
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_backup_is_recorded_for_the_service() {
    let folder = TempDir::new().expect("a folder");
    let (sandbox, data) = sandbox(&folder).await;
    let backups = folder.path().join("backups");
    let taken = json(stagedoor(&["backup", "--json", "--data", text(&data), "--to", text(&backups)])).await;
    let recorded = std::fs::read_to_string(data.join("last-backup")).expect("a file");
    let expected = [taken["takenAt"].as_str(), taken["storeId"].as_str()].map(|text| text.expect("a text"));
    assert_eq!(recorded.trim_end().split(' ').collect::<Vec<_>>(), expected);
    drop(sandbox);

    let fresh = store::testing::migrated_postgres(None).await;
    let others = folder.path().join("backups-of-the-other-store");
    let mut backup = stagedoor(&["backup", "--json", "--to", text(&others)]);
    backup.env("STAGEDOOR_DATABASE_URL", database_url(&fresh));
    let taken = json(backup).await;
    let store = fresh.open(store::Options::default()).await;
    let recorded = store
        .measure(&StoreId::stored("of the database".to_owned()))
        .await
        .expect("it is measured")
        .last_backup
        .expect("a time");
    assert_eq!(Some(recorded.rfc3339().as_str()), taken["takenAt"].as_str());
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_store_that_refuses_connections_is_told_within_seconds() {
    let folder = TempDir::new().expect("a folder");
    let (sandbox, data) = sandbox(&folder).await;
    let port = testkit::ReservedPort::take();
    let endpoint = format!("http://{}", port.address());
    let mut backup =
        stagedoor(&["backup", "--data", text(&data), "--to", "s3://bucket/a", "--s3-endpoint", &endpoint]);
    backup.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    let output = tokio::time::timeout(std::time::Duration::from_secs(15), ended(backup, 1)).await;
    let output = output.expect("an answer within 15 s");
    assert!(output.stderr.contains("the object store: 127.0.0.1"), "{}", output.stderr);
    assert!(!data.join("last-backup").exists(), "no backup was taken");
    drop(sandbox);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_backup_is_refused_and_changes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let (sandbox, data) = sandbox(&folder).await;
    let backups = folder.path().join("backups");
    let taken = json(stagedoor(&["backup", "--json", "--data", text(&data), "--to", text(&backups)])).await;
    drop(sandbox);
    let file = Path::new(taken["backup"].as_str().expect("a folder")).join("stagedoor.db");
    let mut bytes = std::fs::read(&file).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let place = folder.path().join("place");
    for arguments in
        [vec!["restore", text(&backups), "--drill"], vec!["restore", text(&backups), "--data", text(&place)]]
    {
        let output = ended(stagedoor(&arguments), 1).await;
        assert!(output.stderr.contains("stagedoor.db is damaged"), "{}", output.stderr);
    }
    let left: Vec<_> = std::fs::read_dir(&place).map(|names| names.collect()).unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
    for (arguments, code, word) in [
        (vec!["restore", "/nowhere"], 1, "is not there"),
        (vec!["backup", "--data", "/nowhere", "--to", text(&place)], 1, "cannot open /nowhere"),
        (vec!["migrate", "--from", "sqlite", "--to", "postgres"], 2, "--database-url is missing"),
    ] {
        let output = ended(stagedoor(&arguments), code).await;
        assert!(output.stderr.contains(word), "{}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_world_moves_to_postgresql_and_back_with_every_row() {
    let folder = TempDir::new().expect("a folder");
    let (sandbox, data) = sandbox(&folder).await;
    let database = postgres().await;
    let Target::Postgres { .. } = database.target() else { panic!("PostgreSQL") };
    let url = database_url(&database);
    let migrate = |from: &str, to: &str, data: &Path| {
        let mut command = stagedoor(&["migrate", "--json", "--from", from, "--to", to, "--data", text(data)]);
        command.env("STAGEDOOR_DATABASE_URL", &url);
        command
    };
    let running = ended(migrate("sqlite", "postgres", &data), 1).await;
    assert!(running.stderr.contains("in use"), "{}", running.stderr);
    sandbox.signal("TERM").await;
    let (stopped, log) = sandbox.end().await;
    assert!(stopped.success(), "{log}");
    let there = json(migrate("sqlite", "postgres", &data)).await;
    let again = ended(migrate("sqlite", "postgres", &data), 1).await;
    assert!(again.stderr.contains("has a store already"), "{}", again.stderr);

    // A backup of either engine has the same checksums, and is restored to either.
    let backups = folder.path().join("backups");
    let mut backup = stagedoor(&["backup", "--to", text(&backups)]);
    backup.env("STAGEDOOR_DATABASE_URL", &url);
    ended(backup, 0).await;
    ended(stagedoor(&["restore", text(&backups), "--drill"]), 0).await;
    let other = postgres().await;
    let mut restore = stagedoor(&["restore", text(&backups)]);
    restore.env("STAGEDOOR_DATABASE_URL", database_url(&other));
    ended(restore, 0).await;

    let home = folder.path().join("home");
    let back = json(migrate("postgres", "sqlite", &home)).await;
    assert_eq!(there["tables"], back["tables"]);
    for fresh in [database, other] {
        fresh.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deep_doctor_names_what_contradicts_a_sentence_and_how_to_mend_it() {
    let folder = TempDir::new().expect("a folder");
    let (sandbox, data) = sandbox(&folder).await;
    let deep = || stagedoor(&["doctor", "--deep", "--json", "--data", text(&data)]);
    let good = json(deep()).await;
    assert_eq!(good["ok"], true, "{good}");
    sandbox.signal("TERM").await;
    sandbox.end().await;
    let file = data.join("stagedoor.db");
    let store = store::Store::open(Target::Sqlite { path: file }, store::Options::default()).await;
    let store = store.expect("the store opens");
    let broken = store.write(async move |tx: &mut store::Tx| {
        for sql in [
            "UPDATE channels SET follower_count = follower_count + 1",
            "DELETE FROM refresh_tokens",
            "UPDATE list_blocks SET items = items + 1 WHERE list = 'FOLLOWERS' AND level = 2",
            "UPDATE reward_claims SET fulfillment_state = 'nothing'",
        ] {
            tx.execute(sql, &[]).await?;
        }
        Ok::<_, store::StoreError>(())
    });
    broken.await.expect("the store is broken");
    store.close().await;
    let output = ended(deep(), 1).await;
    for name in ["follower-counts", "token-families", "list-counts"] {
        assert!(output.stderr.contains(name), "{}", output.stderr);
    }
    let findings: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let sentences = findings["sentences"].as_array().expect("sentences");
    let counts = sentences.iter().find(|found| found["name"] == "follower-counts").expect("the sentence");
    assert!(counts["mend"].as_str().is_some_and(|mend| mend.contains("UPDATE channels")), "{counts}");
    assert!(counts["contradictions"][0].is_string(), "{counts}");
    let text = ended(stagedoor(&["doctor", "--deep", "--data", text(&data)]), 1).await.stdout;
    let mend = text.lines().find(|line| line.contains("UPDATE channels")).expect("the mend");
    assert!(mend.ends_with("= channels.channel_id)"), "{mend}");
    let both = ended(stagedoor(&["doctor", "--deep", "--", "true"]), 2).await;
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}
