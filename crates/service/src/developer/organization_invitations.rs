//! Invitations into organizations: made by admins for a login, accepted by its person.

use domain::account::check_named_login;
use domain::audit::AuditAction;
use domain::limits::{DAY_MS, INVITATION_LIFETIME_MS, INVITATIONS_PER_DAY_MAX, ORGANIZATION_MEMBERS_MAX};
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, OrganizationId, Refusal, Rule, Timestamp};
use serde_json::json;
use store::Tx;
pub use store::queries::organization_invitations::{Invitation, ReceivedInvitation};

use crate::developer::organization_members::{lock, put_member, require_member};
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Invites a login into an organization, for an admin of it, or renews the invitation. The login need not
    /// exist: the answer does not tell.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is no admin; `Invalid` naming `login`.
    pub async fn invite_member(
        &self,
        person: &ChannelId,
        id: &OrganizationId,
        login: &str,
        role: MemberRole,
    ) -> Result<(), Error> {
        check_named_login(login)?;
        let (person, id, login) = (person.clone(), id.clone(), login.to_owned());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // The lock decides between invitations that the person makes at the same time, also of others of
            // the person's organizations. A channel is locked before other rows.
            work.lock_unbarred_channel(&person).await?;
            lock(work, &id).await?;
            require_member(work, &person, &id, MemberRole::Admin).await?;
            if work.invitations_made(&person, now.plus_ms(-DAY_MS)).await? >= INVITATIONS_PER_DAY_MAX {
                return Err(Invalid::new("login", Rule::Fewer { max: INVITATIONS_PER_DAY_MAX }).into());
            }
            work.delete_expired_invitations(&id, expired_since(now)).await?;
            if work.invitation_count(&id).await? >= ORGANIZATION_MEMBERS_MAX {
                return Err(Invalid::new("login", Rule::Fewer { max: ORGANIZATION_MEMBERS_MAX }).into());
            }
            work.put_invitation(&id, &login, role, &person, now).await?;
            let details = json!({ "role": role.name() });
            Ok(work.audit_with(AuditAction::MemberInvite, &id, details).await?)
        })
        .await
    }

    /// Takes an invitation back, for an admin of the organization. A missing one is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is no admin.
    pub async fn take_invitation_back(
        &self,
        person: &ChannelId,
        id: &OrganizationId,
        login: &str,
    ) -> Result<(), Error> {
        let (person, id, login) = (person.clone(), id.clone(), login.to_owned());
        self.write(async move |work: &mut Work<'_>| {
            require_member(work, &person, &id, MemberRole::Admin).await?;
            work.delete_invitation(&id, &login).await?;
            Ok(work.audit(AuditAction::MemberUninvite, &id).await?)
        })
        .await
    }

    /// The invitations of an organization.
    pub async fn invitations(&self, id: &OrganizationId) -> Result<Vec<Invitation>, Error> {
        let (id, since) = (id.clone(), expired_since(self.now()));
        self.read(async move |tx: &mut Tx| Ok(tx.invitations(&id, since).await?)).await
    }

    /// The invitations of a person, the newest first.
    pub async fn invitations_of_person(&self, person: &ChannelId) -> Result<Vec<ReceivedInvitation>, Error> {
        let (person, since) = (person.clone(), expired_since(self.now()));
        self.read(async move |tx: &mut Tx| Ok(tx.invitations_of_person(&person, since).await?)).await
    }

    /// Declines every invitation of a person.
    pub async fn decline_invitations(&self, person: &ChannelId) -> Result<(), Error> {
        let person = person.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            for id in work.decline_invitations(&person, now).await? {
                work.audit(AuditAction::MemberDecline, &id).await?;
            }
            Ok(())
        })
        .await
    }

    /// Accepts or declines an invitation. Who is a member already keeps the role.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such invitation; `Invalid` naming `channelId` for one member
    /// too many.
    pub async fn answer_invitation(
        &self,
        person: &ChannelId,
        id: &OrganizationId,
        accepts: bool,
    ) -> Result<(), Error> {
        let (person, id) = (person.clone(), id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            lock(work, &id).await?;
            let role = work.take_invitation(&id, &person, expired_since(now)).await?;
            let role = role.ok_or(Refusal::NotFound(Resource::Organization))?;
            if !accepts {
                return Ok(work.audit(AuditAction::MemberDecline, &id).await?);
            }
            if work.organization_role(&id, &person).await?.is_some() {
                return Ok(());
            }
            put_member(work, &id, &person, role, None).await?;
            let details = json!({ "channelId": person, "role": role.name() });
            Ok(work.audit_with(AuditAction::MemberJoin, &id, details).await?)
        })
        .await
    }
}

/// Invitations that were made at this time or earlier have expired.
fn expired_since(now: Timestamp) -> Timestamp {
    now.plus_ms(-INVITATION_LIFETIME_MS)
}
