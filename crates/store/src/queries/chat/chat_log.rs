//! The latest messages and the notice of a chat, for the person of its channel.

use std::sync::LazyLock;

use domain::channel::UserRole;
use domain::restriction::RestrictionStatus;
use domain::{ChannelId, MessageId, Timestamp};

use super::chats::{BLOCK_BITS, block_name};
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, Value, params};

/// Rows of the table that one statement looks at, of all chats.
pub const CHAT_LOG_ROWS_MAX: i64 = 10_000;

/// Blocks of 4,096 ms that are looked at, newest first, until there are enough messages: 13 minutes. The
/// first windows are short, because a busy chat has all it shows in them.
const WINDOWS: [usize; 4] = [4, 60, WINDOW_MAX, WINDOW_MAX];
/// Blocks that one statement looks at.
const WINDOW_MAX: usize = 64;
/// The parameters before the blocks.
const RECENT_PARAMS: usize = 3;

static RECENT_MESSAGES: LazyLock<String> = LazyLock::new(|| {
    let blocks: Vec<_> = (0..WINDOW_MAX).map(|block| format!("${}", block + 1 + RECENT_PARAMS)).collect();
    format!(
        "SELECT {} FROM (
            SELECT message_id, sender_channel_id, content, message_time, hidden_at
            FROM chat_messages
            WHERE substr(message_id, 1, 9) IN ({}) AND channel_id = $1 AND message_id >= $2
            ORDER BY message_id DESC LIMIT $3) m
        LEFT JOIN channels c ON c.channel_id = m.sender_channel_id
        LEFT JOIN managers g ON g.channel_id = $1 AND g.manager_channel_id = m.sender_channel_id
        LEFT JOIN restricted_channels r ON r.channel_id = $1 AND r.restricted_channel_id = m.sender_channel_id
        LEFT JOIN temporary_restrictions t ON t.channel_id = $1 AND t.restricted_channel_id = m.sender_channel_id
        ORDER BY m.message_id DESC",
        LoggedMessage::COLUMNS,
        blocks.join(", ")
    )
});

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
    LEFT JOIN restricted_channels r ON r.channel_id = $1 AND r.restricted_channel_id = m.sender_channel_id
    LEFT JOIN temporary_restrictions t ON t.channel_id = $1 AND t.restricted_channel_id = m.sender_channel_id
    ORDER BY m.message_id DESC"
);

const MESSAGE: &str = sql!(
    "SELECT ",
    LoggedMessage::COLUMNS,
    "
    FROM chat_messages m
    LEFT JOIN channels c ON c.channel_id = m.sender_channel_id
    LEFT JOIN managers g ON g.channel_id = $1 AND g.manager_channel_id = m.sender_channel_id
    LEFT JOIN restricted_channels r ON r.channel_id = $1 AND r.restricted_channel_id = m.sender_channel_id
    LEFT JOIN temporary_restrictions t ON t.channel_id = $1 AND t.restricted_channel_id = m.sender_channel_id
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
    /// The restriction of the author now. A temporary one may be over.
    pub restriction: RestrictionStatus,
}

columns!(LoggedMessage {
    message_id: "m.message_id",
    sender: "m.sender_channel_id",
    sender_name: "c.channel_name",
    role: "g.user_role",
    content: "m.content",
    message_time: "m.message_time",
    hidden_at: "m.hidden_at",
    restriction: RestrictionStatus::COLUMNS,
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
    /// Up to `limit` messages of a chat with ids from `after` on, newest first, of the last 13 minutes. Gives
    /// the beginning of the time that was looked at, too.
    pub async fn recent_messages(
        &mut self,
        channel: &ChannelId,
        after: &MessageId,
        limit: i64,
        now: Timestamp,
    ) -> Result<(Vec<LoggedMessage>, MessageId), StoreError> {
        let mut found: Vec<LoggedMessage> = Vec::new();
        // The clock of another node may be ahead by some seconds.
        let mut end = (now.as_millis().max(0) >> BLOCK_BITS) + 2;
        let mut from = MessageId::bound_at(now);
        for blocks in WINDOWS {
            let start = (end - blocks as i64).max(0);
            from = MessageId::bound_at(Timestamp::from_millis(start << BLOCK_BITS)).max(after.clone());
            let left = limit - found.len() as i64;
            let mut params = vec![Value::from(channel), Value::from(&from), Value::from(left)];
            params.extend((start..end).map(|block| Value::from(block_name(block))));
            params.resize(RECENT_PARAMS + WINDOW_MAX, Value::from(String::new()));
            found.extend(self.fetch_all::<LoggedMessage>(&RECENT_MESSAGES, &params).await?);
            end = start;
            if found.len() as i64 >= limit || from == *after || end == 0 {
                break;
            }
        }
        Ok((found, from))
    }

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
    fn recent_messages_are_read_by_their_chat() {
        let plan = sqlite_plan(&RECENT_MESSAGES);
        let index = "USING INDEX chat_messages_of_minute (<expr>=? AND channel_id=?)";
        assert!(plan.iter().any(|step| step.contains(index)), "{plan:?}");
    }

    #[test]
    fn the_latest_messages_are_read_from_the_end_of_the_table() {
        let plan = sqlite_plan(LATEST_MESSAGES);
        let reads = |word: &str| plan.iter().any(|step| step.contains(word));
        assert!(reads("SEARCH chat_messages USING INDEX") && !reads("USE TEMP B-TREE"), "{plan:?}");
    }
}
