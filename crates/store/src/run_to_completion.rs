//! Runs work to its end, even if the caller stops waiting.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

/// Runs work to its end in the task of the caller, which saves a task and a wakeup. If the caller drops the
/// future before the end, the work continues in a new task. `None` when the work panicked. The panic hook has
/// reported the panic.
pub fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Option<T>> + Send {
    // The state of the work is not used after a panic.
    RunToCompletion(Some(AssertUnwindSafe(work).catch_unwind().map(Result::ok).boxed()))
}

struct RunToCompletion<T: Send + 'static>(Option<BoxFuture<'static, Option<T>>>);

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
            // One type for all work: the compiler makes a copy of the task's code for each type.
            runtime.spawn(work.map(drop).boxed().in_current_span());
        }
    }
}
