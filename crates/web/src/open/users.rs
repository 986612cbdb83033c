//! The signed-in user (`docs/spec/channels.md#user`).

use domain::{ChannelId, Profile};
use schemars::JsonSchema;
use serde::Serialize;

use crate::caller::{User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, Success};

/// User (me).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// The user, by the user's channel.
    channel_id: ChannelId,
    /// The channel's name.
    channel_name: String,
    /// Only in the observed profile: the channel's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    nickname: Option<String>,
}

pub(crate) const ME: Summary =
    Summary::new("getMe", "The signed-in user", "로그인한 유저 조회").refuses(&[404]);

/// `GET /open/v1/users/me`, 유저 정보 조회.
pub async fn me(user: User<scope::UserRead>) -> Answer<Me> {
    Ok(Success(Me {
        channel_id: user.channel_id().clone(),
        nickname: (user.profile == Profile::Observed).then(|| user.channel_name().to_owned()),
        channel_name: user.channel_name().to_owned(),
    }))
}
