//! The members of organizations. Changes lock the organization first, so that one of them sees the other.

use domain::application::Organization;
use domain::member::MemberRole;
use domain::{ChannelId, OrganizationId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::credential_changes::Dependency;
use crate::{StoreError, Tx, params};

const LOCK: &str =
    "UPDATE organizations SET organization_name = organization_name WHERE organization_id = $1";

const EXISTS: &str = "SELECT 1 FROM organizations WHERE organization_id = $1";

const RENAME: &str = "
    UPDATE organizations SET organization_name = $2
    WHERE organization_id = $1 AND verified = FALSE AND NOT EXISTS (
        SELECT 1 FROM review_requests r WHERE r.organization_id = $1 AND r.state = 'pending')";

/// An admin keeps the role while there is no other admin.
const PUT: &str = "
    INSERT INTO organization_members (organization_id, channel_id, role, created_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (organization_id, channel_id) DO UPDATE SET role = excluded.role
    WHERE excluded.role = 'admin' OR organization_members.role <> 'admin' OR EXISTS (
        SELECT 1 FROM organization_members o WHERE o.organization_id = excluded.organization_id
        AND o.role = 'admin' AND o.channel_id <> excluded.channel_id)";

/// The last admin stays.
const DELETE: &str = "
    DELETE FROM organization_members WHERE organization_id = $1 AND channel_id = $2
    AND (role <> 'admin' OR EXISTS (
        SELECT 1 FROM organization_members o WHERE o.organization_id = $1
        AND o.role = 'admin' AND o.channel_id <> $2))";

const ROLE: &str = "SELECT role FROM organization_members WHERE organization_id = $1 AND channel_id = $2";

const COUNT: &str = "SELECT COUNT(*) FROM organization_members WHERE organization_id = $1";

const MAKE: &str = "
    INSERT INTO organizations (organization_id, organization_name, verified, made_by) VALUES ($1, $2, $3, $4)";

const COUNT_MADE: &str = "SELECT COUNT(*) FROM organizations WHERE made_by = $1";

const MEMBERS: &str = sql!(
    "SELECT ",
    Member::COLUMNS,
    "
    FROM organization_members m JOIN channels c ON c.channel_id = m.channel_id
    WHERE m.organization_id = $1 AND m.channel_id > $2 ORDER BY m.channel_id LIMIT $3"
);

const OF_PERSON: &str = sql!(
    "SELECT ",
    Membership::COLUMNS,
    "
    FROM organization_members m JOIN organizations o ON o.organization_id = m.organization_id
    WHERE m.channel_id = $1 AND m.organization_id > $2 ORDER BY m.organization_id LIMIT $3"
);

const ONE_OF_PERSON: &str = sql!(
    "SELECT ",
    Membership::COLUMNS,
    "
    FROM organization_members m JOIN organizations o ON o.organization_id = m.organization_id
    WHERE m.channel_id = $1 AND m.organization_id = $2"
);

/// A member of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The person.
    pub channel_id: ChannelId,
    /// The name of the person's channel.
    pub channel_name: String,
    /// The role.
    pub role: MemberRole,
    /// Since when.
    pub created_at: Timestamp,
}

columns!(Member {
    channel_id: "m.channel_id",
    channel_name: "c.channel_name",
    role: "m.role",
    created_at: "m.created_at",
});

/// An organization of a person.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The organization.
    pub organization: Organization,
    /// Since when the operator has disabled it.
    pub disabled_at: Option<Timestamp>,
    /// The person's role.
    pub role: MemberRole,
    /// Since when the person is a member.
    pub created_at: Timestamp,
}

columns!(Membership {
    organization: Organization::COLUMNS,
    disabled_at: "o.disabled_at",
    role: "m.role",
    created_at: "m.created_at",
});

impl Tx {
    /// Locks an organization for the rest of the transaction: `false` if there is none.
    pub async fn lock_organization(&mut self, id: &OrganizationId) -> Result<bool, StoreError> {
        Ok(self.execute(LOCK, params![id]).await? > 0)
    }

    /// Whether there is such an organization.
    pub async fn has_organization(&mut self, id: &OrganizationId) -> Result<bool, StoreError> {
        Ok(self.query_opt(EXISTS, params![id]).await?.is_some())
    }

    /// Gives an organization another name: `false` if it is verified or waits for that.
    pub async fn rename_organization(&mut self, id: &OrganizationId, name: &str) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Organization(id));
        Ok(self.execute(RENAME, params![id, name]).await? > 0)
    }

    /// Gives a member a role: `false` if it is the last admin, who keeps that role. The organization is
    /// locked. `StoreError::ForeignKey` if there is no such channel.
    pub async fn put_organization_member(
        &mut self,
        id: &OrganizationId,
        channel: &ChannelId,
        role: MemberRole,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(PUT, params![id, channel, role.name(), now]).await? > 0)
    }

    /// Removes a member: `false` if there is no such member, or it is the last admin. The organization is
    /// locked.
    pub async fn delete_organization_member(
        &mut self,
        id: &OrganizationId,
        channel: &ChannelId,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE, params![id, channel]).await? > 0)
    }

    /// The role of a person in an organization.
    pub async fn organization_role(
        &mut self,
        id: &OrganizationId,
        channel: &ChannelId,
    ) -> Result<Option<MemberRole>, StoreError> {
        self.fetch_optional(ROLE, params![id, channel]).await
    }

    /// The number of members of an organization.
    pub async fn organization_member_count(&mut self, id: &OrganizationId) -> Result<i64, StoreError> {
        self.fetch_one(COUNT, params![id]).await
    }

    /// Creates an organization that a person makes.
    pub async fn make_organization(
        &mut self,
        organization: &Organization,
        person: &ChannelId,
    ) -> Result<(), StoreError> {
        let Organization { organization_id, name, verified } = organization;
        self.execute(MAKE, params![organization_id, name, *verified, person]).await?;
        Ok(())
    }

    /// The number of organizations that a person made, whether or not the person is still a member.
    pub async fn organizations_made(&mut self, person: &ChannelId) -> Result<i64, StoreError> {
        self.fetch_one(COUNT_MADE, params![person]).await
    }

    /// Up to `size` members of an organization after `after`, in the order of their ids.
    pub async fn organization_members(
        &mut self,
        id: &OrganizationId,
        after: &str,
        size: i64,
    ) -> Result<Vec<Member>, StoreError> {
        self.fetch_all(MEMBERS, params![id, after, size]).await
    }

    /// Up to `size` organizations of a person after `after`, in the order of their ids.
    pub async fn memberships(
        &mut self,
        channel: &ChannelId,
        after: &str,
        size: i64,
    ) -> Result<Vec<Membership>, StoreError> {
        self.fetch_all(OF_PERSON, params![channel, after, size]).await
    }

    /// One organization of a person.
    pub async fn membership(
        &mut self,
        channel: &ChannelId,
        id: &OrganizationId,
    ) -> Result<Option<Membership>, StoreError> {
        self.fetch_optional(ONE_OF_PERSON, params![channel, id]).await
    }
}
