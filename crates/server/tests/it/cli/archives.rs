//! `stagedoor serve --archive` and `stagedoor restore --at`: what is left when the machine is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::Timestamp;
use serde_json::Value;
use service::Clock;
use store::{Options, Store, StoreError, Target, Tx};
use tempfile::TempDir;
use testkit::{Api, Connection, Request, Tokens, patiently};
use tokio::process::{Child, Command};

use super::process::{CommandOutput, run, stagedoor};
use super::serving::{KEY, serve, stop};

const SERVICE_KEY: &str = "the service key of the store, which is long enough";
const CLIENTS: usize = 4;
/// The longest time that may be lost.
const LOST_MS_MAX: i64 = 10_000;

async fn ended(command: Command, code: i32) -> CommandOutput {
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(code), "{}{}", output.stdout, output.stderr);
    output
}

async fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&ended(stagedoor(arguments), 0).await.stdout).expect("JSON")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn time(value: &Value) -> Timestamp {
    Timestamp::parse_rfc3339(value.as_str().expect("a text")).expect("a time")
}

/// A service with an archive, in folders of its own.
struct Archived {
    folder: TempDir,
}

impl Archived {
    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    async fn start(&self) -> (Child, Api) {
        let (data, archive) = (self.data(), self.archive());
        let mut command =
            stagedoor(&["serve", "--listen", "127.0.0.1:0", "--no-quota", "--drain-delay", "0"]);
        command.args(["--data", text(&data), "--archive", text(&archive), "--archive-every", "1"]);
        command.env("STAGEDOOR_OPERATOR_KEY", KEY).env("STAGEDOOR_SERVICE_KEY", SERVICE_KEY);
        let (child, url) = serve(command, &self.folder).await;
        (child, Api::new(&url, KEY))
    }

    async fn generations(&self) -> Vec<Value> {
        let listed = json(&["backup", "--list", "--json", "--to", text(&self.archive())]).await;
        listed["generations"].as_array().expect("a list").clone()
    }

