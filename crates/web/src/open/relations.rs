//! The followers, subscribers and managers of the caller's channel (`docs/spec/channels.md`).

use axum::extract::State;
use domain::channel::{SubscriberSort, UserRole};
use domain::limits::{FOLLOWER_LIST_SIZE_DEFAULT, FOLLOWER_LIST_SIZE_MAX};
use domain::{ChannelId, Profile};
use schemars::JsonSchema;
use serde::Serialize;
use service::Page;

use crate::Web;
use crate::caller::{User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, Data, PageData, Success};
use crate::input::form::page;
use crate::input::values::text;
use crate::input::{Form, Params, Query, QueryForm, optional, record};

/// The query of the follower list.
#[derive(Debug)]
pub struct FollowerQuery(Page);

impl Params for FollowerQuery {
    fn form() -> impl QueryForm<Out = Self> {
        page(FOLLOWER_LIST_SIZE_DEFAULT, FOLLOWER_LIST_SIZE_MAX).map(Self)
    }
}

/// The query of the subscriber list.
#[derive(Debug)]
pub struct SubscriberQuery {
    page: Page,
    sort: SubscriberSort,
}

impl Params for SubscriberQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let sort = text().one_of(&["RECENT", "LONGER"]).with(|kind| kind.default("RECENT"));
        let sort = sort.about("The newest or the longest first.").parsed(SubscriberSort::parse);
        record!(Self {
            page: page(FOLLOWER_LIST_SIZE_DEFAULT, FOLLOWER_LIST_SIZE_MAX),
            sort: optional("sort", sort).map(Option::unwrap_or_default),
        })
    }
}

/// Channel manager.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    /// Who helps.
    manager_channel_id: ChannelId,
    /// The channel's name.
    manager_channel_name: String,
    /// What they do.
    user_role: UserRole,
    /// Since when.
    created_date: String,
}

/// Follower.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Follower {
    /// Who it is, by the channel.
    channel_id: ChannelId,
    /// The channel's name.
    channel_name: String,
    /// Since when.
    created_date: String,
}

/// Subscriber.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscriber {
    /// Who it is, by the channel.
    channel_id: ChannelId,
    /// The channel's name.
    channel_name: String,
    /// Months subscribed.
    month: i64,
    /// The tier.
    #[schemars(range(min = 1, max = 2))]
    tier_no: i64,
    /// Since when.
    created_date: String,
}

pub(crate) const STREAMING_ROLES: Summary =
    Summary::new("getStreamingRoles", "Who helps to run the channel, the owner first", "채널 관리자 조회");

/// `GET /open/v1/channels/streaming-roles`, scope 채널 관리자 조회: the owner first.
pub async fn streaming_roles(
    user: User<scope::ManagerRead>,
    State(web): State<Web>,
) -> Answer<Data<Manager>> {
    let managers = web.service().managers(user.channel_id().clone()).await?;
    let data = managers.into_iter().map(|manager| Manager {
        manager_channel_id: manager.channel_id,
        manager_channel_name: manager.name,
        user_role: manager.role,
        created_date: manager.created_at.for_profile(user.profile),
    });
    Ok(Success(Data { data: data.collect() }))
}

pub(crate) const FOLLOWERS: Summary =
    Summary::new("getFollowers", "The channel's followers, newest first", "채널 팔로워 조회");

/// `GET /open/v1/channels/followers`, scope 채널 팔로워 조회: the newest first.
pub async fn followers(
    user: User<scope::FollowerRead>,
    State(web): State<Web>,
    Query(FollowerQuery(page)): Query<FollowerQuery>,
) -> Answer<PageData<Follower>> {
    let (channel, profile) = (user.channel_id().clone(), user.profile);
    let listed = web.service().followers(channel, page, profile == Profile::Observed).await?;
    let data = listed.items.into_iter().map(|follower| Follower {
        channel_id: follower.channel_id,
        channel_name: follower.name,
        created_date: follower.created_at.for_profile(profile),
    });
    Ok(Success(PageData::new(data.collect(), page, listed.total)))
}

pub(crate) const SUBSCRIBERS: Summary =
    Summary::new("getSubscribers", "The channel's subscribers", "채널 구독자 조회");

/// `GET /open/v1/channels/subscribers`, scope 채널 구독자 조회: the newest or the longest first.
pub async fn subscribers(
    user: User<scope::SubscriberRead>,
    State(web): State<Web>,
    Query(SubscriberQuery { page, sort }): Query<SubscriberQuery>,
) -> Answer<PageData<Subscriber>> {
    let (channel, profile) = (user.channel_id().clone(), user.profile);
    let listed = web.service().subscribers(channel, sort, page, profile == Profile::Observed).await?;
    let data = listed.items.into_iter().map(|subscriber| Subscriber {
        channel_id: subscriber.channel_id,
        channel_name: subscriber.name,
        month: subscriber.month,
        tier_no: subscriber.tier_no,
        created_date: subscriber.created_at.for_profile(profile),
    });
    Ok(Success(PageData::new(data.collect(), page, listed.total)))
}
