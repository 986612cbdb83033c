//! The applications that a person has allowed something.

use domain::application::Application;
use domain::{ChannelId, ClientId, ScopeSet, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const LIST: &str = sql!(
    "SELECT ",
    ConnectedApplication::COLUMNS,
    "
    FROM consents k JOIN applications a ON a.client_id = k.client_id
        LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE k.channel_id = $1 AND a.purging = FALSE
        AND (k.created_at < $2 OR (k.created_at = $2 AND k.client_id > $3))
    ORDER BY k.created_at DESC, k.client_id LIMIT $4"
);

const FIND: &str = sql!(
    "SELECT ",
    ConnectedApplication::COLUMNS,
    "
    FROM consents k JOIN applications a ON a.client_id = k.client_id
        LEFT JOIN organizations o ON o.organization_id = a.organization_id
    WHERE k.channel_id = $1 AND k.client_id = $2 AND a.purging = FALSE"
);

const CONSENTED: &str = "SELECT scopes FROM consents WHERE client_id = $1 AND channel_id = $2";

const USE: &str = "UPDATE consents SET last_used_at = $3 WHERE client_id = $1 AND channel_id = $2";

/// An application and what a person allows it.
#[derive(Clone, Debug)]
pub struct ConnectedApplication {
    /// The application, also while it is disabled or deleted for want of use.
    pub application: Application,
    /// What the person allows.
    pub scopes: ScopeSet,
    /// Since when.
    pub created_at: Timestamp,
    /// When the application last received tokens.
    pub last_used_at: Option<Timestamp>,
    /// Since when it is disabled, or deleted for want of use.
    pub unusable_since: Option<Timestamp>,
}

columns!(ConnectedApplication {
    application: Application::COLUMNS,
    scopes: "k.scopes",
    created_at: "k.created_at",
    last_used_at: "k.last_used_at",
    unusable_since: "COALESCE(a.disabled_at, a.deleted_at)",
});

impl Tx {
    /// Up to `size` applications of a person, the latest consent first, after the consent of `after`.
    pub async fn connected_applications(
        &mut self,
        channel: &ChannelId,
        (created_at, client_id): (Timestamp, &str),
        size: i64,
    ) -> Result<Vec<ConnectedApplication>, StoreError> {
        self.fetch_all(LIST, params![channel, created_at, client_id, size]).await
    }

    /// One application of a person.
    pub async fn connected_application(
        &mut self,
        channel: &ChannelId,
        client_id: &ClientId,
    ) -> Result<Option<ConnectedApplication>, StoreError> {
        self.fetch_optional(FIND, params![channel, client_id]).await
    }

    /// The scopes that a person allows an application.
    pub async fn consented_scopes(
        &mut self,
        client_id: &ClientId,
        channel: &ChannelId,
    ) -> Result<Option<ScopeSet>, StoreError> {
        self.fetch_optional(CONSENTED, params![client_id, channel]).await
    }

    /// Records that an application received tokens. The consent is locked.
    pub async fn note_consent_use(
        &mut self,
        client_id: &ClientId,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(USE, params![client_id, channel, now]).await?;
        Ok(())
    }
}
