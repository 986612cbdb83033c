//! The requests of applications by day and kind.

use domain::Scope;
use domain::limits::DAY_MS;
use domain::usage::{RequestCount, UsageKind};
use store::queries::application_usage::UsageRow;
use store::{StoreError, Tx};

use crate::{at, both, client, in_seeded, tx};

fn row(app: &str, day: i64, kind: UsageKind, requests: i64) -> UsageRow {
    let count = RequestCount { requests, refused: requests / 2 };
    UsageRow { client_id: client(app), day: at(day * DAY_MS), kind, count }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_added_to_their_day_and_kind() {
    in_seeded(async move |tx: &mut Tx| {
        let chat = UsageKind::Scope(Scope::ChatRead);
        tx.add_usage(&[row("app", 1, chat, 4), row("app", 1, UsageKind::Token, 2)]).await?;
        // In any order, more than one statement takes, and with an application that does not exist.
        let mut rows: Vec<_> = UsageKind::all().map(|kind| row("app", 2, kind, 2)).collect();
        rows.extend([row("missing", 2, chat, 1), row("other", 2, chat, 1)]);
        rows.reverse();
        tx.add_usage(&rows).await?;
        tx.add_usage(&[row("app", 1, chat, 6)]).await?;
        tx.add_usage(&[]).await?;
        let found = tx.usage_of_application(&client("app"), at(DAY_MS)).await?;
        assert_eq!(found.len(), 2 + UsageKind::COUNT);
        assert!(found.contains(&row("app", 1, chat, 10)) && found.contains(&row("app", 2, chat, 2)));
        let today = tx.usage_of_application(&client("app"), at(2 * DAY_MS)).await?;
        assert_eq!(today.len(), UsageKind::COUNT);
        assert_eq!(tx.usage_of_application(&client("missing"), at(0)).await?, []);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_add_at_the_same_time_lose_nothing() {
    both(|store| async move {
        let add = |store: store::Store, is_reversed: bool| async move {
            for _ in 0..20 {
                let mut rows: Vec<_> = UsageKind::all().map(|kind| row("app", 1, kind, 2)).collect();
                if is_reversed {
                    rows.reverse();
                }
                tx!(store, tx => { tx.add_usage(&rows).await }).unwrap();
            }
        };
        let tasks = [tokio::spawn(add(store.clone(), false)), tokio::spawn(add(store.clone(), true))];
        for task in tasks {
            task.await.unwrap();
        }
        let found: Result<Vec<UsageRow>, StoreError> =
            tx!(store, tx => { tx.usage_of_application(&client("app"), at(0)).await });
        assert!(found.unwrap().iter().all(|row| row.count == RequestCount { requests: 80, refused: 40 }));
    })
    .await;
}
