//! The members of organizations. Each change locks the organization first, so that an organization with
//! members keeps an admin. Only the deletion of an account takes the last one away.

use domain::application::Organization;
use domain::audit::AuditAction;
use domain::limits::{NAME_CHARS_MAX, ORGANIZATION_MEMBERS_MAX, ORGANIZATIONS_MAX};
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, OrganizationId, Refusal, Rule, Timestamp, invalid};
use serde_json::json;
use store::Tx;
pub use store::queries::organization_members::{Member, Membership};

use crate::identity::organizations::ListPage;
use crate::work::Work;
use crate::{Error, Purpose, Service};

impl Service {
    /// The members of an organization, ordered by their ids.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the organization does not exist; `Invalid` naming `next` for a cursor of
    /// another list.
    pub async fn organization_members(
        &self,
        id: &OrganizationId,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<Member>, Error> {
        let context = serde_json::json!(["organization-members", id.as_str()]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let (after, id) = (after.unwrap_or_default(), id.clone());
        let items = self
            .read(async move |tx: &mut Tx| {
                if !tx.has_organization(&id).await? {
                    return Err(not_found());
                }
                Ok(tx.organization_members(&id, &after, size + 1).await?)
            })
            .await?;
        let (items, next) = self.page(&context, items, size, |item| item.channel_id.to_string());
        Ok(ListPage { items, next })
    }

    /// Adds a member to an organization, or changes the role of one, for the operator.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the organization does not exist; `Invalid` naming `channelId` for an
    /// unknown channel or one member too many, `role` when no admin would be left.
    pub async fn put_organization_member(
        &self,
        id: &OrganizationId,
        channel: &ChannelId,
        role: MemberRole,
        since: Option<Timestamp>,
    ) -> Result<(), Error> {
        let (id, channel) = (id.clone(), channel.clone());
        self.write(async move |work: &mut Work<'_>| {
            lock(work, &id).await?;
            put_member(work, &id, &channel, role, since).await?;
            let details = json!({ "channelId": channel, "role": role.name() });
            Ok(work.audit_with(AuditAction::MemberPut, &id, details).await?)
        })
        .await
    }

    /// Removes a member for the operator. A missing member is no error.
    ///
    /// # Errors
    /// `Invalid` naming `channelId` when no admin would be left; [`Refusal::NotFound`] when the organization
    /// does not exist.
    pub async fn delete_organization_member(
        &self,
        id: &OrganizationId,
        channel: &ChannelId,
    ) -> Result<(), Error> {
        let (id, channel) = (id.clone(), channel.clone());
        self.write(async move |work: &mut Work<'_>| {
            lock(work, &id).await?;
            if delete_member(work, &id, &channel).await? {
                let details = json!({ "channelId": channel });
                work.audit_with(AuditAction::MemberDelete, &id, details).await?;
            }
            Ok(())
        })
        .await
    }

