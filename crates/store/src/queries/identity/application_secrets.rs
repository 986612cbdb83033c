//! The client secrets of applications. An expired secret proves nothing, whether or not its row still exists.

use domain::secret::SecretHash;
use domain::{ApplicationSecretId, ClientId, Timestamp};

use super::credential_changes::Dependency;
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// Expired secrets that one transaction deletes.
pub const EXPIRED_SECRETS_MAX: i64 = 100;

const INSERT_SECRET: &str = "
    INSERT INTO application_secrets (secret_hash, client_id, created_at, secret_id, last_characters)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING";

const SECRETS: &str = sql!(
    "SELECT ",
    StoredSecret::COLUMNS,
    " FROM application_secrets
    WHERE client_id = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY created_at, secret_id"
);

const TIME_SECRET: &str = "
    UPDATE application_secrets SET expires_at = $3
    WHERE client_id = $1 AND secret_id = $2 AND (expires_at IS NULL OR expires_at > $4)";

const EXPIRE_SECRETS: &str = "
    UPDATE application_secrets SET expires_at = $2
    WHERE client_id = $1 AND (expires_at IS NULL OR expires_at > $2) RETURNING secret_id";

const NOTE_SECRET_USE: &str = "
    UPDATE application_secrets SET last_used_at = $2
    WHERE secret_id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";

const EXPIRED: &str = "
    SELECT client_id, secret_id FROM application_secrets WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2";

const DELETE_EXPIRED: &str = "DELETE FROM application_secrets WHERE secret_id = $1 AND expires_at <= $2";

/// A new secret of an application.
#[derive(Clone, Debug)]
pub struct NewSecret {
    /// Its id.
    pub secret_id: ApplicationSecretId,
    /// Its hash.
    pub hash: SecretHash,
    /// Its last characters, by which an owner recognizes it.
    pub last_characters: String,
}

/// A stored secret of an application.
#[derive(Clone, Debug)]
pub struct StoredSecret {
    /// Its id.
    pub secret_id: ApplicationSecretId,
    /// Its hash.
    pub hash: SecretHash,
    /// Its last characters; `None` for a secret from before they were stored.
    pub last_characters: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last proved its application, as far as recorded.
    pub last_used_at: Option<Timestamp>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

columns!(StoredSecret {
    secret_id: "secret_id",
    hash: "secret_hash",
    last_characters: "last_characters",
    created_at: "created_at",
    last_used_at: "last_used_at",
    expires_at: "expires_at",
});

impl Tx {
    /// Adds a secret beside the existing ones. `StoreError::ForeignKey` if the application does not exist.
    pub async fn insert_application_secret(
        &mut self,
        client_id: &ClientId,
        secret: &NewSecret,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let NewSecret { secret_id, hash, last_characters } = secret;
        self.execute(INSERT_SECRET, params![hash, client_id, now, secret_id, last_characters]).await?;
        Ok(())
    }

    /// The secrets of an application that have not expired at `now`, oldest first.
    pub async fn application_secrets(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
    ) -> Result<Vec<StoredSecret>, StoreError> {
        self.fetch_all(SECRETS, params![client_id, now]).await
    }

    /// Sets or removes the expiry of a secret: `false` if the application has no such secret, or it has
    /// expired at `now`.
    pub async fn time_application_secret(
        &mut self,
        client_id: &ClientId,
        secret_id: &ApplicationSecretId,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        Ok(self.execute(TIME_SECRET, params![client_id, secret_id, expires_at, now]).await? > 0)
    }

    /// Lets all secrets of an application expire at `now`. Gives those that were valid.
    pub async fn expire_application_secrets(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
    ) -> Result<Vec<ApplicationSecretId>, StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        self.fetch_all(EXPIRE_SECRETS, params![client_id, now]).await
    }

    /// Records that a secret proved its application.
    pub async fn note_secret_use(
        &mut self,
        secret_id: &ApplicationSecretId,
        used_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(NOTE_SECRET_USE, params![secret_id, used_at]).await?;
        Ok(())
    }

    /// Up to [`EXPIRED_SECRETS_MAX`] secrets that have expired at `now` and are not deleted.
    pub async fn expired_secrets(
        &mut self,
        now: Timestamp,
    ) -> Result<Vec<(ClientId, ApplicationSecretId)>, StoreError> {
        self.fetch_all(EXPIRED, params![now, EXPIRED_SECRETS_MAX]).await
    }

    /// Deletes a secret that has expired at `now`.
    pub async fn delete_expired_secret(
        &mut self,
        client_id: &ClientId,
        secret_id: &ApplicationSecretId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.credentials_changed(Dependency::Application(client_id));
        self.execute(DELETE_EXPIRED, params![secret_id, now]).await?;
        Ok(())
    }
}
