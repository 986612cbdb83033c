//! A chat message on its way: its place in the chat, and its event.

use std::sync::Arc;

use domain::channel::UserRoleCode;
use domain::chat::chat_channel_id;
use domain::event::ChatEvent;
use domain::{ChannelId, MessageId, MessageSeries, Timestamp};
use store::queries::channels::Speaker;

use crate::channel::badges::default_badges;
use crate::chat::message_times::MessageTimes;
use crate::chat::messages::{ChatMessage, PostedMessage};
use crate::chat::slow_chats::SlowChats;
use crate::platform::idempotency::{IdempotencyKey, StoredAnswer};

/// The state of a node for posting messages.
#[derive(Clone)]
pub(crate) struct Posting {
    /// Assigns the times of messages.
    pub times: Arc<MessageTimes>,
    /// The base URL of the service's own pictures.
    pub pictures: Option<Box<str>>,
    /// The chats in slow mode.
    pub slow_chats: Arc<SlowChats>,
}

/// A message about to be posted, alone or among others.
pub(crate) struct Post<'a> {
    /// The channel of the chat.
    pub channel: &'a ChannelId,
    /// The message.
    pub message: &'a ChatMessage,
    /// The state of the node, shared by all messages.
    pub posting: &'a Posting,
    /// A message with a key is posted once.
    pub key: Option<&'a IdempotencyKey>,
}

impl Post<'_> {
    /// Returns a new id and time. This node assigns them to no other message of the sender in the chat.
    pub fn place(&self, now: Timestamp) -> Place {
        let series = MessageSeries::of(self.channel, &self.message.sender);
        let time = self.posting.times.next(series, now);
        Place { id: series.id_at(time), time }
    }
}

/// The id of a message and the time in it.
pub(crate) struct Place {
    pub id: MessageId,
    pub time: Timestamp,
}

impl Place {
    pub fn message(self, chat_channel_id: String) -> PostedMessage {
        PostedMessage { message_id: self.id, message_time: self.time, chat_channel_id }
    }
}

impl StoredAnswer for Place {
    fn to_text(&self) -> String {
        format!("{} {}", self.id, self.time.as_millis())
    }

    fn from_text(text: &str) -> Option<Self> {
        let (id, time) = text.split_once(' ')?;
        Some(Self { id: MessageId::stored(id.to_owned()), time: Timestamp::from_millis(time.parse().ok()?) })
    }
}

/// A sender who may post.
pub(crate) struct Author {
    pub speaker: Speaker,
    pub subscriber: bool,
}

pub(super) fn chat_event(post: &Post<'_>, author: Author, message_time: Timestamp) -> ChatEvent {
    let ChatMessage { sender, text, emojis, badges } = post.message;
    let Author { speaker, subscriber } = author;
    let user_role_code = UserRoleCode::of(post.channel, sender, speaker.role);
    let default = || default_badges(post.posting.pictures.as_deref(), user_role_code, subscriber);
    ChatEvent {
        user_role_code,
        sender_channel_id: sender.clone(),
        nickname: speaker.name,
        badges: badges.clone().unwrap_or_else(default),
        verified_mark: speaker.verified_mark,
        chat_channel_id: chat_channel_id(post.channel),
        content: text.as_str().to_owned(),
        emojis: emojis.clone(),
        message_time,
    }
}
