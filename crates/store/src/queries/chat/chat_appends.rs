//! Many chat messages in one statement that is a transaction of its own, on PostgreSQL
//! (`docs/adr/0026-chat-messages-share-a-commit.md`). SQLite's writer commits waiting requests together by
//! itself.

use std::collections::BTreeSet;

use domain::{ChannelId, MessageId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::event_outbox::{EventBatchNotes, OpenBatch, joined_channels};
use crate::{StoreError, Tx, Value};

/// Writes the messages of senders and channels that exist, with the row of their batch of events. A viewer
/// who was restricted since the facts were read writes nothing.
const APPEND: &str = sql!(
    "
    WITH asked AS MATERIALIZED (
        SELECT * FROM unnest(
            CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS TEXT[]), CAST($4 AS TEXT[]), CAST($5 AS TEXT[]),
            CAST($6 AS BIGINT[]), CAST($7 AS BOOLEAN[])
        ) WITH ORDINALITY AS rows
            (message_id, channel_id, sender_channel_id, content, emojis, message_time, is_viewer, place)
    ), posted AS MATERIALIZED (
        SELECT a.*, s.channel_name, s.verified_mark
        FROM asked a
        JOIN channels c ON c.channel_id = a.channel_id AND c.deleted_at IS NULL
        JOIN channels s ON s.channel_id = a.sender_channel_id AND s.deleted_at IS NULL
        WHERE NOT a.is_viewer OR NOT (
            EXISTS (SELECT 1 FROM restricted_channels r
                WHERE r.channel_id = a.channel_id AND r.restricted_channel_id = a.sender_channel_id)
            OR EXISTS (SELECT 1 FROM temporary_restrictions t
                WHERE t.channel_id = a.channel_id AND t.restricted_channel_id = a.sender_channel_id
                    AND t.ends_at > a.message_time))
    ), written AS (
        INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
        SELECT message_id, channel_id, sender_channel_id, content, emojis, message_time FROM posted
    ), recorded AS (
        INSERT INTO event_outbox (batch_id, node_id, created_at, channels)
        SELECT CAST($8 AS TEXT), CAST($9 AS TEXT), CAST($10 AS BIGINT), CAST($11 AS TEXT)
        WHERE EXISTS (SELECT 1 FROM posted)
    )
    SELECT place - 1, ",
    MessageSender::COLUMNS,
    " FROM posted"
);

/// A chat message whose sender may post.
#[derive(Clone, Debug)]
pub struct MessageAppend<'a> {
    /// Its id.
    pub id: &'a MessageId,
    /// The channel of the chat.
    pub channel: &'a ChannelId,
    /// Who wrote it.
    pub sender: &'a ChannelId,
    /// The text.
    pub content: &'a str,
    /// The map of its emojis, as JSON.
    pub emojis: String,
    /// Its time.
    pub message_time: Timestamp,
    /// Whether restrictions apply to the sender.
    pub is_viewer: bool,
}

/// The sender of a message that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSender {
    /// The sender's name.
    pub name: String,
    /// Whether the sender has the platform's mark.
    pub verified_mark: bool,
}

columns!(MessageSender { name: "channel_name", verified_mark: "verified_mark" });

impl Tx {
    /// Writes chat messages, and commits. Gives the senders of the messages that were written. `None` if the
    /// sender or the channel does not exist, or the sender has been restricted. It is the only statement of
    /// its transaction, which [has a batch of events](Self::begin_event_batch).
    ///
    /// # Errors
    /// [`is_time_taken`](crate::queries::chats::is_time_taken) recognizes the error of a second message of
    /// one chat, sender and time. No message was written then.
    pub async fn append_chat_messages(
        &mut self,
        messages: &[MessageAppend<'_>],
    ) -> Result<Vec<Option<MessageSender>>, StoreError> {
        let Some(OpenBatch { batch_id, node_id, created_at }) =
            self.notes::<EventBatchNotes>().current.clone()
        else {
            return Err(StoreError::Misuse("chat messages are appended in a batch of events"));
        };
        // Two statements that write the same ids wait for each other in one order.
        let mut sorted: Vec<_> = messages.iter().enumerate().collect();
        sorted.sort_unstable_by(|(_, one), (_, other)| one.id.as_str().cmp(other.id.as_str()));
        let channels: BTreeSet<_> = messages.iter().map(|message| message.channel).collect();
        let times = sorted.iter().map(|(_, message)| Some(message.message_time.as_millis()));
        let params = [
            texts(&sorted, |message| message.id.as_str()),
            texts(&sorted, |message| message.channel.as_str()),
            texts(&sorted, |message| message.sender.as_str()),
            texts(&sorted, |message| message.content),
            texts(&sorted, |message| &message.emojis),
            Value::Ints(times.collect()),
            Value::Bools(sorted.iter().map(|(_, message)| message.is_viewer).collect()),
            (&batch_id).into(),
            (&node_id).into(),
            created_at.into(),
            joined_channels(channels).into(),
        ];
        let mut senders = vec![None; messages.len()];
        for (place, sender) in self.fetch_with_commit::<(i64, MessageSender)>(APPEND, &params).await? {
            let found = usize::try_from(place).ok().and_then(|place| sorted.get(place));
            let (index, _) = found.ok_or(StoreError::Misuse("a row's place is not in its list"))?;
            senders[*index] = Some(sender);
        }
        self.notes::<EventBatchNotes>().is_recorded = true;
        Ok(senders)
    }
}

/// A column of the statement.
fn texts<'m>(
    sorted: &[(usize, &'m MessageAppend<'_>)],
    text: impl Fn(&'m MessageAppend<'_>) -> &'m str,
) -> Value<'m> {
    Value::Texts(sorted.iter().map(|(_, message)| text(message).into()).collect())
}
