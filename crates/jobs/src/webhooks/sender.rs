//! Works the outbox off: finds the webhooks that have something due, and gives each a worker for as long as it has.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::WebhookId;
use futures_util::FutureExt;
use service::{Job, LogLimit, Service};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use super::client::Client;
use super::figures::Figures;
use super::worker::Worker;

/// How often the outbox is looked at, for retries and for what other nodes wrote. What this node writes is seen at once.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Webhooks that one look asks for at once.
const LOOK_PAGE: usize = 256;
/// Webhooks that are worked on at once. Those beyond have their turn when others are done.
const WORKERS_MAX: usize = 1_024;
/// Sends what waits in the outbox.
pub struct Sender {
    parts: Parts,
    crew: Crew,
    /// Behind which webhook the next look begins: not at the first one, where there were too many for one look.
    after: Option<WebhookId>,
}

/// What every worker has.
#[derive(Clone)]
pub(super) struct Parts {
    pub service: Service,
    pub client: Client,
    /// One for each attempt under way.
    pub places: Arc<Semaphore>,
    pub figures: Arc<Figures>,
    /// `true` from when on nothing more is taken.
    pub stopping: watch::Receiver<bool>,
    /// Results of attempts that were not written in time.
    pub late_results: Arc<LogLimit>,
}

#[derive(Default)]
struct Crew {
    /// How to tell each worker that there is more.
    pokes: HashMap<WebhookId, Arc<Notify>>,
    workers: JoinSet<WebhookId>,
}

impl Sender {
    /// A sender with so many attempts under way at the most, until `stopping` says `true`.
    pub fn new(
        service: Service,
        client: Client,
        attempts_at_once: usize,
        figures: Arc<Figures>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let places = Arc::new(Semaphore::new(attempts_at_once));
        let parts = Parts { service, client, places, figures, stopping, late_results: Arc::default() };
        Self { parts, crew: Crew::default(), after: None }
    }

    /// Sends until it is told to stop; then finishes the attempts that are under way, which takes 5 seconds and a write.
    /// Dropped, it leaves them: they are made again, under the same ids, when their leases have ended.
    pub async fn run(mut self) {
        let mut written = self.parts.service.deliveries_written();
        let mut stopping = self.parts.stopping.clone();
        let clock = self.parts.service.clock().clone();
        while !*stopping.borrow() {
            written.borrow_and_update();
            let began = clock.monotonic();
            self.look().await;
            self.parts.client.tidy();
            // A look costs the more the more webhooks wait: then it is not taken again at once.
            let took = clock.monotonic() - began;
            clock.sleep_until(began + (took * 2).min(LOOK_EVERY)).await;
            tokio::select! {
                _ = written.changed() => {}
                () = self.crew.one_is_done() => {}
                () = clock.sleep_until(began + LOOK_EVERY) => {}
                () = told(&mut stopping) => {}
            }
        }
        while self.crew.workers.join_next().await.is_some() {}
    }

    /// Sees to it that every webhook with something due is worked on.
    async fn look(&mut self) {
        loop {
            let limit = i64::try_from(LOOK_PAGE).unwrap_or(i64::MAX);
            let found = self.parts.service.webhooks_due(self.after.as_ref(), limit).await;
            self.parts.service.note_job(Job::WebhookLook, found.is_ok());
            let Some(found) = self.parts.checked(found) else { return };
            let page_is_full = found.len() == LOOK_PAGE;
            for webhook in found {
                if !self.crew.set_to_work(&webhook, &self.parts) {
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

impl Parts {
    /// The value, or `None` after a line in the log.
    pub fn checked<T>(&self, outcome: Result<T, service::Error>) -> Option<T> {
        if let Err(error) = &outcome {
            self.service.log_failure(
                "the outbox of webhooks cannot be worked off for now: nothing in it is lost",
                error,
            );
        }
        outcome.ok()
    }
}

impl Crew {
    /// `false` when there is no room for another worker.
    fn set_to_work(&mut self, webhook: &WebhookId, parts: &Parts) -> bool {
        if let Some(poke) = self.pokes.get(webhook) {
            poke.notify_one();
            return true;
        }
        if self.pokes.len() >= WORKERS_MAX {
            return false;
        }
        let poke = Arc::new(Notify::new());
        self.pokes.insert(webhook.clone(), poke.clone());
        let worker = Worker::new(parts.clone(), webhook.clone(), poke);
        let webhook = webhook.clone();
        self.workers.spawn(async move {
            // One that panics is replaced like one that is done, at the next look.
            let _ = AssertUnwindSafe(worker.run()).catch_unwind().await;
            webhook
        });
        true
    }

    /// Returns when workers have nothing more to do. Something may have come for them in that very moment: look again.
    async fn one_is_done(&mut self) {
        let mut done = self.workers.join_next().await;
        if done.is_none() {
            std::future::pending::<()>().await;
        }
        while let Some(one) = done {
            if let Ok(webhook) = one {
                self.pokes.remove(&webhook);
            }
            done = self.workers.try_join_next();
        }
    }
}

/// Returns when the sender is told to stop.
async fn told(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        // Nobody can tell it any more; it ends by being dropped.
        std::future::pending().await
    }
}
