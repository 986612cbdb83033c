//! Messages to webhooks: how they are written with their claim, leased by a sender, recorded, listed and
//! sent again (`docs/spec/drops.md#webhook`, `docs/adr/0014-webhooks-leave-from-an-outbox.md`).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use domain::audit::AuditAction;
use domain::delivery::{
    DeliveryState, DisabledReason, Next, Outcome, excerpt, given_up_when_failing_since, next, spread,
};
use domain::drops::RewardClaim;
use domain::limits::{WEBHOOK_DELIVERIES_KEPT_MS, WEBHOOK_LEASE_MS};
use domain::refusal::Resource;
use domain::webhook;
use domain::{ClaimId, ClientId, DeliveryId, Refusal, Timestamp, WebhookId};
use serde_json::json;
use store::Tx;
pub use store::queries::deliveries::{AttemptRecord, Delivery};
use store::queries::deliveries::{
    DeliverySpan, LeaseKey, LeasedDelivery, MESSAGES_AT_ONCE, NewDelivery, Recorded,
};
use store::queries::drops::ClaimPosition;
use store::queries::webhooks::{Disabled, Receiver};
use tokio::sync::watch;

use crate::webhook::attempt::Signer;
pub use crate::webhook::attempt::{Attempt, AttemptKey};
use crate::webhook::webhooks::webhook_of;
use crate::work::Work;
use crate::{Error, Service};

/// Maximum number of results that one transaction records.
pub const RECORDS_AT_ONCE: usize = 128;
/// Maximum number of messages that one call sends again.
pub const RESENT_MAX: u64 = 10_000;
/// The word for messages that claims should have and do not have, beside the states of messages.
pub const MISSING: &str = "MISSING";
/// Maximum number of attempts shown with a message.
const ATTEMPTS_SHOWN: i64 = 100;

/// The result of an attempt.
#[derive(Clone, Debug)]
pub struct Report {
    /// The key of the attempt.
    pub key: AttemptKey,
    /// The outcome of the request to the receiver.
    pub outcome: Outcome,
    /// The start time of the attempt.
    pub began_at: Timestamp,
    /// The duration of the attempt, in milliseconds.
    pub duration_ms: i64,
    /// The answer or its beginning. Only the first 1,024 bytes are used.
    pub answer: Vec<u8>,
    /// The time in the headers and in the body, if it is known.
    pub signed_at: Option<Timestamp>,
}

/// A message with its attempts.
#[derive(Clone, Debug)]
pub struct DeliveryDetails {
    /// The message.
    pub delivery: Delivery,
    /// Newest first.
    pub attempts: Vec<AttemptRecord>,
}

/// A filter on the messages of a webhook.
#[derive(Clone, Debug, Default)]
pub struct DeliveryQuery {
    /// Only messages in this state.
    pub state: Option<DeliveryState>,
    /// Only messages written at this time or later.
    pub from: Option<Timestamp>,
    /// Only messages written before this time.
    pub until: Option<Timestamp>,
}

/// A page of messages.
#[derive(Clone, Debug)]
pub struct DeliveryPage {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

/// The result of [`Service::resend_deliveries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resent {
    /// The number of messages that were scheduled again.
    pub messages: u64,
    /// Whether the whole time window is done. If not, the same call continues where this one ended.
    pub all: bool,
}

impl Service {
    /// Up to `limit` webhooks with due messages, ordered by id, after `after`. Webhooks without an address
    /// are left out. Messages that are not due, or of a disabled webhook, cost nothing.
    pub async fn webhooks_due(&self, after: Option<&WebhookId>, limit: i64) -> Result<Vec<WebhookId>, Error> {
        let (after, now) = (after.cloned(), self.now());
        self.read(async move |tx: &mut Tx| Ok(tx.webhooks_due(now, after.as_ref(), limit).await?)).await
    }

