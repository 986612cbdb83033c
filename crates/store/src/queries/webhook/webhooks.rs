//! Webhooks of applications, their secrets, and the notices to their owners. Their messages are in
//! `deliveries.rs`.

use domain::delivery::DisabledReason;
use domain::scope::Scope;
use domain::{CampaignId, ClientId, ScopeSet, Timestamp, WebhookId, WebhookSecretId};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// Locks the changes of an application's webhook.
const LOCK_APPLICATION: &str =
    "UPDATE applications SET name = name WHERE client_id = $1 AND deleted_at IS NULL AND purging = FALSE";

const INSERT_WEBHOOK: &str = "
    INSERT INTO webhooks (webhook_id, client_id, url, enabled, disabled_reason, disabled_at, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";

/// The condition under which an application `a` of an organization `o` receives claims
/// (`docs/spec/drops.md#access`); `$1` is the bit of its scope.
macro_rules! may_receive {
    () => {
        "a.deleted_at IS NULL AND a.purging = FALSE AND a.disabled_at IS NULL AND o.verified
            AND o.disabled_at IS NULL AND (a.scopes & CAST($1 AS BIGINT)) <> 0"
    };
}
pub(super) use may_receive;

const WEBHOOK: &str = sql!(
    "SELECT ",
    Webhook::COLUMNS,
    "
    FROM webhooks w JOIN applications a ON a.client_id = w.client_id
    LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE w.client_id = $2 AND a.purging = FALSE"
);

/// A new address has not failed yet.
const CHANGE_WEBHOOK: &str = "
    UPDATE webhooks SET url = $2, enabled = $3, disabled_reason = $4, disabled_at = $5, failing_since = $6,
        changed_at = $7
    WHERE webhook_id = $1";

const DELETE_WEBHOOK: &str =
    "UPDATE webhooks SET client_id = NULL, changed_at = $2 WHERE client_id = $1 RETURNING webhook_id";

const DISABLE_WEBHOOK: &str = "
    UPDATE webhooks SET enabled = FALSE, disabled_reason = $2, disabled_at = $3, changed_at = $3
    WHERE webhook_id = $1 AND enabled AND client_id IS NOT NULL";

const DISABLE_FAILING_WEBHOOK: &str = "
    UPDATE webhooks SET enabled = FALSE, disabled_reason = $2, disabled_at = $3, changed_at = $3
    WHERE webhook_id = $1 AND enabled AND client_id IS NOT NULL AND failing_since <= $4";

const NOTE_SUCCESS: &str =
    "UPDATE webhooks SET failing_since = NULL WHERE webhook_id = $1 AND failing_since IS NOT NULL";

const NOTE_FAILURE: &str =
    "UPDATE webhooks SET failing_since = $2 WHERE webhook_id = $1 AND failing_since IS NULL";

const INSERT_NOTICE: &str = "
    INSERT INTO webhook_notices (webhook_id, kind, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const NOTICES: &str = sql!(
    "SELECT ",
    WebhookNotice::COLUMNS,
    " FROM webhook_notices WHERE webhook_id = $1 ORDER BY created_at DESC, kind DESC LIMIT $2"
);

// SQLite keeps the order of a CROSS JOIN: few webhooks are in trouble, and applications are many.
const IN_TROUBLE: &str = sql!(
    "SELECT ",
    TroubledWebhook::COLUMNS,
    "
    FROM webhooks w CROSS JOIN applications a
    WHERE (w.failing_since IS NOT NULL OR w.enabled = FALSE) AND w.client_id > $1
        AND a.client_id = w.client_id AND a.purging = FALSE
    ORDER BY w.client_id LIMIT $2"
);

/// The webhooks that receive claims of this campaign.
const RECEIVERS: &str = sql!(
    "SELECT ",
    Receiver::COLUMNS,
    "
    FROM drops_campaigns c JOIN applications a ON a.organization_id = c.organization_id
    JOIN organizations o ON o.organization_id = a.organization_id JOIN webhooks w ON w.client_id = a.client_id
    WHERE c.campaign_id = $2 AND ",
    may_receive!(),
    " ORDER BY w.webhook_id"
);

const INSERT_SECRET: &str = "
    INSERT INTO webhook_secrets (secret_id, webhook_id, sealed_secret, signs_from, created_at)
    VALUES ($1, $2, $3, $4, $5)";

const SECRETS: &str = sql!(
    "SELECT ",
    StoredWebhookSecret::COLUMNS,
    " FROM webhook_secrets
    WHERE webhook_id = $1 AND (forget_at IS NULL OR forget_at > $2) ORDER BY signs_from, secret_id"
);

const TIME_SECRET: &str = "UPDATE webhook_secrets SET signs_from = $2, forget_at = $3 WHERE secret_id = $1";

const DELETE_SECRET: &str = "DELETE FROM webhook_secrets WHERE secret_id = $1";

const DELETE_SECRETS: &str = "DELETE FROM webhook_secrets WHERE webhook_id = $1";

const SIGNING_SECRET: &str = "
    SELECT sealed_secret FROM webhook_secrets WHERE webhook_id = $1 AND signs_from <= $2
    ORDER BY signs_from DESC, secret_id DESC LIMIT 1";

/// A registered webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub webhook_id: WebhookId,
    /// Its address; `None` if a listener fetches the messages.
    pub url: Option<String>,
    /// Why and since when messages are on hold; `None` while it is enabled.
    pub disabled: Option<Disabled>,
    /// The first failed attempt after the last successful one.
    pub failing_since: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its settings last changed.
    pub changed_at: Timestamp,
    /// Whether its application receives claims: 드롭스 in its scopes, and a verified organization.
    pub receives: bool,
}

/// A webhook that fails, or is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TroubledWebhook {
    /// Its application.
    pub client_id: ClientId,
    /// The name of the application.
    pub name: String,
    /// Why and since when messages are on hold; `None` while it is enabled.
    pub disabled: Option<Disabled>,
    /// The first failed attempt after the last successful one.
    pub failing_since: Option<Timestamp>,
}

