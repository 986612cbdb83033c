//! Opening a store: refused targets, and the files of a store.

use std::time::Duration;

use reserved_port::ReservedPort;
use store::transfer::{CopyBegin, Snapshot, copy_to_postgres};
use store::{Options, Store, StoreError, Target, Tx};

use crate::{insert, options};

/// Names the major version of PostgreSQL that the tests are to run on, such as `15`.
const POSTGRES_VERSION: &str = "STAGEDOOR_TEST_POSTGRES_VERSION";

#[tokio::test]
async fn the_postgresql_server_has_the_release_under_test() {
    let (client, connection) =
        tokio_postgres::connect(&store::testing::database_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let row = client.query_one("SHOW server_version", &[]).await.unwrap();
    let version: String = row.get(0);
    println!("engine: PostgreSQL {version}");
    if let Ok(release) = std::env::var(POSTGRES_VERSION) {
        assert!(version.starts_with(&format!("{release}.")), "{version} instead of {release}");
    }
}

async fn refusal(target: Target) -> String {
    match Store::open(target, Options::default()).await {
        Err(StoreError::Open(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_second_opener_of_a_data_file_is_refused_by_name() {
    let fresh = store::testing::sqlite();
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let first = fresh.open(options()).await;
    let link = path.with_file_name("link.sqlite");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for path in [path.clone(), link] {
        let why = refusal(Target::Sqlite { path }).await;
        assert!(why.contains("data.sqlite") && why.contains("in use"), "{why}");
    }
    insert(&first, 1).await.unwrap();
    first.close().await;
    let second = fresh.open(options()).await;
    assert_eq!(crate::ids(&second).await, [1]);
    second.close().await;
}

#[tokio::test]
async fn closing_leaves_one_private_file_without_a_log() {
    use std::os::unix::fs::PermissionsExt;
    let fresh = store::testing::sqlite();
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let store = fresh.open(options()).await;
    insert(&store, 1).await.unwrap();
    let mode = |suffix: &str| {
        let file = format!("{}{suffix}", path.display());
        std::fs::metadata(file).map(|data| data.permissions().mode() & 0o777).ok()
    };
    assert_eq!((mode(""), mode("-wal"), mode(".lock")), (Some(0o600), Some(0o600), Some(0o600)));
    store.close().await;
    assert_eq!((mode(""), mode("-wal")), (Some(0o600), None));
}

#[tokio::test]
async fn a_missing_folder_and_a_foreign_file_are_refused() {
    let fresh = store::testing::sqlite();
    let Target::Sqlite { path } = fresh.target() else { panic!("a file") };
    let missing = refusal(Target::Sqlite { path: path.with_file_name("nowhere").join("x.sqlite") }).await;
    assert!(missing.contains("nowhere"), "{missing}");
    std::fs::write(&path, "not a database, but long enough to be looked at as one".repeat(50)).unwrap();
    let other = refusal(Target::Sqlite { path }).await;
    assert!(other.contains("not a database"), "{other}");
}

#[tokio::test]
async fn no_refusal_of_a_url_shows_it() {
    for (url, word) in [
        ("postgres://u:hunter2@127.0.0.1/d?sslmode=allow", "sslmode"),
        ("postgres://u:hunter2@127.0.0.1/d?sslmode=verify-ca", "sslrootcert"),
        ("postgres://u:hunter2@127.0.0.1:port/d", "postgres://"),
        ("u:hunter2", "postgres://"),
    ] {
        let why = refusal(Target::Postgres { url: url.to_owned().into() }).await;
        assert!(why.contains(word) && !why.contains("hunter2"), "{why}");
    }
}

/// Runs statements in a database.
async fn run_in(fresh: &store::testing::Fresh, sql: &str) -> Vec<String> {
    let url = fresh.url().expect("PostgreSQL");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    let tables = "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relname IN ('schema_migrations', 'transfer_progress')";
    client.query(tables, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_cannot_be_used_is_refused_with_its_remedy_and_stays_as_it_was() {
    let source = store::testing::migrated_sqlite().await;
    let snapshot = Snapshot::open(&source.target()).await.unwrap();
    for (sql, word) in [
        ("REVOKE CREATE ON SCHEMA stagedoor FROM CURRENT_USER", "GRANT CREATE"),
        ("REVOKE ALL ON SCHEMA stagedoor FROM CURRENT_USER", "CREATE SCHEMA"),
        ("DROP SCHEMA stagedoor", "CREATE SCHEMA"),
        ("CREATE TABLE channels (id TEXT)", "another program (channels)"),
        ("CREATE VIEW chats AS SELECT 1 AS x; CREATE TABLE b (a TEXT)", "another program (b, chats)"),
    ] {
        let fresh = store::testing::postgres().await;
        run_in(&fresh, sql).await;
        let why = refusal(fresh.target()).await;
        assert!(why.contains(word), "{sql}: {why}");
        let Target::Postgres { url } = fresh.target() else { panic!("a URL") };
        let copied = copy_to_postgres(&snapshot, &url, "a", CopyBegin::GO_ON, &mut |_| {}).await;
        let why = copied.expect_err(sql).to_string();
        assert!(why.contains(word), "{sql}: {why}");
        assert!(run_in(&fresh, "").await.is_empty(), "{sql}: tables were left");
        fresh.remove().await;
    }
    drop(snapshot);
    source.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_revoked_later_is_named_with_its_remedy_and_missed_until_it_is_given_back() {
    let fresh = store::testing::postgres().await;
    let store = fresh.open(options()).await;
    insert(&store, 1).await.unwrap();
    for right in ["INSERT", "SELECT"] {
        run_in(&fresh, &format!("REVOKE {right} ON notes FROM CURRENT_USER")).await;
        let failed = match right {
            "SELECT" => {
                let read: Result<_, StoreError> =
                    store.read(async |tx: &mut Tx| tx.query("SELECT id FROM notes", &[]).await).await;
                read.unwrap_err()
            }
            _ => insert(&store, 2).await.unwrap_err(),
        };
        let text = failed.to_string();
        assert!(
            matches!(failed, StoreError::Refused(_)) && text.contains("GRANT ALL ON ALL TABLES"),
            "{text}"
        );
        assert!(text.contains("42501") && text.contains("notes") && !text.contains("id FROM"), "{text}");
        run_in(&fresh, &format!("GRANT {right} ON notes TO CURRENT_USER")).await;
    }
    insert(&store, 2).await.unwrap();
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_url_is_told_from_a_server_that_is_away() {
    let fresh = store::testing::postgres().await;
    let url = fresh.url().expect("PostgreSQL");
    let (server, database) = url.rsplit_once('/').expect("a database");
    let (_, parameters) = database.split_once('?').expect("parameters");
    let (scheme, host) =
        (url.split_once("://").expect("a scheme").0, server.rsplit_once('@').expect("a host").1);
    let database = database.split('?').next().expect("a name");
    for (url, word) in [
        (format!("{server}/missing_database?{parameters}"), "3D000: the database does not exist"),
        (format!("{scheme}://missing_role:hunter2@{host}/{database}?{parameters}"), "SQLSTATE 28"),
    ] {
        let opened = Store::open(Target::Postgres { url: url.into() }, Options::default()).await;
        let error = opened.expect_err(word);
        assert!(matches!(error, StoreError::Refused(_)) && error.is_outage() && !error.may_pass(), "{error}");
        assert!(error.to_string().contains(word) && !error.to_string().contains("hunter2"), "{error}");
    }
    fresh.remove().await;
}

#[tokio::test]
async fn a_missing_server_is_an_outage_within_3_s() {
    let port = ReservedPort::take();
    let url = format!("postgres://u:hunter2@{}/d", port.address()).into();
    let opening = Store::open(Target::Postgres { url }, Options::default());
    let error =
        store::testing::while_running(Duration::from_secs(3), opening).await.expect("an answer within 3 s");
    let error = error.expect_err("missing listens");
    assert!(error.is_outage() && error.may_pass() && !error.to_string().contains("hunter2"), "{error}");
}
