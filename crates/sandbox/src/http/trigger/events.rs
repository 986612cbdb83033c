//! What sockets receive: chat messages, donations and subscriptions.

use domain::Timestamp;
use domain::chat::{Badge, DonationType, MessageText, chat_channel_id};
use domain::event::EventType;
use serde_json::json;
use service::channel_events::{Donation, PaidSubscription};
use service::chats::ChatMessage;

use super::input::{Input, Outcome, outcome, spelled};
use crate::http::answer::Problem;

const MESSAGE: &str = "안녕하세요 👋";
const AMOUNT_WON: i64 = 1_000;
/// The brand names of the two tiers.
pub(super) const TIER_NAMES: [&str; 2] = ["팬", "열혈팬"];

/// A viewer says something in a chat.
pub(super) async fn chat(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("channel").await?;
    let sender = input.viewer("from", &channel).await?;
    let text = input.text("message").unwrap_or_else(|| MESSAGE.to_owned());
    let text = MessageText::parse(text).map_err(|error| spelled(error.into(), &[]))?;
    let emojis = input.emojis("emojis")?;
    let badges = input.list("badges").map(|urls| {
        let badge = |image_url| Badge { image_url };
        urls.into_iter().map(badge).collect::<Vec<_>>()
    });
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

/// Somebody donates to a channel.
pub(super) async fn donation(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("to").await?;
    let anonymous = input.flag("anonymous");
    if anonymous && input.text("from").is_some() {
        return Err(Problem::invalid("anonymous", "does not go with from"));
    }
    let donator = if anonymous { None } else { Some(input.viewer("from", &channel).await?) };
    let names = [("donationType", "type"), ("payAmount", "amount"), ("donationText", "message")];
    let donation_type = input.text("type").unwrap_or_else(|| DonationType::Chat.name().to_owned());
    let donation_type = DonationType::parse(&donation_type).map_err(|error| spelled(error.into(), &names))?;
    let pay_amount = input.text("amount").unwrap_or_else(|| AMOUNT_WON.to_string());
    let donation_text = input.text("message").unwrap_or_else(|| MESSAGE.to_owned());
    let emojis = input.emojis("emojis")?;
    let delivered = input.heard_by(EventType::Donation, &channel).await?;
    let mut happened = outcome(json!({
        "channelId": channel,
        "donatorChannelId": donator,
        "donationType": donation_type.name(),
        "payAmount": pay_amount,
        "donationText": donation_text,
        "delivered": delivered,
    }));
    let donation = Donation { donation_type, donator, pay_amount, donation_text, emojis };
    let donated = input.service.donate(&channel, donation, None).await;
    let id = donated.map_err(|error| spelled(error, &names))?;
    for name in ["eventId", "donationId"] {
        happened.insert(name.to_owned(), json!(id));
    }
    Ok(happened)
}

/// Somebody subscribes to a channel, or renews the subscription.
pub(super) async fn subscription(input: Input) -> Result<Outcome, Problem> {
    let channel = input.streamer("to").await?;
    let subscriber = input.viewer("from", &channel).await?;
    let tier_no = input.integer("tier").unwrap_or(1);
    let month = input.integer("month").unwrap_or(1);
    let usual_name = || TIER_NAMES[usize::from(tier_no > 1)].to_owned();
    let tier_name = input.text("tierName").unwrap_or_else(usual_name);
    let since = input.text("since").map(|since| Timestamp::parse_rfc3339(&since).ok_or(()));
    let rule = "must be an RFC 3339 time like 2027-01-01T00:00:00Z";
    let created = since.transpose().map_err(|()| Problem::invalid("since", rule))?;
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
