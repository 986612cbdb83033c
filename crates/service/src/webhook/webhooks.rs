//! Webhooks of applications and their secrets (`docs/webhooks.md#registering`). Their messages are in
//! `deliveries.rs`.

use domain::audit::AuditAction;
use domain::delivery::DisabledReason;
use domain::limits::WEBHOOK_SECRET_OVERLAP_MS;
use domain::outbound::WebhookUrl;
use domain::refusal::Resource;
use domain::secret::WebhookSecret;
use domain::webhook_secrets::{SecretState, states};
use domain::{ClientId, Invalid, Refusal, Rule, Timestamp, WebhookId, WebhookSecretId};
use serde_json::json;
use store::Tx;
use store::queries::webhooks::StoredWebhookSecret;
pub use store::queries::webhooks::{Disabled, TroubledWebhook, Webhook, WebhookNotice};

use crate::identity::organizations::ListPage;
use crate::platform::idempotency::{self, IdempotencyKey, StoredAnswer};
pub use crate::webhook::webhook_settings::WebhookSettings;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// Maximum number of notices shown with a webhook.
const NOTICES_SHOWN: i64 = 20;

/// A webhook and the notices to its owner.
#[derive(Clone, Debug)]
pub struct WebhookDetails {
    /// The webhook.
    pub webhook: Webhook,
    /// Newest first.
    pub notices: Vec<WebhookNotice>,
}

/// The details of a webhook secret, without the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSecretDetails {
    /// The id of the secret.
    pub secret_id: WebhookSecretId,
    /// The state of the secret.
    pub state: SecretState,
    /// When the secret starts or started to sign.
    pub signs_from: Timestamp,
    /// When the secret is deleted, unless it signs at that time.
    pub forget_at: Option<Timestamp>,
    /// When the secret was made.
    pub created_at: Timestamp,
}

/// A secret that was added to a webhook.
#[derive(Clone)]
struct AddedSecret {
    secret_id: WebhookSecretId,
    /// Sealed with the service key.
    sealed: String,
}

impl StoredAnswer for AddedSecret {
    fn to_text(&self) -> String {
        format!("{} {}", self.secret_id, self.sealed)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (secret_id, sealed) = text.split_once(' ')?;
        Some(Self { secret_id: WebhookSecretId::stored(secret_id.to_owned()), sealed: sealed.to_owned() })
    }
}

impl Service {
    /// The settings of webhooks.
    pub fn webhook_settings(&self) -> &WebhookSettings {
        &self.0.webhooks
    }

    /// Makes or replaces the webhook of an application. Without an address, a listener fetches its messages.
    /// A new webhook gets a secret, which is never shown again. `enabled: None` leaves the state unchanged; a
    /// new webhook is enabled.
    ///
    /// # Errors
    /// `Invalid` naming `url`; [`Refusal::NotFound`] when the application does not exist or is deleted.
    pub async fn put_webhook(
        &self,
        client_id: &ClientId,
        url: Option<&str>,
        enabled: Option<bool>,
    ) -> Result<(WebhookDetails, Option<WebhookSecret>), Error> {
        let url = url.map(|url| WebhookUrl::parse(url, self.0.webhooks.reach)).transpose()?;
        let url = url.map(|url| url.as_str().to_owned());
        let disabled = (enabled == Some(false)).then_some(by_operator(self.now()));
        let as_new = (url.clone(), disabled);
        let altered = move |before, now| Ok(Some(changed(before, url, enabled, now)));
        self.make_or_alter_webhook(client_id, as_new, altered).await
    }

