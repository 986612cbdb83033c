//! The members of organizations, as the operator puts them.

use axum::extract::{FromRequestParts, State};
use domain::member::MemberRole;
use domain::{ChannelId, OrganizationId};
use http::request::Parts;
use schemars::JsonSchema;
use serde::Serialize;
use service::organization_members::Member;

use crate::Web;
use crate::caller::Operator;
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::envelope::{Answer, Failure, NOTHING, NextData, Success};
use crate::input::values::text;
use crate::input::{Body, Json, JsonForm, Query, record, required};
use crate::path::{PathId, two_ids};
use crate::platform::ListQuery;

/// A member of an organization.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberAnswer {
    /// The person.
    channel_id: ChannelId,
    /// The name of the person's channel.
    channel_name: String,
    /// `viewer`, `developer` or `admin`.
    role: &'static str,
    /// Since when the person is a member.
    created_date: String,
}

impl From<Member> for MemberAnswer {
    fn from(Member { channel_id, channel_name, role, created_at }: Member) -> Self {
        Self { channel_id, channel_name, role: role.name(), created_date: created_at.rfc3339() }
    }
}

pub(crate) const LIST: Summary =
    Summary::new("listOrganizationMembers", "The members of an organization", "조직 구성원 목록 조회")
        .refuses(&[404]);

/// `GET /platform/v1/organizations/{organizationId}/members`: the members by their ids.
pub async fn list(
    _: Operator,
    State(web): State<Web>,
    PathId(id): PathId,
    Query(ListQuery { size, next }): Query<ListQuery>,
) -> Answer<NextData<MemberAnswer>> {
    let id = OrganizationId::parse("organizationId", &id)?;
    let page = web.service().organization_members(&id, size, next.as_deref()).await?;
    Ok(Success(NextData::new(page.items.into_iter().map(MemberAnswer::from).collect(), page.next)))
}

/// The role of a member.
#[derive(Debug)]
pub struct PutMember {
    role: MemberRole,
}

impl Body for PutMember {
    fn form() -> impl JsonForm<Out = Self> {
        let role = text().one_of(&MemberRole::NAMES);
        record!(Self { role: required("role", role.parsed(MemberRole::parse)) })
    }
}

pub(crate) const PUT: Summary =
    Summary::new("putOrganizationMember", "Give a person a role in an organization", "조직 구성원 등록")
        .refuses(&[404]);

/// `PUT /platform/v1/organizations/{organizationId}/members/{channelId}`: adds a member, or changes the role
/// of one.
pub async fn put(
    operator: Operator,
    MemberPath(organization, channel): MemberPath,
    Json(PutMember { role }): Json<PutMember>,
) -> Answer<()> {
    operator.service().put_organization_member(&organization, &channel, role, None).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE: Summary =
    Summary::new("deleteOrganizationMember", "Remove a person from an organization", "조직 구성원 삭제")
        .refuses(&[404]);

/// `DELETE /platform/v1/organizations/{organizationId}/members/{channelId}`: removes a member. The last admin
/// stays.
pub async fn delete(operator: Operator, MemberPath(organization, channel): MemberPath) -> Answer<()> {
    operator.service().delete_organization_member(&organization, &channel).await?;
    Ok(NOTHING)
}

/// `{organizationId}` and `{channelId}` of the path.
#[derive(Debug)]
pub struct MemberPath(OrganizationId, ChannelId);

impl FromRequestParts<Web> for MemberPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let (organization, channel) = two_ids(parts).await?;
        let organization = OrganizationId::parse("organizationId", &organization)?;
        Ok(Self(organization, ChannelId::parse("channelId", &channel)?))
    }
}

impl DescribeInput for MemberPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}
