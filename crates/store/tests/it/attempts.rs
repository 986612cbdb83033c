//! Parts of a transaction that fail alone.

use store::{SendAsyncFnOnce, Store, StoreError, Tx, params};

use crate::{both, ids};

async fn note(tx: &mut Tx, id: i64) -> Result<(), StoreError> {
    tx.execute("INSERT INTO notes (id) VALUES ($1)", params![id]).await.map(drop)
}

/// A part that writes one note and then ends like this.
async fn attempt(tx: &mut Tx, id: i64, end: Result<(), StoreError>) -> Result<(), StoreError> {
    tx.attempt(async move |tx: &mut Tx| {
        note(tx, id).await?;
        end
    })
    .await?
}

async fn write<F>(store: &Store, work: F) -> Result<(), StoreError>
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<(), StoreError>> + Send + 'static,
{
    store.write(work).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_part_is_rolled_back_alone() {
    both(|store| async move {
        let outcome = write(&store, async move |tx: &mut Tx| {
            note(tx, 1).await?;
            assert_eq!(attempt(tx, 2, Err(StoreError::NoRow)).await, Err(StoreError::NoRow));
            assert_eq!(attempt(tx, 3, Ok(())).await, Ok(()));
            // A statement that fails, which would otherwise be the end of the transaction.
            assert!(attempt(tx, 1, Ok(())).await.unwrap_err().is_unique("notes(id)"));
            assert_eq!(attempt(tx, 4, Err(StoreError::NoRow)).await, Err(StoreError::NoRow));
            note(tx, 5).await
        })
        .await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(ids(&store).await, [1, 3, 5]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_cannot_ignore_its_failed_statement() {
    both(|store| async move {
        let outcome = write(&store, async move |tx: &mut Tx| {
            let part = tx.attempt(async move |tx: &mut Tx| {
                note(tx, 1).await?;
                let _ = note(tx, 1).await;
                Ok::<_, StoreError>(())
            });
            assert_eq!(part.await, Ok(Err(StoreError::Aborted)));
            note(tx, 2).await
        })
        .await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(ids(&store).await, [2]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_rolled_back_with_their_transaction() {
    both(|store| async move {
        let failed = write(&store, async move |tx: &mut Tx| {
            attempt(tx, 1, Ok(())).await?;
            Err(StoreError::NoRow)
        });
        assert_eq!(failed.await, Err(StoreError::NoRow));
        let failed_before = write(&store, async move |tx: &mut Tx| {
            note(tx, 1).await?;
            let _ = note(tx, 1).await;
            assert_eq!(attempt(tx, 2, Ok(())).await, Err(StoreError::Aborted));
            Ok(())
        });
        assert_eq!(failed_before.await, Err(StoreError::Aborted));
        assert!(ids(&store).await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_parts_are_rolled_back_from_the_inside() {
    both(|store| async move {
        let outcome = write(&store, async move |tx: &mut Tx| {
            let outer = tx.attempt(async move |tx: &mut Tx| {
                note(tx, 1).await?;
                assert_eq!(attempt(tx, 2, Err(StoreError::NoRow)).await, Err(StoreError::NoRow));
                attempt(tx, 3, Ok(())).await
            });
            outer.await?
        })
        .await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(ids(&store).await, [1, 3]);
    })
    .await;
}
