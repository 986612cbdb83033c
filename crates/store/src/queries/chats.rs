//! Chat messages and donations, as they happen on channels.

use domain::event::{ChatHappening, DonationHappening};
use domain::{ChannelId, MessageId, Timestamp};

use crate::{StoreError, Tx, params};

const INSERT_MESSAGE: &str = "
    INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
    VALUES ($1, $2, $3, $4, $5, $6)";

const INSERT_DONATION: &str = "
    INSERT INTO donations
        (donation_id, channel_id, donator_channel_id, donation_type, pay_amount, donation_text, emojis, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

impl Tx {
    /// Records a chat message. `emojis` is the map as JSON.
    pub async fn insert_chat_message(
        &mut self,
        id: &MessageId,
        channel: &ChannelId,
        chat: &ChatHappening,
        emojis: &str,
    ) -> Result<(), StoreError> {
        self.execute(
            INSERT_MESSAGE,
            params![id, channel, &chat.sender_channel_id, &chat.content, emojis, chat.message_time],
        )
        .await?;
        Ok(())
    }

    /// Records a donation. `emojis` is the map as JSON.
    pub async fn insert_donation(
        &mut self,
        id: &MessageId,
        channel: &ChannelId,
        donation: &DonationHappening,
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