    /// Makes the webhook of an application from `as_new`, or changes the existing one with `alter`. Returns
    /// the secret of a new webhook.
    pub(crate) async fn make_or_alter_webhook(
        &self,
        client_id: &ClientId,
        as_new: (Option<String>, Option<Disabled>),
        alter: impl FnOnce(Webhook, Timestamp) -> Result<Option<Webhook>, Error> + Clone + Send + 'static,
    ) -> Result<(WebhookDetails, Option<WebhookSecret>), Error> {
        let (client_id, now) = (client_id.clone(), self.now());
        let made_id = WebhookId::generate(now, self.random(Purpose::Webhook));
        let (secret, sealed) = self.sealed_webhook_secret(&made_id, None);
        let secret_id = WebhookSecretId::generate(now, self.random(Purpose::Webhook));
        let (details, made) = self
            .write(async move |work: &mut Work<'_>| {
                lock(work, &client_id).await?;
                let before = work.webhook(&client_id).await?;
                let (made, former) = (before.is_none(), before.as_ref().and_then(|one| one.url.clone()));
                match before {
                    None => {
                        let (url, disabled) = as_new;
                        work.insert_webhook(&made_id, &client_id, url.as_deref(), disabled, now).await?;
                        work.insert_webhook_secret(&secret_id, &made_id, &sealed, now, now).await?;
                    }
                    Some(before) => {
                        if let Some(altered) = alter(before, now)? {
                            work.change_webhook(&altered).await?;
                            // Messages that waited while the webhook was disabled are sent now.
                            work.wake_senders();
                        }
                    }
                }
                let details = details_of(work, &client_id).await?;
                let is_enabled = details.webhook.disabled.is_none();
                let changed: &[_] = if !made && details.webhook.url != former { &["url"] } else { &[] };
                let about = json!({ "enabled": is_enabled, "isNew": made, "changed": changed });
                work.audit_with(AuditAction::WebhookPut, &client_id, about).await?;
                Ok::<_, Error>((details, made))
            })
            .await?;
        Ok((details, made.then_some(secret)))
    }

    /// Enables or disables the webhook of an application, whose address stays.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application has no webhook.
    pub async fn switch_webhook(&self, client_id: &ClientId, enabled: bool) -> Result<(), Error> {
        let client_id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            lock(work, &client_id).await?;
            let before = webhook_of(work, &client_id).await?;
            let url = before.url.clone();
            work.change_webhook(&changed(before, url, Some(enabled), now)).await?;
            // Messages that waited while the webhook was disabled are sent now.
            work.wake_senders();
            let about = json!({ "enabled": enabled, "isNew": false });
            Ok(work.audit_with(AuditAction::WebhookPut, &client_id, about).await?)
        })
        .await
    }

    /// The webhooks that fail or are disabled, ordered by the ids of their applications.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn webhooks_in_trouble(
        &self,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<TroubledWebhook>, Error> {
        const CONTEXT: &str = "webhooks-in-trouble";
        let after = next.map(|cursor| self.cursors().open("next", CONTEXT, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let items =
            self.read(async move |tx: &mut Tx| Ok(tx.webhooks_in_trouble(&after, size + 1).await?)).await?;
        let (items, next) = self.page(CONTEXT, items, size, |item| item.client_id.to_string());
        Ok(ListPage { items, next })
    }

    /// The webhook of an application.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application has no webhook.
    pub async fn webhook_details(&self, client_id: &ClientId) -> Result<WebhookDetails, Error> {
        let client_id = client_id.clone();
        self.read(async move |tx: &mut Tx| details_of(tx, &client_id).await).await
    }

    /// Deletes the webhook of an application with its secrets and messages. Nothing happens when there is
    /// no webhook.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist or is deleted.
    pub async fn delete_webhook(&self, client_id: &ClientId) -> Result<(), Error> {
        let client_id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            lock(work, &client_id).await?;
            if work.delete_webhook(&client_id, now).await? {
                work.audit(AuditAction::WebhookDelete, &client_id).await?;
            }
            Ok(())
        })
        .await
    }

    /// Adds a secret to a webhook, generated or given. The secret signs after a day or when it is
    /// activated. A retiring secret is deleted. A call with a repeated key returns the same secret again.
    ///
    /// # Errors
    /// `Invalid` while another secret is pending; [`Refusal::NotFound`] when the application has no webhook.
    pub async fn add_webhook_secret(
        &self,
        client_id: &ClientId,
        given: Option<WebhookSecret>,
        key: Option<IdempotencyKey>,
    ) -> Result<(WebhookSecretDetails, WebhookSecret), Error> {
        let webhook_id = self.webhook_details(client_id).await?.webhook.webhook_id;
        let (secret, sealed) = self.sealed_webhook_secret(&webhook_id, given);
        let (client_id, now) = (client_id.clone(), self.now());
        let (id, secret_id) =
            (webhook_id.clone(), WebhookSecretId::generate(now, self.random(Purpose::Webhook)));
        let added = AddedSecret { secret_id, sealed };
        let (details, earlier) = self
            .write(async move |work: &mut Work<'_>| {
                lock(work, &client_id).await?;
                let earlier = idempotency::claim(work, key.as_ref(), &added).await?;
                if earlier.is_none() {
                    add_secret(work, &id, &added.secret_id, &added.sealed).await?;
                    let about = json!({ "secretId": added.secret_id });
                    work.audit_with(AuditAction::WebhookSecretAdd, &client_id, about).await?;
                }
                let secret_id = &earlier.as_ref().unwrap_or(&added).secret_id;
                let secrets = secrets_of(work, &id, now).await?;
                let details = secrets.into_iter().find(|details| details.secret_id == *secret_id);
                Ok::<_, Error>((details.ok_or(Refusal::NotFound(Resource::WebhookSecret))?, earlier))
            })
            .await?;
        let Some(earlier) = earlier else { return Ok((details, secret)) };
        let secret = self.open_webhook_secret(&webhook_id, &earlier.sealed);
        let secret =
            secret.ok_or(Error::Internal("a webhook's secret was sealed with another service key"))?;
        Ok((details, secret))
    }

    /// The secrets of a webhook, in the order in which they sign.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application has no webhook.
    pub async fn webhook_secrets(&self, client_id: &ClientId) -> Result<Vec<WebhookSecretDetails>, Error> {
        let (client_id, now) = (client_id.clone(), self.now());
        self.read(async move |tx: &mut Tx| {
            let webhook = webhook_of(tx, &client_id).await?;
            secrets_of(tx, &webhook.webhook_id, now).await
        })
        .await
    }

    /// Activates a secret. The former one is kept for a day and can be activated again.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such webhook or secret.
    pub async fn activate_webhook_secret(
        &self,
        client_id: &ClientId,
        secret_id: &WebhookSecretId,
    ) -> Result<Vec<WebhookSecretDetails>, Error> {
        let (client_id, secret_id) = (client_id.clone(), secret_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let (webhook_id, secrets) = locked_secrets(work, &client_id).await?;
            let chosen = secrets.iter().find(|secret| secret.secret_id == secret_id);
            let chosen = chosen.ok_or(Refusal::NotFound(Resource::WebhookSecret))?;
            let signing = secrets.iter().find(|secret| secret.state == SecretState::Signing);
            if chosen.state != SecretState::Signing {
                if let Some(signing) = signing {
                    // The chosen secret must be the younger one, also when both start to sign within one
                    // millisecond.
                    let before = signing.signs_from.min(now.plus_ms(-1));
                    let kept = now.plus_ms(WEBHOOK_SECRET_OVERLAP_MS);
                    work.time_webhook_secret(&signing.secret_id, before, Some(kept)).await?;
                }
                work.time_webhook_secret(&chosen.secret_id, now, None).await?;
                let about = json!({ "secretId": secret_id });
                work.audit_with(AuditAction::WebhookSecretActivate, &client_id, about).await?;
            }
            secrets_of(work, &webhook_id, now).await
        })
        .await
    }

    /// Deletes a secret that does not sign.
    ///
    /// # Errors
    /// `Invalid` for the signing secret; [`Refusal::NotFound`] when there is no such webhook or secret.
    pub async fn delete_webhook_secret(
        &self,
        client_id: &ClientId,
        secret_id: &WebhookSecretId,
    ) -> Result<(), Error> {
        let (client_id, secret_id) = (client_id.clone(), secret_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let (_, secrets) = locked_secrets(work, &client_id).await?;
            let chosen = secrets.iter().find(|secret| secret.secret_id == secret_id);
            let chosen = chosen.ok_or(Refusal::NotFound(Resource::WebhookSecret))?;
            if chosen.state == SecretState::Signing {
                return Err(Invalid::new("secretId", Rule::NotTheSigningSecret).into());
            }
            if chosen.state == SecretState::Pending {
                // The signing secret stays, because the pending secret no longer replaces it.
                for secret in secrets.iter().filter(|secret| secret.state == SecretState::Signing) {
                    work.time_webhook_secret(&secret.secret_id, secret.signs_from, None).await?;
                }
            }
            work.delete_webhook_secret(&secret_id).await?;
            let about = json!({ "secretId": secret_id });
            Ok(work.audit_with(AuditAction::WebhookSecretDelete, &client_id, about).await?)
        })
        .await
    }

    /// The secret that signs now, for a sandbox; `None` without a webhook.
    pub async fn signing_webhook_secret(&self, client_id: &ClientId) -> Result<Option<WebhookSecret>, Error> {
        let (client_id, now) = (client_id.clone(), self.now());
        let found = self
            .read(async move |tx: &mut Tx| {
                let Some(webhook) = tx.webhook(&client_id).await? else { return Ok::<_, Error>(None) };
                let sealed = tx.signing_secret(&webhook.webhook_id, now).await?;
                Ok(sealed.map(|sealed| (webhook.webhook_id, sealed)))
            })
            .await?;
        Ok(found.and_then(|(webhook_id, sealed)| self.open_webhook_secret(&webhook_id, &sealed)))
    }

    /// Opens a sealed secret. `None` if it was sealed with another service key.
    pub(crate) fn open_webhook_secret(&self, webhook_id: &WebhookId, sealed: &str) -> Option<WebhookSecret> {
        let opened = self.key().open(&subject(webhook_id), sealed);
        opened.as_deref().and_then(WebhookSecret::presented)
    }

    pub(crate) fn sealed_webhook_secret(
        &self,
        webhook_id: &WebhookId,
        given: Option<WebhookSecret>,
    ) -> (WebhookSecret, String) {
        let secret = given.unwrap_or_else(|| WebhookSecret::generate(self.random(Purpose::Webhook)));
        let sealed = self.key().seal(&subject(webhook_id), secret.expose(), self.random(Purpose::Nonce));
        (secret, sealed)
    }
}

