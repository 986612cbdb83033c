//! What an operator measures of a database server.

use store::testing::migrated_postgres;
use store::{Options, StoreError, Tx};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_a_size_and_no_backup_at_first() {
    let fresh = migrated_postgres(None).await;
    let store = fresh.open(Options::default()).await;
    let read = store.read(async move |tx: &mut Tx| {
        Ok::<_, StoreError>((tx.database_bytes().await?, tx.last_backup().await?))
    });
    let (bytes, last) = read.await.unwrap();
    assert!(bytes > 0 && last.is_none(), "{bytes} {last:?}");
    store.close().await;
    fresh.remove().await;
}
