//! What happens on channels: chat messages, donations, paid subscriptions. Each is written, and only then told to the
//! sessions that subscribed to it (spec 4.4 and 6; the platform API's happenings).

use std::sync::Arc;

use bus::Message;
use domain::channel::UserRoleCode;
use domain::chat::{
    DonationType, Emojis, MessageText, chat_channel_id, check_donation_text, check_emojis, check_pay_amount,
};
use domain::event::{ChatHappening, DonationHappening, Event, Happening, SubscriptionHappening};
use domain::limits::NAME_CHARS_MAX;
use domain::{ChannelId, Invalid, MessageId, Refusal, Rule, Timestamp, invalid};
use store::Tx;

use crate::channels::not_found;
use crate::idempotency::{self, IdempotencyKey};
use crate::{Error, Service};

/// The smallest and the largest `tierNo` (spec 2, "Subscriber").
pub const TIERS: (i64, i64) = (1, 2);
/// The largest `month` (ours; a hundred years).
pub const MONTHS_MAX: i64 = 1_200;

/// A chat message that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedMessage {
    /// Its id.
    pub message_id: MessageId,
    /// When it was posted, in milliseconds since the epoch.
    pub message_time: Timestamp,
    /// The chat that it stands in.
    pub chat_channel_id: String,
}

/// A donation, as the platform reports it.
#[derive(Clone, Debug)]
pub struct Donation {
    /// How it is shown.
    pub donation_type: DonationType,
    /// Who gave; `None` for an anonymous donor.
    pub donator: Option<ChannelId>,
    /// The amount in won, in digits.
    pub pay_amount: String,
    /// What the donor wrote.
    pub donation_text: String,
    /// Emojis in that text.
    pub emojis: Emojis,
}

/// A paid subscription, as the platform reports it.
#[derive(Clone, Debug)]
pub struct PaidSubscription {
    /// Who subscribed.
    pub subscriber: ChannelId,
    /// 1 or 2.
    pub tier_no: i64,
    /// The subscription's brand name.
    pub tier_name: String,
    /// Months subscribed.
    pub month: i64,
}

impl Service {
    /// Posts a chat message of `sender` in the chat of `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist, `Invalid` when the sender does not, or for a wrong emoji.
    pub async fn post_chat(
        &self,
        channel: &ChannelId,
        sender: &ChannelId,
        text: MessageText,
        emojis: Emojis,
        key: Option<IdempotencyKey>,
    ) -> Result<PostedMessage, Error> {
        check_emojis(&emojis)?;
        let now = self.now();
        let posted = PostedMessage {
            message_id: MessageId::generate(now, self.random()),
            message_time: now,
            chat_channel_id: chat_channel_id(channel),
        };
        let (channel, sender) = (channel.clone(), sender.clone());
        self.write_then_publish(move |tx| {
            Box::pin(async move {
                let answer = format!("{} {}", posted.message_id, posted.message_time.as_millis());
                if let Some(answer) = idempotency::claim(tx, key.as_ref(), &answer, now).await? {
                    return Ok((earlier_message(&answer, posted.chat_channel_id)?, Vec::new()));
                }
                let chat = chat_happening(tx, &channel, sender, text, emojis, &posted).await?;
                tx.insert_chat_message(&posted.message_id, &channel, &chat, &json(&chat.emojis)).await?;
                Ok((posted, event(channel, now, Happening::Chat(chat))))
            })
        })
        .await
    }

    /// Records a donation to `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; `Invalid` when the donor does not, or for a wrong amount,
    /// text or emoji.
    pub async fn donate(
        &self,
        channel: &ChannelId,
        donation: Donation,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        check_pay_amount(&donation.pay_amount)?;
        check_donation_text(&donation.donation_text)?;
        check_emojis(&donation.emojis)?;
        let (channel, now) = (channel.clone(), self.now());
        let id = MessageId::generate(now, self.random());
        self.write_then_publish(move |tx| {
            Box::pin(async move {
                if idempotency::claim(tx, key.as_ref(), "", now).await?.is_some() {
                    return Ok(((), Vec::new()));
                }
                let donation = donation_happening(tx, &channel, donation).await?;
                tx.insert_donation(&id, &channel, &donation, &json(&donation.emojis), now).await?;
                Ok(((), event(channel, now, Happening::Donation(donation))))
            })
        })
        .await
    }

