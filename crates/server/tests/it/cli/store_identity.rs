//! A store has an id and a service key: backups, restores and starts that meet another one are refused.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use store::testing::{Fresh, postgres};
use store::{Options, Store, Target, Tx};
use tempfile::TempDir;
use testkit::{Api, patiently};
use tokio::process::{Child, Command};

use super::process::{CommandOutput, run, stagedoor};
use super::serving::{KEY, serve, stop};

const A: &str = "the first service key, which is long enough";
const B: &str = "the next service key, which is long enough too";

/// A service whose store is in a folder or in a database.
struct Operated {
    folder: TempDir,
    database: Option<Fresh>,
}

impl Operated {
    fn in_a_folder() -> Self {
        Self { folder: TempDir::new().expect("a folder"), database: None }
    }

    /// One on each engine.
    async fn each() -> [Self; 2] {
        let database = Some(postgres().await);
        [Self::in_a_folder(), Self { database, ..Self::in_a_folder() }]
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    fn target(&self) -> Target {
        let file = || Target::Sqlite { path: self.data().join("stagedoor.db") };
        self.database.as_ref().map_or_else(file, Fresh::target)
    }

    /// A command on the store.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = stagedoor(arguments);
        match &self.database {
            Some(database) => command.env("STAGEDOOR_DATABASE_URL", database.url().expect("PostgreSQL")),
            None => command.env("STAGEDOOR_DATA", self.data()),
        };
        command
    }

    fn serve_command(&self, keys: &[(&str, &str)]) -> Command {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--drain-delay", "0"]);
        command.env("STAGEDOOR_OPERATOR_KEY", KEY);
        keys.iter().for_each(|(name, key)| _ = command.env(name, key));
        command
    }

    async fn start(&self, keys: &[(&str, &str)]) -> (Child, Api) {
        let (child, url) = serve(self.serve_command(keys), &self.folder).await;
        (child, Api::new(&url, KEY))
    }

    async fn start_and_stop(&self, keys: &[(&str, &str)]) {
        let (child, _) = self.start(keys).await;
        stop(child).await;
    }

    async fn refused(&self, keys: &[(&str, &str)], words: &str) {
        let output = ended(self.serve_command(keys), 1).await;
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }

