//! Counters and the last run of each job, for the metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use domain::Timestamp;

/// Declares [`Job`] with the names of its variants.
macro_rules! jobs {
    ($($(#[doc = $doc:literal])+ $variant:ident, $name:literal;)+) => {
        /// Background work that a node repeats.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Job {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Job {
            /// Every job.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name of the job, as a label of metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

jobs! {
    /// Writes this node's heartbeat: every 5 seconds.
    Heartbeat, "heartbeat";
    /// Deletes expired rows: every minute.
    Sweep, "sweep";
    /// Records the last uses of applications: every minute.
    UsesFlush, "uses_flush";
    /// Writes the counted requests of applications: every 5 seconds.
    UsageFlush, "usage_flush";
    /// Warns about unused applications and deletes them: every hour.
    UnusedApplications, "unused_applications";
    /// Reads the changes of credentials by other nodes: every half second.
    CredentialWatch, "credential_watch";
    /// Reads the changes and ends of this node's sessions: every second.
    SessionWatch, "session_watch";
    /// Deletes published batches of events: when there are any.
    OutboxSettle, "outbox_settle";
    /// Takes over overdue batches of events: every second.
    OutboxSweep, "outbox_sweep";
    /// Finds webhooks with due messages: every half second, and when a claim was written.
    WebhookLook, "webhook_look";
    /// Finds messages to the mail hook: every second, and when one was written.
    Mail, "mail";
    /// Brings the log of a SQLite store to the archive: every second.
    Archive, "archive";
    /// Measures the size of the store and the room on its disk: every minute.
    StoreMeasure, "store_measure";
}

#[derive(Debug, Default)]
struct Runs {
    done: AtomicU64,
    failed: AtomicU64,
    last_done_ms: AtomicI64,
}

/// The runs of every job.
#[derive(Debug)]
pub(crate) struct JobMetrics([Runs; Job::ALL.len()]);

impl Default for JobMetrics {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Runs::default()))
    }
}

/// The runs of a job since the node started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRuns {
    /// The job.
    pub job: Job,
    /// The number of successful runs.
    pub done: u64,
    /// The number of failed runs.
    pub failed: u64,
    /// When the last successful run ended. `None` before the first one.
    pub last_done_at: Option<Timestamp>,
}

impl JobMetrics {
    /// Records a run of a job, and whether the run succeeded.
    pub fn record(&self, job: Job, done: bool, now: Timestamp) {
        let runs = &self.0[job as usize];
        if done {
            runs.done.fetch_add(1, Relaxed);
            runs.last_done_ms.store(now.as_millis(), Relaxed);
        } else {
            runs.failed.fetch_add(1, Relaxed);
        }
    }

    /// The runs of every job.
    pub fn all(&self) -> impl Iterator<Item = JobRuns> + '_ {
        Job::ALL.iter().zip(&self.0).map(|(&job, runs)| {
            let (done, last) = (runs.done.load(Relaxed), runs.last_done_ms.load(Relaxed));
            JobRuns {
                job,
                done,
                failed: runs.failed.load(Relaxed),
                last_done_at: (done > 0).then_some(Timestamp::from_millis(last)),
            }
        })
    }
}
