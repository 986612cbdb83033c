//! The latest messages and the notice of a chat, for the person of its channel.

use domain::channel::UserRole;
use domain::{ChannelId, MessageId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

/// Rows of the table that one statement looks at, of all chats. The table has no index by chat, so that a
/// message costs one row.
pub const CHAT_LOG_ROWS_MAX: i64 = 10_000;

const LATEST_MESSAGES: &str = sql!(
    "SELECT ",
    LoggedMessage::COLUMNS,
    "
    FROM (SELECT * FROM (
              SELECT message_id, channel_id, sender_channel_id, content, message_time, hidden_at
              FROM chat_messages WHERE message_id > $2 ORDER BY message_id DESC LIMIT $4) latest
          WHERE channel_id = $1 ORDER BY message_id DESC LIMIT $3) m
    LEFT JOIN channels c ON c.channel_id = m.sender_channel_id
    LEFT JOIN managers g ON g.channel_id = $1 AND g.manager_channel_id = m.sender_channel_id
    ORDER BY m.message_id DESC"
);

const MESSAGE: &str = sql!(
    "SELECT ",
    LoggedMessage::COLUMNS,
    "
    FROM chat_messages m
    LEFT JOIN channels c ON c.channel_id = m.sender_channel_id
    LEFT JOIN managers g ON g.channel_id = $1 AND g.manager_channel_id = m.sender_channel_id
    WHERE m.message_id = $2 AND m.channel_id = $1"
);

const NOTICE: &str = sql!("SELECT ", PinnedNotice::COLUMNS, " FROM chat_notices WHERE channel_id = $1");

/// A message in the log of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMessage {
    /// Its id.
    pub message_id: MessageId,
    /// The channel of its author.
    pub sender: ChannelId,
    /// That channel's name now; `None` when the channel was deleted.
    pub sender_name: Option<String>,
    /// The role of the author now.
    pub role: Option<UserRole>,
    /// The text.
    pub content: String,
    /// When it was posted.
    pub message_time: Timestamp,
    /// When it was hidden.
    pub hidden_at: Option<Timestamp>,
}

columns!(LoggedMessage {
    message_id: "m.message_id",
    sender: "m.sender_channel_id",
    sender_name: "c.channel_name",
    role: "g.user_role",
    content: "m.content",
    message_time: "m.message_time",
    hidden_at: "m.hidden_at",
});

/// The notice above a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedNotice {
    /// The text.
    pub content: String,
    /// When it was put there.
    pub created_at: Timestamp,
}

columns!(PinnedNotice { content: "content", created_at: "created_at" });

impl Tx {
    /// Up to `limit` messages of a chat with ids after `after`, newest first, among the newest `rows` of all
    /// chats.
    pub async fn latest_messages(
        &mut self,
        channel: &ChannelId,
        after: &MessageId,
        limit: i64,
        rows: i64,
    ) -> Result<Vec<LoggedMessage>, StoreError> {
        self.fetch_all(LATEST_MESSAGES, params![channel, after, limit, rows]).await
    }

    /// A message in the chat of a channel, also a hidden one.
    pub async fn logged_message(
        &mut self,
        channel: &ChannelId,
        id: &MessageId,
    ) -> Result<Option<LoggedMessage>, StoreError> {
        self.fetch_optional(MESSAGE, params![channel, id]).await
    }

    /// The notice of a channel's chat.
    pub async fn notice(&mut self, channel: &ChannelId) -> Result<Option<PinnedNotice>, StoreError> {
        self.fetch_optional(NOTICE, params![channel]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn the_latest_messages_are_read_from_the_end_of_the_table() {
        let plan = sqlite_plan(LATEST_MESSAGES);
        let reads = |word: &str| plan.iter().any(|step| step.contains(word));
        assert!(reads("SEARCH chat_messages USING INDEX") && !reads("USE TEMP B-TREE"), "{plan:?}");
    }
}
