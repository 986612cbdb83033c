//! `stagedoor backup` and `stagedoor migrate` that are killed, and two restores into one folder.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use store::testing::postgres;
use store::{Options, Store, StoreError, Target, Tx};
use tempfile::TempDir;
use testkit::patiently;
use tokio::process::Command;

use super::process::{run, stagedoor};

/// So many messages that copying them takes a while.
const MESSAGES: i64 = 60_000;

const FILL: &str = "
    INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 60000)
    SELECT printf('m%08d', n), 'channel', 'channel', 'a message of some length, number ' || n, '{}', n FROM numbers";

const COUNT: &str = "SELECT COUNT(*) FROM chat_messages";

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A folder with a store of many messages.
async fn filled(folder: &TempDir) -> PathBuf {
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let store = open(Target::Sqlite { path: data.join("stagedoor.db") }).await.expect("it opens");
    let filled = store.write(async move |tx: &mut Tx| tx.execute(FILL, &[]).await).await;
    assert_eq!(filled, Ok::<_, StoreError>(MESSAGES as u64));
    store.close().await;
    data
}

/// Whether a copy into this database has begun: then no store can be opened on it, not even one without
/// tables.
async fn has_begun(target: Target) -> bool {
    match Store::open(target, Options { migrations: &[], ..Options::default() }).await {
        Ok(store) => {
            store.close().await;
            false
        }
        Err(_) => true,
    }
}

async fn open(target: Target) -> Result<Store, StoreError> {
    let options = Options { deadline: Duration::from_secs(60), ..Options::default() };
    Store::open(target, options).await
}

async fn messages_in(target: Target) -> i64 {
    let store = open(target).await.expect("it opens");
    let count = store.read(async move |tx: &mut Tx| tx.query_one(COUNT, &[]).await?.get::<i64>(0)).await;
    store.close().await;
    count.map_err(|error: StoreError| error).expect("a number")
}

/// Starts a command, and kills it after this time. Returns whether it was still running.
async fn killed_after(mut command: Command, time: Duration) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    if let Ok(ended) = tokio::time::timeout(time, child.wait()).await {
        assert!(ended.expect("its status").success(), "it failed before it was killed");
        return false;
    }
    child.kill().await.expect("it is killed");
    true
}