    /// The organizations of a person, ordered by their ids.
    pub async fn memberships(&self, person: &ChannelId) -> Result<Vec<Membership>, Error> {
        let person = person.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.memberships(&person, "", MEMBERSHIPS_LISTED).await?)).await
    }

    /// An organization for one of its members.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such organization, or the person has a lesser role.
    pub async fn membership(
        &self,
        person: &ChannelId,
        id: &OrganizationId,
        at_least: MemberRole,
    ) -> Result<Membership, Error> {
        let (person, id) = (person.clone(), id.clone());
        self.read(async move |tx: &mut Tx| require_member(tx, &person, &id, at_least).await).await
    }

    /// Makes an organization whose only admin is this person. It is not verified.
    ///
    /// # Errors
    /// `Invalid` naming `organizationName`, also for one organization too many.
    pub async fn make_organization(&self, person: &ChannelId, name: String) -> Result<OrganizationId, Error> {
        invalid::text("organizationName", &name, 1, NAME_CHARS_MAX)?;
        let id = OrganizationId::generate(self.now(), self.random(Purpose::Developer));
        let organization = Organization { organization_id: id.clone(), name, verified: false };
        let person = person.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // The lock decides between organizations that the person makes at the same time.
            if !work.lock_unbarred_channel(&person).await? {
                return Err(Refusal::NotFound(Resource::Channel).into());
            }
            if work.organizations_made(&person).await? >= ORGANIZATIONS_MAX {
                let rule = Rule::Fewer { max: ORGANIZATIONS_MAX };
                return Err(Invalid::new("organizationName", rule).into());
            }
            work.make_organization(&organization, &person).await?;
            let id = &organization.organization_id;
            work.put_organization_member(id, &person, MemberRole::Admin, now).await?;
            Ok::<_, Error>(work.audit(AuditAction::OrganizationPut, id).await?)
        })
        .await?;
        tracing::info!(organization_id = %id, "organization made");
        Ok(id)
    }

    /// Gives an organization another name, for an admin of it, unless it is verified or waits for that: the
    /// operator verifies a name.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is no admin; `Invalid` naming `organizationName`.
    pub async fn rename_organization(
        &self,
        person: &ChannelId,
        id: &OrganizationId,
        name: String,
    ) -> Result<(), Error> {
        invalid::text("organizationName", &name, 1, NAME_CHARS_MAX)?;
        let (person, id) = (person.clone(), id.clone());
        self.write(async move |work: &mut Work<'_>| {
            lock(work, &id).await?;
            require_member(work, &person, &id, MemberRole::Admin).await?;
            match work.rename_organization(&id, &name).await? {
                true => {
                    let details = json!({ "organizationName": name });
                    Ok(work.audit_with(AuditAction::OrganizationPut, &id, details).await?)
                }
                false => Err(Invalid::new("organizationName", Rule::Unverified).into()),
            }
        })
        .await
    }

    /// Changes the role of a member, for an admin of the organization.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is no admin, or there is no such member; `Invalid` naming `role`
    /// when no admin would be left.
    pub async fn change_member(
        &self,
        person: &ChannelId,
        id: &OrganizationId,
        member: &ChannelId,
        role: MemberRole,
    ) -> Result<(), Error> {
        let (person, id, member) = (person.clone(), id.clone(), member.clone());
        self.write(async move |work: &mut Work<'_>| {
            lock(work, &id).await?;
            require_member(work, &person, &id, MemberRole::Admin).await?;
            if work.organization_role(&id, &member).await?.is_none() {
                return Err(not_found());
            }
            put_member(work, &id, &member, role, None).await?;
            let details = json!({ "channelId": member, "role": role.name() });
            Ok(work.audit_with(AuditAction::MemberPut, &id, details).await?)
        })
        .await
    }

    /// Removes a member, for an admin of the organization. Every member may leave. A missing member is no
    /// error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is neither an admin nor the member; `Invalid` naming `channelId`
    /// when no admin would be left.
    pub async fn remove_member(
        &self,
        person: &ChannelId,
        id: &OrganizationId,
        member: &ChannelId,
    ) -> Result<(), Error> {
        let (person, id, member) = (person.clone(), id.clone(), member.clone());
        self.write(async move |work: &mut Work<'_>| {
            lock(work, &id).await?;
            let needed = if person == member { MemberRole::Viewer } else { MemberRole::Admin };
            require_member(work, &person, &id, needed).await?;
            if delete_member(work, &id, &member).await? {
                let details = json!({ "channelId": member });
                work.audit_with(AuditAction::MemberDelete, &id, details).await?;
            }
            Ok(())
        })
        .await
    }
}

/// Organizations that a list of a person shows. The operator may add a person to more.
pub(crate) const MEMBERSHIPS_LISTED: i64 = 100;

fn not_found() -> Error {
    Refusal::NotFound(Resource::Organization).into()
}

/// Locks an organization.
///
/// # Errors
/// [`Refusal::NotFound`] when it does not exist.
pub(crate) async fn lock(work: &mut Work<'_>, id: &OrganizationId) -> Result<(), Error> {
    if work.lock_organization(id).await? { Ok(()) } else { Err(not_found()) }
}

/// The organization of a person who has this role at least.
///
/// # Errors
/// [`Refusal::NotFound`] otherwise.
pub(crate) async fn require_member(
    tx: &mut Tx,
    person: &ChannelId,
    id: &OrganizationId,
    at_least: MemberRole,
) -> Result<Membership, Error> {
    let found = tx.membership(person, id).await?;
    found.filter(|membership| membership.role >= at_least).ok_or_else(not_found)
}

/// Adds a member to a locked organization, or changes the role of one.
pub(crate) async fn put_member(
    work: &mut Work<'_>,
    id: &OrganizationId,
    channel: &ChannelId,
    role: MemberRole,
    since: Option<Timestamp>,
) -> Result<(), Error> {
    let now = work.now();
    // A deleted channel keeps its row for a while.
    if work.channels_by_id(std::slice::from_ref(channel)).await?.is_empty() {
        return Err(Invalid::new("channelId", Rule::KnownChannel).into());
    }
    let is_new = work.organization_role(id, channel).await?.is_none();
    if is_new && work.organization_member_count(id).await? >= ORGANIZATION_MEMBERS_MAX {
        return Err(Invalid::new("channelId", Rule::Fewer { max: ORGANIZATION_MEMBERS_MAX }).into());
    }
    match work.put_organization_member(id, channel, role, since.unwrap_or(now)).await? {
        true => Ok(()),
        false => Err(Invalid::new("role", Rule::LastAdmin).into()),
    }
}

/// Removes a member of a locked organization: `false` if there is no such member.
async fn delete_member(work: &mut Work<'_>, id: &OrganizationId, channel: &ChannelId) -> Result<bool, Error> {
    let deleted = work.delete_organization_member(id, channel).await?;
    if deleted || work.organization_role(id, channel).await?.is_none() {
        return Ok(deleted);
    }
    Err(Invalid::new("channelId", Rule::LastAdmin).into())
}