    /// Takes up to `limit` due messages of a webhook, at most 100, the longest due first. This node has a
    /// lease on each. When the lease ends without a recorded result, another node may take the message.
    pub async fn take_deliveries(&self, webhook_id: &WebhookId, limit: i64) -> Result<Vec<Attempt>, Error> {
        let (id, now) = (webhook_id.clone(), self.now());
        let taken = self
            .write(async move |work: &mut Work<'_>| {
                work.lock_webhook(&id).await?;
                let Some(target) = work.delivery_target(&id).await? else { return Ok::<_, Error>(None) };
                let leased_until = now.plus_ms(WEBHOOK_LEASE_MS);
                let taken = work.lease_deliveries(&id, now, leased_until, limit).await?;
                Ok(work.signing_secret(&id, now).await?.map(|sealed| (target, sealed, taken)))
            })
            .await?;
        let Some((target, sealed, taken)) = taken else { return Ok(Vec::new()) };
        let Some(secret) = self.open_webhook_secret(webhook_id, &sealed) else {
            // The messages become due again when the lease ends. They are sent when the service key is
            // correct again.
            if let Some(times) = self.0.delivery_queue.sealed_otherwise.due(self.clock().monotonic()) {
                let client_id = &target.client_id;
                tracing::error!(%client_id, times, "a webhook's secret was sealed with another service key");
            }
            return Ok(Vec::new());
        };
        let header_prefix = self.webhook_settings().header_prefix.clone();
        let signer = Arc::new(Signer { secret, header_prefix });
        let attempt = |LeasedDelivery { message_id, claim_id, number, failures, data }: LeasedDelivery| {
            let key = AttemptKey { webhook_id: webhook_id.clone(), message_id, number, failures };
            let (client_id, url) = (target.client_id.clone(), target.url.clone());
            signer.attempt(key, (client_id, claim_id, url), now, data)
        };
        Ok(taken.into_iter().filter_map(attempt).collect())
    }

    /// Records the results of attempts, and returns the next step of each message. The step is `None` for
    /// a late result, whose message was taken by another node or scheduled again. Disables webhooks that
    /// answered 410, or that failed for five days, with a notice for the owner. The call may be repeated
    /// after an error.
    pub async fn record_attempts(
        &self,
        mut reports: Vec<Report>,
    ) -> Result<Vec<(AttemptKey, Option<Next>)>, Error> {
        // All nodes lock in one order, and each webhook's row before its messages, so that they do not
        // deadlock.
        reports.sort_by(|a, b| order(&a.key).cmp(&order(&b.key)));
        let mut recorded = Vec::with_capacity(reports.len());
        for some in reports.chunks(RECORDS_AT_ONCE) {
            let batch: Vec<_> = some
                .iter()
                .map(|report| (report.clone(), spread(&report.key.message_id, report.key.number)))
                .collect();

            let (nexts, disabled) =
                self.write(async move |work: &mut Work<'_>| record(work, &batch).await).await?;
            for (webhook_id, reason) in disabled {
                self.0.delivery_queue.note_disabled();
                tracing::warn!(%webhook_id, reason = reason.name(), "a webhook was disabled: its messages are on hold");
            }
            recorded.extend(nexts);
        }
        Ok(recorded)
    }

    /// Signals each commit of this node that may have written messages. Commits of other nodes are found by
    /// polling.
    pub fn deliveries_written(&self) -> watch::Receiver<()> {
        self.0.delivery_queue.subscribe()
    }

    /// Webhooks that this node disabled since it started.
    pub fn webhooks_disabled(&self) -> u64 {
        self.0.delivery_queue.disabled()
    }

    /// Returns messages of an application's webhook, newest first. A walk from cursor to cursor returns
    /// each message once that existed at the beginning of the walk and still matches.
    ///
    /// # Errors
    /// `Invalid` naming `cursor` for the cursor of another list; [`Refusal::NotFound`] when there is no
    /// webhook.
    pub async fn webhook_deliveries(
        &self,
        client_id: &ClientId,
        query: DeliveryQuery,
        size: i64,
        cursor: Option<&str>,
    ) -> Result<DeliveryPage, Error> {
        let context = context(client_id, &query);
        let after = cursor.map(|cursor| self.cursors().open("cursor", &context, cursor)).transpose()?;
        let client_id = client_id.clone();
        let deliveries = self
            .read(async move |tx: &mut Tx| {
                let webhook = webhook_of(tx, &client_id).await?;
                let mut span = DeliverySpan::of(query.from, query.until);
                if let Some(after) = after {
                    span.below = DeliveryId::stored(after);
                }
                Ok::<_, Error>(tx.deliveries(&webhook.webhook_id, query.state, &span, size + 1).await?)
            })
            .await?;
        let (deliveries, next) =
            self.page(&context, deliveries, size, |delivery| delivery.message_id.to_string());
        Ok(DeliveryPage { deliveries, next })
    }

    /// Returns one message of an application's webhook, with its last 100 attempts.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such webhook or message.
    pub async fn webhook_delivery(
        &self,
        client_id: &ClientId,
        message_id: &DeliveryId,
    ) -> Result<DeliveryDetails, Error> {
        let (client_id, message_id) = (client_id.clone(), message_id.clone());
        self.read(async move |tx: &mut Tx| {
            let webhook_id = webhook_of(tx, &client_id).await?.webhook_id;
            details(tx, &webhook_id, &message_id).await
        })
        .await
    }

    /// Schedules a message to be sent again at once, whatever its state, with the whole retry schedule.
    /// While an attempt is running, no second attempt starts.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such webhook or message.
    pub async fn resend_delivery(
        &self,
        client_id: &ClientId,
        message_id: &DeliveryId,
    ) -> Result<DeliveryDetails, Error> {
        let (client_id, message_id) = (client_id.clone(), message_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let webhook_id = webhook_of(work, &client_id).await?.webhook_id;
            if !work.resend_delivery(&webhook_id, &message_id, now).await? {
                return Err(Refusal::NotFound(Resource::Delivery).into());
            }
            work.wake_senders();
            let about = json!({ "messageId": message_id });
            work.audit_with(AuditAction::WebhookResend, &client_id, about).await?;
            details(work, &webhook_id, &message_id).await
        })
        .await
    }

    /// Schedules the messages of a time window in one state again, oldest first, up to 10,000.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no webhook.
    pub async fn resend_deliveries(
        &self,
        client_id: &ClientId,
        state: DeliveryState,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Resent, Error> {
        let now = self.now();
        let mut sent = Resent { messages: 0, all: false };
        while !sent.all && sent.messages < RESENT_MAX {
            let (client_id, span) = (client_id.clone(), DeliverySpan::of(Some(from), Some(until)));
            let some = self
                .write(async move |work: &mut Work<'_>| {
                    let webhook_id = webhook_of(work, &client_id).await?.webhook_id;
                    work.wake_senders();
                    let some =
                        work.resend_deliveries(&webhook_id, state, &span, now, MESSAGES_AT_ONCE).await?;
                    if some > 0 {
                        let about = json!({ "state": state.name(), "messages": some });
                        work.audit_with(AuditAction::WebhookResend, &client_id, about).await?;
                    }
                    Ok(some)
                })
                .await?;
            sent = Resent { messages: sent.messages + some, all: some < MESSAGES_AT_ONCE.unsigned_abs() };
        }
        Ok(sent)
    }

    /// Writes the messages of claims in a time window that have none, oldest first, up to some more than
    /// 10,000. Claims that are older than the webhook, or than the messages that are kept, get none.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no webhook.
    pub async fn write_missing_deliveries(
        &self,
        client_id: &ClientId,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Resent, Error> {
        let mut after = ClaimPosition { claimed_at: from, claim_id: ClaimId::stored(String::new()) };
        let mut sent = Resent { messages: 0, all: false };
        while !sent.all && sent.messages < RESENT_MAX {
            let (client_id, position) = (client_id.clone(), after.clone());
            let page = self
                .write(async move |work: &mut Work<'_>| {
                    write_missing(work, &client_id, &position, until).await
                })
                .await?;
            match page {
                Some((written, last)) => (sent.messages, after) = (sent.messages + written, last),
                None => sent.all = true,
            }
        }
        Ok(sent)
    }
}

