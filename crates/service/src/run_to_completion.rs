//! Runs work to its end, even if the caller stops waiting.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use store::StoreError;
use tracing::Instrument;

use crate::Error;

/// Runs work to its end, even if the caller stops waiting. A panic becomes [`StoreError::Panicked`]. The
/// panic hook has reported the panic.
pub(crate) fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> impl Future<Output = Result<T, Error>> + Send {
    RunToCompletion::new(work).map(|done| done.unwrap_or(Err(StoreError::Panicked.into())))
}

/// Runs work in the task of the caller, which saves a task and a wakeup. If the caller drops this future
/// before the end, the work continues in a new task. `None` when the work panicked.
struct RunToCompletion<T: Send + 'static>(Option<BoxFuture<'static, Option<T>>>);

impl<T: Send + 'static> RunToCompletion<T> {
    fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        // The state of the work is not used after a panic.
        Self(Some(AssertUnwindSafe(work).catch_unwind().map(Result::ok).boxed()))
    }
}

impl<T: Send + 'static> Future for RunToCompletion<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(work) = &mut self.0 else { return Poll::Ready(None) };
        let result = ready!(work.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(result)
    }
}

impl<T: Send + 'static> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        let Some(work) = self.0.take() else { return };
        // Without a runtime the process is about to end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(work.in_current_span());
        }
    }
}
