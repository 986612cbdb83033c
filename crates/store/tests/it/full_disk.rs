//! A full disk on PostgreSQL: writes are refused, reads go on, and writes come back by themselves. That of
//! SQLite is a real one, in the server's tests.

use store::testing::postgres;
use store::{Disk, Store, StoreError, Tx};

use crate::{ids, insert, options};

/// Has each insert into `notes` fail as on a full disk, at the statement or at the commit.
async fn fill(store: &Store, create_trigger: &'static str) {
    const FAIL: &str = "CREATE OR REPLACE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$";
    run(store, FAIL).await;
    run(store, create_trigger).await;
}

async fn run(store: &Store, sql: &'static str) {
    let done: Result<_, StoreError> = store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
    done.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_undoes_the_write_and_has_its_own_error() {
    let fresh = postgres().await;
    let store = fresh.open(options()).await;
    insert(&store, 1).await.unwrap();
    assert_eq!(store.disk(), Disk::default());
    let at_statement = "CREATE TRIGGER full_disk BEFORE INSERT ON notes EXECUTE FUNCTION disk_full()";
    let at_commit = "CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION disk_full()";
    for (times, id, trigger) in [(1, 2, at_statement), (2, 3, at_commit)] {
        fill(&store, trigger).await;
        assert_eq!(insert(&store, id).await, Err(StoreError::DiskFull), "{trigger}");
        assert_eq!(store.disk(), Disk { is_full: true, times_full: times });
        assert_eq!(ids(&store).await.last(), Some(&(id - 1)), "it is not there, and reads go on");
        assert!(store.disk().is_full, "a read shows nothing of the disk");
        run(&store, "DROP TRIGGER full_disk ON notes").await;
        insert(&store, id).await.unwrap();
        assert_eq!(store.disk(), Disk { is_full: false, times_full: times });
    }
    store.close().await;
    fresh.remove().await;
}