/// Writes the messages of the claims after a position that have none, and moves the position to the last one
/// of these claims. `None` when there are no more.
///
/// The id of a message comes from the time of its claim, so few messages are read, and a message that is
/// written again has the id that it had.
async fn write_missing(
    work: &mut Work<'_>,
    client_id: &ClientId,
    after: &ClaimPosition,
    before: Timestamp,
) -> Result<Option<(u64, ClaimPosition)>, Error> {
    let webhook = webhook_of(work, client_id).await?;
    work.lock_webhook(&webhook.webhook_id).await?;
    let (now, is_enabled) = (work.now(), webhook.disabled.is_none());
    let owed_from = webhook.created_at.max(now.plus_ms(-WEBHOOK_DELIVERIES_KEPT_MS));
    let after = match after.claimed_at < owed_from {
        true => &ClaimPosition { claimed_at: owed_from, claim_id: ClaimId::stored(String::new()) },
        false => after,
    };
    let claims = work.claims_since(client_id, after, before, MESSAGES_AT_ONCE).await?;
    let (Some(first), Some(last), true) = (claims.first(), claims.last(), webhook.receives) else {
        return Ok(None);
    };
    let span = DeliverySpan::of(Some(first.claimed_at), Some(last.claimed_at.plus_ms(1)));
    let have_one: HashSet<_> =
        work.claims_with_messages(&webhook.webhook_id, &span).await?.into_iter().collect();
    let mut written = 0;
    for claim in claims.iter().filter(|claim| !have_one.contains(&claim.claim_id)) {
        let receiver = Receiver { webhook_id: webhook.webhook_id.clone(), enabled: is_enabled };
        work.insert_delivery(&delivery_of(claim, receiver, claim.claimed_at), now).await?;
        written += 1;
    }
    if written > 0 {
        work.wake_senders();
        let about = json!({ "state": MISSING, "messages": written });
        work.audit_with(AuditAction::WebhookResend, client_id, about).await?;
    }
    let position = ClaimPosition { claimed_at: last.claimed_at, claim_id: last.claim_id.clone() };
    Ok(Some((written, position)))
}

