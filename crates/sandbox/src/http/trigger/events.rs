//! What sockets receive: chat messages, donations and subscriptions.

use domain::Timestamp;
use domain::chat::{
    Badge, DonationType, Emojis, MessageText, chat_channel_id, check_badges, check_donation_text,
    check_pay_amount,
};
use domain::event::EventType;
use serde_json::json;
use service::channel_events::{Donation, PaidSubscription, check_paid_subscription};
use service::chats::ChatMessage;

use super::fields::{GivenFields, wrong};
use super::input::{Input, Outcome, outcome, spelled};
use crate::http::answer::Problem;

const MESSAGE: &str = "안녕하세요 👋";
const AMOUNT_WON: i64 = 1_000;
/// The brand names of the two tiers.
pub(super) const TIER_NAMES: [&str; 2] = ["팬", "열혈팬"];

/// The text of a chat message, with its emojis and badges.
pub(super) fn read_chat(fields: &GivenFields) -> Result<(MessageText, Emojis, Option<Vec<Badge>>), Problem> {
    let text = fields.text("message").unwrap_or_else(|| MESSAGE.to_owned());
    let text = MessageText::parse(text).map_err(|invalid| wrong(&invalid, &[]))?;
    let badges = fields.list("badges").map(|urls| {
        let badge = |image_url| Badge { image_url };
        urls.into_iter().map(badge).collect::<Vec<_>>()
    });
    let checked = badges.as_deref().map_or(Ok(()), check_badges);
    checked.map_err(|invalid| wrong(&invalid, &[(invalid.field, "badges")]))?;
    Ok((text, fields.emojis("emojis")?, badges))
}

/// A viewer says something in a chat.
pub(super) async fn chat(input: Input) -> Result<Outcome, Problem> {
    let (text, emojis, badges) = read_chat(&input)?;
    let channel = input.streamer("channel").await?;
    let sender = input.viewer("from", &channel).await?;
    let delivered = input.heard_by(EventType::Chat, &channel).await?;
    let message = ChatMessage { sender: sender.clone(), text: text.clone(), emojis, badges };
    let posted = input.service.post_message(&channel, message, None).await;
    let posted = posted.map_err(|error| spelled(error, &[]))?;
    Ok(outcome(json!({
        "eventId": posted.message_id,
        "channelId": channel,
        "senderChannelId": sender,
        "chatChannelId": chat_channel_id(&channel),
        "messageId": posted.message_id,
        "messageTime": posted.message_time.as_millis(),
        "message": text.as_str(),
        "delivered": delivered,
    })))
}

/// The names of the fields of a donation.
const DONATION_NAMES: [(&str, &str); 2] = [("payAmount", "amount"), ("donationText", "message")];

/// A donation, without its donor.
pub(super) fn read_donation(fields: &GivenFields) -> Result<Donation, Problem> {
    if fields.flag("anonymous") && fields.text("from").is_some() {
        return Err(Problem::invalid("anonymous", "does not go with from"));
    }
    let donation_type = fields.parsed("type", DonationType::parse)?.unwrap_or(DonationType::Chat);
    let pay_amount = fields.text("amount").unwrap_or_else(|| AMOUNT_WON.to_string());
    let donation_text = fields.text("message").unwrap_or_else(|| MESSAGE.to_owned());
    let checked = check_pay_amount(&pay_amount).and_then(|()| check_donation_text(&donation_text));
    checked.map_err(|invalid| wrong(&invalid, &DONATION_NAMES))?;
    Ok(Donation { donation_type, donator: None, pay_amount, donation_text, emojis: fields.emojis("emojis")? })
}

/// Somebody donates to a channel.
pub(super) async fn donation(input: Input) -> Result<Outcome, Problem> {
    let donation = read_donation(&input)?;
    let channel = input.streamer("to").await?;
    let donator = if input.flag("anonymous") { None } else { Some(input.viewer("from", &channel).await?) };
    let delivered = input.heard_by(EventType::Donation, &channel).await?;
    let mut happened = outcome(json!({
        "channelId": channel,
        "donatorChannelId": donator,
        "donationType": donation.donation_type.name(),
        "payAmount": donation.pay_amount,
        "donationText": donation.donation_text,
        "delivered": delivered,
    }));
    let donation = Donation { donator, ..donation };
    let donated = input.service.donate(&channel, donation, None).await;
    let id = donated.map_err(|error| spelled(error, &DONATION_NAMES))?;
    for name in ["eventId", "donationId"] {
        happened.insert(name.to_owned(), json!(id));
    }
    Ok(happened)
}

/// A subscription: its tier, the name of the tier, the month and the first day.
pub(super) fn read_subscription(
    fields: &GivenFields,
) -> Result<(i64, String, i64, Option<Timestamp>), Problem> {
    let tier_no = fields.integer("tier").unwrap_or(1);
    let month = fields.integer("month").unwrap_or(1);
    let usual_name = || TIER_NAMES[usize::from(tier_no > 1)].to_owned();
    let tier_name = fields.text("tierName").unwrap_or_else(usual_name);
    let checked = check_paid_subscription(tier_no, &tier_name, month);
    checked.map_err(|invalid| wrong(&invalid, &[("tierNo", "tier")]))?;
    let since = fields.text("since").map(|since| Timestamp::parse_rfc3339(&since).ok_or(()));
    let rule = "must be an RFC 3339 time like 2027-01-01T00:00:00Z";
    let created = since.transpose().map_err(|()| Problem::invalid("since", rule))?;
    Ok((tier_no, tier_name, month, created))
}

/// Somebody subscribes to a channel, or renews the subscription.
pub(super) async fn subscription(input: Input) -> Result<Outcome, Problem> {
    let (tier_no, tier_name, month, created) = read_subscription(&input)?;
    let channel = input.streamer("to").await?;
    let subscriber = input.viewer("from", &channel).await?;
    let delivered = input.heard_by(EventType::Subscription, &channel).await?;
    let happened = outcome(json!({
        "channelId": channel,
        "subscriberChannelId": subscriber,
        "tierNo": tier_no,
        "tierName": tier_name,
        "month": month,
        "delivered": delivered,
    }));
    let paid = PaidSubscription { subscriber, tier_no, tier_name, month, created };
    let subscribed = input.service.subscribe_paid(&channel, paid, None).await;
    subscribed.map_err(|error| spelled(error, &[("tierNo", "tier")]))?;
    Ok(happened)
}
