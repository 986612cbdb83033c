//! Rows as a world file has them: with the times and the numbers that the store made when they were new. Only
//! a sandbox reads and writes them.

use std::sync::LazyLock;

use domain::{CampaignId, ChannelId, ClaimId, MessageId, Timestamp, WebhookId};

use crate::queries::batched::{BatchedStatement, ColumnType};
use crate::queries::columns::{Select, columns, sql};
use crate::queries::deliveries::{Delivery, stored_claim};
use crate::{StoreError, Tx, Value, params};

/// Columns of a message's row.
const MESSAGE_COLUMNS: usize = 7;

const MESSAGE_ROWS: &str = sql!(
    "SELECT ",
    MessageRow::COLUMNS,
    " FROM chat_messages WHERE message_id > $1 ORDER BY message_id LIMIT $2"
);

static INSERT_MESSAGE_ROWS: LazyLock<BatchedStatement<MESSAGE_COLUMNS>> = LazyLock::new(|| {
    use ColumnType::{BigInt, Text};
    BatchedStatement::new([Text, Text, Text, Text, Text, BigInt, BigInt], |rows| {
        format!(
            "
    INSERT INTO chat_messages
        (message_id, channel_id, sender_channel_id, content, emojis, message_time, hidden_at)
    {rows} ON CONFLICT (message_id) DO NOTHING"
        )
    })
});

const TEMPORARY_RESTRICTIONS: &str = "
    SELECT restricted_channel_id, ends_at FROM temporary_restrictions
    WHERE channel_id = $1 AND restricted_channel_id > $2 AND ends_at > $3
    ORDER BY restricted_channel_id LIMIT $4";

const WATCHED_ROWS: &str = "
    SELECT channel_id, minutes FROM watched_minutes WHERE campaign_id = $1 AND channel_id > $2
    ORDER BY channel_id LIMIT $3";

const PUT_WATCHED_ROW: &str = "
    INSERT INTO watched_minutes (campaign_id, channel_id, minutes) VALUES ($1, $2, $3)
    ON CONFLICT (campaign_id, channel_id) DO UPDATE SET minutes = excluded.minutes";

const SET_CLAIM_TIMES: &str = "UPDATE reward_claims SET claimed_at = $2, updated_at = $3 WHERE claim_id = $1";

const RAISE_LAST_LIVE_ID: &str =
    "UPDATE live_clock SET last_live_id = $1 WHERE clock_id = 1 AND last_live_id < $1";

const INSERT_DELIVERY_ROW: &str = "
    INSERT INTO webhook_deliveries
        (webhook_id, message_id, claim_id, data, state, due_at, attempts, failures, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (webhook_id, message_id) DO NOTHING";

/// A chat message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// Its id.
    pub message_id: MessageId,
    /// The channel of the chat.
    pub channel_id: ChannelId,
    /// Who wrote it.
    pub sender: ChannelId,
    /// The text.
    pub content: String,
    /// The map of its emojis, as JSON.
    pub emojis: String,
    /// When it was posted.
    pub message_time: Timestamp,
    /// When it was hidden.
    pub hidden_at: Option<Timestamp>,
}

columns!(MessageRow {
    message_id: "message_id",
    channel_id: "channel_id",
    sender: "sender_channel_id",
    content: "content",
    emojis: "emojis",
    message_time: "message_time",
    hidden_at: "hidden_at",
});

impl MessageRow {
    fn row(&self) -> [Value<'_>; MESSAGE_COLUMNS] {
        let Self { message_id, channel_id, sender, content, emojis, message_time, hidden_at } = self;
        [
            message_id.into(),
            channel_id.into(),
            sender.into(),
            content.into(),
            emojis.into(),
            (*message_time).into(),
            (*hidden_at).into(),
        ]
    }
}

impl Tx {
    /// Up to `limit` chat messages of all chats after an id, which begins with the time.
    pub async fn message_rows(
        &mut self,
        after: &MessageId,
        limit: i64,
    ) -> Result<Vec<MessageRow>, StoreError> {
        self.fetch_all(MESSAGE_ROWS, params![after, limit]).await
    }

    /// Writes chat messages. One that exists stays as it is.
    pub async fn insert_message_rows(&mut self, messages: &[MessageRow]) -> Result<(), StoreError> {
        self.execute_batched(&INSERT_MESSAGE_ROWS, messages.iter().map(MessageRow::row).collect()).await
    }

    /// Up to `limit` channels that `channel` restricted for a minute that runs, with its end, after an id.
    pub async fn temporary_restrictions(
        &mut self,
        channel: &ChannelId,
        after: &ChannelId,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<(ChannelId, Timestamp)>, StoreError> {
        self.fetch_all(TEMPORARY_RESTRICTIONS, params![channel, after, now, limit]).await
    }

    /// Up to `limit` viewers with their minutes for a campaign, after an id.
    pub async fn watched_rows(
        &mut self,
        campaign: &CampaignId,
        after: &ChannelId,
        limit: i64,
    ) -> Result<Vec<(ChannelId, i64)>, StoreError> {
        self.fetch_all(WATCHED_ROWS, params![campaign, after, limit]).await
    }

    /// Sets the minutes of a viewer for a campaign.
    pub async fn put_watched_row(
        &mut self,
        campaign: &CampaignId,
        viewer: &ChannelId,
        minutes: i64,
    ) -> Result<(), StoreError> {
        self.execute(PUT_WATCHED_ROW, params![campaign, viewer, minutes]).await?;
        Ok(())
    }

    /// Sets when a claim was made, and last changed.
    pub async fn set_claim_times(
        &mut self,
        claim: &ClaimId,
        claimed_at: Timestamp,
        updated_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(SET_CLAIM_TIMES, params![claim, claimed_at, updated_at]).await?;
        Ok(())
    }

    /// The next live has a number above this one.
    pub async fn raise_last_live_id(&mut self, live_id: i64) -> Result<(), StoreError> {
        self.execute(RAISE_LAST_LIVE_ID, params![live_id]).await?;
        Ok(())
    }

    /// Writes a message to a webhook that is not in flight: `false` if it exists.
    pub async fn insert_delivery_row(
        &mut self,
        webhook_id: &WebhookId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        let Delivery { message_id, claim_id, data, state, due_at, attempts, failures, .. } = delivery;
        let values = params![
            webhook_id,
            message_id,
            stored_claim(claim_id.as_ref()),
            data,
            state.name(),
            *due_at,
            *attempts,
            *failures,
            delivery.created_at,
            delivery.changed_at
        ];
        Ok(self.execute(INSERT_DELIVERY_ROW, values).await? > 0)
    }
}