columns!(TroubledWebhook {
    client_id: "w.client_id",
    name: "a.name",
    disabled: "w.enabled, w.disabled_reason, w.disabled_at" => disabled,
    failing_since: "w.failing_since",
});

columns!(Webhook {
    webhook_id: "w.webhook_id",
    url: "w.url",
    disabled: "w.enabled, w.disabled_reason, w.disabled_at" => disabled,
    failing_since: "w.failing_since",
    created_at: "w.created_at",
    changed_at: "w.changed_at",
    receives: sql!("COALESCE(", may_receive!(), ", FALSE)"),
});

fn disabled((enabled, reason, since): (bool, Option<&str>, Option<Timestamp>)) -> Option<Disabled> {
    (!enabled).then(|| Disabled {
        reason: reason.and_then(DisabledReason::from_name).unwrap_or(DisabledReason::Operator),
        since: since.unwrap_or_default(),
    })
}

/// Why and since when a webhook is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disabled {
    /// Why.
    pub reason: DisabledReason,
    /// Since when.
    pub since: Timestamp,
}

/// A notice to the owner of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookNotice {
    /// What.
    pub kind: String,
    /// When.
    pub given_at: Timestamp,
}

columns!(WebhookNotice { kind: "kind", given_at: "created_at" });

/// A secret of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredWebhookSecret {
    /// Its id.
    pub secret_id: WebhookSecretId,
    /// From when on it signs, unless a newer one does.
    pub signs_from: Timestamp,
    /// When it is deleted.
    pub forget_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The secret, sealed with the service key.
    pub sealed: String,
}

columns!(StoredWebhookSecret {
    secret_id: "secret_id",
    signs_from: "signs_from",
    forget_at: "forget_at",
    created_at: "created_at",
    sealed: "sealed_secret",
});

/// A webhook that a claim goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Which.
    pub webhook_id: WebhookId,
    /// Whether messages are sent to it now.
    pub enabled: bool,
}

columns!(Receiver { webhook_id: "w.webhook_id", enabled: "w.enabled" });

impl Tx {
    /// Up to `size` webhooks after `after` that fail or are disabled, in the order of their applications.
    pub async fn webhooks_in_trouble(
        &mut self,
        after: &str,
        size: i64,
    ) -> Result<Vec<TroubledWebhook>, StoreError> {
        self.fetch_all(IN_TROUBLE, params![after, size]).await
    }

    /// Locks the changes of an application's webhook for the rest of the transaction: `false` if there is no
    /// such application, or it is deleted.
    pub async fn lock_application(&mut self, client_id: &ClientId) -> Result<bool, StoreError> {
        Ok(self.execute(LOCK_APPLICATION, params![client_id]).await? > 0)
    }

    /// Creates a webhook. The application must be locked and have none.
    pub async fn insert_webhook(
        &mut self,
        webhook_id: &WebhookId,
        client_id: &ClientId,
        url: Option<&str>,
        disabled: Option<Disabled>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (reason, since) = split(disabled);
        let values = params![webhook_id, client_id, url, disabled.is_none(), reason, since, now];
        self.execute(INSERT_WEBHOOK, values).await?;
        Ok(())
    }

    /// The webhook of an application, also while the application is deleted and can be restored.
    pub async fn webhook(&mut self, client_id: &ClientId) -> Result<Option<Webhook>, StoreError> {
        self.fetch_optional(WEBHOOK, params![drops_bit(), client_id]).await
    }

    /// Writes the settings of a webhook, at `changed_at`.
    pub async fn change_webhook(&mut self, changed: &Webhook) -> Result<(), StoreError> {
        let Webhook { webhook_id, url, disabled, failing_since, changed_at, .. } = changed;
        let (reason, since) = split(*disabled);
        let values = params![webhook_id, url, disabled.is_none(), reason, since, *failing_since, *changed_at];
        self.execute(CHANGE_WEBHOOK, values).await?;
        Ok(())
    }

