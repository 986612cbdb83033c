//! Chat (`docs/spec/chat.md`).

use axum::extract::State;
use domain::chat::{Emojis, MessageText, Notice};
use domain::limits::CHAT_MESSAGE_CHARS_MAX;
use domain::{ChannelId, MessageId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::chats::MessagePlace;

use crate::Web;
use crate::caller::{User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, Success};
use crate::input::union::either;
use crate::input::values::{chars, id, integer, text};
use crate::input::{Body, Form, Json, JsonForm, record, required};
use crate::quota;

/// A message to send.
#[derive(Debug)]
pub struct SendMessage {
    message: MessageText,
}

impl Body for SendMessage {
    fn form() -> impl JsonForm<Out = Self> {
        let message = chars(1, CHAT_MESSAGE_CHARS_MAX);
        record!(Self { message: required("message", message).try_map(MessageText::parse) })
    }
}

/// A message that was sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentMessage {
    /// The message, as a notice names it.
    message_id: MessageId,
}

pub(crate) const SEND: Summary =
    Summary::new("sendChat", "Post a message to the token owner's channel", "채팅 메시지 전송")
        .refuses(&[404]);

/// `POST /open/v1/chats/send`, 채팅 메시지 쓰기. Posts to the token owner's own channel, as its streamer.
pub async fn send(
    user: User<scope::ChatWrite, quota::ChatSend>,
    State(web): State<Web>,
    Json(body): Json<SendMessage>,
) -> Answer<SentMessage> {
    let channel = user.channel_id();
    let posted = web.service().post_chat(channel, channel, body.message, Emojis::new(), None).await?;
    Ok(Success(SentMessage { message_id: posted.message_id }))
}

impl Body for Notice {
    fn form() -> impl JsonForm<Out = Self> {
        let text = chars(1, CHAT_MESSAGE_CHARS_MAX).about("A new notice.");
        let message = id(MessageId::parse).about("A message that stands in the chat.");
        either(
            required("message", text).try_map(MessageText::parse).map(Self::Text),
            required("messageId", message).map(Self::Message),
        )
    }
}

pub(crate) const NOTICE: Summary =
    Summary::new("putNotice", "Pin a new text, or a message of the chat", "채팅 공지 등록").refuses(&[404]);

/// `POST /open/v1/chats/notice`, 채팅 공지 쓰기: a new text, or a message of the chat.
pub async fn notice(
    user: User<scope::NoticeWrite>,
    State(web): State<Web>,
    Json(notice): Json<Notice>,
) -> Answer<()> {
    web.service().put_notice(user.channel_id(), notice).await?;
    Ok(NOTHING)
}

impl Body for MessagePlace {
    fn form() -> impl JsonForm<Out = Self> {
        let time = integer(0, Timestamp::LAST.as_millis()).about("From the CHAT event, in milliseconds.");
        record!(Self {
            chat_channel_id: required("chatChannelId", text()),
            message_time: required("messageTime", time).map(Timestamp::from_millis),
            sender: required("senderChannelId", id(ChannelId::parse)),
        })
    }
}

pub(crate) const BLIND: Summary =
    Summary::new("hideMessage", "Hide a message of the caller's own chat", "메시지 숨기기").refuses(&[404]);

/// `POST /open/v1/chats/blind-message`, 채팅 메시지 쓰기: hides a message of the caller's own chat.
pub async fn blind(
    user: User<scope::ChatWrite>,
    State(web): State<Web>,
    Json(place): Json<MessagePlace>,
) -> Answer<()> {
    web.service().hide_message(user.channel_id(), place).await?;
    Ok(NOTHING)
}