/// The message about a claim that was made then.
fn delivery_of(claim: &RewardClaim, receiver: Receiver, made_at: Timestamp) -> NewDelivery {
    NewDelivery {
        message_id: DeliveryId::of_claim(made_at, &claim.claim_id, &receiver.webhook_id),
        webhook_id: receiver.webhook_id,
        claim_id: Some(claim.claim_id.clone()),
        data: webhook::data(claim),
        failures: 0,
        waiting: receiver.enabled,
    }
}

/// Writes the messages about a claim, one for each receiving webhook, inside the claim's transaction. For
/// a disabled webhook the message is a dead letter, which can be sent later.
pub(crate) async fn write(work: &mut Work<'_>, claim: &RewardClaim) -> Result<(), Error> {
    let now = work.now();
    for receiver in work.claim_receivers(&claim.campaign_id).await? {
        work.insert_delivery(&delivery_of(claim, receiver, now), now).await?;
        work.wake_senders();
    }
    Ok(())
}

fn order(key: &AttemptKey) -> (&WebhookId, &DeliveryId, i64) {
    (&key.webhook_id, &key.message_id, key.number)
}

/// The next step after each attempt of a batch, and the webhooks that were disabled.
type RecordedBatch = (Vec<(AttemptKey, Option<Next>)>, Vec<(WebhookId, DisabledReason)>);

async fn record(work: &mut Work<'_>, batch: &[(Report, u16)]) -> Result<RecordedBatch, Error> {
    let mut by_webhook = BTreeMap::<&WebhookId, Vec<&(Report, u16)>>::new();
    for report in batch {
        by_webhook.entry(&report.0.key.webhook_id).or_default().push(report);
    }
    let (mut nexts, mut disabled) = (Vec::with_capacity(batch.len()), Vec::new());
    for (webhook_id, reports) in by_webhook {
        let outcomes = reports.iter().map(|(report, _)| &report.outcome);
        if let Some(reason) = record_health(work, webhook_id, outcomes).await? {
            disabled.push((webhook_id.clone(), reason));
        }
        for (report, random) in reports {
            nexts.push((report.key.clone(), record_one(work, report, *random).await?));
        }
    }
    Ok((nexts, disabled))
}

