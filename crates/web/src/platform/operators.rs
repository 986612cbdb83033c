//! The people who may use the operator pages, and their roles.

use axum::extract::State;
use domain::operator_key::OperatorRole;
use domain::{ChannelId, Invalid, Rule};
use schemars::JsonSchema;
use serde::Serialize;
use service::operators::StaffMember;

use crate::Web;
use crate::caller::Administrator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::values::text;
use crate::input::{Body, Json, JsonForm, Query, record, required};
use crate::path::ChannelPath;
use crate::platform::ListQuery;

/// The role of a person.
#[derive(Debug)]
pub struct PutOperatorRole {
    role: OperatorRole,
}

impl Body for PutOperatorRole {
    fn form() -> impl JsonForm<Out = Self> {
        let role = |name: &str| {
            OperatorRole::from_name(name).ok_or(Invalid::new("role", Rule::OneOf(&OperatorRole::NAMES)))
        };
        record!(Self { role: required("role", text().one_of(&OperatorRole::NAMES).parsed(role)) })
    }
}

pub(crate) const PUT: Summary =
    Summary::new("putOperatorRole", "Let a person use the operator pages", "운영자 역할 부여")
        .refuses(&[404]);

/// `PUT /platform/v1/channels/{channelId}/operator-role`: its person can use the operator pages with this
/// role, from the next request on. 404 where nobody signs in to the channel.
pub async fn put(
    admin: Administrator,
    ChannelPath(channel_id): ChannelPath,
    Json(PutOperatorRole { role }): Json<PutOperatorRole>,
) -> Answer<()> {
    admin.service().put_operator_role(&channel_id, role).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE: Summary =
    Summary::new("deleteOperatorRole", "Take a person's operator role", "운영자 역할 해제").refuses(&[404]);

/// `DELETE /platform/v1/channels/{channelId}/operator-role`: its person cannot use the operator pages any
/// more, from the next request on.
pub async fn delete(admin: Administrator, ChannelPath(channel_id): ChannelPath) -> Answer<()> {
    admin.service().delete_operator_role(&channel_id).await?;
    Ok(NOTHING)
}

/// A person with an operator role.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorAnswer {
    /// The person's channel.
    channel_id: ChannelId,
    /// Its name.
    channel_name: String,
    /// What the person signs in with.
    login: String,
    /// `read`, `write` or `admin`.
    role: &'static str,
    /// Since when the person has this role.
    created_date: String,
}

impl From<StaffMember> for OperatorAnswer {
    fn from(member: StaffMember) -> Self {
        Self {
            channel_id: member.channel_id,
            channel_name: member.channel_name,
            login: member.login,
            role: member.role.name(),
            created_date: member.created_at.rfc3339(),
        }
    }
}

pub(crate) const LIST: Summary =
    Summary::new("listOperators", "The people with an operator role", "운영자 목록 조회");

/// `GET /platform/v1/operators`: the people with an operator role, by the ids of their channels.
pub async fn list(
    _: Administrator,
    State(web): State<Web>,
    Query(ListQuery { size, next }): Query<ListQuery>,
) -> Answer<NextData<OperatorAnswer>> {
    let page = web.service().operators(size, next.as_deref()).await?;
    Ok(Success(NextData::new(page.items.into_iter().map(OperatorAnswer::from).collect(), page.next)))
}
