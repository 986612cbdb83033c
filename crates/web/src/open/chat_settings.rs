//! Chat settings (`docs/spec/chat.md#settings`).

use axum::extract::State;
use domain::chat_settings::{
    ChatSettings as Settings, ChatSettingsChange, Condition, Group, MIN_FOLLOWER_MINUTES, SLOW_MODE_SECONDS,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Web;
use crate::caller::{User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, Success};
use crate::input::values::{flag, name, one_of_numbers};
use crate::input::{Body, Form, Json, JsonForm, optional, record};

/// Chat settings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatSettings {
    /// Who must have proved what.
    #[schemars(extend("enum" = Condition::NAMES))]
    chat_available_condition: &'static str,
    /// Who may speak.
    #[schemars(extend("enum" = Group::NAMES))]
    chat_available_group: &'static str,
    /// Minutes that a follower must have followed for.
    #[schemars(extend("enum" = MIN_FOLLOWER_MINUTES))]
    min_follower_minute: i64,
    /// Whether subscribers may speak in follower mode although they do not follow for long enough.
    allow_subscriber_in_follower_mode: bool,
    /// Seconds between two messages of one viewer; 0 is off.
    #[schemars(extend("enum" = SLOW_MODE_SECONDS))]
    chat_slow_mode_sec: i64,
    /// Whether only emojis may be sent.
    chat_emoji_mode: bool,
}

impl From<Settings> for ChatSettings {
    fn from(settings: Settings) -> Self {
        Self {
            chat_available_condition: settings.condition.name(),
            chat_available_group: settings.group.name(),
            min_follower_minute: settings.min_follower_minute,
            allow_subscriber_in_follower_mode: settings.allow_subscriber_in_follower_mode,
            chat_slow_mode_sec: settings.slow_mode_sec,
            chat_emoji_mode: settings.emoji_mode,
        }
    }
}

impl Body for ChatSettingsChange {
    fn form() -> impl JsonForm<Out = Self> {
        record!(Self {
            condition: optional("chatAvailableCondition", name(Condition::NAMES))
                .try_map(|name| name.map(Condition::parse).transpose()),
            group: optional("chatAvailableGroup", name(Group::NAMES))
                .try_map(|name| name.map(Group::parse).transpose()),
            min_follower_minute: optional("minFollowerMinute", one_of_numbers(&MIN_FOLLOWER_MINUTES)),
            allow_subscriber_in_follower_mode: optional("allowSubscriberInFollowerMode", flag()),
            slow_mode_sec: optional("chatSlowModeSec", one_of_numbers(&SLOW_MODE_SECONDS)),
            emoji_mode: optional("chatEmojiMode", flag()),
        })
    }
}

pub(crate) const GET: Summary =
    Summary::new("getChatSettings", "The chat's settings", "채팅 설정 조회").refuses(&[404]);

/// `GET /open/v1/chats/settings`, 채팅 설정 조회.
pub async fn get(user: User<scope::ChatSettingRead>, State(web): State<Web>) -> Answer<ChatSettings> {
    let settings = web.service().chat_settings(user.channel_id()).await?;
    Ok(Success(settings.into()))
}

pub(crate) const PUT: Summary =
    Summary::new("changeChatSettings", "Change the settings that are given", "채팅 설정 변경")
        .refuses(&[404]);

/// `PUT /open/v1/chats/settings`, 채팅 설정 변경: changes only the given fields.
pub async fn put(
    user: User<scope::ChatSettingWrite>,
    State(web): State<Web>,
    Json(change): Json<ChatSettingsChange>,
) -> Answer<()> {
    web.service().change_chat_settings(user.channel_id(), change).await?;
    Ok(NOTHING)
}
