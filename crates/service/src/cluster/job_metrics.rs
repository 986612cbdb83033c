//! When each job ran last, for the metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use domain::Timestamp;

use crate::Service;

/// Declares [`Job`] with the names of its variants.
macro_rules! jobs {
    ($($(#[doc = $doc:literal])+ $variant:ident, $name:literal;)+) => {
        /// Work that a node does unasked, again and again.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Job {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Job {
            /// Every job.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name: a metric's label.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

jobs! {
    /// Says that this node lives: every 5 seconds.
    Heartbeat, "heartbeat";
    /// Deletes what is over: every minute.
    Sweep, "sweep";
    /// Writes down which applications were used: every minute.
    UsesFlush, "uses_flush";
    /// Looks at unused applications: every hour.
    UnusedApplications, "unused_applications";
    /// Looks for credentials that other nodes changed: every half second.
    CredentialWatch, "credential_watch";
    /// Asks what became of this node's sessions: every second.
    SessionWatch, "session_watch";
    /// Deletes the batches of events that were heard: when there are any.
    OutboxSettle, "outbox_settle";
    /// Takes over batches of events that nobody settles: every second.
    OutboxSweep, "outbox_sweep";
    /// Looks for webhooks with something to send: every half second, and when a claim was written.
    WebhookLook, "webhook_look";
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

/// A job's runs since the node started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRuns {
    /// The job.
    pub job: Job,
    /// Runs that did their work.
    pub done: u64,
    /// Runs that failed.
    pub failed: u64,
    /// When the last one that did its work ended; `None` before the first.
    pub last_done_at: Option<Timestamp>,
}

impl Service {
    /// Notes that a job ran, and whether it did its work.
    pub fn record_job_run(&self, job: Job, done: bool) {
        let runs = &self.0.jobs.0[job as usize];
        if done {
            runs.done.fetch_add(1, Relaxed);
            runs.last_done_ms.store(self.now().as_millis(), Relaxed);
        } else {
            runs.failed.fetch_add(1, Relaxed);
        }
    }

    /// Every job's runs.
    pub fn job_runs(&self) -> impl Iterator<Item = JobRuns> + '_ {
        Job::ALL.iter().zip(&self.0.jobs.0).map(|(&job, runs)| {
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
