//! The upgrade of a service from the first released schema, and the way back, on both engines.

mod archive;
mod archive_places;

use std::path::Path;

use backup::{Backup, DATA_FILE, Manifest, OtherStore, Phase, drill, find, inspect, restore};
use domain::Timestamp;
use sha2::{Digest, Sha256};
use store::testing::{Fresh, engines};
use store::{Options, Store, StoreError, Target, Tx};
use tempfile::TempDir;

/// The number of the last migration of the first release.
const RELEASED: i64 = 29;
/// The rows of a small service of that release, one statement in a line.
const ROWS: &str = include_str!("schema_29.sql");
/// A time soon after the rows were written: 2026-11-26T12:00:00Z.
const NOW_MS: i64 = 1_795_694_400_000;

fn released() -> Options {
    let all = Options::default();
    let count = all.migrations.iter().filter(|migration| migration.version <= RELEASED).count();
    Options { migrations: &all.migrations[..count], ..all }
}

fn quiet(_: Phase, _: &str, _: u64) {}

/// The tables that have rows, with the number of their rows.
fn filled_tables() -> Vec<(&'static str, i64)> {
    let mut tables: Vec<(&str, i64)> = Vec::new();
    for line in ROWS.lines().filter_map(|line| line.strip_prefix("INSERT INTO ")) {
        let table = line.split(' ').next().expect("a name");
        match tables.iter_mut().find(|(name, _)| *name == table) {
            Some((_, rows)) => *rows += 1,
            None => tables.push((table, 1)),
        }
    }
    tables
}

/// A store of the first release, closed.
async fn make_released(engine: &Fresh) {
    let store = engine.open(released()).await;
    let filled: Result<(), StoreError> = store
        .write(async |tx: &mut Tx| {
            for statement in ROWS.lines().filter(|line| !line.starts_with("--")) {
                tx.execute(statement, &[]).await?;
            }
            Ok(())
        })
        .await;
    filled.expect("the rows");
    store.close().await;
}

async fn check_rows(store: &Store) {
    for (table, rows) in filled_tables() {
        let sql: &'static str = Box::leak(format!("SELECT COUNT(*) FROM {table}").into_boxed_str());
        let found: Result<i64, StoreError> =
            store.read(async move |tx: &mut Tx| tx.query_one(sql, &[]).await?.get(0)).await;
        assert_eq!(found, Ok(rows), "{table}");
    }
}

/// A backup that the first release took: of a stopped SQLite service.
async fn released_backup(folder: &Path) -> Backup {
    let [source, _] = engines().await;
    make_released(&source).await;
    let Target::Sqlite { path } = source.target() else { panic!("the first engine is SQLite") };
    std::fs::copy(&path, folder.join(DATA_FILE)).expect("copied");
    let file = std::fs::read(&path).expect("the file");
    let manifest = Manifest {
        format: 1,
        version: "0.1.0".to_owned(),
        engine: "sqlite".to_owned(),
        store_id: None,
        key_test: None,
        schema_version: RELEASED,
        taken_at: Timestamp::from_millis(NOW_MS).rfc3339(),
        bytes: file.len() as u64,
        sha256: Sha256::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect(),
        tables: Vec::new(),
    };
    let text = serde_json::to_vec(&manifest).expect("JSON");
    std::fs::write(folder.join("manifest.json"), text).expect("written");
    source.remove().await;
    find(folder, OtherStore::Refused).expect("a backup").0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_released_schema_is_upgraded_with_its_rows() {
    for engine in engines().await {
        make_released(&engine).await;
        let store = engine.open(Options::default()).await;
        check_rows(&store).await;
        store.close().await;
        for finding in inspect(&engine.target(), Timestamp::from_millis(NOW_MS)).await.expect("inspected") {
            assert!(finding.contradictions.is_empty(), "{}: {finding:?}", engine.name());
        }
        // The program of the first release refuses a schema that it does not know.
        let refused = Store::open(engine.target(), released()).await;
        assert!(matches!(&refused, Err(StoreError::Open(why)) if why.contains("newer")), "{refused:?}");
        engine.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_the_first_release_is_the_way_back_and_the_way_to_this_one() {
    let folder = TempDir::new().expect("a folder");
    let backup = released_backup(folder.path()).await;
    let proved = drill(&backup, None, &mut quiet).await.expect("a good backup");
    assert!(proved.migrated_to > RELEASED, "{proved:?}");

    // Back: the program of the first release starts on the restored file.
    let target = Target::Sqlite { path: folder.path().join("back").join(DATA_FILE) };
    restore(&backup, &target, OtherStore::Refused, &mut quiet).await.expect("restored");
    let store = Store::open(target, released()).await.expect("the first release opens");
    check_rows(&store).await;
    store.close().await;

    // Forward: this program fills either engine with it.
    for engine in engines().await {
        restore(&backup, &engine.target(), OtherStore::Refused, &mut quiet).await.expect("restored");
        let store = engine.open(Options::default()).await;
        check_rows(&store).await;
        store.close().await;
        engine.remove().await;
    }
}
