//! Listeners: programs of developers without a public address. A listener fetches the messages to its
//! application's webhook, makes the attempts itself and reports the results. In all other respects these
//! attempts are like those of this service.

use std::time::Duration;

use domain::delivery::{DeliveryState, DisabledReason, Next, Outcome};
use domain::limits::WEBHOOK_LEASE_MS;
use domain::outbound::SendFailure;
use domain::secret::WebhookSecret;
use domain::{ClientId, DeliveryId, Invalid, Rule, Timestamp, WebhookId};
use store::Tx;
use store::queries::deliveries::DueDelivery;

use crate::cluster::nodes::Readiness;
use crate::webhook::deliveries::{Attempt, AttemptKey, Delivery, Report};
use crate::webhook::webhooks::{Webhook, WebhookDetails, details_of};
use crate::{Error, Service};

/// How often the store is polled for a waiting listener. Messages that this node writes end the wait at
/// once.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// Maximum number of expired leases that one poll records as failed attempts.
const EXPIRED_AT_ONCE: i64 = 100;

/// The report of a listener about an attempt.
#[derive(Clone, Debug)]
pub struct ListenerReport {
    /// The message.
    pub message_id: DeliveryId,
    /// The number of the attempt.
    pub number: i64,
    /// The receiver's response.
    pub response: ReceiverResponse,
    /// The duration of the attempt, in milliseconds.
    pub duration_ms: i64,
    /// The beginning of the answer.
    pub answer: String,
}

/// The response of the receiver to a listener's request.
#[derive(Clone, Debug)]
pub enum ReceiverResponse {
    /// The status, and the value of `Retry-After`.
    Answer(u16, Option<String>),
    /// No answer, for this reason.
    NoAnswer(SendFailure),
}

/// The state of a message after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateAfterAttempt {
    /// The state.
    pub state: DeliveryState,
    /// When the next attempt is due.
    pub next_at: Option<Timestamp>,
}

impl Service {
    /// Starts a listener for an application. Makes a webhook if there is none, and returns the secret of
    /// the new webhook, which is never shown again. A webhook that was disabled because of failures is
    /// enabled again.
    ///
    /// # Errors
    /// `Invalid` when the webhook has an address, or the operator disabled it;
    /// [`NotFound`](domain::Refusal::NotFound) when the application does not exist or is deleted.
    pub async fn begin_listening(
        &self,
        client_id: &ClientId,
    ) -> Result<(WebhookDetails, Option<WebhookSecret>), Error> {
        let altered = |before: Webhook, now| {
            check_address(&before)?;
            match &before.disabled {
                None => Ok(None),
                Some(by) if by.reason == DisabledReason::Operator => Err(disabled().into()),
                Some(_) => {
                    Ok(Some(Webhook { disabled: None, failing_since: None, changed_at: now, ..before }))
                }
            }
        };
        self.make_or_alter_webhook(client_id, (None, None), altered).await
    }

    /// Takes up to `limit` messages for a listener, with a lease on each. Waits up to `wait` for the
    /// first message, but not while this node is about to stop. A lease that ended without a report
    /// counts as a failed attempt.
    ///
    /// # Errors
    /// `Invalid` when the webhook has an address or is disabled; [`NotFound`](domain::Refusal::NotFound)
    /// when there is no webhook.
    pub async fn attempts_for_listener(
        &self,
        client_id: &ClientId,
        limit: i64,
        wait: Duration,
    ) -> Result<Vec<Attempt>, Error> {
        let mut written = self.deliveries_written();
        let until = self.clock().monotonic() + wait;
        loop {
            written.borrow_and_update();
            let attempts = self.poll_for_listener(client_id, limit).await?;
            let left = until.saturating_sub(self.clock().monotonic());
            let stopping = self.readiness() == Readiness::Draining;
            if !attempts.is_empty() || left.is_zero() || stopping {
                return Ok(attempts);
            }
            tokio::select! {
                _ = written.changed() => {}
                () = self.clock().sleep(left.min(self.listener_pause())) => {}
            }
        }
    }