/// The subject under which the secrets of a webhook are sealed.
pub(crate) fn subject(webhook_id: &WebhookId) -> String {
    format!("secret of webhook {webhook_id}")
}

fn by_operator(now: Timestamp) -> Disabled {
    Disabled { reason: DisabledReason::Operator, since: now }
}

/// Returns the webhook after a change by its owner.
fn changed(before: Webhook, url: Option<String>, enabled: Option<bool>, now: Timestamp) -> Webhook {
    let disabled = match enabled {
        None => before.disabled,
        Some(true) => None,
        Some(false) => Some(before.disabled.unwrap_or(by_operator(now))),
    };
    // A new address or a re-enabled webhook starts without failures.
    let starts_anew = before.url != url || (before.disabled.is_some() && disabled.is_none());
    let failing_since = before.failing_since.filter(|_| !starts_anew);
    Webhook { url, disabled, failing_since, changed_at: now, ..before }
}

/// Locks the webhook of an application and its secrets.
pub(crate) async fn lock(tx: &mut Tx, client_id: &ClientId) -> Result<(), Error> {
    if tx.lock_application(client_id).await? {
        Ok(())
    } else {
        Err(Refusal::NotFound(Resource::Application).into())
    }
}

pub(crate) async fn webhook_of(tx: &mut Tx, client_id: &ClientId) -> Result<Webhook, Error> {
    Ok(tx.webhook(client_id).await?.ok_or(Refusal::NotFound(Resource::Webhook))?)
}

