//! Channels (`docs/spec/channels.md#channels`).

use axum::extract::State;
use domain::ChannelId;
use domain::limits::CHANNEL_IDS_MAX;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Web;
use crate::caller::Client;
use crate::contract::Summary;
use crate::envelope::{Answer, Data, Success};
use crate::input::form::list_parameter;
use crate::input::values::{item, list};
use crate::input::{Form, Params, Query, QueryForm, record};
use crate::pictures::Picture;

/// The query of the channel query.
#[derive(Debug)]
pub struct ChannelQuery {
    channel_ids: Vec<ChannelId>,
}

impl Params for ChannelQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let ids = list(item(), 1, CHANNEL_IDS_MAX).about("An id with no match is left out of the answer.");
        // A text that cannot be an id matches no channel, like an unknown id.
        let possible = |ids: Vec<String>| {
            ids.into_iter().filter_map(|id| ChannelId::parse("channelIds", &id).ok()).collect()
        };
        record!(Self {
            channel_ids: list_parameter("channelIds", ids, CHANNEL_IDS_MAX).required().map(possible),
        })
    }
}

/// Channel.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// The channel.
    channel_id: ChannelId,
    /// Its name.
    channel_name: String,
    /// Its picture; one of the service's own when it has none.
    channel_image_url: String,
    /// How many channels follow it.
    follower_count: i64,
    /// Whether it carries the platform's mark.
    verified_mark: bool,
}

pub(crate) const QUERY: Summary = Summary::new("getChannels", "Channels by their ids", "채널 정보 조회");

/// `GET /open/v1/channels`, client mode.
pub async fn query(
    _: Client,
    State(web): State<Web>,
    Query(query): Query<ChannelQuery>,
) -> Answer<Data<Channel>> {
    let channels = web.service().channels(query.channel_ids).await?;
    let data = channels.into_iter().map(|channel| Channel {
        channel_id: channel.channel_id,
        channel_name: channel.name,
        channel_image_url: channel.image_url.unwrap_or_else(|| web.picture(Picture::Channel)),
        follower_count: channel.follower_count,
        verified_mark: channel.verified_mark,
    });
    Ok(Success(Data { data: data.collect() }))
}
