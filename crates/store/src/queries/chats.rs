//! Chat messages, donations and paid subscriptions, as they happen on channels.

use domain::event::{ChatHappening, DonationHappening, SubscriptionHappening};
use domain::{ChannelId, MessageId, Timestamp};

use crate::{StoreError, Tx, params};

const INSERT_MESSAGE: &str = "
    INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
    VALUES ($1, $2, $3, $4, $5, $6)";

const INSERT_DONATION: &str = "
    INSERT INTO donations
        (donation_id, channel_id, donator_channel_id, donation_type, pay_amount, donation_text, emojis, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const PUT_SUBSCRIBER: &str = "
    INSERT INTO subscribers (channel_id, subscriber_channel_id, tier_no, tier_name, month, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (channel_id, subscriber_channel_id) DO UPDATE SET
        tier_no = excluded.tier_no, tier_name = excluded.tier_name, month = excluded.month";

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

    /// Records that somebody subscribes to a channel; a subscriber stays one row and keeps the day of the first time.
    pub async fn put_subscriber(
        &mut self,
        channel: &ChannelId,
        subscription: &SubscriptionHappening,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(
            PUT_SUBSCRIBER,
            params![
                channel,
                &subscription.subscriber_channel_id,
                subscription.tier_no,
                &subscription.tier_name,
                subscription.month,
                now
            ],
        )
        .await?;
        Ok(())
    }
}
