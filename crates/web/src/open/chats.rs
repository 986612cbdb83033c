//! Chat (spec 4.4).

use axum::extract::State;
use domain::chat::{Emojis, MessageText};
use domain::{Invalid, MessageId};
use serde::Serialize;

use crate::Web;
use crate::caller::{User, scope};
use crate::envelope::{Answer, Success};
use crate::input::{Body, Fields, Json};
use crate::quota;

/// A message to send.
#[derive(Debug)]
pub struct SendMessage {
    message: MessageText,
}

impl Body for SendMessage {
    fn read(fields: &Fields) -> Result<Self, Invalid> {
        Ok(Self { message: MessageText::parse(fields.text("message")?)? })
    }
}

/// A message that was sent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SentMessage {
    message_id: MessageId,
}

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
