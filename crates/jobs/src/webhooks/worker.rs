//! Sends what is due to one webhook, some at a time, until nothing is.
//!
//! It begins with one attempt at a time and doubles that with every answer of status 2xx; after anything else it goes back
//! to one. So a receiver that hangs holds one place and not eight, and all the others theirs.

use std::sync::Arc;
use std::time::Duration;

use domain::WebhookId;
use domain::delivery::{Next, Outcome};
use domain::limits::WEBHOOK_LEASE_MS;
use domain::outbound::{SendFailure, WebhookUrl};
use service::deliveries::{Attempt, Report};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::JoinSet;

use super::client::{ATTEMPT_MAX, Outgoing};
use super::sender::Parts;

/// Attempts at one webhook under way at once.
pub const PER_WEBHOOK_MAX: usize = 8;
/// The pause between tries to record results while the store is away.
const RECORD_RETRY: Duration = Duration::from_millis(500);
/// How long a message is its taker's alone.
const LEASE: Duration = Duration::from_millis(WEBHOOK_LEASE_MS.unsigned_abs());

pub(super) struct Worker {
    parts: Parts,
    webhook: WebhookId,
    /// Told when something more is due.
    poke: Arc<Notify>,
    /// How many attempts may be under way.
    room: usize,
    /// Attempts under way, each with the end of its lease on the clock's monotonic side.
    under_way: JoinSet<Option<(Report, Duration)>>,
}

impl Worker {
    pub fn new(parts: Parts, webhook: WebhookId, poke: Arc<Notify>) -> Self {
        Self { parts, webhook, poke, room: 1, under_way: JoinSet::new() }
    }

    pub async fn run(mut self) {
        let mut more = true;
        loop {
            if more && self.room > self.under_way.len() && !*self.parts.stopping.borrow() {
                more = self.take().await;
            }
            let has_room = self.room > self.under_way.len();
            if more && has_room && !*self.parts.stopping.borrow() {
                continue;
            }
            if self.under_way.is_empty() {
                return;
            }
            let poke = self.poke.clone();
            tokio::select! {
                Some(first) = self.under_way.join_next() => {
                    let ended = std::iter::once(first).chain(std::iter::from_fn(|| self.under_way.try_join_next()));
                    let ended: Vec<_> = ended.filter_map(Result::ok).flatten().collect();
                    self.record(ended).await;
                }
                () = poke.notified(), if !more => more = true,
            }
        }
    }

    /// Takes as many messages as there is room for, and begins with them. `false` when there are no more.
    async fn take(&mut self) -> bool {
        let Some(places) = self.places().await else { return false };
        let asked_at = self.parts.service.clock().monotonic();
        let limit = i64::try_from(places.len()).unwrap_or(i64::MAX);
        let taken = self.parts.service.take_deliveries(&self.webhook, limit).await;
        // When the store failed, the next look finds what is left.
        let Some(attempts) = self.parts.checked(taken) else { return false };
        let all_places_are_used = attempts.len() == places.len();
        for (attempt, place) in attempts.into_iter().zip(places) {
            let parts = self.parts.clone();
            self.under_way.spawn(async move {
                let report = send(&parts, attempt, asked_at + LEASE).await;
                drop(place);
                report.map(|report| (report, asked_at + LEASE))
            });
        }
        all_places_are_used
    }

    /// A place for each attempt that may begin: waits for the first, and takes what else there is.
    async fn places(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        let all = &self.parts.places;
        let first = all.clone().acquire_owned().await.ok()?;
        let further = std::iter::from_fn(|| all.clone().try_acquire_owned().ok());
        let room = self.room - self.under_way.len();
        Some(std::iter::once(first).chain(further.take(room - 1)).collect())
    }

    /// Writes down what came of attempts, for as long as their leases last. After that the messages are somebody else's, and
    /// are sent again under the same ids.
    async fn record(&mut self, ended: Vec<(Report, Duration)>) {
        let Parts { service, figures, .. } = &self.parts;
        for (report, _) in &ended {
            figures.ended(&report.outcome);
            self.room = if report.outcome.is_success() { (self.room * 2).min(PER_WEBHOOK_MAX) } else { 1 };
        }
        let until = ended.iter().map(|(_, leased_until)| *leased_until).max().unwrap_or_default();
        let reports: Vec<_> = ended.into_iter().map(|(report, _)| report).collect();
        while service.clock().monotonic() < until {
            let recorded = service.record_attempts(reports.clone()).await;
            if let Some(recorded) = self.parts.checked(recorded) {
                let dead = recorded.iter().filter(|(_, next)| matches!(next, Some(Next::Dead | Next::Gone)));
                figures.given_up(dead.count());
                return;
            }
            service.clock().sleep(RECORD_RETRY).await;
        }
        if let Some(times) = self.parts.late_results.due(service.clock().monotonic()) {
            let webhook_id = &self.webhook;
            tracing::warn!(%webhook_id, times, "results of attempts were not written in time: their messages are sent again");
        }
    }
}

/// Makes one attempt. When too little is left of its lease, it is left alone: the message will be somebody else's before
/// there is an answer.
async fn send(parts: &Parts, attempt: Attempt, leased_until: Duration) -> Option<Report> {
    let clock = parts.service.clock();
    let (began_at, began) = (clock.now(), clock.monotonic());
    let Attempt { key, url, headers, body, .. } = attempt;
    if began + ATTEMPT_MAX >= leased_until {
        return None;
    }
    parts.figures.began();
    if key.number == 1 {
        let delay_ms = began_at.as_millis().saturating_sub(key.message_id.written_at().as_millis());
        parts.figures.began_after(u64::try_from(delay_ms).unwrap_or(0));
    }
    let answered = match outgoing(parts, url.as_deref(), headers, body) {
        Some(outgoing) => parts.client.send(outgoing).await,
        None => Err(SendFailure::Address),
    };
    let took = clock.monotonic().saturating_sub(began);
    let (outcome, answer) = match answered {
        Ok(answer) => {
            let outcome = Outcome::answered(answer.status, answer.retry_after.as_deref(), clock.now());
            (outcome, answer.beginning)
        }
        Err(failure) => (Outcome::Failed(failure), Vec::new()),
    };
    tracing::debug!(message_id = %key.message_id, number = key.number, ?outcome, "an attempt at a webhook");
    let duration_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
    Some(Report { key, outcome, began_at, duration_ms, answer })
}

/// The request of an attempt; `None` where its address may not be called. It was judged when it was registered, but maybe
/// by a configuration that allowed more.
fn outgoing(
    parts: &Parts,
    url: Option<&str>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
) -> Option<Outgoing> {
    let url = WebhookUrl::parse(url?, parts.service.webhook_settings().reach).ok()?;
    Outgoing::new(url, &headers, body)
}
