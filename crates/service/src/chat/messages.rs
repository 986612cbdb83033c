//! A chat message as the caller gives it, and as it was posted.

use domain::chat::{Badge, Emojis, MessageText};
use domain::{ChannelId, MessageId, Timestamp};

/// A chat message that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedMessage {
    /// The id of the message.
    pub message_id: MessageId,
    /// When it was posted, in milliseconds since the epoch.
    pub message_time: Timestamp,
    /// The chat of the message.
    pub chat_channel_id: String,
}

/// A chat message about to be posted.
#[derive(Clone, Debug)]
pub struct ChatMessage {
    /// The channel of the sender.
    pub sender: ChannelId,
    /// The text.
    pub text: MessageText,
    /// Emojis in the text.
    pub emojis: Emojis,
    /// The sender's badges; `None` for those of the sender's role and subscription.
    pub badges: Option<Vec<Badge>>,
}
