//! Work that is done to its end whether or not its caller waits for it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Instrument;

/// Runs in its caller's task, which costs no task and no wakeup of its own, and becomes a task once the caller lets go
/// of it before it is done. Gives `None` when the work panicked, which the panic hook has reported.
pub(crate) struct SeeThrough<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> SeeThrough<T> {
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for SeeThrough<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(work) = &mut self.0 else { return Poll::Ready(None) };
        // Nothing of the work is looked at again after a panic.
        let done = match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Some(value),
            Err(_) => None,
        };
        self.0 = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for SeeThrough<T> {
    fn drop(&mut self) {
        let Some(work) = self.0.take() else { return };
        // Without a runtime the process is about to end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(work.in_current_span());
        }
    }
}