    /// Records the result of a listener's attempt, and returns the new state of the message. `None` for a
    /// late result: the message was scheduled again, or does not exist.
    ///
    /// # Errors
    /// `Invalid` when the webhook has an address; [`NotFound`](domain::Refusal::NotFound) when there is
    /// no webhook.
    pub async fn report_of_listener(
        &self,
        client_id: &ClientId,
        report: ListenerReport,
    ) -> Result<Option<StateAfterAttempt>, Error> {
        let ListenerReport { message_id, number, response, duration_ms, answer } = report;
        let (client, message) = (client_id.clone(), message_id.clone());
        let (webhook, delivery) = self
            .read(async move |tx: &mut Tx| {
                let webhook = details_of(tx, &client).await?.webhook;
                let delivery = tx.delivery(&webhook.webhook_id, &message).await?;
                Ok::<_, Error>((webhook, delivery))
            })
            .await?;
        check_address(&webhook)?;
        let leased = delivery.as_ref().filter(|delivery| delivery.in_flight && delivery.attempts == number);
        let signed_at = leased.map(|delivery| delivery.due_at.plus_ms(-WEBHOOK_LEASE_MS));
        let now = self.now();
        let outcome = match response {
            ReceiverResponse::Answer(status, retry_after) => {
                Outcome::answered(status, retry_after.as_deref(), now)
            }
            ReceiverResponse::NoAnswer(failure) => Outcome::Failed(failure),
        };
        // `failures` is only a first guess: recording looks up the real number of earlier failures.
        let key = AttemptKey { webhook_id: webhook.webhook_id, message_id, number, failures: 0 };
        let began_at = now.plus_ms(-duration_ms);
        let answer = answer.into_bytes();
        let report = Report { key, outcome, began_at, duration_ms, answer, signed_at };
        let taken = self.end_of_listener(&report);
        if taken.as_ref().is_some_and(|taken| taken.is_copy) {
            self.tell_of_listener(client_id, taken.as_ref(), &report, None);
            return Ok(delivery.as_ref().map(StateAfterAttempt::now));
        }
        let next = self.record_of_listener(client_id, taken.as_ref(), report).await?;
        Ok(next.map(StateAfterAttempt::of))
    }

    /// The pause of a waiting listener until its next look.
    fn listener_pause(&self) -> Duration {
        let held = self.0.listener_attempts.next_ready_in(self.clock().monotonic());
        held.unwrap_or(POLL_EVERY).min(POLL_EVERY)
    }

    async fn poll_for_listener(&self, client_id: &ClientId, limit: i64) -> Result<Vec<Attempt>, Error> {
        loop {
            let (client, now) = (client_id.clone(), self.now());
            let (webhook, due) = self
                .read(async move |tx: &mut Tx| {
                    let webhook = details_of(tx, &client).await?.webhook;
                    let due = tx.due_deliveries(&webhook.webhook_id, now, EXPIRED_AT_ONCE).await?;
                    Ok::<_, Error>((webhook, due))
                })
                .await?;
            check_address(&webhook)?;
            if webhook.disabled.is_some() {
                return Err(disabled().into());
            }
            let abandoned = due.iter().filter(|due| due.in_flight);
            let reports: Vec<Report> = abandoned.map(|due| unanswered(&webhook.webhook_id, due)).collect();
            if reports.is_empty() {
                let held = self.held_for_listener(&webhook.webhook_id, limit);
                return match due.is_empty() || !held.is_empty() {
                    true => Ok(held),
                    false => self.take_for_listener(&webhook.webhook_id, limit).await,
                };
            }
            let taken: Vec<_> = reports.iter().map(|report| self.end_of_listener(report)).collect();
            let recorded = self.record_attempts(reports.clone()).await?;
            for (report, taken) in reports.iter().zip(&taken) {
                let of_it = recorded.iter().find(|(key, _)| *key == report.key);
                let next = of_it.and_then(|(_, next)| *next);
                self.tell_of_listener(client_id, taken.as_ref(), report, next);
            }
        }
    }
}

impl StateAfterAttempt {
    /// The state of a message whose attempt was recorded before.
    fn now(delivery: &Delivery) -> Self {
        let is_waiting = delivery.state == DeliveryState::Waiting;
        Self { state: delivery.state, next_at: is_waiting.then_some(delivery.due_at) }
    }

    fn of(next: Next) -> Self {
        match next {
            Next::Done => Self { state: DeliveryState::Delivered, next_at: None },
            Next::Again(at) => Self { state: DeliveryState::Waiting, next_at: Some(at) },
            Next::Dead | Next::Gone => Self { state: DeliveryState::Dead, next_at: None },
        }
    }
}

fn check_address(webhook: &Webhook) -> Result<(), Invalid> {
    if webhook.url.is_none() { Ok(()) } else { Err(Invalid::new("webhook", Rule::WithoutAddress)) }
}

fn disabled() -> Invalid {
    Invalid::new("webhook", Rule::Enabled)
}

/// The failed attempt of a listener that sent no report in time.
fn unanswered(webhook_id: &WebhookId, due: &DueDelivery) -> Report {
    let DueDelivery { message_id, number, due_at, .. } = due.clone();
    let signed_at = due_at.plus_ms(-WEBHOOK_LEASE_MS);
    Report {
        key: AttemptKey { webhook_id: webhook_id.clone(), message_id, number, failures: 0 },
        outcome: Outcome::Failed(SendFailure::Timeout),
        began_at: signed_at,
        duration_ms: WEBHOOK_LEASE_MS,
        answer: Vec::new(),
        signed_at: Some(signed_at),
    }
}
