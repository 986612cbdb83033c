//! The size of the store, the room on its disk, and the age of its last backup, as they were measured last.

use std::sync::PoisonError;

pub use store::{DiskSpace, Measures};

use crate::{Error, Service};

impl Service {
    /// Measures the store.
    pub async fn measure_store(&self) -> Result<(), Error> {
        let measured = self.0.store.measure(&self.store_id().await?).await?;
        *self.0.measures.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
        Ok(())
    }

    /// What was measured last; `None` before the first time.
    pub fn store_measures(&self) -> Option<Measures> {
        *self.0.measures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
