//! What people allow applications, and the withdrawal of it (`docs/spec/authorization.md#consent`).

use domain::audit::AuditAction;
use domain::refusal::Resource;
use domain::{ChannelId, ClientId, Refusal, ScopeSet, Timestamp};
use serde_json::json;
use store::Tx;
pub use store::queries::connected_applications::ConnectedApplication;

use crate::identity::application_life::irrecoverable_since;
use crate::identity::tokens::end_tokens;
use crate::work::Work;
use crate::{Error, Service};

/// Applications of a person on one page.
pub const CONNECTED_PAGE_SIZE: usize = 20;

/// Some applications of a person.
#[derive(Clone, Debug)]
pub struct ConnectedApplications {
    /// The applications, the latest consent first.
    pub applications: Vec<ConnectedApplication>,
    /// Where the list goes on: time and client id of the last consent.
    pub next: Option<(Timestamp, ClientId)>,
}

/// Consents that one count looks at.
pub const CONSENTS_COUNTED_MAX: i64 = 10_000;

/// The number of users whom something concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedUsers {
    /// How many were found.
    pub users: i64,
    /// Whether all consents were looked at.
    pub is_all: bool,
}

impl Service {
    /// How many users have allowed an application one of these scopes at least.
    pub async fn users_with_any_of(
        &self,
        client_id: &ClientId,
        scopes: ScopeSet,
    ) -> Result<CountedUsers, Error> {
        let client_id = client_id.clone();
        let counted = self.read(async move |tx: &mut Tx| {
            Ok(tx.count_consents(&client_id, scopes, CONSENTS_COUNTED_MAX).await?)
        });
        let (users, seen) = counted.await?;
        Ok(CountedUsers { users, is_all: seen < CONSENTS_COUNTED_MAX })
    }

    /// The applications that a person has allowed something, from `after` on.
    pub async fn connected_applications(
        &self,
        channel_id: &ChannelId,
        after: Option<(Timestamp, String)>,
    ) -> Result<ConnectedApplications, Error> {
        let channel_id = channel_id.clone();
        // The first page begins with the latest time.
        let (time, client_id) = after.unwrap_or((Timestamp::from_millis(i64::MAX), String::new()));
        let size = i64::try_from(CONNECTED_PAGE_SIZE).unwrap_or(i64::MAX);
        let mut applications = self
            .read(async move |tx: &mut Tx| {
                Ok(tx.connected_applications(&channel_id, (time, &client_id), size + 1).await?)
            })
            .await?;
        let has_more = applications.len() > CONNECTED_PAGE_SIZE;
        applications.truncate(CONNECTED_PAGE_SIZE);
        let last = applications.last().filter(|_| has_more);
        let next = last.map(|last| (last.created_at, last.application.client_id.clone()));
        Ok(ConnectedApplications { applications, next })
    }

    /// One application of a person; `None` when the person allows it nothing.
    pub async fn connected_application(
        &self,
        channel_id: &ChannelId,
        client_id: &ClientId,
    ) -> Result<Option<ConnectedApplication>, Error> {
        let (channel_id, client_id) = (channel_id.clone(), client_id.clone());
        self.read(async move |tx: &mut Tx| Ok(tx.connected_application(&channel_id, &client_id).await?)).await
    }

    /// The scopes that a person allows an application; `None` without a consent.
    pub async fn consented_scopes(
        &self,
        client_id: &ClientId,
        channel_id: &ChannelId,
    ) -> Result<Option<ScopeSet>, Error> {
        let (client_id, channel_id) = (client_id.clone(), channel_id.clone());
        self.read(async move |tx: &mut Tx| Ok(tx.consented_scopes(&client_id, &channel_id).await?)).await
    }

    /// Withdraws the consent of a user to an application. Its codes and tokens are deleted, and the
    /// subscriptions made with them are revoked. A missing consent is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application or the channel does not exist; [`Refusal::RoleMissing`] for
    /// an operator with a lower role than the person.
    pub async fn withdraw_consent(&self, client_id: &ClientId, channel_id: &ChannelId) -> Result<(), Error> {
        let (client_id, channel_id) = (client_id.clone(), channel_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // A deleted application can be restored with its consents. A withdrawn consent must not be among
            // them.
            work.application_life(&client_id, irrecoverable_since(now))
                .await?
                .ok_or(Refusal::NotFound(Resource::Application))?;
            work.channels_by_id(std::slice::from_ref(&channel_id))
                .await?
                .pop()
                .ok_or(Refusal::NotFound(Resource::Channel))?;
            work.lock_account_of_lower_rank(&channel_id).await?;
            if work.lock_consent(&client_id, &channel_id).await?.is_none() {
                return Ok(());
            }
            end_tokens(work, &client_id, &channel_id, None).await?;
            work.delete_consent(&client_id, &channel_id).await?;
            let details = json!({ "clientId": client_id });
            Ok(work.audit_with(AuditAction::ConsentWithdraw, &channel_id, details).await?)
        })
        .await
    }
}
