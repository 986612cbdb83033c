//! Runs work of a request to its end, even if the caller stops waiting.

use std::future::Future;

use futures_util::FutureExt;
use store::StoreError;

use crate::Error;

/// Runs work to its end, even if the caller stops waiting. A panic becomes [`StoreError::Panicked`].
pub(crate) fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> impl Future<Output = Result<T, Error>> + Send {
    store::run_to_completion(work).map(|done| done.unwrap_or(Err(StoreError::Panicked.into())))
}
