//! How long a test waits.

use std::time::Duration;

/// How long a test waits before it fails. Long, because only a failing test waits that long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for an event that must happen within [`PATIENCE`].
///
/// # Panics
/// When it does not. The message names it.
pub async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("nothing came within {PATIENCE:?}: {what}"),
    }
}
