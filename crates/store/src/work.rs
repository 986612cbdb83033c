//! The closure of a request, and how it runs.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

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

/// The closure of a request without its types (type erasure). The compiler would otherwise make a copy of
/// both engines for each closure.
pub(crate) type Closure = Box<dyn for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Outcome> + Send>;

/// The commit hook of a request without its types. It gets the value of the closure.
pub(crate) type CommitHook = Box<dyn FnOnce(&mut ErasedValue) + Send>;

/// The result of a request without its types.
pub(crate) type Outcome = Result<ErasedValue, Failure>;

/// A value whose type only the caller of the request knows.
pub(crate) type ErasedValue = Box<dyn Any + Send>;

/// The error of a request without its type.
pub(crate) enum Failure {
    /// The error of the engine.
    Engine(StoreError),
    /// The error that the closure returned.
    Closure(ErasedValue),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Engine(error)
    }
}

/// Removes the types of a closure. [`typed`] gives them back to its result.
pub(crate) fn erase<T, E, F>(work: F) -> Closure
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    Box::new(move |tx: &mut Tx| {
        async move {
            match work(tx).await {
                Ok(value) => Ok(Box::new(value) as ErasedValue),
                Err(error) => Err(Failure::Closure(Box::new(error))),
            }
        }
        .boxed()
    })
}

/// Removes the types of a commit hook.
pub(crate) fn erase_hook<T: 'static>(on_commit: impl FnOnce(&mut T) + Send + 'static) -> CommitHook {
    Box::new(move |value: &mut ErasedValue| {
        if let Some(value) = value.downcast_mut() {
            on_commit(value);
        }
    })
}

/// The result of a request with the types of its closure.
pub(crate) fn typed<T: 'static, E: From<StoreError> + 'static>(outcome: Outcome) -> Result<T, E> {
    let other_type = |_| E::from(StoreError::Misuse("a closure's result has another type"));
    match outcome {
        Ok(value) => value.downcast().map(|value| *value).map_err(other_type),
        Err(Failure::Engine(error)) => Err(error.into()),
        Err(Failure::Closure(error)) => Err(error.downcast().map_or_else(other_type, |error| *error)),
    }
}

/// Runs the closure of a request. A panic becomes [`StoreError::Panicked`]. A success after a failed
/// statement becomes [`StoreError::Aborted`].
pub(crate) async fn run(work: Closure, tx: &mut Tx) -> Outcome {
    tx.begin_request();
    match catch_panic(work, tx).await {
        Ok(_) if tx.has_failed() => Err(StoreError::Aborted.into()),
        outcome => outcome,
    }
}

async fn catch_panic(work: Closure, tx: &mut Tx) -> Outcome {
    let panicked = || Failure::from(StoreError::Panicked);
    let mut future = catch_unwind(AssertUnwindSafe(|| work(tx))).map_err(|_| panicked())?;
    poll_fn(move |context| {
        // After a panic nothing uses the state of the closure: its savepoint or transaction is rolled back.
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}

/// Runs the commit hook of a request. A panic in the hook does not undo the commit.
pub(crate) fn run_hook(on_commit: CommitHook, value: &mut ErasedValue) {
    if catch_unwind(AssertUnwindSafe(|| on_commit(value))).is_err() {
        tracing::error!("a commit hook panicked");
    }
}
