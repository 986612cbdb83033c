//! The stream key (`docs/spec/lives.md#stream-key`).

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Web;
use crate::caller::{User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, Success};

/// Stream key. It grants the right to broadcast, so it stands in this answer and nowhere else.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamKey {
    /// The secret that broadcasting software is given.
    stream_key: String,
}

pub(crate) const KEY: Summary =
    Summary::new("getStreamKey", "The stream key", "스트림키 조회").refuses(&[404]);

/// `GET /open/v1/streams/key`, 방송 스트림키 조회.
pub async fn key(user: User<scope::StreamKeyRead>, State(web): State<Web>) -> Answer<StreamKey> {
    let key = web.service().stream_key(user.channel_id()).await?;
    Ok(Success(StreamKey { stream_key: key.expose().to_owned() }))
}
