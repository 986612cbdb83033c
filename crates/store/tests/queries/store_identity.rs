//! The id of a store, and the test of its service key.

use store::testing::{Fresh, engines, postgres, sqlite};
use store::transfer::{CopyBegin, Snapshot, copy_to_postgres, copy_to_sqlite};
use store::{Options, Target};

use crate::{both, tx};

#[tokio::test(flavor = "multi_thread")]
async fn a_store_has_one_id_and_its_copies_have_the_same() {
    let mut ids = Vec::new();
    for fresh in engines().await {
        let store = fresh.open(Options::default()).await;
        let own = tx!(store, tx => { tx.store_identity().await }).unwrap();
        assert!(own.store_id.as_str().len() == 32, "{own:?}");
        assert!(own.store_id.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()), "{own:?}");
        assert_eq!((&own.key_test, &own.former_key_test), (&None, &None));
        let snapshot = Snapshot::open(&fresh.target()).await.unwrap();
        assert_eq!(snapshot.identity().await.unwrap(), own);
        for copy in [sqlite(), postgres().await] {
            match copy.target() {
                Target::Sqlite { path } => {
                    copy_to_sqlite(&snapshot, &path, &mut |_| {}).await.unwrap();
                }
                Target::Postgres { url } => {
                    copy_to_postgres(&snapshot, &url, "a", CopyBegin::GO_ON, &mut |_| {}).await.unwrap();
                }
            }
            assert_eq!(id_of(&copy).await, own.store_id.as_str());
            copy.remove().await;
        }
        drop(snapshot);
        store.close().await;
        assert_eq!(id_of(&fresh).await, own.store_id.as_str(), "the id is made once");
        fresh.remove().await;
        ids.push(own.store_id);
    }
    let another = sqlite();
    another.open(Options::default()).await.close().await;
    assert!(!ids.iter().any(|id| id.as_str().is_empty()));
    assert_ne!(id_of(&another).await, ids[0].as_str(), "another store has another id");
}

async fn id_of(fresh: &Fresh) -> String {
    let snapshot = Snapshot::open(&fresh.target()).await.unwrap();
    snapshot.identity().await.unwrap().store_id.as_str().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_key_is_adopted_once_and_changed_by_one_node() {
    both(|store| async move {
        let adopt = |test: &'static str| {
            let store = store.clone();
            async move { tx!(store, tx => { tx.adopt_service_key(test).await }).unwrap() }
        };
        futures_util::future::join_all((0..8).map(|_| adopt("first"))).await;
        adopt("late").await;
        let key = async || {
            let found = tx!(store, tx => { tx.store_identity().await }).unwrap();
            (found.key_test, found.former_key_test)
        };
        assert_eq!(key().await, (Some("first".to_owned()), None));
        let tries = (0..8).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                tx!(store, tx => { tx.change_service_key("first", &format!("next {n}")).await }).unwrap()
            })
        });
        let mut changed = 0;
        for tried in tries.collect::<Vec<_>>() {
            changed += usize::from(tried.await.unwrap());
        }
        assert_eq!(changed, 1);
        let (now, before) = key().await;
        assert!(now.is_some_and(|now| now.starts_with("next ")));
        assert_eq!(before.as_deref(), Some("first"));
    })
    .await;
}
