//! Restriction of channels (`docs/spec/restriction.md`).

use axum::extract::State;
use domain::ChannelId;
use domain::limits::RESTRICTION_LIST_SIZE_MAX;
use schemars::JsonSchema;
use serde::Serialize;
use service::restrictions::ChatTarget;

use crate::Web;
use crate::caller::{User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::values::{cursor, id, integer, text};
use crate::input::{
    Body, Form, Json, JsonForm, Params, Query, QueryForm, optional, record, required, with_default,
};

/// The channel to restrict or release.
#[derive(Debug)]
pub struct TargetBody {
    target: ChannelId,
}

impl Body for TargetBody {
    fn form() -> impl JsonForm<Out = Self> {
        record!(Self { target: required("targetChannelId", id(ChannelId::parse)) })
    }
}

impl Body for ChatTarget {
    fn form() -> impl JsonForm<Out = Self> {
        let chat = text().about("From a CHAT event of the caller's own chat.");
        record!(Self {
            target: TargetBody::form().map(|body| body.target),
            chat_channel_id: required("chatChannelId", chat),
        })
    }
}

/// The page of the list.
#[derive(Debug)]
pub struct RestrictedQuery {
    size: i64,
    next: Option<String>,
}

impl Params for RestrictedQuery {
    fn form() -> impl QueryForm<Out = Self> {
        record!(Self {
            size: with_default("size", integer(1, RESTRICTION_LIST_SIZE_MAX), RESTRICTION_LIST_SIZE_MAX),
            next: optional("next", cursor()),
        })
    }
}

/// Restricted channel.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestrictedChannel {
    /// Who is restricted.
    restricted_channel_id: ChannelId,
    /// The channel's name.
    restricted_channel_name: String,
    /// Since when.
    created_date: String,
    /// An activity restriction has none: it holds until it is released.
    release_date: (),
}

pub(crate) const RESTRICT: Summary =
    Summary::new("restrict", "Restrict a channel until it is released", "활동제한 추가");

/// `POST /open/v1/restrict-channels`, 활동제한 쓰기.
pub async fn restrict(
    user: User<scope::RestrictionWrite>,
    State(web): State<Web>,
    Json(body): Json<TargetBody>,
) -> Answer<()> {
    web.service().restrict(user.channel_id(), body.target).await?;
    Ok(NOTHING)
}

pub(crate) const RELEASE: Summary = Summary::new("release", "Release a restricted channel", "활동제한 해제");

/// `DELETE /open/v1/restrict-channels`, 활동제한 쓰기. Takes a body.
pub async fn release(
    user: User<scope::RestrictionWrite>,
    State(web): State<Web>,
    Json(body): Json<TargetBody>,
) -> Answer<()> {
    web.service().release(user.channel_id(), body.target).await?;
    Ok(NOTHING)
}

pub(crate) const LIST: Summary =
    Summary::new("getRestricted", "Restricted channels, newest first", "활동제한 목록 조회");

/// `GET /open/v1/restrict-channels`, 활동제한 조회: newest first.
pub async fn list(
    user: User<scope::RestrictionRead>,
    State(web): State<Web>,
    Query(query): Query<RestrictedQuery>,
) -> Answer<NextData<RestrictedChannel>> {
    let page = web.service().restricted_channels(&user.caller, query.size, query.next.as_deref()).await?;
    let data = page.channels.into_iter().map(|channel| RestrictedChannel {
        restricted_channel_id: channel.channel_id,
        restricted_channel_name: channel.channel_name,
        created_date: channel.created_at.for_profile(user.profile),
        release_date: (),
    });
    Ok(Success(NextData::new(data.collect(), page.next)))
}

pub(crate) const RESTRICT_TEMPORARILY: Summary =
    Summary::new("restrictTemporarily", "Restrict a channel in the chat for a minute", "임시제한 추가");

/// `POST /open/v1/temporary-restrict-channels`, 활동제한 쓰기: for a minute.
pub async fn restrict_temporarily(
    user: User<scope::RestrictionWrite>,
    State(web): State<Web>,
    Json(body): Json<ChatTarget>,
) -> Answer<()> {
    web.service().restrict_temporarily(user.channel_id(), body).await?;
    Ok(NOTHING)
}

pub(crate) const RELEASE_TEMPORARILY: Summary =
    Summary::new("releaseTemporarily", "Release a temporarily restricted channel", "임시제한 해제");

/// `DELETE /open/v1/temporary-restrict-channels`, 활동제한 쓰기. Takes a body.
pub async fn release_temporarily(
    user: User<scope::RestrictionWrite>,
    State(web): State<Web>,
    Json(body): Json<ChatTarget>,
) -> Answer<()> {
    web.service().release_temporarily(user.channel_id(), body).await?;
    Ok(NOTHING)
}
