//! The archive of the log of a node with a SQLite store.

use std::sync::Arc;
use std::time::Duration;

use backup::archive::{ArchivePlace, ArchiveSettings, Archiver};
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

    /// Starts to bring the log of a store to the archive.
    pub(crate) fn start(&self, log: Arc<LogArchive>, service: &Service, entropy: &Entropy) -> Archiver {
        let (clock, entropy, noting) = (service.clock().clone(), entropy.clone(), service.clone());
        let Self { place, base_every, keep, spool_bytes_max, .. } = self.clone();
        let settings = ArchiveSettings {
            place,
            base_every,
            keep,
            spool_bytes_max,
            version: env!("CARGO_PKG_VERSION"),
            now: Arc::new(move || clock.now()),
            random: Arc::new(move || u64::from_be_bytes(entropy.bytes(Purpose::Jitter))),
            on_outcome: Arc::new(move |done| noting.record_job_run(Job::Archive, done)),
        };
        Archiver::start(log, settings)
    }
}
