//! What the developers of an application do with its webhook on their pages. They do not undo what the
//! operator did: a webhook that the operator switched off stays off.

use domain::audit::AuditAction;
use domain::delivery::DisabledReason;
use domain::limits::{WEBHOOK_RETRY_MS, WEBHOOK_TESTS_MAX, WEBHOOK_TESTS_SPAN_MS};
use domain::webhook::{self, MessageKind};
use domain::{ClaimId, ClientId, DeliveryId, Invalid, Rule};
use serde_json::json;
use store::Tx;
use store::queries::deliveries::{AttemptRecord, Delivery, DeliverySpan, NewDelivery};

use crate::webhook::deliveries::DeliveryPage;
use crate::webhook::webhooks::{Webhook, WebhookSecretDetails, lock, sealed_secrets, webhook_of};
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// What stands in place of a signature where a message is shown.
const HIDDEN_SIGNATURE: &str = "sha256=…";

/// A secret of a webhook with its hint.
#[derive(Clone, Debug)]
pub struct HintedWebhookSecret {
    /// The secret, without its text.
    pub details: WebhookSecretDetails,
    /// Its last characters; `None` if it was sealed with another service key.
    pub last_characters: Option<String>,
}

/// Why a test message was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestObstacle {
    /// The webhook is disabled.
    Disabled,
    /// The application gets no messages: it may not use drops, or it is disabled.
    NotReceiving,
    /// There were [`WEBHOOK_TESTS_MAX`] test messages within the last minute.
    TooMany,
}

/// The request of an attempt, as far as it may be shown.
#[derive(Clone, Debug)]
pub struct ShownRequest {
    /// The headers, without the signature.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Service {
    /// The secrets of a webhook with their hints, in the order in which they sign.
    ///
    /// # Errors
    /// [`NotFound`](domain::Refusal::NotFound) when the application has no webhook.
    pub async fn hinted_webhook_secrets(
        &self,
        client_id: &ClientId,
    ) -> Result<Vec<HintedWebhookSecret>, Error> {
        let (client_id, now) = (client_id.clone(), self.now());
        let (webhook_id, secrets) = self
            .read(async move |tx: &mut Tx| {
                let webhook_id = webhook_of(tx, &client_id).await?.webhook_id;
                let secrets = sealed_secrets(tx, &webhook_id, now).await?;
                Ok::<_, Error>((webhook_id, secrets))
            })
            .await?;
        let hinted = |(details, sealed): (WebhookSecretDetails, String)| {
            let secret = self.open_webhook_secret(&webhook_id, &sealed);
            HintedWebhookSecret { details, last_characters: secret.map(|secret| secret.last_characters()) }
        };
        Ok(secrets.into_iter().map(hinted).collect())
    }

