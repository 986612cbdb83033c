//! Lives and stream keys, as the platform reports and renews them.

use axum::extract::State;
use domain::Invalid;
use domain::limits::{CONCURRENT_USERS_MAX, LIVE_TITLE_CHARS_MAX};
use domain::live::CategoryChoice;
use service::lives::LiveReport;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::contract::shape::{Shape, chars, flag, integer, optional, text, web_address};
use crate::envelope::{Answer, NOTHING};
use crate::input::{Body, Fields, Json};
use crate::open::lives::tags;
use crate::platform::{ChannelPath, KeyHeader};

impl Body for LiveReport {
    fn shape() -> Shape {
        Shape::of([
            optional("liveTitle", chars(1, LIVE_TITLE_CHARS_MAX).about("Left out: as the setting says.")),
            optional("liveThumbnailImageUrl", web_address()),
            optional("concurrentUserCount", integer(0, CONCURRENT_USERS_MAX).default(0)),
            optional("adult", flag().default(false)),
            optional("categoryId", text().about("Left out: as the setting says. Empty: none.")),
            optional("tags", tags()),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        Ok(Self {
            title: fields.optional_text("liveTitle")?,
            thumbnail_image_url: fields.optional_text("liveThumbnailImageUrl")?,
            concurrent_user_count: fields
                .optional_integer("concurrentUserCount", 0, CONCURRENT_USERS_MAX)?
                .unwrap_or(0),
            adult: fields.flag("adult")?,
            category: CategoryChoice::parse(fields.optional_text("categoryId")?.as_deref())?,
            tags: fields.optional_texts("tags")?,
        })
    }
}

pub(crate) const PUT: Summary =
    Summary::new("putLive", "A channel goes on air, or changes its broadcast", "방송 시작").refuses(&[404]);

/// `PUT /platform/v1/channels/{channelId}/live`: puts the channel on air, or changes what it has on air. What is not given
/// is the broadcast setting's.
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

/// `DELETE /platform/v1/channels/{channelId}/live`: off air.
pub async fn end(_: Operator, State(web): State<Web>, ChannelPath(channel): ChannelPath) -> Answer<()> {
    web.service().end_live(&channel).await?;
    Ok(NOTHING)
}

pub(crate) const REISSUE_STREAM_KEY: Summary =
    Summary::new("reissueStreamKey", "Another stream key", "스트림키 재발급").refuses(&[404]);

/// `POST /platform/v1/channels/{channelId}/stream-key`: another stream key. It is the streamer's secret, so the answer
/// does not hold it.
pub async fn reissue_stream_key(
    _: Operator,
    State(web): State<Web>,
    ChannelPath(channel): ChannelPath,
    key: KeyHeader,
) -> Answer<()> {
    web.service().reissue_stream_key(&channel, key.bind("")?).await?;
    Ok(NOTHING)
}