    /// Waits until there are this many generations, and the last one has a base.
    async fn has_base(&self, generations: usize) {
        patiently("a base", async {
            loop {
                let listed = self.generations().await;
                let last = listed.last().and_then(|last| last["bases"].as_array());
                if listed.len() == generations && last.is_some_and(|bases| !bases.is_empty()) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
    }
}

/// A message that was acknowledged.
struct Sent {
    id: String,
    before: Timestamp,
    acknowledged: Timestamp,
}

/// Sends messages one after another until the server is gone or the flag is set.
async fn talk(api: Api, token: String, stop: Arc<AtomicBool>) -> Vec<Sent> {
    let (clock, mut sent) = (Clock::system(), Vec::new());
    let Some(mut connection) = Connection::try_open(api.address()).await else { return sent };
    let request = Request::post("/open/v1/chats/send").bearer(&token).body(r#"{"message":"남는다"}"#);
    while !stop.load(Ordering::Relaxed) {
        let before = clock.now();
        let Some(answer) = connection.try_send(&request).await else { break };
        let id = answer.content()["messageId"].as_str().expect("an id").to_owned();
        sent.push(Sent { id, before, acknowledged: clock.now() });
    }
    sent
}

async fn message_ids(data: &Path) -> Vec<String> {
    let target = Target::Sqlite { path: data.join("stagedoor.db") };
    let store = Store::open(target, Options::default()).await.expect("the store opens");
    let rows = store.read(async move |tx: &mut Tx| {
        let rows = tx.query("SELECT message_id FROM chat_messages", &[]).await?;
        rows.iter().map(|row| row.get::<String>(0)).collect::<Result<Vec<_>, StoreError>>()
    });
    let ids = rows.await.expect("the messages");
    store.close().await;
    ids
}

/// Checks a restored store against what was acknowledged: each caller's messages are there up to one of them,
/// all that the restore promises, and none that was sent later.
async fn check(data: &Path, restored: &Value, callers: &[Vec<Sent>]) {
    let there: std::collections::BTreeSet<_> = message_ids(data).await.into_iter().collect();
    let (complete, until) = (time(&restored["completeUntil"]), time(&restored["until"]));
    for sent in callers {
        let count = sent.iter().take_while(|sent| there.contains(&sent.id)).count();
        let (kept, lost) = sent.split_at(count);
        assert!(lost.iter().all(|sent| !there.contains(&sent.id)), "a hole between the messages of a caller");
        if let Some(first) = lost.first() {
            assert!(first.acknowledged >= complete, "{:?} was lost, {complete:?}", first.acknowledged);
        }
        assert!(kept.iter().all(|sent| sent.before <= until), "a message of after {until:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_killed_service_is_restored_as_of_any_time() {
    let service = Archived { folder: TempDir::new().expect("a folder") };
    let (mut child, api) = service.start().await;
    let app = api.application("bot").create().await;
    let mut tokens: Vec<Tokens> = Vec::new();
    for client in 0..CLIENTS {
        let person = api.person(&format!("person-{client}")).create().await;
        tokens.push(api.sign_in(&app, &person).await);
    }
    service.has_base(1).await;
    let clock = Clock::system();
    let stop_flag = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = tokens
        .iter()
        .map(|tokens| tokio::spawn(talk(api.of_a_part(), tokens.access.clone(), stop_flag.clone())))
        .collect();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let middle = clock.now();
    tokio::time::sleep(Duration::from_secs(4)).await;
    child.start_kill().expect("killed");
    let killed = clock.now();
    patiently("the program ends", child.wait()).await.expect("a status");
    let mut sent = Vec::new();
    for caller in callers {
        sent.push(caller.await.expect("a caller ends"));
    }
    assert!(sent.iter().all(|sent| sent.len() > 20), "{:?}", sent.iter().map(Vec::len).collect::<Vec<_>>());
    let at_the_kill = service.folder.path().join("at-the-kill");
    std::fs::rename(service.data(), &at_the_kill).expect("moved away");

    let (archive, latest) = (service.archive(), service.folder.path().join("latest"));
    let latest_of = ["restore", text(&archive), "--at", "latest", "--json", "--data"];
    let restored = json(&[&latest_of[..], &[text(&latest)]].concat()).await;
    let complete = time(&restored["completeUntil"]).as_millis();
    assert!(killed.as_millis() - complete <= LOST_MS_MAX, "{restored}, killed at {killed:?}");
    check(&latest, &restored, &sent).await;
    let again = ended(stagedoor(&[&latest_of[..], &[text(&latest)]].concat()), 1).await;
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);

    let (then, at) = (service.folder.path().join("then"), middle.rfc3339());
    let restored = json(&["restore", text(&archive), "--at", &at, "--json", "--data", text(&then)]).await;
    let (complete, until) = (time(&restored["completeUntil"]), time(&restored["until"]));
    assert!(until <= middle && middle.as_millis() - complete.as_millis() <= LOST_MS_MAX, "{restored}");
    check(&then, &restored, &sent).await;
    let proved = json(&["restore", text(&archive), "--at", &at, "--drill", "--json"]).await;
    assert_eq!((&proved["ok"], &proved["until"]), (&Value::Bool(true), &restored["until"]));

    // The machine comes back with its disk: the generation goes on, also after an ordinary stop.
    std::fs::rename(&at_the_kill, service.data()).expect("moved back");
    for _ in 0..2 {
        let (child, api) = service.start().await;
        api.send_chat(&tokens[0].access, "again").await.content();
        stop(child).await;
    }
    assert_eq!(service.generations().await.len(), 1);
    let before = message_ids(&service.data()).await;
    let whole = service.folder.path().join("whole");
    json(&[&latest_of[..], &[text(&whole)]].concat()).await;
    assert_eq!(message_ids(&whole).await.len(), before.len(), "a stop leaves nothing in the spool");

    // A service on a restored file begins a generation. The time before its base is in a hole.
    std::fs::remove_dir_all(service.data()).expect("deleted");
    std::fs::rename(&whole, service.data()).expect("moved");
    let hole = clock.now().rfc3339();
    let (child, _) = service.start().await;
    service.has_base(2).await;
    stop(child).await;
    let part = ended(stagedoor(&["restore", text(&archive), "--at", &hole, "--drill", "--json"]), 4).await;
    assert!(
        part.stderr.contains("the first time after the hole that can be reached is 2"),
        "{}",
        part.stderr
    );
    let part: Value = serde_json::from_str(&part.stdout).expect("JSON");
    assert_eq!((&part["ok"], &part["hole"]["from"]), (&Value::Bool(false), &part["until"]), "{part}");
    let again = part["hole"]["until"].as_str().expect("a time");
    let reached = json(&["restore", text(&archive), "--at", again, "--drill", "--json"]).await;
    assert_eq!((&reached["ok"], &reached["hole"]), (&Value::Bool(true), &Value::Null));

    // Another service is refused there: its data folder may be where a disk was.
    let empty = service.folder.path().join("empty");
    let other = ["serve", "--listen", "127.0.0.1:0", "--data", text(&empty), "--archive", text(&archive)];
    let refused = ended(stagedoor(&other), 1).await;
    assert!(refused.stderr.contains("holds the archive of another store"), "{}", refused.stderr);
    assert_eq!(service.generations().await.len(), 2, "nothing was written there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_away_is_seen_and_goes_on_when_it_is_back() {
    let service = Archived { folder: TempDir::new().expect("a folder") };
    let (child, api) = service.start().await;
    service.has_base(1).await;
    let away = service.folder.path().join("away");
    std::fs::rename(service.archive(), &away).expect("moved away");
    let part = async || {
        let health: Value =
            serde_json::from_str(api.send(Request::get("/health")).await.text()).expect("JSON");
        let parts = health["content"]["parts"].as_array().expect("parts").clone();
        parts.into_iter().find(|part| part["name"] == "archive").expect("the part")
    };
    patiently("the archive is not reached", async {
        while part().await["problem"] != "ARCHIVE_NOT_REACHED" {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    assert!(!service.archive().exists(), "a folder is not made again");
    let metrics = api.operator(Request::get("/metrics")).await.text().to_owned();
    let figure = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name} "))).expect("a line");
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number")
    };
    assert!(
        figure("stagedoor_archive_lag_seconds") > 15.0 && figure("stagedoor_archive_failures_total") > 2.0
    );
    std::fs::rename(&away, service.archive()).expect("moved back");
    patiently("the archive is reached", async {
        while !part().await["problem"].is_null() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    stop(child).await;
    let generations = service.generations().await;
    let stretches = generations[0]["stretches"].as_array().map(Vec::len);
    assert_eq!((generations.len(), stretches), (1, Some(1)), "no hole: {generations:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_of_a_service_that_is_killed_again_and_again_is_whole() {
    const KILLS: u64 = 6;
    let service = Archived { folder: TempDir::new().expect("a folder") };
    let (mut child, mut api) = service.start().await;
    let app = api.application("bot").create().await;
    let person = api.person("person").create().await;
    let token = api.sign_in(&app, &person).await.access;
    service.has_base(1).await;
    let never = Arc::new(AtomicBool::new(false));
    let mut sent = vec![Vec::new()];
    for kill in 1..=KILLS {
        let caller = tokio::spawn(talk(api.of_a_part(), token.clone(), never.clone()));
        // At different places of the seconds in which segments become objects.
        tokio::time::sleep(Duration::from_millis(1_000 + 170 * kill)).await;
        child.start_kill().expect("killed");
        patiently("the program ends", child.wait()).await.expect("a status");
        sent[0].extend(caller.await.expect("the caller ends"));
        (child, api) = service.start().await;
    }
    stop(child).await;
    assert!(sent[0].len() > 20, "{}", sent[0].len());
    let archive = service.archive();
    for (index, at) in sent[0].iter().step_by(sent[0].len() / 8).map(|sent| sent.acknowledged).enumerate() {
        let then = service.folder.path().join(format!("then-{index}"));
        let (place, at) = (text(&archive), at.rfc3339());
        let restored = json(&["restore", place, "--at", &at, "--json", "--data", text(&then)]).await;
        check(&then, &restored, &sent).await;
    }
    let latest = service.folder.path().join("latest");
    json(&["restore", text(&archive), "--at", "latest", "--json", "--data", text(&latest)]).await;
    assert_eq!(message_ids(&latest).await.len(), message_ids(&service.data()).await.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_compares_the_service_key_and_goes_on_beside_what_is_broken() {
    let service = Archived { folder: TempDir::new().expect("a folder") };
    let (child, _) = service.start().await;
    service.has_base(1).await;
    stop(child).await;
    let archive = service.archive();
    let latest = |more: &[&str], key: Option<&str>| {
        let mut command = stagedoor(&[&["restore", text(&archive), "--at", "latest"], more].concat());
        key.map(|key| command.env("STAGEDOOR_SERVICE_KEY", key));
        command
    };
    let wrong = Some("another service key, which is long enough too");
    let place = service.folder.path().join("place");
    for how in [&["--drill"][..], &["--data", text(&place)]] {
        let refused = ended(latest(how, wrong), 1).await;
        assert!(refused.stderr.contains("is not the one of the store"), "{}", refused.stderr);
    }
    assert!(!place.join("stagedoor.db").exists());
    ended(latest(&["--drill"], None), 0).await;
    ended(latest(&["--data", text(&place)], Some(SERVICE_KEY)), 0).await;

    // A second generation, on the restored file. Its base cannot be read any more.
    std::fs::remove_dir_all(service.data()).expect("deleted");
    std::fs::rename(&place, service.data()).expect("moved");
    let (child, _) = service.start().await;
    service.has_base(2).await;
    stop(child).await;
    let generations = service.generations().await;
    let [first, second] = &generations[..] else { panic!("{generations:?}") };
    let second = second["generation"].as_str().expect("a name");
    let bases = archive.join("archive").join(second).join("bases");
    let base = std::fs::read_dir(bases).expect("the bases").next().expect("one").expect("a folder").path();
    std::fs::write(base.join("base.json"), "{").expect("written");
    let skipped = format!("a part of the archive is skipped: archive/{second}/bases/");
    let listed = ended(stagedoor(&["backup", "--list", "--to", text(&archive)]), 0).await;
    assert!(listed.stderr.contains(&skipped) && listed.stdout.lines().count() == 2, "{}", listed.stderr);
    let reached = ended(latest(&["--drill", "--json"], None), 4).await;
    assert!(reached.stderr.contains(&skipped) && reached.stderr.contains("has a hole"), "{}", reached.stderr);
    let value: Value = serde_json::from_str(&reached.stdout).expect("JSON");
    assert_eq!(value["until"], first["until"]);

    // The description of the first one, too: its base says of which store it is.
    let name = first["generation"].as_str().expect("a name");
    std::fs::write(archive.join(format!("archive/generations/{name}.json")), "{").expect("written");
    let reached = ended(latest(&["--drill"], None), 4).await;
    assert!(reached.stderr.contains("does not describe a generation"), "{}", reached.stderr);
    let (child, _) = service.start().await;
    service.has_base(2).await;
    stop(child).await;
    ended(latest(&["--drill"], None), 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_cannot_be_is_refused_in_words() {
    let folder = TempDir::new().expect("a folder");
    let (data, inside) = (folder.path().join("data"), folder.path().join("data/archive"));
    let empty = folder.path().join("empty");
    let database = "postgres://stagedoor@127.0.0.1:1/stagedoor";
    for (arguments, code, words) in [
        (vec!["check-config", "--archive", "/a", "--database-url", database], 2, "archives its own log"),
        (vec!["check-config", "--data", text(&data), "--archive", text(&inside)], 2, "outside of --data"),
        (vec!["check-config", "--archive", "s3://bucket"], 2, "AWS_ACCESS_KEY_ID is missing"),
        (vec!["serve", "--archive", "/a", "--archive-every", "9"], 2, "1..=8"),
        (vec!["restore", text(&empty), "--at", "yesterday"], 2, "2026-11-26T10:00:00Z, or latest"),
        (vec!["restore", text(&empty), "--at", "latest", "--data", text(&data)], 1, "no complete base"),
        (vec!["restore", text(&empty), "--at", "latest", "--database-url", database], 2, "stagedoor migrate"),
    ] {
        let mut command = stagedoor(&arguments);
        command.env_remove("AWS_ACCESS_KEY_ID");
        let output = ended(command, code).await;
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
    assert!(!data.join("stagedoor.db").exists());
}
