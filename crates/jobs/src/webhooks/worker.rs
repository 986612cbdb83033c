//! Sends the due messages of one webhook, until there are no more.
//!
//! A worker begins with one attempt at a time. Every 2xx answer doubles its concurrency, and any other
//! outcome resets it to one. So a receiver that hangs occupies only one attempt of the sender's. While a
//! sandbox waits for the attempts that are due, the concurrency is [`PER_WEBHOOK_SETTLING`].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use domain::delivery::{Next, Outcome};
use domain::limits::WEBHOOK_LEASE_MS;
use domain::outbound::{SendFailure, WebhookUrl};
use domain::{Timestamp, WebhookId};
use service::attempt_faults::{AttemptFault, AttemptFaultPoint, SentAttempt, tampered};
use service::deliveries::{Attempt, AttemptKey, Report};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::client::{ATTEMPT_MAX, Outgoing};
use super::context::WorkerContext;

/// Maximum number of attempts of one webhook in flight.
pub const PER_WEBHOOK_MAX: usize = 8;
/// Attempts of one webhook in flight while a sandbox waits for them. Small test servers queue five
/// connections. A sixth connection would be tried again a second later.
const PER_WEBHOOK_SETTLING: usize = 4;
/// The pause between attempts to record results while the store does not answer.
const RECORD_RETRY: Duration = Duration::from_millis(500);
/// How long a message is leased to the node that took it.
const LEASE: Duration = Duration::from_millis(WEBHOOK_LEASE_MS.unsigned_abs());
/// Maximum of [`AttemptFault::Late`]. A message whose lease ends before its answer is recorded is sent again,
/// so the lease has to last longer than this wait, an attempt and the record of its result.
pub const LATE_MAX: Duration = LEASE.saturating_sub(ATTEMPT_MAX).saturating_sub(RECORD_MAX);
/// How long the record of a result may take.
const RECORD_MAX: Duration = Duration::from_secs(2);

pub(super) struct Worker {
    context: WorkerContext,
    webhook: WebhookId,
    /// Notified when more messages are due.
    wake: Arc<Notify>,
    /// Current maximum of attempts in flight.
    concurrency: usize,
    /// Attempts in flight.
    in_flight: JoinSet<Option<Ended>>,
}

/// An attempt that was made.
struct Ended {
    report: Report,
    /// The end of its lease on the monotonic clock.
    leased_until: Duration,
    /// What was sent, for the sandbox that stands around it.
    sent: Vec<SentAttempt>,
}

impl Worker {
    pub fn new(context: WorkerContext, webhook: WebhookId, wake: Arc<Notify>) -> Self {
        let concurrency = least_concurrency(&context);
        Self { context, webhook, wake, concurrency, in_flight: JoinSet::new() }
    }

    pub async fn run(mut self) {
        let mut more = true;
        loop {
            if more && self.concurrency > self.in_flight.len() && !*self.context.stopping.borrow() {
                more = self.take_due().await;
            }
            let has_capacity = self.concurrency > self.in_flight.len();
            if more && has_capacity && !*self.context.stopping.borrow() {
                continue;
            }
            if self.in_flight.is_empty() {
                return;
            }
            let wake = self.wake.clone();
            tokio::select! {
                Some(first) = self.in_flight.join_next() => {
                    let ended = std::iter::once(first).chain(std::iter::from_fn(|| self.in_flight.try_join_next()));
                    let ended: Vec<_> = ended.filter_map(Result::ok).flatten().collect();
                    self.record(ended).await;
                }
                () = wake.notified(), if !more => more = true,
            }
        }
    }

    /// Takes as many messages as the concurrency allows, and starts their attempts. Returns `false` if there
    /// are no more messages.
    async fn take_due(&mut self) -> bool {
        let Some(permits) = self.permits().await else { return false };
        let asked_at = self.context.service.clock().monotonic();
        let limit = i64::try_from(permits.len()).unwrap_or(i64::MAX);
        let taken = self.context.service.take_deliveries(&self.webhook, limit).await;
        // After a failure of the store, the next poll finds the remaining messages.
        let Some(attempts) = self.context.checked(taken) else { return false };
        let all_permits_are_used = attempts.len() == permits.len();
        for (attempt, permit) in attempts.into_iter().zip(permits) {
            let context = self.context.clone();
            let (message, application) = (&attempt.key.message_id, attempt.client_id.as_str());
            let span = tracing::trace_span!(target: "traces", "webhook attempt", kind = "client", delivery = %message, application);
            let made = async move {
                let ended = send(&context, attempt, asked_at + LEASE).await;
                drop(permit);
                note_outcome(ended.as_ref());
                ended
            };
            self.in_flight.spawn(made.instrument(span));
        }
        all_permits_are_used
    }

