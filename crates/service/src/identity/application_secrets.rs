//! The secrets of applications: adding, listing, expiry, deletion.

use domain::audit::AuditAction;
use domain::limits::APPLICATION_SECRETS_MAX;
use domain::refusal::Resource;
use domain::secret::ClientSecret;
use domain::{ApplicationSecretId, ClientId, Invalid, Refusal, Rule, Timestamp};
use serde_json::{Value, json};
use store::Tx;
use store::queries::application_secrets::NewSecret;
pub use store::queries::application_secrets::StoredSecret;
use store::queries::session_ends::AdmittedBy;

use crate::channel::channels::not_found;
use crate::identity::application_life::{USES_PER_TRANSACTION, irrecoverable_since};
use crate::platform::idempotency::{self, IdempotencyKey, StoredAnswer};
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// A client secret, sealed with the service key.
struct SealedSecret(String);

impl StoredAnswer for SealedSecret {
    fn to_text(&self) -> String {
        self.0.clone()
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

impl Service {
    /// The row of a secret, with a new id.
    pub(crate) fn new_secret(&self, secret: &ClientSecret) -> NewSecret {
        NewSecret {
            secret_id: ApplicationSecretId::generate(self.now(), self.random(Purpose::ClientSecret)),
            hash: secret.hash(),
            last_characters: secret.last_characters(),
        }
    }

    /// Adds a secret to an application. Its earlier secrets stay valid. A repeated idempotency key returns
    /// the same secret: the store keeps the sealed secret as long as the key.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such application.
    pub async fn add_secret(
        &self,
        client_id: &ClientId,
        key: Option<IdempotencyKey>,
    ) -> Result<ClientSecret, Error> {
        self.add_secret_below(i64::MAX, client_id, key).await
    }

    /// As [`add_secret`](Self::add_secret), for the people of the application, who have a limit.
    ///
    /// # Errors
    /// As there, and `Invalid` naming `clientSecret` for one secret too many.
    pub async fn add_own_secret(
        &self,
        client_id: &ClientId,
        key: Option<IdempotencyKey>,
    ) -> Result<ClientSecret, Error> {
        self.add_secret_below(APPLICATION_SECRETS_MAX, client_id, key).await
    }

    async fn add_secret_below(
        &self,
        max: i64,
        client_id: &ClientId,
        key: Option<IdempotencyKey>,
    ) -> Result<ClientSecret, Error> {
        let secret = ClientSecret::generate(self.random(Purpose::ClientSecret));
        let subject = format!("secret of {client_id}");
        let sealed = self.key().seal(&subject, secret.expose(), self.random(Purpose::Nonce));
        let (client_id, new) = (client_id.clone(), self.new_secret(&secret));
        let earlier = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let earlier = idempotency::claim(work, key.as_ref(), &SealedSecret(sealed)).await?;
                if earlier.is_none() {
                    // The lock decides between secrets that are added at the same time.
                    work.lock_application(&client_id).await?;
                    let secrets = work.application_secrets(&client_id, now).await?.len();
                    if i64::try_from(secrets).is_ok_and(|secrets| secrets >= max) {
                        return Err(Invalid::new("clientSecret", Rule::Fewer { max }).into());
                    }
                    work.insert_application_secret(&client_id, &new, now)
                        .await
                        .map_err(not_found(Resource::Application))?;
                    let details = json!({ "secretId": new.secret_id, "lastCharacters": new.last_characters });
                    work.audit_with(AuditAction::SecretAdd, &client_id, details).await?;
                }
                Ok::<_, Error>(earlier)
            })
            .await?;
        let Some(SealedSecret(sealed)) = earlier else { return Ok(secret) };
        let opened = self.key().open(&subject, &sealed).as_deref().and_then(ClientSecret::presented);
        opened.ok_or(Error::Internal("a client secret was sealed with another service key"))
    }