/// Records whether a webhook fails. Disables a webhook that answered 410 or failed for too long.
async fn record_health(
    work: &mut Work<'_>,
    webhook_id: &WebhookId,
    outcomes: impl Iterator<Item = &Outcome> + Clone,
) -> Result<Option<DisabledReason>, Error> {
    let now = work.now();
    let reason = if outcomes.clone().any(Outcome::is_gone) {
        let gone = Disabled { reason: DisabledReason::Gone, since: now };
        work.disable_webhook(webhook_id, gone).await?.then_some(gone.reason)
    } else if outcomes.clone().any(Outcome::is_success) {
        work.note_webhook_success(webhook_id).await?;
        None
    } else {
        work.note_webhook_failure(webhook_id, now).await?;
        let since = given_up_when_failing_since(now);
        work.disable_failing_webhook(webhook_id, since, now).await?.then_some(DisabledReason::Failing)
    };
    if let Some(reason) = reason {
        work.insert_webhook_notice(webhook_id, &format!("DISABLED_{}", reason.name()), now).await?;
    }
    Ok(reason)
}

async fn record_one(work: &mut Work<'_>, report: &Report, random: u16) -> Result<Option<Next>, Error> {
    let now = work.now();
    let AttemptKey { webhook_id, message_id, number, failures } = report.key.clone();
    let key = LeaseKey { webhook_id, message_id, number };
    let mut failures = Some(failures);
    while let Some(before) = failures {
        let next = next(&report.outcome, before, now, random);
        if work.record_delivery(&key, recorded(next, before, now), now).await? {
            let attempt = attempt_record(report);
            work.insert_attempt(&key.webhook_id, &key.message_id, &attempt).await?;
            return Ok(Some(next));
        }
        // The message may have been scheduled again during the attempt. Then the retry schedule starts
        // over.
        failures = work.failures_in_flight(&key).await?.filter(|failures| *failures != before);
    }
    Ok(None)
}

fn recorded(next: Next, failures: i64, now: Timestamp) -> Recorded {
    let (state, due_at) = match next {
        Next::Done => (DeliveryState::Delivered, now),
        Next::Again(at) => (DeliveryState::Waiting, at),
        Next::Dead | Next::Gone => (DeliveryState::Dead, now),
    };
    Recorded { state, due_at, failures, failed: next != Next::Done }
}

fn attempt_record(report: &Report) -> AttemptRecord {
    let (status, failure) = match report.outcome {
        Outcome::Answered { status, .. } => (Some(status), None),
        Outcome::Failed(failure) => (None, Some(failure)),
    };
    AttemptRecord {
        number: report.key.number,
        began_at: report.began_at,
        duration_ms: report.duration_ms,
        status,
        failure,
        excerpt: excerpt(&report.answer),
        signed_at: report.signed_at,
    }
}

async fn details(
    tx: &mut Tx,
    webhook_id: &WebhookId,
    message_id: &DeliveryId,
) -> Result<DeliveryDetails, Error> {
    let delivery = tx.delivery(webhook_id, message_id).await?.ok_or(Refusal::NotFound(Resource::Delivery))?;
    let attempts = tx.attempts(webhook_id, message_id, ATTEMPTS_SHOWN).await?;
    Ok(DeliveryDetails { delivery, attempts })
}

/// Returns the context that a cursor is bound to: the list and every filter, but not the size of a page.
fn context(client_id: &ClientId, query: &DeliveryQuery) -> String {
    let DeliveryQuery { state, from, until } = query;
    let state = state.map(DeliveryState::name);
    let ms = |at: &Option<Timestamp>| at.map(Timestamp::as_millis);
    serde_json::json!(["webhook-deliveries", client_id.as_str(), state, ms(from), ms(until)]).to_string()
}
