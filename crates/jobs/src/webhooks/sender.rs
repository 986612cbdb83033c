//! Polls the outbox for webhooks with due messages, and runs a worker for each of them.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use domain::WebhookId;
use futures_util::FutureExt;
use service::{Job, Service};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::client::Client;
use super::context::WorkerContext;
use super::metrics::WebhookMetrics;
use super::settler::Settler;
use super::worker::Worker;

/// How often the outbox is polled, for retries and for messages of other nodes. Messages of this node are
/// found at once.
pub const POLL_EVERY: Duration = Duration::from_millis(500);
/// Maximum number of webhooks that one query returns.
const POLL_PAGE: usize = 256;
/// Maximum number of workers. Further webhooks wait for a free one.
const WORKERS_MAX: usize = 1_024;
/// Maximum number of polls for one [`Settler::settle`]. Each finds the webhooks for which no worker was free.
const SETTLE_POLLS_MAX: usize = 64;

/// Sends the messages in the outbox.
pub struct Sender {
    context: WorkerContext,
    workers: Workers,
    /// The webhook after which the next poll continues, if the last poll found too many; else `None`.
    after: Option<WebhookId>,
    settler: Settler,
    /// The calls of [`Settler::settle`].
    calls: mpsc::Receiver<oneshot::Sender<()>>,
}

#[derive(Default)]
struct Workers {
    /// Wakes the worker of a webhook when there are more messages.
    wakers: HashMap<WebhookId, Arc<Notify>>,
    tasks: JoinSet<WebhookId>,
}

impl Sender {
    /// A sender with at most this many attempts in flight, which runs until `stopping` is `true`.
    pub fn new(
        service: Service,
        client: Client,
        attempts_at_once: usize,
        metrics: Arc<WebhookMetrics>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(attempts_at_once));
        let context = WorkerContext {
            service,
            client,
            permits,
            metrics,
            stopping,
            is_settling: Arc::default(),
            late_results: Arc::default(),
        };
        let (settler, calls) = Settler::new();
        Self { context, workers: Workers::default(), after: None, settler, calls }
    }

    /// Asks this sender to make the attempts that are due.
    pub fn settler(&self) -> Settler {
        self.settler.clone()
    }

    /// Sends until `stopping` is `true`. Then finishes the attempts in flight, which takes 5 seconds and a
    /// write. If the sender is dropped instead, these attempts are made again under the same ids, after the
    /// end of their leases.
    pub async fn run(mut self) {
        let mut written = self.context.service.deliveries_written();
        let mut stopping = self.context.stopping.clone();
        let clock = self.context.service.clock().clone();
        while !*stopping.borrow() {
            written.borrow_and_update();
            let began = clock.monotonic();
            self.poll_outbox().await;
            self.context.client.close_idle();
            // A poll that finds many webhooks takes long. The next poll then waits twice as long.
            let took = clock.monotonic() - began;
            clock.sleep_until(began + (took * 2).min(POLL_EVERY)).await;
            let call = tokio::select! {
                _ = written.changed() => None,
                () = self.workers.worker_done() => None,
                () = clock.sleep_until(began + POLL_EVERY) => None,
                () = stop_requested(&mut stopping) => None,
                call = self.calls.recv() => call,
            };
            if let Some(done) = call {
                self.context.is_settling.store(true, Relaxed);
                self.settle().await;
                self.context.is_settling.store(false, Relaxed);
                // The caller may have gone.
                let _ = done.send(());
            }
        }
        while self.workers.tasks.join_next().await.is_some() {}
    }

    /// Makes every attempt that is due, and waits until the results are recorded.
    async fn settle(&mut self) {
        for _ in 0..SETTLE_POLLS_MAX {
            self.poll_outbox().await;
            if self.workers.tasks.is_empty() {
                return;
            }
            while !self.workers.tasks.is_empty() {
                self.workers.worker_done().await;
            }
        }
    }

    /// Starts or wakes a worker for every webhook with due messages.
    async fn poll_outbox(&mut self) {
        loop {
            let limit = i64::try_from(POLL_PAGE).unwrap_or(i64::MAX);
            let due = self.context.service.webhooks_due(self.after.as_ref(), limit).await;
            self.context.service.record_job_run(Job::WebhookLook, due.is_ok());
            let Some(due) = self.context.checked(due) else { return };
            let page_is_full = due.len() == POLL_PAGE;
            for webhook in due {
                if !self.workers.start_or_wake(&webhook, &self.context) {
                    return;
                }
                self.after = Some(webhook);
            }
            if !page_is_full {
                self.after = None;
                return;
            }
        }
    }
}

impl Workers {
    /// Returns `false` if the maximum number of workers is running.
    fn start_or_wake(&mut self, webhook: &WebhookId, context: &WorkerContext) -> bool {
        if let Some(wake) = self.wakers.get(webhook) {
            wake.notify_one();
            return true;
        }
        if self.wakers.len() >= WORKERS_MAX {
            return false;
        }
        let wake = Arc::new(Notify::new());
        self.wakers.insert(webhook.clone(), wake.clone());
        let worker = Worker::new(context.clone(), webhook.clone(), wake);
        let webhook = webhook.clone();
        self.tasks.spawn(async move {
            // A worker that panicked is replaced at the next poll, like a finished worker.
            let _ = AssertUnwindSafe(worker.run()).catch_unwind().await;
            webhook
        });
        true
    }

    /// Returns when a worker has finished. More messages may have been queued at the same time, so the caller
    /// polls again.
    async fn worker_done(&mut self) {
        let mut done = self.tasks.join_next().await;
        if done.is_none() {
            std::future::pending::<()>().await;
        }
        while let Some(one) = done {
            if let Ok(webhook) = one {
                self.wakers.remove(&webhook);
            }
            done = self.tasks.try_join_next();
        }
    }
}

/// Returns when the sender has to stop.
async fn stop_requested(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        // The sending end is gone. Then the sender runs until it is dropped.
        std::future::pending().await
    }
}