    /// Permits for attempts: waits for the first one, then takes every other free one.
    async fn permits(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        let all = &self.context.permits;
        let first = all.clone().acquire_owned().await.ok()?;
        let further = std::iter::from_fn(|| all.clone().try_acquire_owned().ok());
        let concurrency = self.concurrency - self.in_flight.len();
        Some(std::iter::once(first).chain(further.take(concurrency - 1)).collect())
    }

    /// Records the results of attempts while their leases last. After a lease, another node sends the message
    /// again, under the same id.
    async fn record(&mut self, ended: Vec<Ended>) {
        let WorkerContext { service, metrics, .. } = &self.context;
        for Ended { report, .. } in &ended {
            metrics.ended(&report.outcome);
            self.concurrency = match report.outcome.is_success() {
                true if !self.context.is_settling.load(Relaxed) => {
                    (self.concurrency * 2).min(PER_WEBHOOK_MAX)
                }
                _ => least_concurrency(&self.context),
            };
        }
        let until = ended.iter().map(|ended| ended.leased_until).max().unwrap_or_default();
        let (mut reports, mut sent) = (Vec::with_capacity(ended.len()), Vec::new());
        for ended in ended {
            reports.push(ended.report);
            sent.extend(ended.sent);
        }
        while service.clock().monotonic() < until {
            let recorded = service.record_attempts(reports.clone()).await;
            if let Some(recorded) = self.context.checked(recorded) {
                let dead = recorded.iter().filter(|(_, next)| matches!(next, Some(Next::Dead | Next::Gone)));
                metrics.given_up(dead.count());
                self.tell(sent, &recorded);
                return;
            }
            service.clock().sleep(RECORD_RETRY).await;
        }
        self.tell(sent, &[]);
        if let Some(times) = self.context.late_results.due(service.clock().monotonic()) {
            let webhook_id = &self.webhook;
            tracing::warn!(%webhook_id, times, "failed to record webhook attempts before their leases ended: the messages are sent again");
        }
    }

    /// Reports to the sandbox which attempts were made, with their consequences.
    fn tell(&self, sent: Vec<SentAttempt>, recorded: &[(AttemptKey, Option<Next>)]) {
        let Some(fault_point) = self.context.service.webhook_faults() else { return };
        for sent in sent {
            let counts = |(key, _): &&(AttemptKey, _)| !sent.is_copy && *key == sent.key;
            let next = recorded.iter().find(counts).and_then(|(_, next)| *next);
            fault_point.attempted(SentAttempt { next, ..sent });
        }
    }
}

/// Adds the outcome of an attempt to its span.
fn note_outcome(ended: Option<&Ended>) {
    match ended.map(|ended| ended.report.outcome) {
        Some(Outcome::Answered { status, .. }) => tracing::trace!(target: "traces", status = status),
        Some(Outcome::Failed(failure)) => tracing::trace!(target: "traces", failure = failure.name()),
        None => {}
    }
}

/// The number of attempts in flight for a webhook that is new or fails. A sandbox that waits for thousands of
/// retries does not have them made one by one.
fn least_concurrency(context: &WorkerContext) -> usize {
    if context.is_settling.load(Relaxed) { PER_WEBHOOK_SETTLING } else { 1 }
}

/// Makes one attempt. Skips it when the lease may end before the answer, because another node then takes the
/// message.
async fn send(context: &WorkerContext, attempt: Attempt, leased_until: Duration) -> Option<Ended> {
    if context.service.clock().monotonic() + ATTEMPT_MAX >= leased_until {
        return None;
    }
    if let Some(fault_point) = context.service.webhook_faults() {
        return Some(send_watched(context, fault_point.as_ref(), attempt, leased_until).await);
    }
    note_began(context, &attempt.key);
    let Attempt { key, url, headers, body, signed_at, .. } = attempt;
    let (report, _) = exchange(context, (key, signed_at), url.as_deref(), headers, body).await;
    Some(Ended { report, leased_until, sent: Vec::new() })
}