    /// Records a paid subscription to `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; `Invalid` when the subscriber does not, or for a wrong
    /// tier, tier name or month.
    pub async fn subscribe_paid(
        &self,
        channel: &ChannelId,
        paid: PaidSubscription,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        check_paid(&paid)?;
        let (channel, now) = (channel.clone(), self.now());
        self.write_then_publish(move |tx| {
            Box::pin(async move {
                if idempotency::claim(tx, key.as_ref(), "", now).await?.is_some() {
                    return Ok(((), Vec::new()));
                }
                let nickname = name_of(tx, &channel, &paid.subscriber, "subscriberChannelId").await?;
                let subscription = SubscriptionHappening {
                    subscriber_channel_id: paid.subscriber,
                    subscriber_nickname: nickname,
                    tier_no: paid.tier_no,
                    tier_name: paid.tier_name,
                    month: paid.month,
                };
                tx.put_subscriber(&channel, &subscription, now).await.map_err(not_found)?;
                Ok(((), event(channel, now, Happening::Subscription(subscription))))
            })
        })
        .await
    }
}

/// What the sessions that subscribed to `channel_id` are to be told.
fn event(channel_id: ChannelId, sent_at: Timestamp, happening: Happening) -> Vec<Message> {
    vec![Message::Event(Arc::new(Event { channel_id, sent_at, happening }))]
}

async fn chat_happening(
    tx: &mut Tx,
    channel: &ChannelId,
    sender: ChannelId,
    text: MessageText,
    emojis: Emojis,
    posted: &PostedMessage,
) -> Result<ChatHappening, Error> {
    let Some(speaker) = tx.speaker(channel, &sender).await? else {
        return Err(unknown_channel(tx, channel, "senderChannelId").await?);
    };
    Ok(ChatHappening {
        user_role_code: UserRoleCode::of(channel, &sender, speaker.role),
        sender_channel_id: sender,
        nickname: speaker.name,
        verified_mark: speaker.verified_mark,
        chat_channel_id: posted.chat_channel_id.clone(),
        content: text.as_str().to_owned(),
        emojis,
        message_time: posted.message_time,
    })
}

async fn donation_happening(
    tx: &mut Tx,
    channel: &ChannelId,
    donation: Donation,
) -> Result<DonationHappening, Error> {
    let donator = match donation.donator {
        Some(id) => {
            let name = name_of(tx, channel, &id, "donatorChannelId").await?;
            Some((id, name))
        }
        // Asked about itself, a channel answers whether it exists.
        None => {
            name_of(tx, channel, channel, "donatorChannelId").await?;
            None
        }
    };
    let Donation { donation_type, pay_amount, donation_text, emojis, .. } = donation;
    Ok(DonationHappening { donation_type, donator, pay_amount, donation_text, emojis })
}

async fn name_of(
    tx: &mut Tx,
    channel: &ChannelId,
    who: &ChannelId,
    field: &'static str,
) -> Result<String, Error> {
    match tx.speaker(channel, who).await? {
        Some(speaker) => Ok(speaker.name),
        None => Err(unknown_channel(tx, channel, field).await?),
    }
}

/// Which of two channels does not exist: the one in the path is 404, the one in the body a wrong value.
async fn unknown_channel(tx: &mut Tx, channel: &ChannelId, field: &'static str) -> Result<Error, Error> {
    Ok(match tx.speaker(channel, channel).await? {
        Some(_) => Invalid::new(field, Rule::KnownChannel).into(),
        None => Refusal::NotFound.into(),
    })
}

fn check_paid(paid: &PaidSubscription) -> Result<(), Invalid> {
    let within = |field, value, min, max| {
        if (min..=max).contains(&value) {
            Ok(())
        } else {
            Err(Invalid::new(field, Rule::Integer { min, max }))
        }
    };
    within("tierNo", paid.tier_no, TIERS.0, TIERS.1)?;
    within("month", paid.month, 0, MONTHS_MAX)?;
    invalid::text("tierName", &paid.tier_name, 1, NAME_CHARS_MAX)
}

/// The answer of an earlier request, as [`Service::post_chat`] recorded it.
fn earlier_message(answer: &str, chat_channel_id: String) -> Result<PostedMessage, Error> {
    let (id, time) = answer.split_once(' ').ok_or(Refusal::Internal)?;
    let message_time = Timestamp::from_millis(time.parse().map_err(|_| Refusal::Internal)?);
    Ok(PostedMessage { message_id: MessageId::stored(id.to_owned()), message_time, chat_channel_id })
}

fn json(emojis: &Emojis) -> String {
    // A map of texts: there is nothing in it that JSON cannot say.
    serde_json::to_string(emojis).unwrap_or_default()
}
