//! Donations and paid subscriptions. An event is written and then published to the subscribed sessions
//! (`docs/spec/realtime.md#events`). Chat messages are in [`crate::chat::chats`].

use std::sync::Arc;

use bus::Message;
use domain::chat::{DonationType, Emojis, check_donation_text, check_emojis, check_pay_amount};
use domain::event::{DonationEvent, Event, EventKind, SubscriptionEvent};
use domain::limits::NAME_CHARS_MAX;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, MessageId, Refusal, Rule, Timestamp, invalid};
use store::Tx;

use crate::channel::channels::not_found;
use crate::platform::idempotency::{self, IdempotencyKey};
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// The smallest and the largest `tierNo` (`docs/spec/channels.md#subscribers`).
pub const TIERS: (i64, i64) = (1, 2);
/// The largest `month` (ours; a hundred years).
pub const MONTHS_MAX: i64 = 1_200;

/// A donation, as the platform reports it.
#[derive(Clone, Debug)]
pub struct Donation {
    /// The type of the donation.
    pub donation_type: DonationType,
    /// The donor; `None` for an anonymous one.
    pub donator: Option<ChannelId>,
    /// The amount in won, in digits.
    pub pay_amount: String,
    /// The text of the donor.
    pub donation_text: String,
    /// Emojis in that text.
    pub emojis: Emojis,
}

/// A paid subscription, as the platform reports it.
#[derive(Clone, Debug)]
pub struct PaidSubscription {
    /// The channel that subscribed.
    pub subscriber: ChannelId,
    /// 1 or 2.
    pub tier_no: i64,
    /// The subscription's brand name.
    pub tier_name: String,
    /// Months subscribed.
    pub month: i64,
    /// The beginning of the subscription; `None` for now. An existing subscriber keeps the first day.
    pub created: Option<Timestamp>,
}

impl Service {
    /// Records a donation to `channel`. Returns its id; `None` for a repeated call.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; `Invalid` when the donor does not exist, and
    /// for a wrong amount, text or emoji.
    pub async fn donate(
        &self,
        channel: &ChannelId,
        donation: Donation,
        key: Option<IdempotencyKey>,
    ) -> Result<Option<MessageId>, Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| self::donate(work, channel, donation, key.as_ref()).await)
            .await
    }

    /// Records a paid subscription to `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; `Invalid` when the subscriber does not exist,
    /// and for a wrong tier, tier name or month.
    pub async fn subscribe_paid(
        &self,
        channel: &ChannelId,
        paid: PaidSubscription,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            self::subscribe_paid(work, channel, paid, key.as_ref()).await
        })
        .await
    }
}

/// Records a donation, inside a transaction. Returns its id; `None` for a repeated call.
pub(crate) async fn donate(
    work: &mut Work<'_>,
    channel: ChannelId,
    donation: Donation,
    key: Option<&IdempotencyKey>,
) -> Result<Option<MessageId>, Error> {
    let now = work.now();
    check_pay_amount(&donation.pay_amount)?;
    check_donation_text(&donation.donation_text)?;
    check_emojis(&donation.emojis)?;
    if idempotency::claim(work, key, &()).await?.is_some() {
        return Ok(None);
    }
    let donation = donation_event(work, &channel, donation).await?;
    let id = MessageId::generate(now, work.random(Purpose::Event));
    work.insert_donation(&id, &channel, &donation, &json(&donation.emojis), now).await?;
    publish(work, channel, EventKind::Donation(donation));
    Ok(Some(id))
}

/// Records a paid subscription, inside a transaction.
pub(crate) async fn subscribe_paid(
    work: &mut Work<'_>,
    channel: ChannelId,
    paid: PaidSubscription,
    key: Option<&IdempotencyKey>,
) -> Result<(), Error> {
    let now = work.now();
    check_paid_subscription(paid.tier_no, &paid.tier_name, paid.month)?;
    if idempotency::claim(work, key, &()).await?.is_some() {
        return Ok(());
    }
    let nickname = name_of(work, &channel, &paid.subscriber, "subscriberChannelId").await?;
    let subscription = SubscriptionEvent {
        subscriber_channel_id: paid.subscriber,
        subscriber_nickname: nickname,
        tier_no: paid.tier_no,
        tier_name: paid.tier_name,
        month: paid.month,
    };
    work.put_subscriber(&channel, &subscription, paid.created.unwrap_or(now))
        .await
        .map_err(not_found(Resource::Channel))?;
    work.record_subscription_event(&channel, &subscription.subscriber_channel_id, now).await?;
    publish(work, channel, EventKind::Subscription(subscription));
    Ok(())
}

/// Publishes an event to the subscribed sessions.
pub(crate) fn publish(work: &mut Work<'_>, channel_id: ChannelId, kind: EventKind) {
    let sent_at = work.now();
    work.publish(Message::Event(Arc::new(Event { channel_id, sent_at, kind })));
}

async fn donation_event(
    tx: &mut Tx,
    channel: &ChannelId,
    donation: Donation,
) -> Result<DonationEvent, Error> {
    let donator = match donation.donator {
        Some(id) => {
            let name = name_of(tx, channel, &id, "donatorChannelId").await?;
            Some((id, name))
        }
        // This refuses a channel that does not exist.
        None => {
            name_of(tx, channel, channel, "donatorChannelId").await?;
            None
        }
    };
    let Donation { donation_type, pay_amount, donation_text, emojis, .. } = donation;
    Ok(DonationEvent { donation_type, donator, pay_amount, donation_text, emojis })
}

async fn name_of(
    tx: &mut Tx,
    channel: &ChannelId,
    id: &ChannelId,
    field: &'static str,
) -> Result<String, Error> {
    match tx.speaker(channel, id).await? {
        Some(speaker) => Ok(speaker.name),
        None => Err(unknown_channel(tx, channel, field).await?),
    }
}

/// The error when one of two channels does not exist. A missing channel in the path is 404. A missing
/// channel in the body is a wrong value.
pub(crate) async fn unknown_channel(
    tx: &mut Tx,
    channel: &ChannelId,
    field: &'static str,
) -> Result<Error, Error> {
    Ok(match tx.speaker(channel, channel).await? {
        Some(_) => Invalid::new(field, Rule::KnownChannel).into(),
        None => Refusal::NotFound(Resource::Channel).into(),
    })
}

/// # Errors
/// `Invalid` for a wrong tier, tier name or month.
pub fn check_paid_subscription(tier_no: i64, tier_name: &str, month: i64) -> Result<(), Invalid> {
    let within = |field, value, min, max| {
        if (min..=max).contains(&value) {
            Ok(())
        } else {
            Err(Invalid::new(field, Rule::Integer { min, max }))
        }
    };
    within("tierNo", tier_no, TIERS.0, TIERS.1)?;
    within("month", month, 0, MONTHS_MAX)?;
    invalid::text("tierName", tier_name, 1, NAME_CHARS_MAX)
}

pub(crate) fn json(emojis: &Emojis) -> String {
    // JSON can represent every map of texts.
    serde_json::to_string(emojis).unwrap_or_default()
}