    /// Adds a secret that the caller chose, such as the secret in the sandbox's files, unless the
    /// application has it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such application.
    pub async fn ensure_secret(&self, client_id: &ClientId, secret: &ClientSecret) -> Result<(), Error> {
        let (client_id, new) = (client_id.clone(), self.new_secret(secret));
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            work.insert_application_secret(&client_id, &new, now)
                .await
                .map_err(not_found(Resource::Application))
        })
        .await
    }

    /// The unexpired secrets of an application, oldest first.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such application.
    pub async fn secrets(&self, client_id: &ClientId) -> Result<Vec<StoredSecret>, Error> {
        let (client_id, now) = (client_id.clone(), self.now());
        self.read(async move |tx: &mut Tx| {
            require_application(tx, &client_id, now).await?;
            Ok(tx.application_secrets(&client_id, now).await?)
        })
        .await
    }

    /// Sets the time at which a secret expires; `None` for never. After it every node refuses the secret and
    /// its session URLs, and the sessions that were opened with the secret end.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application has no such secret or the secret has expired.
    pub async fn time_secret(
        &self,
        client_id: &ClientId,
        secret_id: &ApplicationSecretId,
        expires_at: Option<Timestamp>,
    ) -> Result<(), Error> {
        let now = self.now();
        let (client, secret) = (client_id.clone(), secret_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            require_application(work, &client, now).await?;
            if work.time_application_secret(&client, &secret, expires_at, now).await? {
                let expires = expires_at.map(Timestamp::rfc3339);
                let details = json!({ "secretId": secret, "expiresDate": expires });
                Ok(work.audit_with(AuditAction::SecretExpire, &client, details).await?)
            } else {
                Err(Error::from(Refusal::NotFound(Resource::Secret)))
            }
        })
        .await?;
        if expires_at.is_some_and(|expires_at| expires_at <= now) {
            self.delete_expired_secret(client_id, secret_id, now).await?;
        }
        Ok(())
    }

    /// Deletes a secret at once, with its session URLs and the sessions that were opened with it. A missing
    /// secret is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such application.
    pub async fn delete_secret(
        &self,
        client_id: &ClientId,
        secret_id: &ApplicationSecretId,
    ) -> Result<(), Error> {
        let now = self.now();
        let (client, secret) = (client_id.clone(), secret_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            require_application(work, &client, now).await?;
            let secrets = work.application_secrets(&client, now).await?;
            if work.time_application_secret(&client, &secret, Some(now), now).await? {
                work.audit_with(AuditAction::SecretDelete, &client, about(&secret, &secrets)).await?;
            }
            Ok::<_, Error>(())
        })
        .await?;
        // This also finishes an earlier call that stopped after its first transaction.
        self.delete_expired_secret(client_id, secret_id, now).await
    }

    /// Deletes the expired secrets with their session URLs and sessions. Returns the number of secrets.
    pub(crate) async fn delete_expired_secrets(&self) -> Result<u64, Error> {
        let now = self.now();
        let expired = self.read(async move |tx: &mut Tx| Ok(tx.expired_secrets(now).await?)).await?;
        for (client_id, secret_id) in &expired {
            self.delete_expired_secret(client_id, secret_id, now).await?;
        }
        Ok(expired.len().try_into().unwrap_or(u64::MAX))
    }

    /// The row of the secret is deleted last. If the node stops before that, the next sweep does the rest.
    pub(crate) async fn delete_expired_secret(
        &self,
        client_id: &ClientId,
        secret_id: &ApplicationSecretId,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.end_admitted(AdmittedBy::Secret(client_id.clone(), secret_id.clone())).await?;
        let (client_id, secret_id) = (client_id.clone(), secret_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            Ok(work.delete_expired_secret(&client_id, &secret_id, now).await?)
        })
        .await
    }

    pub(crate) async fn write_secret_uses(&self, every: bool) -> Result<u64, Error> {
        let now = self.now();
        let uses = self.0.secrets_last_used.to_write(now, every);
        for chunk in uses.chunks(USES_PER_TRANSACTION) {
            let batch = chunk.to_vec();
            self.write(async move |work: &mut Work<'_>| {
                for (secret_id, at) in &batch {
                    work.note_secret_use(secret_id, *at).await?;
                }
                Ok::<_, Error>(())
            })
            .await?;
            self.0.secrets_last_used.written(chunk);
        }
        self.0.secrets_last_used.drop_idle(now);
        Ok(uses.len().try_into().unwrap_or(u64::MAX))
    }
}

/// The details of an entry of the audit log about one of these secrets. Its last characters are how the pages
/// name it.
pub(crate) fn about(secret_id: &ApplicationSecretId, secrets: &[StoredSecret]) -> Value {
    let secret = secrets.iter().find(|secret| secret.secret_id == *secret_id);
    let last_characters = secret.and_then(|secret| secret.last_characters.as_deref());
    json!({ "secretId": secret_id, "lastCharacters": last_characters })
}

/// # Errors
/// [`Refusal::NotFound`] when there is no such application.
async fn require_application(tx: &mut Tx, client_id: &ClientId, now: Timestamp) -> Result<(), Error> {
    let found = tx.application_life(client_id, irrecoverable_since(now)).await?;
    found.map(drop).ok_or(Refusal::NotFound(Resource::Application).into())
}
