//! The unused applications that will be deleted soon. The answers to their calls carry a warning. The list
//! is cached and read from the store once a minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use domain::{ClientId, Timestamp};

/// How often the store is read, in milliseconds.
const REFRESH_EVERY_MS: i64 = 60_000;
/// Maximum number of cached applications. The applications that are unused longest come first.
pub(crate) const WARNED_MAX: i64 = 10_000;

/// The applications that were warned, with their last use.
#[derive(Debug, Default)]
pub(crate) struct WarnedApplications {
    last_uses: RwLock<HashMap<ClientId, Timestamp>>,
    read_at: AtomicI64,
}

impl WarnedApplications {
    /// Whether the store must be read again. True for one caller only.
    pub fn is_due(&self, now: i64) -> bool {
        let read_at = self.read_at.load(Ordering::Relaxed);
        let due = now - read_at >= REFRESH_EVERY_MS || now < read_at;
        due && self.read_at.compare_exchange(read_at, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub fn last_use(&self, client_id: &ClientId) -> Option<Timestamp> {
        self.last_uses.read().unwrap_or_else(PoisonError::into_inner).get(client_id).copied()
    }

    /// Replaces the cached applications with those of the store.
    pub fn replace(&self, last_uses: impl IntoIterator<Item = (ClientId, Timestamp)>) {
        *self.last_uses.write().unwrap_or_else(PoisonError::into_inner) = last_uses.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_read_once_a_minute() {
        let warned = WarnedApplications::default();
        let due = |ms: i64| warned.is_due(1_000_000 + ms);
        assert_eq!(
            [due(0), due(0), due(59_999), due(60_000), due(60_001)],
            [true, false, false, true, false]
        );
        assert!(due(5), "the clock was set back");
    }
}
