//! Invitations into organizations. An invitation belongs to the account that had its login when it was made.
//! One that was made at `expired_since` or before has expired.

use domain::member::MemberRole;
use domain::{ChannelId, OrganizationId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// The most invitations that a list shows.
pub const INVITATIONS_LISTED: i64 = 100;

const PUT: &str = "
    INSERT INTO organization_invitations (organization_id, login, role, created_at, invited_by, channel_id)
    VALUES ($1, $2, $3, $4, $5, (SELECT channel_id FROM people WHERE login = $2))
    ON CONFLICT (organization_id, login) DO UPDATE SET
        role = excluded.role, created_at = excluded.created_at, invited_by = excluded.invited_by,
        channel_id = excluded.channel_id";

const COUNT_MADE: &str =
    "SELECT COUNT(*) FROM organization_invitations WHERE invited_by = $1 AND created_at > $2";

const DECLINE_ALL: &str = "
    DELETE FROM organization_invitations WHERE channel_id = $1 AND created_at <= $2 RETURNING organization_id";

const DELETE_EXPIRED: &str =
    "DELETE FROM organization_invitations WHERE organization_id = $1 AND created_at <= $2";

const COUNT: &str = "SELECT COUNT(*) FROM organization_invitations WHERE organization_id = $1";

const DELETE: &str = "DELETE FROM organization_invitations WHERE organization_id = $1 AND login = $2";

const TAKE: &str = "
    DELETE FROM organization_invitations WHERE organization_id = $1 AND channel_id = $2 AND created_at > $3
    RETURNING role";

const OF_ORGANIZATION: &str = sql!(
    "SELECT ",
    Invitation::COLUMNS,
    " FROM organization_invitations WHERE organization_id = $1 AND created_at > $2 ORDER BY login LIMIT $3"
);

const OF_PERSON: &str = sql!(
    "SELECT ",
    ReceivedInvitation::COLUMNS,
    "
    FROM organization_invitations i JOIN organizations o ON o.organization_id = i.organization_id
    WHERE i.channel_id = $1 AND i.created_at > $2 ORDER BY i.created_at DESC, i.organization_id LIMIT $3"
);

/// An invitation as the organization sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The login that it names.
    pub login: String,
    /// The role.
    pub role: MemberRole,
    /// When it was made.
    pub created_at: Timestamp,
}

columns!(Invitation { login: "login", role: "role", created_at: "created_at" });

/// An invitation as the person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedInvitation {
    /// The organization.
    pub organization_id: OrganizationId,
    /// Its name.
    pub organization_name: String,
    /// The role.
    pub role: MemberRole,
}

columns!(ReceivedInvitation {
    organization_id: "o.organization_id",
    organization_name: "o.organization_name",
    role: "i.role",
});

impl Tx {
    /// Invites the account with a login, or renews its invitation. Without such an account nobody can accept.
    pub async fn put_invitation(
        &mut self,
        id: &OrganizationId,
        login: &str,
        role: MemberRole,
        invited_by: &ChannelId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(PUT, params![id, login, role.name(), now, invited_by]).await?;
        Ok(())
    }

    /// The number of invitations that a person made after `since`, of all organizations.
    pub async fn invitations_made(
        &mut self,
        person: &ChannelId,
        since: Timestamp,
    ) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_MADE, params![person, since]).await
    }

    /// Declines all invitations of a person that were made until then.
    pub async fn decline_invitations(
        &mut self,
        channel: &ChannelId,
        until: Timestamp,
    ) -> Result<Vec<OrganizationId>, StoreError> {
        self.fetch_all(DECLINE_ALL, params![channel, until]).await
    }

    /// Deletes the expired invitations of an organization.
    pub async fn delete_expired_invitations(
        &mut self,
        id: &OrganizationId,
        expired_since: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(DELETE_EXPIRED, params![id, expired_since]).await?;
        Ok(())
    }

    /// The number of invitations of an organization.
    pub async fn invitation_count(&mut self, id: &OrganizationId) -> Result<i64, StoreError> {
        self.fetch_one(COUNT, params![id]).await
    }

    /// Takes an invitation back. A missing one is no error.
    pub async fn delete_invitation(&mut self, id: &OrganizationId, login: &str) -> Result<(), StoreError> {
        self.execute(DELETE, params![id, login]).await?;
        Ok(())
    }

    /// Uses the invitation of a person up, and gives its role: `None` if there is none.
    pub async fn take_invitation(
        &mut self,
        id: &OrganizationId,
        channel: &ChannelId,
        expired_since: Timestamp,
    ) -> Result<Option<MemberRole>, StoreError> {
        self.fetch_optional(TAKE, params![id, channel, expired_since]).await
    }

    /// The invitations of an organization.
    pub async fn invitations(
        &mut self,
        id: &OrganizationId,
        expired_since: Timestamp,
    ) -> Result<Vec<Invitation>, StoreError> {
        self.fetch_all(OF_ORGANIZATION, params![id, expired_since, INVITATIONS_LISTED]).await
    }

    /// The invitations of a person, the newest first.
    pub async fn invitations_of_person(
        &mut self,
        channel: &ChannelId,
        expired_since: Timestamp,
    ) -> Result<Vec<ReceivedInvitation>, StoreError> {
        self.fetch_all(OF_PERSON, params![channel, expired_since, INVITATIONS_LISTED]).await
    }
}
