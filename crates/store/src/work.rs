//! The closure of a request, and how it runs.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use crate::{BoxFuture, StoreError, Tx};

/// The closure of a request.
pub(crate) trait Work<T, E>:
    for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static
{
}

impl<T, E, F> Work<T, E> for F where
    F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static
{
}

/// Runs the closure of a request. A panic becomes [`StoreError::Panicked`]. A success after a failed
/// statement becomes [`StoreError::Aborted`].
pub(crate) async fn run<T, E: From<StoreError>>(work: impl Work<T, E>, tx: &mut Tx) -> Result<T, E> {
    tx.begin_request();
    match catch_panic(work, tx).await {
        Ok(_) if tx.has_failed() => Err(StoreError::Aborted.into()),
        result => result,
    }
}

async fn catch_panic<T, E: From<StoreError>>(work: impl Work<T, E>, tx: &mut Tx) -> Result<T, E> {
    let panicked = || E::from(StoreError::Panicked);
    let mut future = catch_unwind(AssertUnwindSafe(|| work(tx))).map_err(|_| panicked())?;
    poll_fn(move |context| {
        // After a panic nothing uses the state of the closure: its savepoint or transaction is rolled back.
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}