async fn listed(backups: &Path) -> Vec<Value> {
    let output = run(stagedoor(&["backup", "--list", "--json", "--to", text(backups)])).await;
    let listed: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    listed["backups"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_killed_is_never_taken_as_whole_and_the_next_one_is() {
    let folder = TempDir::new().expect("a folder");
    let (data, backups) = (filled(&folder).await, folder.path().join("backups"));
    std::fs::create_dir(&backups).expect("a folder");
    let backup = || stagedoor(&["backup", "--data", text(&data), "--to", text(&backups)]);
    let (mut kills, mut whole) = (0, 0);
    for step in 1..=6_u64 {
        match killed_after(backup(), Duration::from_millis(step * step * 30)).await {
            true => kills += 1,
            false => whole += 1,
        }
        let found = listed(&backups).await.len();
        // A command that was killed after its backup was whole has taken one.
        assert!(whole <= found && found <= whole + kills, "{found} backups, {whole} whole, {kills} killed");
        if found > 0 {
            let drill = run(stagedoor(&["restore", text(&backups), "--drill"])).await;
            assert!(drill.status.success(), "{}", drill.stderr);
        }
    }
    assert!(kills > 0, "the copy takes longer than the first kill");
    let last = run(backup()).await;
    assert!(last.status.success(), "{}", last.stderr);
    let place = folder.path().join("place");
    let restored = run(stagedoor(&["restore", text(&backups), "--data", text(&place)])).await;
    assert!(restored.status.success(), "{}", restored.stderr);
    assert_eq!(messages_in(Target::Sqlite { path: place.join("stagedoor.db") }).await, MESSAGES);
}

/// Whether a temporary folder of a drill is within this one.
fn is_used(work: &Path) -> bool {
    let mut names =
        std::fs::read_dir(work).expect("the folder").map(|entry| entry.expect("a name").file_name());
    names.any(|name| name.to_string_lossy().starts_with(backup::WORK_PREFIX))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_killed_drill_is_deleted_by_the_next_one() {
    let folder = TempDir::new().expect("a folder");
    let (data, backups) = (filled(&folder).await, folder.path().join("backups"));
    let taken = run(stagedoor(&["backup", "--data", text(&data), "--to", text(&backups)])).await;
    assert!(taken.status.success(), "{}", taken.stderr);
    let work = folder.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    let drill = || stagedoor(&["restore", text(&backups), "--drill", "--work", text(&work)]);
    patiently("a drill is killed in the middle", async {
        let mut time = Duration::ZERO;
        while !is_used(&work) {
            time += Duration::from_millis(20);
            killed_after(drill(), time).await;
        }
    })
    .await;
    let last = run(drill()).await;
    assert!(last.status.success(), "{}", last.stderr);
    assert!(!is_used(&work), "the folder of the killed drill is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_was_killed_goes_on_and_ends_with_every_row_once() {
    let folder = TempDir::new().expect("a folder");
    let data = filled(&folder).await;
    let database = postgres().await;
    let url = database.url().expect("PostgreSQL");
    let migrate = || {
        let mut command =
            stagedoor(&["migrate", "--json", "--from", "sqlite", "--to", "postgres", "--data", text(&data)]);
        command.env("STAGEDOOR_DATABASE_URL", &url);
        command
    };
    let mut kills = 0;
    for step in 0..3_u64 {
        let mut command = migrate();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        while !has_begun(database.target()).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if tokio::time::timeout(Duration::from_millis(100 + step * 300), child.wait()).await.is_ok() {
            break;
        }
        child.kill().await.expect("it is killed");
        kills += 1;
        let opened = open(database.target()).await.map(drop);
        assert!(
            matches!(opened, Err(StoreError::Open(_))),
            "no node starts on a part of a store: {opened:?}"
        );
    }
    assert!(kills > 0, "the move takes longer than the first kill");
    let output = run(migrate()).await;
    let moved: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    let tables = moved["tables"].as_array().expect("tables");
    let chat = tables.iter().find(|table| table["table"] == "chat_messages").expect("the table");
    assert_eq!(chat["rows"], MESSAGES, "{chat}");
    assert_eq!(messages_in(database.target()).await, MESSAGES);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_restores_into_one_folder_one_wins_and_the_other_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let (data, backups) = (filled(&folder).await, folder.path().join("backups"));
    let taken = run(stagedoor(&["backup", "--data", text(&data), "--to", text(&backups)])).await;
    assert!(taken.status.success(), "{}", taken.stderr);
    for round in 0..3 {
        let place = folder.path().join(format!("place-{round}"));
        let restore = || run(stagedoor(&["restore", text(&backups), "--data", text(&place)]));
        let (one, other) = tokio::join!(restore(), restore());
        let (winner, loser) = if one.status.success() { (one, other) } else { (other, one) };
        assert!(winner.status.success(), "{}{}", winner.stderr, loser.stderr);
        assert_eq!(loser.status.code(), Some(1), "{}", loser.stderr);
        assert!(!loser.stderr.contains("panicked"), "{}", loser.stderr);
        assert_eq!(messages_in(Target::Sqlite { path: place.join("stagedoor.db") }).await, MESSAGES);
        let names =
            std::fs::read_dir(&place).expect("the folder").map(|name| name.expect("a name").file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.starts_with("stagedoor.db"));
        assert!(names.iter().all(|name| name.ends_with("lock")), "nothing else is left: {names:?}");
        std::fs::remove_dir_all(&place).expect("deleted");
    }
}
