//! Chat messages and donations.

use std::ops::Range;
use std::sync::LazyLock;

use domain::chat::MessageText;
use domain::event::{ChatEvent, DonationEvent};
use domain::{ChannelId, MessageId, Timestamp};

use crate::queries::batched::{BatchedStatement, ColumnType};
use crate::{StoreError, Tx, Value, params};

/// Columns of a message's row that are written with it.
const MESSAGE_COLUMNS: usize = 6;

static INSERT_MESSAGES: LazyLock<BatchedStatement<MESSAGE_COLUMNS>> = LazyLock::new(|| {
    use ColumnType::{BigInt, Text};
    BatchedStatement::new([Text, Text, Text, Text, Text, BigInt], |rows| {
        format!(
            "
    INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
    {rows}"
        )
    })
});

/// Reads the rows of one sender: nine digits of an id are its time in blocks of 4,096 ms, and the index of
/// chats and senders begins with the block, so that its entries are written near each other. The end is
/// compared by the time: with both ends as ids PostgreSQL takes the range for a short one and reads it in
/// the primary key.
pub const HIDE_MESSAGES: &str = "
    UPDATE chat_messages SET hidden_at = COALESCE(hidden_at, $5)
    WHERE substr(message_id, 1, 9) IN ($6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
            $23, $24, $25)
        AND sender_channel_id = $4 AND message_id >= $1 AND message_time < $2 AND channel_id = $3";

/// The bits of a block of times in milliseconds.
pub(super) const BLOCK_BITS: u32 = 12;
/// Blocks that one statement looks at, which end 77 s after the start of the range at the earliest.
const BLOCKS: i64 = 20;

/// Reads few rows: recent messages, and messages of a node whose clock is ahead.
const LAST_MESSAGE: &str = "
    SELECT MAX(message_time) FROM chat_messages
    WHERE message_id >= $1 AND channel_id = $2 AND sender_channel_id = $3";

const PUT_NOTICE: &str = "
    INSERT INTO chat_notices (channel_id, message_id, content, created_at) VALUES ($1, NULL, $2, $3)
    ON CONFLICT (channel_id) DO UPDATE SET
        message_id = excluded.message_id, content = excluded.content, created_at = excluded.created_at";

const PIN_MESSAGE: &str = "
    INSERT INTO chat_notices (channel_id, message_id, content, created_at)
    SELECT channel_id, message_id, content, CAST($3 AS BIGINT) FROM chat_messages
    WHERE message_id = $1 AND channel_id = $2 AND hidden_at IS NULL
    ON CONFLICT (channel_id) DO UPDATE SET
        message_id = excluded.message_id, content = excluded.content, created_at = excluded.created_at";

const SHOW_MESSAGE: &str = "
    UPDATE chat_messages SET hidden_at = NULL WHERE message_id = $1 AND channel_id = $2";

const DELETE_NOTICE: &str = "DELETE FROM chat_notices WHERE channel_id = $1";

const INSERT_DONATION: &str = "
    INSERT INTO donations
        (donation_id, channel_id, donator_channel_id, donation_type, pay_amount, donation_text, emojis, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// Whether an error says that the sender has another message of the same time in the chat.
pub fn is_time_taken(error: &StoreError) -> bool {
    error.is_unique("chat_messages(message_id)")
}

/// A new chat message.
#[derive(Clone, Debug)]
pub struct NewMessage<'a> {
    /// Its id.
    pub id: &'a MessageId,
    /// The channel in whose chat it stands.
    pub channel: &'a ChannelId,
    /// The event.
    pub chat: &'a ChatEvent,
    /// The map of its emojis, as JSON.
    pub emojis: String,
}

impl NewMessage<'_> {
    fn row(&self) -> [Value<'_>; MESSAGE_COLUMNS] {
        let Self { id, channel, chat, emojis } = self;
        let (sender, content) = (&chat.sender_channel_id, &chat.content);
        [
            (*id).into(),
            (*channel).into(),
            sender.into(),
            content.into(),
            emojis.into(),
            chat.message_time.into(),
        ]
    }
}

impl Tx {
    /// Records chat messages. [`is_time_taken`] recognizes the error of a second message of one chat,
    /// sender and time.
    pub async fn insert_chat_messages(&mut self, messages: &[NewMessage<'_>]) -> Result<(), StoreError> {
        self.execute_batched(&INSERT_MESSAGES, messages.iter().map(NewMessage::row).collect()).await
    }

    /// The time of the last message of `sender` in the chat of `channel`, if that is `from` or later.
    pub async fn last_message(
        &mut self,
        channel: &ChannelId,
        sender: &ChannelId,
        from: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.fetch_one(LAST_MESSAGE, params![&MessageId::bound_at(from), channel, sender]).await
    }

    /// Hides the messages of `sender` in the chat of `channel` from `times.start` on and before `times.end`,
    /// at most a minute and a quarter after the start. Gives their number, including messages that were
    /// hidden before.
    pub async fn hide_messages(
        &mut self,
        channel: &ChannelId,
        sender: &ChannelId,
        times: Range<Timestamp>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let first = MessageId::bound_at(times.start);
        let block = times.start.as_millis().max(0) >> BLOCK_BITS;
        let blocks = (block..block + BLOCKS).map(|block| Value::from(block_name(block)));
        let mut params = vec![
            Value::from(&first),
            Value::from(times.end),
            Value::from(channel),
            Value::from(sender),
            Value::from(now),
        ];
        params.extend(blocks);
        self.execute(HIDE_MESSAGES, &params).await
    }

    /// Shows a hidden message of the chat of `channel` again: `false` if there is no such message.
    pub async fn show_message(&mut self, channel: &ChannelId, id: &MessageId) -> Result<bool, StoreError> {
        Ok(self.execute(SHOW_MESSAGE, params![id, channel]).await? > 0)
    }

    /// Takes the notice of a channel's chat down, if there is one.
    pub async fn delete_notice(&mut self, channel: &ChannelId) -> Result<(), StoreError> {
        self.execute(DELETE_NOTICE, params![channel]).await?;
        Ok(())
    }

    /// Makes a text the notice of a channel's chat.
    pub async fn put_notice(
        &mut self,
        channel: &ChannelId,
        text: &MessageText,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(PUT_NOTICE, params![channel, text.as_str(), now]).await?;
        Ok(())
    }

    /// Makes a message the notice of its chat: `false` if there is no visible message of that id.
    pub async fn pin_message(
        &mut self,
        channel: &ChannelId,
        message: &MessageId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(PIN_MESSAGE, params![message, channel, now]).await? > 0)
    }

    /// Records a donation. `emojis` is the map as JSON.
    pub async fn insert_donation(
        &mut self,
        id: &MessageId,
        channel: &ChannelId,
        donation: &DonationEvent,
        emojis: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let donator = donation.donator.as_ref().map(|(id, _)| id);
        self.execute(
            INSERT_DONATION,
            params![
                id,
                channel,
                donator,
                donation.donation_type.name(),
                &donation.pay_amount,
                &donation.donation_text,
                emojis,
                now
            ],
        )
        .await?;
        Ok(())
    }
}

/// A block, as the index has it.
pub(super) fn block_name(block: i64) -> String {
    format!("{block:09x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn hiding_reads_the_rows_of_the_sender() {
        let plan = sqlite_plan(HIDE_MESSAGES);
        let index = "USING INDEX chat_messages_of_minute (<expr>=? AND channel_id=? AND sender_channel_id=?)";
        assert!(plan.iter().any(|step| step.contains(index)), "{plan:?}");
    }
}
