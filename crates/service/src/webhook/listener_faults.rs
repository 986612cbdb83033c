//! The faults of a sandbox around the attempts of listeners, as around those of this service: what a
//! listener gets, and what becomes of its report.

use std::time::Duration;

use domain::delivery::{Next, Outcome};
use domain::outbound::SendFailure;
use domain::{ClientId, Timestamp, WebhookId};
use store::Tx;

use crate::webhook::attempt::Attempt;
use crate::webhook::attempt_faults::{AttemptFault, AttemptFaultPoint, SentAttempt, tampered};
use crate::webhook::deliveries::Report;
use crate::webhook::listener_attempts::{LEASE, Taken};
use crate::{Error, Service};

/// Maximum time, in real time, that a sandbox waits for its listeners. By then their leases have ended.
const SETTLE_MAX: Duration = LEASE;
/// The pause between two looks at the messages of listeners.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Service {
    /// Waits until the listeners of this node have made the attempts that are due. Only a sandbox, which has
    /// a fault point, waits.
    ///
    /// # Errors
    /// The store fails.
    pub async fn settle_listeners(&self) -> Result<(), Error> {
        let until = self.clock().monotonic() + SETTLE_MAX;
        loop {
            let now = self.clock().monotonic();
            let mut is_busy = false;
            for webhook_id in self.0.listener_attempts.present(now) {
                is_busy |= self.0.listener_attempts.is_busy(&webhook_id, now);
                is_busy |= self.has_due(&webhook_id).await?;
            }
            if !is_busy || now >= until {
                return Ok(());
            }
            // Listeners that wait look again.
            self.0.delivery_queue.wake_senders();
            self.clock().sleep(LOOK_EVERY).await;
        }
    }

    /// Whether a listener of this webhook is there.
    pub fn has_listener(&self, webhook_id: &WebhookId) -> bool {
        self.0.listener_attempts.present(self.clock().monotonic()).contains(webhook_id)
    }

    async fn has_due(&self, webhook_id: &WebhookId) -> Result<bool, Error> {
        let (id, now) = (webhook_id.clone(), self.now());
        self.read(async move |tx: &mut Tx| {
            // A disabled webhook has no target.
            let is_enabled = tx.delivery_target(&id).await?.is_some();
            Ok(is_enabled && !tx.due_deliveries(&id, now, 1).await?.is_empty())
        })
        .await
    }

    /// Attempts of a listener that were held back until now.
    pub(super) fn held_for_listener(&self, webhook_id: &WebhookId, limit: i64) -> Vec<Attempt> {
        if self.webhook_faults().is_none() {
            return Vec::new();
        }
        let now = self.clock().monotonic();
        self.0.listener_attempts.note_seen(webhook_id, now);
        self.0.listener_attempts.ready(webhook_id, limit, now)
    }

    /// Takes up to `limit` due messages for a listener.
    pub(super) async fn take_for_listener(
        &self,
        webhook_id: &WebhookId,
        limit: i64,
    ) -> Result<Vec<Attempt>, Error> {
        let taken = self.take_deliveries(webhook_id, limit).await?;
        let Some(point) = self.webhook_faults().cloned() else { return Ok(taken) };
        let mut handed_out = Vec::with_capacity(taken.len());
        for attempt in taken {
            handed_out.extend(self.with_fault(point.as_ref(), attempt).await?);
        }
        Ok(handed_out)
    }

    /// The attempt as the listener gets it now; `None` if it gets it later, or never.
    async fn with_fault(
        &self,
        point: &dyn AttemptFaultPoint,
        attempt: Attempt,
    ) -> Result<Option<Attempt>, Error> {
        let now = self.clock().monotonic();
        let fault = point.fault(&attempt);
        let attempt = match fault {
            Some((_, fault)) => tampered(attempt, fault),
            None => attempt,
        };
        let held_until = match fault {
            Some((_, AttemptFault::Late(span))) => Some(now + span),
            _ => None,
        };
        let leased_until = now + LEASE;
        let taken = Taken { attempt: attempt.clone(), fault, held_until, leased_until, is_copy: false };
        if let Some((_, AttemptFault::NotSent)) = taken.fault {
            let client_id = attempt.client_id.clone();
            self.record_of_listener(&client_id, Some(&taken), lost(attempt, self.now())).await?;
            return Ok(None);
        }
        self.0.listener_attempts.keep(taken, now);
        Ok(held_until.is_none().then_some(attempt))
    }

    /// The attempt that a listener reports, if this node knows it.
    pub(super) fn end_of_listener(&self, report: &Report) -> Option<Taken> {
        self.webhook_faults()?;
        let key = &report.key;
        self.0.listener_attempts.note_seen(&key.webhook_id, self.clock().monotonic());
        self.0.listener_attempts.end(&key.webhook_id, &key.message_id, key.number)
    }

    /// Records the result of a listener's attempt, and returns the next step of its message; `None` for a
    /// late result.
    pub(super) async fn record_of_listener(
        &self,
        client_id: &ClientId,
        taken: Option<&Taken>,
        mut report: Report,
    ) -> Result<Option<Next>, Error> {
        let fault = taken.and_then(|taken| taken.fault.as_ref()).map(|(_, fault)| *fault);
        if let Some(taken) = taken {
            report.signed_at = Some(taken.attempt.signed_at);
        }
        if fault == Some(AttemptFault::AnswerLost) {
            (report.outcome, report.answer) = (Outcome::Failed(SendFailure::Closed), Vec::new());
        }
        let recorded = self.record_attempts(vec![report.clone()]).await?;
        let next = recorded.into_iter().next().and_then(|(_, next)| next);
        self.tell_of_listener(client_id, taken, &report, next);
        if let (Some(taken), Some(AttemptFault::Duplicate)) = (taken, fault) {
            let now = self.clock().monotonic();
            let copy =
                Taken { held_until: Some(now), leased_until: now + LEASE, is_copy: true, ..taken.clone() };
            self.0.listener_attempts.keep(copy, now);
            self.0.delivery_queue.wake_senders();
        }
        Ok(next)
    }

    /// Reports to the sandbox that an attempt of a listener was made.
    pub(super) fn tell_of_listener(
        &self,
        client_id: &ClientId,
        taken: Option<&Taken>,
        report: &Report,
        next: Option<Next>,
    ) {
        let Some(point) = self.webhook_faults() else { return };
        point.attempted(SentAttempt {
            key: report.key.clone(),
            client_id: client_id.clone(),
            claim_id: taken.and_then(|taken| taken.attempt.claim_id.clone()),
            url: None,
            began_at: report.began_at,
            duration_ms: report.duration_ms,
            outcome: report.outcome,
            next,
            fault: taken.and_then(|taken| taken.fault.as_ref()).map(|(rule, _)| rule.clone()),
            is_copy: taken.is_some_and(|taken| taken.is_copy),
        });
    }
}

/// The report of an attempt that never reached its receiver.
fn lost(attempt: Attempt, began_at: Timestamp) -> Report {
    Report {
        key: attempt.key,
        outcome: Outcome::Failed(SendFailure::Closed),
        began_at,
        duration_ms: 0,
        answer: Vec::new(),
        signed_at: Some(attempt.signed_at),
    }
}
