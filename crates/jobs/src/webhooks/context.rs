//! The context that the sender shares with its workers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use service::{LogLimit, Service};
use tokio::sync::{Semaphore, watch};

use super::client::Client;
use super::metrics::WebhookMetrics;

/// The context of every worker.
#[derive(Clone)]
pub(super) struct WorkerContext {
    pub service: Service,
    pub client: Client,
    /// One permit for each attempt in flight.
    pub permits: Arc<Semaphore>,
    pub metrics: Arc<WebhookMetrics>,
    /// `true` when the sender is stopping.
    pub stopping: watch::Receiver<bool>,
    /// Whether a [`Settler`](super::Settler) waits for the attempts that are due.
    pub is_settling: Arc<AtomicBool>,
    /// Limits the log lines about results that were recorded too late.
    pub late_results: Arc<LogLimit>,
}

impl WorkerContext {
    /// The value of a result. Logs an error, and returns `None`.
    pub fn checked<T>(&self, outcome: Result<T, service::Error>) -> Option<T> {
        if let Err(error) = &outcome {
            self.service
                .log_failure("failed to process the webhook outbox: retrying, no message is lost", error);
        }
        outcome.ok()
    }
}
