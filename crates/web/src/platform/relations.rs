//! Managers and followers of channels, as the platform reports them.

use axum::extract::State;
use domain::Timestamp;
use domain::channel::UserRole;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING};
use crate::input::values::{date, text};
use crate::input::{Body, Json, JsonForm, OptionalJson, optional, record, required};
use crate::path::ChannelPairPath;

/// The role of a manager.
#[derive(Debug)]
pub struct PutManager {
    pub(super) user_role: UserRole,
}

impl Body for PutManager {
    fn form() -> impl JsonForm<Out = Self> {
        let role = text().with(|kind| kind.one_of(&UserRole::GIVEN.map(UserRole::name)));
        record!(Self { user_role: required("userRole", role.parsed(UserRole::parse_given)) })
    }
}

/// The date of a follow.
#[derive(Debug)]
pub struct PutFollower {
    pub(super) created: Option<Timestamp>,
}

impl Body for PutFollower {
    fn form() -> impl JsonForm<Out = Self> {
        record!(Self { created: optional("createdDate", date()) })
    }
}

pub(crate) const PUT_MANAGER: Summary =
    Summary::new("putManager", "Give somebody a role in a channel", "채널 관리자 등록").refuses(&[404]);

/// `PUT /platform/v1/channels/{channelId}/managers/{managerChannelId}`: gives a role. The owner's role is
/// implied.
pub async fn put_manager(
    _: Operator,
    State(web): State<Web>,
    ChannelPairPath(channel, manager): ChannelPairPath,
    Json(body): Json<PutManager>,
) -> Answer<()> {
    web.service().put_manager(channel, manager, body.user_role).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE_MANAGER: Summary =
    Summary::new("deleteManager", "Take a role away", "채널 관리자 해제").refuses(&[404]);

/// `DELETE /platform/v1/channels/{channelId}/managers/{managerChannelId}`: takes the role away.
pub async fn delete_manager(
    _: Operator,
    State(web): State<Web>,
    ChannelPairPath(channel, manager): ChannelPairPath,
) -> Answer<()> {
    web.service().delete_manager(channel, manager).await?;
    Ok(NOTHING)
}

pub(crate) const PUT_FOLLOWER: Summary =
    Summary::new("putFollower", "Somebody follows a channel", "팔로우").refuses(&[404]);

/// `PUT /platform/v1/channels/{channelId}/followers/{followerChannelId}`: adds a follower. A repeated call
/// changes only the date, if the body has one.
pub async fn put_follower(
    _: Operator,
    State(web): State<Web>,
    ChannelPairPath(channel, follower): ChannelPairPath,
    OptionalJson(body): OptionalJson<PutFollower>,
) -> Answer<()> {
    web.service().follow(channel, follower, body.created).await?;
    Ok(NOTHING)
}

pub(crate) const DELETE_FOLLOWER: Summary =
    Summary::new("deleteFollower", "Somebody follows no more", "팔로우 취소").refuses(&[404]);

/// `DELETE /platform/v1/channels/{channelId}/followers/{followerChannelId}`: removes a follower.
pub async fn delete_follower(
    _: Operator,
    State(web): State<Web>,
    ChannelPairPath(channel, follower): ChannelPairPath,
) -> Answer<()> {
    web.service().unfollow(channel, follower).await?;
    Ok(NOTHING)
}
