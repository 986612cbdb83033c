//! The archive of the log of a node with a SQLite store.

use std::sync::Arc;
use std::time::Duration;

use backup::archive::{ArchivePlace, ArchiveSettings, check_archive};
use service::{Clock, Entropy, Job, Purpose, Service};
use store::log_archive::{LogArchive, LogArchiving};

/// How the log is archived.
#[derive(Clone, Debug)]
pub struct ArchiveConfig {
    /// Where the archive is. `Debug` hides the access key.
    pub place: ArchivePlace,
    /// The longest time between two segments.
    pub every: Duration,
    /// The time between two bases.
    pub base_every: Duration,
    /// How far back a time can be reached.
    pub keep: Duration,
    /// Maximum number of bytes of the segments that wait for the archive.
    pub spool_bytes_max: u64,
    /// The place may hold the archive of another store, too.
    pub other_store: bool,
}

impl ArchiveConfig {
    /// What the store does for it.
    pub(crate) fn log(&self, clock: &Clock) -> LogArchiving {
        let clock = clock.clone();
        LogArchiving {
            every: self.every,
            spool_bytes_max: self.spool_bytes_max,
            now: Arc::new(move || clock.now()),
        }
    }

    /// What the archiver of a store is started with, if the place is not that of another one.
    pub(crate) async fn prepare(
        &self,
        log: &LogArchive,
        service: &Service,
        entropy: &Entropy,
    ) -> Result<ArchiveSettings, String> {
        let failed = |error: service::Error| format!("the store failed: {error}");
        let store = service.store_id().await.map_err(failed)?;
        let store_made_at = service.store_made_at().await.map_err(failed)?;
        let checked = check_archive(log, &self.place, &store, self.other_store).await;
        checked.map_err(|error| error.to_string())?;
        let (clock, entropy, noting) = (service.clock().clone(), entropy.clone(), service.clone());
        let Self { place, base_every, keep, spool_bytes_max, other_store, .. } = self.clone();
        Ok(ArchiveSettings {
            place,
            base_every,
            keep,
            spool_bytes_max,
            store,
            store_made_at,
            other_store,
            version: env!("CARGO_PKG_VERSION"),
            now: Arc::new(move || clock.now()),
            random: Arc::new(move || u64::from_be_bytes(entropy.bytes(Purpose::Jitter))),
            on_outcome: Arc::new(move |done| noting.record_job_run(Job::Archive, done)),
        })
    }
}
