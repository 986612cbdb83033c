//! The store's promises. Each is tested on both engines unless its name says otherwise.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attempts;
mod batches;
mod checkpoints;
mod concurrency;
mod constraints;
mod durability;
mod full_disk;
mod migrations;
mod opening;
mod outages;
mod tls;
mod transactions;
mod values;

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use store::{Migration, Options, Store, StoreError, Tx, params};

/// Longer than anything here takes, shorter than a hanging test run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tables for these tests alone.
const TABLES: &[Migration] = &[Migration {
    version: 1,
    name: "tables of the tests",
    sql: "
        CREATE TABLE notes (
            id BIGINT PRIMARY KEY,
            body TEXT,
            flag BOOLEAN
        );
        CREATE TABLE codes (
            code TEXT PRIMARY KEY,
            used_by BIGINT
        );
        CREATE TABLE parents (
            id TEXT PRIMARY KEY,
            children BIGINT NOT NULL
        );
        CREATE TABLE children (
            parent_id TEXT NOT NULL REFERENCES parents (id),
            kind TEXT NOT NULL CHECK (kind <> 'bad'),
            open BOOLEAN NOT NULL,
            PRIMARY KEY (parent_id, kind)
        );
        CREATE UNIQUE INDEX one_open_child ON children (parent_id) WHERE open;
        CREATE TABLE late (
            parent_id TEXT NOT NULL REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED
        );
    ",
}];

fn options() -> Options {
    Options { migrations: TABLES, ..Options::default() }
}

/// Runs the body on both engines, with the tests' own tables.
async fn both<Fut: Future<Output = ()> + Send + 'static>(body: impl FnMut(Store) -> Fut) {
    store::testing::both_with(options(), body).await;
}

async fn insert(store: &Store, id: i64) -> Result<(), StoreError> {
    store
        .write(async move |tx: &mut Tx| {
            tx.execute("INSERT INTO notes (id, body) VALUES ($1, $2)", params![id, "a note"]).await?;
            Ok(())
        })
        .await
}

async fn ids(store: &Store) -> Vec<i64> {
    let rows =
        store.read(async move |tx: &mut Tx| tx.query("SELECT id FROM notes ORDER BY id", &[]).await).await;
    let rows: Vec<store::Row> = rows.unwrap_or_else(|error: StoreError| panic!("{error}"));
    rows.iter().map(|row| row.get(0).unwrap()).collect()
}

/// A write that holds its transaction open until it is let go.
struct Held {
    release: mpsc::Sender<()>,
    done: tokio::task::JoinHandle<Result<(), StoreError>>,
}

impl Held {
    /// Returns once the write's closure runs. On SQLite everything written meanwhile waits for the same
    /// commit.
    async fn start(store: &Store, id: i64) -> Self {
        let (held, started) = Self::queue(store, id);
        within(started).await.unwrap();
        held
    }

    /// Sends the write; the receiver hears when its closure runs.
    fn queue(store: &Store, id: i64) -> (Self, tokio::sync::oneshot::Receiver<()>) {
        let (release, released) = mpsc::channel();
        let (start, started) = tokio::sync::oneshot::channel();
        let store = store.clone();
        let done = tokio::spawn(async move {
            store
                .write(async move |tx: &mut Tx| {
                    tx.execute("INSERT INTO notes (id) VALUES ($1)", params![id]).await?;
                    let _ = start.send(());
                    let_go(released).await;
                    Ok(())
                })
                .await
        });
        (Self { release, done }, started)
    }

    async fn release(self) -> Result<(), StoreError> {
        self.release.send(()).unwrap();
        within(self.done).await.unwrap()
    }
}

/// Waits inside a closure: on SQLite that is the store's own thread, which may be blocked and must not be
/// left.
async fn let_go(released: mpsc::Receiver<()>) {
    let on_sqlite = std::thread::current().name().is_some_and(|name| name.starts_with("store-"));
    if on_sqlite {
        let _ = released.recv_timeout(PATIENCE);
    }
    while !on_sqlite && released.try_recv() == Err(mpsc::TryRecvError::Empty) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in time")
}

/// Waits for what another thread is about to bring about.
async fn eventually(mut condition: impl FnMut() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
