//! A chat message that is posted together with others (`appender.rs`).

use std::sync::Arc;

use domain::ChannelId;
use store::queries::chat_settings::ChatFacts;

use crate::chat::messages::ChatMessage;

/// A chat message that waits to be posted together with others.
pub(crate) struct ChatAppend {
    /// The channel of the chat.
    pub channel: ChannelId,
    /// The message.
    pub message: Arc<ChatMessage>,
    /// What is known of a viewer who may post. The streamer's name is read when the message is written.
    pub viewer: Option<ChatFacts>,
}

impl ChatAppend {
    /// Whether the sender is the streamer.
    pub fn is_streamers(&self) -> bool {
        self.message.sender == self.channel
    }

    /// Whether restrictions apply to the sender.
    pub fn is_restrictable(&self) -> bool {
        self.viewer.as_ref().is_some_and(|facts| facts.speaker.role.is_none())
    }
}