/// Makes one attempt as the fault point says.
async fn send_watched(
    context: &WorkerContext,
    fault_point: &dyn AttemptFaultPoint,
    attempt: Attempt,
    leased_until: Duration,
) -> Ended {
    let (rule, fault) = fault_point.fault(&attempt).unzip();
    if let Some(AttemptFault::Late(span)) = fault {
        context.service.clock().sleep(span.min(LATE_MAX)).await;
    }
    note_began(context, &attempt.key);
    let attempt = match fault {
        Some(fault) => tampered(attempt, fault),
        None => attempt,
    };
    let Attempt { key, client_id, claim_id, url, headers, body, signed_at, .. } = attempt;
    let signed = (key.clone(), signed_at);
    let copy = (fault == Some(AttemptFault::Duplicate)).then(|| (headers.clone(), body.clone()));
    let (report, took_ms) = match fault {
        Some(AttemptFault::NotSent) => (cut(signed, context.service.clock().now()), 0),
        Some(AttemptFault::AnswerLost) => {
            let (answered, took_ms) = exchange(context, signed.clone(), url.as_deref(), headers, body).await;
            (Report { duration_ms: answered.duration_ms, ..cut(signed, answered.began_at) }, took_ms)
        }
        _ => exchange(context, signed, url.as_deref(), headers, body).await,
    };
    let sent = |report: &Report, duration_ms, is_copy| SentAttempt {
        key: key.clone(),
        client_id: client_id.clone(),
        claim_id: claim_id.clone(),
        url: url.as_deref().and_then(|url| url.split('?').next()).map(str::to_owned),
        began_at: report.began_at,
        duration_ms,
        outcome: report.outcome,
        next: None,
        fault: rule.clone(),
        is_copy,
    };
    let mut requests = vec![sent(&report, took_ms, false)];
    if let Some((headers, body)) = copy {
        let (copy, took_ms) =
            exchange(context, (key.clone(), signed_at), url.as_deref(), headers, body).await;
        requests.push(sent(&copy, took_ms, true));
    }
    Ended { report, leased_until, sent: requests }
}

/// The report of an attempt whose connection ended without an answer.
fn cut((key, signed_at): (AttemptKey, Timestamp), began_at: Timestamp) -> Report {
    let outcome = Outcome::Failed(SendFailure::Closed);
    Report { key, outcome, began_at, duration_ms: 0, answer: Vec::new(), signed_at: Some(signed_at) }
}

/// Counts an attempt that begins.
fn note_began(context: &WorkerContext, key: &AttemptKey) {
    context.metrics.began();
    if key.number == 1 {
        let now = context.service.clock().now();
        let delay_ms = now.as_millis().saturating_sub(key.message_id.written_at().as_millis());
        context.metrics.began_after(u64::try_from(delay_ms).unwrap_or(0));
    }
}

/// Sends one request, which was signed at that time. Returns the report of its outcome, and the milliseconds
/// of real time that it took.
async fn exchange(
    context: &WorkerContext,
    (key, signed_at): (AttemptKey, Timestamp),
    url: Option<&str>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
) -> (Report, i64) {
    let clock = context.service.clock();
    let (began_at, began) = (clock.now(), clock.monotonic());
    let answered = match outgoing(context, url, headers, body) {
        Some(outgoing) => context.client.send(outgoing).await,
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
    tracing::debug!(message_id = %key.message_id, number = key.number, ?outcome, "webhook attempt finished");
    let milliseconds = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    let duration_ms = milliseconds(clock.shown(took));
    let report = Report { key, outcome, began_at, duration_ms, answer, signed_at: Some(signed_at) };
    (report, milliseconds(took))
}

/// The request of an attempt; `None` if its address may not be called. The address was judged when it was
/// registered, but the configuration may allow fewer addresses since then.
fn outgoing(
    context: &WorkerContext,
    url: Option<&str>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
) -> Option<Outgoing> {
    let url = WebhookUrl::parse(url?, context.service.webhook_settings().reach).ok()?;
    Outgoing::new(url, &headers, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_attempt_is_recorded_before_its_lease_ends() {
        assert_eq!(LATE_MAX, Duration::from_secs(8));
        assert!(LATE_MAX + ATTEMPT_MAX < LEASE);
    }
}
