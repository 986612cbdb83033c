//! Lives and stream keys, as the platform reports and renews them.

use axum::extract::State;
use domain::limits::{CONCURRENT_USERS_MAX, LIVE_TITLE_CHARS_MAX};
use domain::live::CategoryChoice;
use service::lives::LiveReport;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING};
use crate::input::values::{chars, flag, integer, text, web_address};
use crate::input::{Body, Form, Json, JsonForm, optional, record, with_default};
use crate::open::lives::tags;
use crate::path::ChannelPath;
use crate::platform::KeyHeader;

impl Body for LiveReport {
    fn form() -> impl JsonForm<Out = Self> {
        let title = chars(1, LIVE_TITLE_CHARS_MAX).about("Left out: as the setting says.");
        let category = text().about("Left out: as the setting says. Empty: none.");
        record!(Self {
            title: optional("liveTitle", title),
            thumbnail_image_url: optional("liveThumbnailImageUrl", web_address()),
            concurrent_user_count: with_default("concurrentUserCount", integer(0, CONCURRENT_USERS_MAX), 0,),
            adult: with_default("adult", flag(), false),
            category: optional("categoryId", category).try_map(|id| CategoryChoice::parse(id.as_deref())),
            tags: optional("tags", tags()),
        })
    }
}

pub(crate) const PUT: Summary =
    Summary::new("putLive", "A channel goes on air, or changes its broadcast", "방송 시작").refuses(&[404]);

/// `PUT /platform/v1/channels/{channelId}/live`: puts the channel on air, or changes its live. Omitted fields
/// come from the broadcast setting.
pub async fn put(
    _: Operator,
    State(web): State<Web>,
    ChannelPath(channel): ChannelPath,
    Json(report): Json<LiveReport>,
) -> Answer<()> {
    web.service().put_live(&channel, report).await?;
    Ok(NOTHING)
}

pub(crate) const END: Summary =
    Summary::new("endLive", "A channel goes off air", "방송 종료").refuses(&[404]);

/// `DELETE /platform/v1/channels/{channelId}/live`: ends the live.
pub async fn end(_: Operator, State(web): State<Web>, ChannelPath(channel): ChannelPath) -> Answer<()> {
    web.service().end_live(&channel).await?;
    Ok(NOTHING)
}

pub(crate) const REISSUE_STREAM_KEY: Summary =
    Summary::new("reissueStreamKey", "Another stream key", "스트림키 재발급").refuses(&[404]);

/// `POST /platform/v1/channels/{channelId}/stream-key`: replaces the stream key. The key is the streamer's
/// secret, so the answer does not contain it.
pub async fn reissue_stream_key(
    operator: Operator,
    ChannelPath(channel): ChannelPath,
    key: KeyHeader,
) -> Answer<()> {
    operator.service().reissue_stream_key(&channel, key.bind("")?).await?;
    Ok(NOTHING)
}
