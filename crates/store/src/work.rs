//! The closure of a request, and how it runs.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use crate::{StoreError, Tx};

/// `AsyncFnOnce(A) -> T` whose future may move between threads. The argument's type has to be written:
/// `async move |tx: &mut Tx| { … }`. Every such closure has this trait.
pub trait SendAsyncFnOnce<A, T>: FnOnce(A) -> <Self as SendAsyncFnOnce<A, T>>::Future {
    /// What the closure returns.
    type Future: Future<Output = T> + Send;
}

impl<A, T, F, Fut> SendAsyncFnOnce<A, T> for F
where
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = T> + Send,
{
    type Future = Fut;
}

/// The closure of a request.
pub(crate) trait Closure<T, E>:
    for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, E>> + Send + 'static
{
}

impl<T, E, F> Closure<T, E> for F where F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, E>> + Send + 'static {}

/// Runs the closure of a request. A panic becomes [`StoreError::Panicked`]. A success after a failed
/// statement becomes [`StoreError::Aborted`].
pub(crate) async fn run<T, E: From<StoreError>>(work: impl Closure<T, E>, tx: &mut Tx) -> Result<T, E> {
    tx.begin_request();
    match catch_panic(work, tx).await {
        Ok(_) if tx.has_failed() => Err(StoreError::Aborted.into()),
        result => result,
    }
}

async fn catch_panic<T, E: From<StoreError>>(work: impl Closure<T, E>, tx: &mut Tx) -> Result<T, E> {
    let panicked = || E::from(StoreError::Panicked);
    let mut future = pin!(catch_unwind(AssertUnwindSafe(|| work(tx))).map_err(|_| panicked())?);
    poll_fn(move |context| {
        // After a panic nothing uses the state of the closure: its savepoint or transaction is rolled back.
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}
