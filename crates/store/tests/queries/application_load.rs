//! The load of applications by minute, and what is measured of a store.

use domain::StoreId;
use domain::limits::MINUTE_MS;
use store::queries::application_load::{ApplicationLoad, LoadBy};
use store::testing::engines;
use store::{Options, StoreError, Tx, record_backup};

use crate::{at, both, client, in_seeded, tx};

fn load(app: &str, requests: i64, refused: i64, events: i64) -> ApplicationLoad {
    ApplicationLoad { client_id: client(app), name: String::new(), requests, refused, events }
}

/// Ids with their three numbers.
fn shown(found: Vec<ApplicationLoad>) -> Vec<(String, [i64; 3])> {
    found
        .into_iter()
        .map(|row| (row.client_id.to_string(), [row.requests, row.refused, row.events]))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_heaviest_applications_since_a_minute_come_first() {
    in_seeded(async move |tx: &mut Tx| {
        let minute = |n: i64| at(n * MINUTE_MS);
        tx.add_load(minute(1), &[load("app", 5, 1, 0), load("other", 1, 0, 9)]).await?;
        tx.add_load(minute(2), &[load("app", 1, 1, 0), load("missing", 99, 99, 99)]).await?;
        tx.add_load(minute(2), &[load("app", 1, 0, 0), load("other", 4, 1, 1)]).await?;
        tx.add_load(minute(2), &[]).await?;
        let (app, other) = (("app".to_owned(), [7, 2, 0]), ("other".to_owned(), [5, 1, 10]));
        let all = [app.clone(), other.clone()];
        assert_eq!(shown(tx.heaviest_applications(LoadBy::Requests, minute(1), 9).await?), all);
        assert_eq!(shown(tx.heaviest_applications(LoadBy::Refused, minute(1), 1).await?), [app]);
        // What has none is not listed.
        assert_eq!(shown(tx.heaviest_applications(LoadBy::Events, minute(1), 9).await?), [other]);
        let late = [("other".to_owned(), [4, 1, 1]), ("app".to_owned(), [2, 1, 0])];
        assert_eq!(shown(tx.heaviest_applications(LoadBy::Requests, minute(2), 9).await?), late);
        assert_eq!(shown(tx.heaviest_applications(LoadBy::Requests, minute(3), 9).await?), []);
        let named = tx.heaviest_applications(LoadBy::Requests, minute(1), 1).await?;
        assert_eq!(named[0].name, "application app");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_add_load_at_the_same_time_lose_nothing() {
    both(|store| async move {
        let adding = (0..20).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let rows = [load("app", 2, 1, 3), load("other", 1, 0, 0)];
                let added: Result<(), StoreError> = tx!(store, tx => { tx.add_load(at(0), &rows).await });
                added.unwrap();
            })
        });
        for added in adding.collect::<Vec<_>>() {
            added.await.unwrap();
        }
        let found: Result<Vec<ApplicationLoad>, StoreError> =
            tx!(store, tx => { tx.heaviest_applications(LoadBy::Requests, at(0), 9).await });
        assert_eq!(
            shown(found.unwrap()),
            [("app".to_owned(), [40, 20, 60]), ("other".to_owned(), [20, 0, 0])]
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_has_a_size_and_the_time_of_its_last_backup() {
    for fresh in engines().await {
        let store = fresh.open(Options::default()).await;
        let (own, other) = (StoreId::stored("own".to_owned()), StoreId::stored("other".to_owned()));
        let before = store.measure(&own).await.unwrap();
        assert!(before.bytes > 100_000, "{before:?}");
        assert_eq!(before.last_backup, None);
        match before.disk {
            Some(disk) => assert!(fresh.name() == "SQLite" && disk.size > disk.free && disk.free > 0),
            None => assert_eq!(fresh.name(), "PostgreSQL"),
        }
        // On PostgreSQL through `database_bytes` and `last_backup`. Beside the service, as the command does.
        for taken_at in [7_000, 9_000] {
            record_backup(&fresh.target(), &own, at(taken_at)).await.unwrap();
            assert_eq!(store.measure(&own).await.unwrap().last_backup, Some(at(taken_at)));
        }
        if fresh.name() == "SQLite" {
            let of_another = store.measure(&other).await.unwrap().last_backup;
            assert_eq!(of_another, None, "the file beside it is about another store");
        }
        store.close().await;
        fresh.remove().await;
    }
}