    /// Waits for a line of the log.
    async fn logs(&self, words: &str) {
        let log = self.folder.path().join("log");
        patiently("a line of the log", async {
            while !std::fs::read_to_string(&log).expect("the log").contains(words) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    async fn back_up(&self, options: &[&str]) -> Value {
        let mut command = self.command(&["backup", "--json", "--to", text(&self.backups())]);
        command.args(options);
        serde_json::from_str(&ended(command, 0).await.stdout).expect("JSON")
    }

    async fn change(&self, sql: &'static str) {
        let store = Store::open(self.target(), Options::default()).await.expect("the store opens");
        let changed = store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await);
        changed.await.expect("the store is changed");
        store.close().await;
    }

    async fn remove(self) {
        if let Some(database) = self.database {
            database.remove().await;
        }
    }
}

async fn ended(command: Command, code: i32) -> CommandOutput {
    let output = run(command).await;
    assert_eq!(output.status.code(), Some(code), "{}{}", output.stdout, output.stderr);
    output
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let names = entries.map(|entry| entry.expect("a name").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<_> = names.filter(|name| name.starts_with("stagedoor-")).collect();
    names.sort();
    names
}

fn own(key: &str) -> (&'static str, &str) {
    ("STAGEDOOR_SERVICE_KEY", key)
}

fn other(key: &str) -> (&'static str, &str) {
    ("STAGEDOOR_OTHER_SERVICE_KEY", key)
}

/// Makes a streamer with a stream key, and gives the token and the key.
async fn seal(api: &Api) -> (String, String) {
    let app = api.application("bot").create().await;
    let person = api.person("someone").create().await;
    let token = api.sign_in(&app, &person).await.access;
    let key = stream_key(api, &token).await;
    (token, key)
}

async fn stream_key(api: &Api, token: &str) -> String {
    api.stream_key(token).await.content()["streamKey"].as_str().expect("a key").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_service_key_is_refused_and_the_key_can_be_changed() {
    const WRONG: &str = "the service key is not the one of this store";
    for service in Operated::each().await {
        let (child, api) = service.start(&[own(A)]).await;
        let (token, key) = seal(&api).await;
        stop(child).await;
        service.refused(&[own(B)], WRONG).await;
        // Without a service key the operator key is it.
        service.refused(&[], WRONG).await;
        let mut keyless = service.serve_command(&[]);
        keyless.env_remove("STAGEDOOR_OPERATOR_KEY");
        assert!(ended(keyless, 1).await.stderr.contains("and none is given"));

        let (child, api) = service.start(&[own(A), other(B)]).await;
        service.logs("the other service key has sealed nothing in this store yet").await;
        assert_eq!(stream_key(&api, &token).await, key);
        // On PostgreSQL the next step begins on one node beside the others.
        if service.database.is_none() {
            stop(child).await;
            let (child, _) = service.start(&[own(B), other(A)]).await;
            service.logs("no secret needs the other service key").await;
            stop(child).await;
        } else {
            let (next, api) = service.start(&[own(B), other(A)]).await;
            service.logs("no secret needs the other service key").await;
            assert_eq!(stream_key(&api, &token).await, key);
            stop(child).await;
            stop(next).await;
        }
        service.refused(&[own(A)], WRONG).await;
        let (child, api) = service.start(&[own(B)]).await;
        assert_eq!(stream_key(&api, &token).await, key);

        let doctor = |key| {
            let mut command = service.command(&["doctor", "--deep"]);
            command.env("STAGEDOOR_SERVICE_KEY", key);
            command
        };
        ended(doctor(B), 0).await;
        let found = ended(doctor(A), 1).await;
        assert!(found.stderr.contains("not true of this store: service-key"), "{}", found.stderr);

        let taken = service.back_up(&[]).await;
        let restore = |key: Option<&str>, place: &str| {
            let mut command = stagedoor(&["restore", taken["backup"].as_str().expect("a folder")]);
            command.env("STAGEDOOR_DATA", service.folder.path().join(place));
            key.map(|key| command.env("STAGEDOOR_SERVICE_KEY", key));
            command
        };
        let wrong = ended(restore(Some(A), "wrong"), 1).await;
        assert!(wrong.stderr.contains("the service key is not the one of the store"), "{}", wrong.stderr);
        assert!(!service.folder.path().join("wrong").exists());
        ended(restore(Some(B), "right"), 0).await;
        ended(restore(None, "unknown"), 0).await;
        stop(child).await;

        // A key that is lost is replaced, once.
        let mut lost = service.serve_command(&[own(A)]);
        lost.arg("--service-key-lost");
        let (child, _) = serve(lost, &service.folder).await;
        service.logs("leave out --service-key-lost now").await;
        stop(child).await;
        service.refused(&[own(B)], WRONG).await;
        service.start_and_stop(&[own(A)]).await;
        service.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_on_an_older_store_takes_no_key_that_opens_nothing() {
    for service in Operated::each().await {
        let (child, api) = service.start(&[own(A)]).await;
        seal(&api).await;
        stop(child).await;
        let forget = "UPDATE store_identity SET key_test = NULL, former_key_test = NULL";
        service.change(forget).await;
        service.refused(&[own(B)], "the service key is not the one of this store").await;
        // In the middle of a change what is sealed decides.
        let (child, _) = service.start(&[own(B), other(A)]).await;
        service.logs("no secret needs the other service key").await;
        stop(child).await;
        service.start_and_stop(&[own(B)]).await;
        service.change(forget).await;
        service.start_and_stop(&[own(B)]).await;
        service.refused(&[own(A)], "the service key is not the one of this store").await;
        service.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_place_does_not_displace_the_backups_of_a_store() {
    let (mut before, mut empty) = (Operated::each().await, Operated::each().await);
    for (before, empty) in before.iter_mut().zip(empty.iter_mut()) {
        let (child, api) = before.start(&[]).await;
        seal(&api).await;
        let first = before.back_up(&["--keep", "2"]).await;
        before.back_up(&["--keep", "2"]).await;
        stop(child).await;
        let kept = names(&before.backups());

        // A unit with this option does not serve an empty place, which an unmounted disk looks like.
        let existing = |code: i32, option: &'static [&'static str]| {
            let mut command = empty.serve_command(&[]);
            command.args(option);
            ended(command, code)
        };
        let code = if empty.database.is_some() { 1 } else { 2 };
        let output = existing(code, &["--existing"]).await;
        assert!(
            output.stderr.contains("--existing says that the store was made before"),
            "{}",
            output.stderr
        );
        let mut by_variable = empty.serve_command(&[]);
        by_variable.env("STAGEDOOR_EXISTING", "true");
        ended(by_variable, code).await;
        assert!(!empty.data().exists(), "nothing is made");

        // The hourly backup of an empty store.
        empty.start_and_stop(&[]).await;
        let hourly = |options: &[&str]| {
            let mut command = empty.command(&["backup", "--to", text(&before.backups()), "--keep", "2"]);
            command.args(options);
            command
        };
        for _ in 0..3 {
            let refused = ended(hourly(&[]), 1).await;
            assert!(refused.stderr.contains("has backups of another store"), "{}", refused.stderr);
            assert_eq!(names(&before.backups()), kept);
        }
        // What is meant is done, and the other store keeps all of its own.
        ended(hourly(&["--other-store"]), 0).await;
        for _ in 0..2 {
            ended(hourly(&[]), 0).await;
        }
        let left = names(&before.backups());
        assert!(left.len() == 4 && kept.iter().all(|name| left.contains(name)), "{left:?}");
        let place = before.folder.path().join("restored");
        let restore = |what: &str, options: &[&str]| {
            let mut command = stagedoor(&["restore", what, "--data", text(&place)]);
            command.args(options);
            command
        };
        let folder = before.backups();
        let refused = ended(restore(text(&folder), &[]), 1).await;
        assert!(refused.stderr.contains("backups of 2 stores"), "{}", refused.stderr);
        ended(restore(text(&folder), &["--drill"]), 0).await;
        ended(restore(first["backup"].as_str().expect("a folder"), &[]), 0).await;
        let again = ended(restore(text(&folder), &["--other-store"]), 1).await;
        assert!(again.stderr.contains("is there already"), "a store is never replaced: {}", again.stderr);
        let listed = ended(stagedoor(&["backup", "--list", "--json", "--to", text(&folder)]), 0).await;
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        assert_eq!(listed["backups"][0]["storeId"], first["storeId"]);
        assert_ne!(listed["backups"][3]["storeId"], first["storeId"]);
    }
    for service in before.into_iter().chain(empty) {
        service.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marker_makes_each_start_but_the_first_one_of_an_existing_store() {
    for mut service in Operated::each().await {
        let marker = service.folder.path().join("marker");
        let marked = |service: &Operated| {
            let mut command = service.serve_command(&[]);
            command.env("STAGEDOOR_EXISTING_MARKER", &marker);
            command
        };
        for _ in 0..2 {
            let (child, _) = serve(marked(&service), &service.folder).await;
            stop(child).await;
            assert!(marker.exists());
        }
        let code = match service.database.take() {
            Some(database) => {
                database.remove().await;
                service.database = Some(postgres().await);
                1
            }
            None => {
                // The folder is there, as the place of a disk that is not mounted.
                std::fs::remove_dir_all(service.data()).expect("deleted");
                std::fs::create_dir(service.data()).expect("made");
                2
            }
        };
        let output = ended(marked(&service), code).await;
        assert!(output.stderr.contains("says that the store was made before"), "{}", output.stderr);
        assert!(output.stderr.contains(&format!("delete {}", marker.display())), "{}", output.stderr);
        std::fs::remove_file(&marker).expect("deleted");
        let (child, _) = serve(marked(&service), &service.folder).await;
        stop(child).await;
        service.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_an_interrupted_restore_is_not_served() {
    let service = Operated::in_a_folder();
    std::fs::create_dir(service.data()).expect("made");
    for (left, has_store) in
        [("stagedoor.db.partial", false), ("stagedoor.db.restoring", false), ("stagedoor.db.restoring", true)]
    {
        if has_store {
            service.start_and_stop(&[]).await;
        }
        let left = service.data().join(left);
        std::fs::write(&left, "").expect("written");
        let output = ended(service.serve_command(&[]), 2).await;
        for words in ["was interrupted, and has left", "call it again", &format!("delete {}", left.display())]
        {
            assert!(output.stderr.contains(words), "{}", output.stderr);
        }
        std::fs::remove_file(&left).expect("deleted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_backup_is_skipped_and_blocks_nothing() {
    let service = Operated::in_a_folder();
    service.start_and_stop(&[]).await;
    let folder = service.backups();
    for _ in 0..4 {
        service.back_up(&[]).await;
    }
    let made = names(&folder);
    let manifest = |name: &str| folder.join(name).join("manifest.json");
    let good = std::fs::read(manifest(&made[0])).expect("a manifest");
    std::fs::write(manifest(&made[0]), &good[..good.len() / 2]).expect("truncated");
    std::fs::write(folder.join(&made[1]).join("stagedoor.db"), "").expect("truncated");
    let skipped = |output: &CommandOutput| {
        for (name, file) in [(&made[0], "manifest.json"), (&made[1], "stagedoor.db")] {
            let path = folder.join(name).join(file);
            assert!(
                output.stderr.contains(&format!("a backup is skipped: {}", path.display())),
                "{}",
                output.stderr
            );
        }
    };
    let listed = ended(stagedoor(&["backup", "--list", "--to", text(&folder)]), 0).await;
    skipped(&listed);
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    skipped(&ended(stagedoor(&["restore", text(&folder), "--drill"]), 0).await);
    let taken = ended(service.command(&["backup", "--to", text(&folder), "--keep", "2"]), 0).await;
    skipped(&taken);
    let left = names(&folder);
    assert_eq!(left[..3], [made[0].clone(), made[1].clone(), made[3].clone()], "broken ones do not count");
    assert_eq!(left.len(), 4);

    // The newest one is what a restore of the folder would use.
    std::fs::remove_file(folder.join(&left[3]).join("stagedoor.db")).expect("deleted");
    let place = service.folder.path().join("place");
    let refused = ended(stagedoor(&["restore", text(&folder), "--data", text(&place)]), 1).await;
    assert!(refused.stderr.contains("stagedoor.db is missing. The one before it is"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&made[3]) && !place.exists(), "{}", refused.stderr);
    ended(stagedoor(&["restore", text(&folder.join(&made[3])), "--data", text(&place)]), 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_are_kept_by_number_by_day_and_by_week() {
    let service = Operated::in_a_folder();
    service.start_and_stop(&[]).await;
    let folder = service.backups();
    for _ in 0..6 {
        service.back_up(&[]).await;
    }
    // From some years ago: two of one day, one of the day before, and one of each week before.
    let taken =
        ["2020-01-01T10:00:00Z", "2020-01-08T10:00:00Z", "2020-01-15T10:00:00Z", "2020-01-21T10:00:00Z"];
    let taken = taken.into_iter().chain(["2020-01-22T10:00:00Z", "2020-01-22T11:00:00Z"]);
    let made = names(&folder);
    for (name, taken_at) in made.iter().zip(taken) {
        edit(&folder.join(name).join("manifest.json"), |manifest| manifest["takenAt"] = taken_at.into());
    }
    let kept = service.back_up(&["--keep", "1", "--keep-daily", "3", "--keep-weekly", "4"]).await;
    assert_eq!(kept["deleted"], 2);
    let left = names(&folder);
    // Today, the 22nd and the 21st by day; today, the 22nd, the 15th and the 8th by week.
    assert_eq!(left[..4], [made[1].clone(), made[2].clone(), made[3].clone(), made[5].clone()]);
    assert_eq!(left.len(), 5);
}

fn edit(manifest: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value =
        serde_json::from_slice(&std::fs::read(manifest).expect("a manifest")).expect("JSON");
    change(&mut value);
    std::fs::write(manifest, value.to_string()).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_counts_what_it_writes() {
    let [folder, database] = Operated::each().await;
    let (child, api) = folder.start(&[]).await;
    seal(&api).await;
    stop(child).await;
    let taken = folder.back_up(&[]).await;
    let backup = PathBuf::from(taken["backup"].as_str().expect("a folder"));
    let restored = |service: &Operated, place: &str| {
        let mut command = service.command(&["restore", "--json", text(&backup)]);
        if service.database.is_none() {
            command.env("STAGEDOOR_DATA", service.folder.path().join(place));
        }
        command
    };
    let good = ended(restored(&folder, "good"), 0).await;
    let good: Value = serde_json::from_str(&good.stdout).expect("JSON");
    assert_eq!(good["rows"], taken["rows"]);

    // Rows are taken away, and the manifest says the bytes of the rest.
    let file = backup.join("stagedoor.db");
    let store =
        Store::open(Target::Sqlite { path: file.clone() }, Options::default()).await.expect("it opens");
    let deleted = store.write(async move |tx: &mut Tx| tx.execute("DELETE FROM refresh_tokens", &[]).await);
    assert_eq!(deleted.await.expect("deleted"), 1);
    store.close().await;
    let bytes = std::fs::read(&file).expect("the file");
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    edit(&backup.join("manifest.json"), |manifest| {
        manifest["bytes"] = bytes.len().into();
        manifest["sha256"] = sha256.into();
    });
    for service in [&folder, &database] {
        let output = ended(restored(service, "tampered"), 1).await;
        let words = "the table refresh_tokens has 0 rows, and its manifest says 1";
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    assert!(!folder.folder.path().join("tampered/stagedoor.db").exists());
    database.remove().await;
}