    /// Deletes the webhook of an application with its secrets: `false` if there was none. Its messages are
    /// deleted later, in batches.
    pub async fn delete_webhook(&mut self, client_id: &ClientId, now: Timestamp) -> Result<bool, StoreError> {
        let forgotten: Option<WebhookId> =
            self.fetch_optional(DELETE_WEBHOOK, params![client_id, now]).await?;
        let Some(webhook_id) = forgotten else { return Ok(false) };
        self.execute(DELETE_SECRETS, params![&webhook_id]).await?;
        Ok(true)
    }

    /// Disables a webhook: `false` if it was disabled or deleted before.
    pub async fn disable_webhook(
        &mut self,
        webhook_id: &WebhookId,
        disabled: Disabled,
    ) -> Result<bool, StoreError> {
        let values = params![webhook_id, disabled.reason.name(), disabled.since];
        Ok(self.execute(DISABLE_WEBHOOK, values).await? > 0)
    }

    /// Disables a webhook that has only failed since `since` or before: `false` if that is not so.
    pub async fn disable_failing_webhook(
        &mut self,
        webhook_id: &WebhookId,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let values = params![webhook_id, DisabledReason::Failing.name(), now, since];
        Ok(self.execute(DISABLE_FAILING_WEBHOOK, values).await? > 0)
    }

    /// Records a successful attempt of a webhook. Writes nothing unless an attempt failed before.
    pub async fn note_webhook_success(&mut self, webhook_id: &WebhookId) -> Result<(), StoreError> {
        self.execute(NOTE_SUCCESS, params![webhook_id]).await?;
        Ok(())
    }

    /// Records a failed attempt of a webhook. Writes nothing unless the one before succeeded.
    pub async fn note_webhook_failure(
        &mut self,
        webhook_id: &WebhookId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(NOTE_FAILURE, params![webhook_id, now]).await?;
        Ok(())
    }

    /// Records a notice to the owner of a webhook.
    pub async fn insert_webhook_notice(
        &mut self,
        webhook_id: &WebhookId,
        kind: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(INSERT_NOTICE, params![webhook_id, kind, now]).await?;
        Ok(())
    }

    /// The notices to the owner of a webhook, newest first.
    pub async fn webhook_notices(
        &mut self,
        webhook_id: &WebhookId,
        limit: i64,
    ) -> Result<Vec<WebhookNotice>, StoreError> {
        self.fetch_all(NOTICES, params![webhook_id, limit]).await
    }

    /// The webhooks that receive the claims of a campaign: those of the applications of its organization that
    /// receive claims.
    pub async fn claim_receivers(&mut self, campaign: &CampaignId) -> Result<Vec<Receiver>, StoreError> {
        self.fetch_all(RECEIVERS, params![drops_bit(), campaign]).await
    }

    /// Gives a webhook a secret.
    pub async fn insert_webhook_secret(
        &mut self,
        secret_id: &WebhookSecretId,
        webhook_id: &WebhookId,
        sealed: &str,
        signs_from: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(INSERT_SECRET, params![secret_id, webhook_id, sealed, signs_from, now]).await?;
        Ok(())
    }

    /// The secrets of a webhook that are stored at `now`, in the order in which they sign.
    pub async fn webhook_secrets(
        &mut self,
        webhook_id: &WebhookId,
        now: Timestamp,
    ) -> Result<Vec<StoredWebhookSecret>, StoreError> {
        self.fetch_all(SECRETS, params![webhook_id, now]).await
    }

    /// Sets from when on a secret signs, and when it is deleted.
    pub async fn time_webhook_secret(
        &mut self,
        secret_id: &WebhookSecretId,
        signs_from: Timestamp,
        forget_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.execute(TIME_SECRET, params![secret_id, signs_from, forget_at]).await?;
        Ok(())
    }

    /// Deletes a secret.
    pub async fn delete_webhook_secret(&mut self, secret_id: &WebhookSecretId) -> Result<(), StoreError> {
        self.execute(DELETE_SECRET, params![secret_id]).await?;
        Ok(())
    }

    /// The secret that signs what a webhook is sent at `now`, sealed.
    pub async fn signing_secret(
        &mut self,
        webhook_id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        self.fetch_optional(SIGNING_SECRET, params![webhook_id, now]).await
    }
}

/// The scope without which no application receives claims, as the store has it.
pub(super) fn drops_bit() -> i64 {
    [Scope::Drops].into_iter().collect::<ScopeSet>().to_stored()
}

fn split(disabled: Option<Disabled>) -> (Option<&'static str>, Option<Timestamp>) {
    (disabled.map(|disabled| disabled.reason.name()), disabled.map(|disabled| disabled.since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn sqlite_searches_webhooks_in_trouble_before_applications() {
        let plan = sqlite_plan(IN_TROUBLE);
        assert!(plan[0].contains("webhooks_in_trouble (client_id>?)"), "{plan:#?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
    }
}