pub(crate) async fn details_of(tx: &mut Tx, client_id: &ClientId) -> Result<WebhookDetails, Error> {
    let webhook = webhook_of(tx, client_id).await?;
    let notices = tx.webhook_notices(&webhook.webhook_id, NOTICES_SHOWN).await?;
    Ok(WebhookDetails { webhook, notices })
}

async fn secrets_of(
    tx: &mut Tx,
    webhook_id: &WebhookId,
    now: Timestamp,
) -> Result<Vec<WebhookSecretDetails>, Error> {
    let secrets = sealed_secrets(tx, webhook_id, now).await?;
    Ok(secrets.into_iter().map(|(details, _)| details).collect())
}

/// The secrets of a webhook, each with the secret itself, sealed.
pub(crate) async fn sealed_secrets(
    tx: &mut Tx,
    webhook_id: &WebhookId,
    now: Timestamp,
) -> Result<Vec<(WebhookSecretDetails, String)>, Error> {
    let secrets = tx.webhook_secrets(webhook_id, now).await?;
    let signs_from: Vec<_> = secrets.iter().map(|secret| secret.signs_from).collect();
    let details = |(secret, state): (StoredWebhookSecret, SecretState)| {
        let StoredWebhookSecret { secret_id, signs_from, forget_at, created_at, sealed } = secret;
        (WebhookSecretDetails { secret_id, state, signs_from, forget_at, created_at }, sealed)
    };
    Ok(secrets.into_iter().zip(states(&signs_from, now)).map(details).collect())
}

/// The secrets of an application's webhook, locked until this transaction ends.
async fn locked_secrets(
    work: &mut Work<'_>,
    client_id: &ClientId,
) -> Result<(WebhookId, Vec<WebhookSecretDetails>), Error> {
    let now = work.now();
    lock(work, client_id).await?;
    let webhook_id = webhook_of(work, client_id).await?.webhook_id;
    let secrets = secrets_of(work, &webhook_id, now).await?;
    Ok((webhook_id, secrets))
}

/// Adds a pending secret beside the signing one. The webhook must be locked.
async fn add_secret(
    work: &mut Work<'_>,
    webhook_id: &WebhookId,
    secret_id: &WebhookSecretId,
    sealed: &str,
) -> Result<(), Error> {
    let now = work.now();
    let signs_from = now.plus_ms(WEBHOOK_SECRET_OVERLAP_MS);
    for secret in secrets_of(work, webhook_id, now).await? {
        match secret.state {
            SecretState::Pending => return Err(Invalid::new("secret", Rule::NoOtherPendingSecret).into()),
            SecretState::Retiring => work.delete_webhook_secret(&secret.secret_id).await?,
            SecretState::Signing => {
                let kept = signs_from.plus_ms(WEBHOOK_SECRET_OVERLAP_MS);
                work.time_webhook_secret(&secret.secret_id, secret.signs_from, Some(kept)).await?;
            }
        }
    }
    Ok(work.insert_webhook_secret(secret_id, webhook_id, sealed, signs_from, now).await?)
}
