//! The unused applications that will be deleted soon. The answers to their calls carry a warning. The list
//! is cached and read from the store once a minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use domain::limits::{DAY_MS, UNUSED_APPLICATION_MS, UNUSED_WARNING_DAYS};
use domain::{ClientId, Timestamp};

use crate::{Error, Service};
use store::Tx;

/// How often the store is read, in milliseconds.
const REFRESH_EVERY_MS: i64 = 60_000;
/// Maximum number of cached applications. The applications that are unused longest come first.
const WARNED_MAX: i64 = 10_000;

/// The applications that were warned, with their last use.
#[derive(Debug, Default)]
pub(crate) struct WarnedApplications {
    last_uses: RwLock<HashMap<ClientId, Timestamp>>,
    read_at: AtomicI64,
}

impl WarnedApplications {
    /// Whether the store must be read again. True for one caller only.
    fn is_due(&self, now: i64) -> bool {
        let read_at = self.read_at.load(Ordering::Relaxed);
        let due = now - read_at >= REFRESH_EVERY_MS || now < read_at;
        due && self.read_at.compare_exchange(read_at, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn last_use(&self, client_id: &ClientId) -> Option<Timestamp> {
        self.last_uses.read().unwrap_or_else(PoisonError::into_inner).get(client_id).copied()
    }
}

impl Service {
    /// The time at which an application will be deleted unless one of its calls uses a scope. `None` before
    /// the first warning.
    pub fn deletes_at(&self, client_id: &ClientId) -> Option<Timestamp> {
        let last_use = self.0.warned.last_use(client_id)?;
        (!self.0.applications_last_used.used_since(client_id, last_use))
            .then(|| last_use.plus_ms(UNUSED_APPLICATION_MS))
    }

    /// Reads the warned applications, unless they were read within the last minute.
    pub(crate) async fn refresh_warned_applications(&self) -> Result<(), Error> {
        let (now, warned) = (self.now(), &self.0.warned);
        if !warned.is_due(now.as_millis()) {
            return Ok(());
        }
        let idle_since = now.plus_ms(-UNUSED_WARNING_DAYS[0] * DAY_MS);
        let found = self
            .read(async move |tx: &mut Tx| Ok(tx.warned_applications(idle_since, WARNED_MAX).await?))
            .await?;
        *warned.last_uses.write().unwrap_or_else(PoisonError::into_inner) = found.into_iter().collect();
        Ok(())
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