    /// Enables a webhook that was disabled because its receiver failed. The messages that waited are sent.
    ///
    /// # Errors
    /// `Invalid` when the operator disabled it; [`NotFound`](domain::Refusal::NotFound) when there is none.
    pub async fn enable_webhook_of_owner(&self, client_id: &ClientId) -> Result<(), Error> {
        let client_id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let before = changeable(work, &client_id).await?;
            if before.disabled.is_some() {
                let enabled = Webhook { disabled: None, failing_since: None, changed_at: now, ..before };
                work.change_webhook(&enabled).await?;
                work.wake_senders();
                work.audit_with(AuditAction::WebhookPut, &client_id, json!({ "enabled": true })).await?;
            }
            Ok(())
        })
        .await
    }

    /// Deletes a webhook with its secrets and messages.
    ///
    /// # Errors
    /// As [`enable_webhook_of_owner`](Self::enable_webhook_of_owner): the next webhook would be enabled.
    pub async fn delete_webhook_of_owner(&self, client_id: &ClientId) -> Result<(), Error> {
        let client_id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            changeable(work, &client_id).await?;
            work.delete_webhook(&client_id, now).await?;
            Ok(work.audit(AuditAction::WebhookDelete, &client_id).await?)
        })
        .await
    }

    /// Writes a test message to a webhook. It is attempted once, and again only if it is resent.
    ///
    /// # Errors
    /// [`NotFound`](domain::Refusal::NotFound) when the application does not exist, is deleted or has no
    /// webhook.
    pub async fn send_test_message(
        &self,
        client_id: &ClientId,
    ) -> Result<Result<DeliveryId, TestObstacle>, Error> {
        let client_id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            lock(work, &client_id).await?;
            let webhook = webhook_of(work, &client_id).await?;
            let since = now.plus_ms(-WEBHOOK_TESTS_SPAN_MS);
            if webhook.disabled.is_some() {
                return Ok(Err(TestObstacle::Disabled));
            }
            if !webhook.receives {
                return Ok(Err(TestObstacle::NotReceiving));
            }
            if work.count_test_deliveries(&webhook.webhook_id, since).await? >= WEBHOOK_TESTS_MAX {
                return Ok(Err(TestObstacle::TooMany));
            }
            let message_id = DeliveryId::generate(now, work.random(Purpose::Webhook));
            let new = NewDelivery {
                webhook_id: webhook.webhook_id,
                message_id: message_id.clone(),
                claim_id: None,
                data: webhook::test_data(&client_id, now),
                failures: i64::try_from(WEBHOOK_RETRY_MS.len()).unwrap_or(i64::MAX),
                waiting: true,
            };
            work.insert_delivery(&new, now).await?;
            work.audit_with(AuditAction::WebhookTest, &client_id, json!({ "messageId": message_id })).await?;
            work.wake_senders();
            Ok(Ok(message_id))
        })
        .await
    }

    /// The test messages of an application's webhook, newest first.
    ///
    /// # Errors
    /// `Invalid` naming `cursor` for the cursor of another list; [`NotFound`](domain::Refusal::NotFound) when
    /// there is no webhook.
    pub async fn test_messages(
        &self,
        client_id: &ClientId,
        size: i64,
        cursor: Option<&str>,
    ) -> Result<DeliveryPage, Error> {
        let context = format!("webhook-tests {client_id}");
        let after = cursor.map(|cursor| self.cursors().open("cursor", &context, cursor)).transpose()?;
        let client_id = client_id.clone();
        let tests = self
            .read(async move |tx: &mut Tx| {
                let webhook_id = webhook_of(tx, &client_id).await?.webhook_id;
                let mut span = DeliverySpan::of(None, None);
                if let Some(after) = after {
                    span.below = DeliveryId::stored(after);
                }
                Ok::<_, Error>(tx.test_deliveries(&webhook_id, &span, size + 1).await?)
            })
            .await?;
        let (deliveries, next) = self.page(&context, tests, size, |test| test.message_id.to_string());
        Ok(DeliveryPage { deliveries, next })
    }

    /// The message of an application's webhook with this id, or about the claim with this id.
    ///
    /// # Errors
    /// [`NotFound`](domain::Refusal::NotFound) when there is no webhook.
    pub async fn find_delivery(&self, client_id: &ClientId, id: &str) -> Result<Option<DeliveryId>, Error> {
        let Ok(claim_id) = ClaimId::parse("id", id) else { return Ok(None) };
        let client_id = client_id.clone();
        self.read(async move |tx: &mut Tx| {
            let webhook_id = webhook_of(tx, &client_id).await?.webhook_id;
            let message_id = match tx.claim(&claim_id).await? {
                Some(claim) => DeliveryId::of_claim(claim.claimed_at, &claim.claim_id, &webhook_id),
                None => DeliveryId::stored(claim_id.to_string()),
            };
            Ok(tx.delivery(&webhook_id, &message_id).await?.map(|found| found.message_id))
        })
        .await
    }

    /// The request of an attempt; `None` if the time in it is not known. The signature is left out: it cannot
    /// be made again after a change of the secret, and a copy of it would prove a copied message.
    pub fn shown_request(&self, delivery: &Delivery, attempt: &AttemptRecord) -> Option<ShownRequest> {
        let (kind, id, at) =
            (MessageKind::about(delivery.claim_id.as_ref()), &delivery.message_id, attempt.signed_at?);
        let prefix = &self.webhook_settings().header_prefix;
        let signature = HIDDEN_SIGNATURE.to_owned();
        Some(ShownRequest {
            headers: webhook::headers(prefix, kind, id, at, signature, attempt.number),
            body: webhook::body(kind, id, at, &delivery.data)?,
        })
    }
}

/// The webhook of an application, locked until this transaction ends, unless the operator disabled it.
async fn changeable(work: &mut Work<'_>, client_id: &ClientId) -> Result<Webhook, Error> {
    lock(work, client_id).await?;
    let webhook = webhook_of(work, client_id).await?;
    match webhook.disabled {
        Some(disabled) if disabled.reason == DisabledReason::Operator => {
            Err(Invalid::new("webhook", Rule::Enabled).into())
        }
        _ => Ok(webhook),
    }
}
