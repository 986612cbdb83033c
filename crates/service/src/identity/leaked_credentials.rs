//! The end of the credentials of an application after a leak (`docs/credentials.md#a-client-secret-leaked`).

use domain::audit::AuditAction;
use domain::limits::AFFECTED_COUNTED_MAX;
use domain::refusal::Resource;
use domain::{ApplicationSecretId, ClientId, Refusal};
use store::Tx;
use store::queries::session_ends::AdmittedBy;

use crate::identity::application_life::irrecoverable_since;
use crate::identity::application_secrets::about;
use crate::work::Work;
use crate::{Error, Service};

/// Whom the end of an application's credentials affects. Each is counted up to [`AFFECTED_COUNTED_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affected {
    /// Users with a valid refresh token.
    pub users: i64,
    /// Connected sessions of the application and of its users.
    pub sessions: i64,
}

impl Service {
    /// Whom the end of an application's tokens or secrets affects now.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn affected_by(&self, client_id: &ClientId) -> Result<Affected, Error> {
        let (client_id, now) = (client_id.clone(), self.now());
        self.read(async move |tx: &mut Tx| {
            let users = tx.count_token_users(&client_id, now, AFFECTED_COUNTED_MAX).await?;
            let sessions = tx.count_connected_of_application(&client_id, AFFECTED_COUNTED_MAX).await?;
            Ok(Affected { users, sessions })
        })
        .await
    }

    /// Ends every token and code of an application on every node, and all its sessions with their
    /// subscriptions. Enabling or restoring the application revives none of them. Consents and secrets stay.
    /// The call may be repeated.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist.
    pub async fn end_application_tokens(&self, client_id: &ClientId) -> Result<(), Error> {
        let id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let since = irrecoverable_since(work.now());
            if !work.end_all_tokens(&id, since).await? {
                return Err(Error::from(Refusal::NotFound(Resource::Application)));
            }
            Ok(work.audit(AuditAction::TokensEnd, &id).await?)
        })
        .await?;
        tracing::info!(%client_id, "all tokens of an application ended");
        self.end_admitted(AdmittedBy::Application(client_id.clone())).await
    }

    /// Deletes every secret of an application at once, with the session URLs and the sessions that were
    /// opened with them. The application proves nothing until it gets a new one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist.
    pub async fn delete_all_secrets(&self, client_id: &ClientId) -> Result<(), Error> {
        let (id, now) = (client_id.clone(), self.now());
        let expired: Vec<ApplicationSecretId> = self
            .write(async move |work: &mut Work<'_>| {
                if work.application_life(&id, irrecoverable_since(now)).await?.is_none() {
                    return Err(Error::from(Refusal::NotFound(Resource::Application)));
                }
                let secrets = work.application_secrets(&id, now).await?;
                let expired = work.expire_application_secrets(&id, now).await?;
                for secret in &expired {
                    work.audit_with(AuditAction::SecretDelete, &id, about(secret, &secrets)).await?;
                }
                Ok(expired)
            })
            .await?;
        // A node that stops here leaves expired secrets, which the next sweep deletes.
        for secret in &expired {
            self.delete_expired_secret(client_id, secret, now).await?;
        }
        Ok(())
    }
}
