//! The payloads of the socket's events, as JSON (`docs/spec/realtime.md#events`).

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::channel::UserRoleCode;
use crate::chat::{Badge, DonationType, Emojis};
use crate::scope::Scope;
use crate::{ChannelId, Profile, Timestamp};

/// A kind of event that a session can subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventType {
    /// Chat messages.
    Chat,
    /// Donations.
    Donation,
    /// Paid subscriptions of viewers to the channel.
    Subscription,
}

impl EventType {
    /// Every event type.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Donation, Self::Subscription];

    /// The name in payloads, on the socket and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "CHAT",
            Self::Donation => "DONATION",
            Self::Subscription => "SUBSCRIPTION",
        }
    }

    /// The event type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// The scope that subscribing and unsubscribing need.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Chat => Scope::ChatRead,
            Self::Donation => Scope::DonationRead,
            Self::Subscription => Scope::SubscriptionRead,
        }
    }

    /// The event in the published document. The schema is generated from the serialized type.
    pub fn description(self, generator: &mut SchemaGenerator) -> EventDescription {
        let (message_id, summary, schema) = match self {
            Self::Chat => (
                "chatMessage",
                "A chat message on a subscribed channel.",
                generator.subschema_for::<ChatPayload<'_>>(),
            ),
            Self::Donation => (
                "donationMessage",
                "A donation on a subscribed channel.",
                generator.subschema_for::<DonationPayload<'_>>(),
            ),
            Self::Subscription => (
                "subscriptionMessage",
                "A paid subscription on a subscribed channel.",
                generator.subschema_for::<SubscriptionPayload<'_>>(),
            ),
        };
        EventDescription { name: self.name(), message_id, summary, schema }
    }
}

/// An event in the published document.
pub struct EventDescription {
    /// The event's name on the socket.
    pub name: &'static str,
    /// The id of its message in the document.
    pub message_id: &'static str,
    /// A sentence about it.
    pub summary: &'static str,
    /// The schema of its payload.
    pub schema: Schema,
}

/// Something that happened on a channel, for every session subscribed to it. Nodes exchange events in the
/// encoding of the bus. Sessions receive the [`payload`](Event::payload).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The channel.
    pub channel_id: ChannelId,
    /// When the event was sent to sessions, for clients of the observed profile.
    #[serde(with = "crate::time::millis")]
    pub sent_at: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

/// What happened, with its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum EventKind {
    /// A chat message.
    Chat(ChatEvent),
    /// A donation.
    Donation(DonationEvent),
    /// A paid subscription.
    Subscription(SubscriptionEvent),
}

/// A chat message that was posted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChatEvent {
    /// Its author.
    pub sender_channel_id: ChannelId,
    /// The author's name.
    pub nickname: String,
    /// The author's badges.
    pub badges: Vec<Badge>,
    /// Whether the author carries the platform's mark.
    pub verified_mark: bool,
    /// The author's role in this chat.
    pub user_role_code: UserRoleCode,
    /// The chat that contains the message.
    pub chat_channel_id: String,
    /// Its text.
    pub content: String,
    /// Emojis in the text.
    pub emojis: Emojis,
    /// When it was posted.
    #[serde(with = "crate::time::millis")]
    pub message_time: Timestamp,
}

/// A donation that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DonationEvent {
    /// How it is shown.
    pub donation_type: DonationType,
    /// The donor's channel and name; `None` for an anonymous donor.
    pub donator: Option<(ChannelId, String)>,
    /// The amount in won.
    pub pay_amount: String,
    /// The donor's text.
    pub donation_text: String,
    /// Emojis in that text.
    pub emojis: Emojis,
}

/// A paid subscription that began or was renewed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubscriptionEvent {
    /// The subscriber's channel.
    pub subscriber_channel_id: ChannelId,
    /// The subscriber's name.
    pub subscriber_nickname: String,
    /// 1 or 2.
    pub tier_no: i64,
    /// The subscription's brand name.
    pub tier_name: String,
    /// Months subscribed.
    pub month: i64,
}

/// The name under which an anonymous donor appears.
pub const ANONYMOUS_DONATOR: &str = "익명의 후원자";

impl Event {
    /// The event type that a session subscribes to for this event; its name is the event's name on the
    /// socket.
    pub fn event_type(&self) -> EventType {
        match self.kind {
            EventKind::Chat(_) => EventType::Chat,
            EventKind::Donation(_) => EventType::Donation,
            EventKind::Subscription(_) => EventType::Subscription,
        }
    }

    /// The payload, to be written as JSON.
    pub fn payload(&self, profile: Profile) -> impl Serialize {
        let observed = profile == Profile::Observed;
        let event_sent_at = observed.then(|| self.sent_at.for_profile(profile));
        let channel_id = &self.channel_id;
        match &self.kind {
            EventKind::Chat(chat) => Payload::Chat(ChatPayload {
                channel_id,
                sender_channel_id: &chat.sender_channel_id,
                chat_channel_id: &chat.chat_channel_id,
                profile: ProfilePayload {
                    nickname: &chat.nickname,
                    badges: &chat.badges,
                    verified_mark: chat.verified_mark,
                    user_role_code: observed.then_some(chat.user_role_code),
                },
                user_role_code: chat.user_role_code,
                content: &chat.content,
                emojis: &chat.emojis,
                message_time: chat.message_time.as_millis(),
                event_sent_at,
            }),
            EventKind::Donation(donation) => Payload::Donation(DonationPayload {
                donation_type: donation.donation_type,
                channel_id,
                donator_channel_id: donation.donator.as_ref().map_or("", |(id, _)| id.as_str()),
                donator_nickname: donation.donator.as_ref().map_or(ANONYMOUS_DONATOR, |(_, name)| name),
                pay_amount: &donation.pay_amount,
                donation_text: &donation.donation_text,
                emojis: &donation.emojis,
                event_sent_at,
            }),
            EventKind::Subscription(subscription) => Payload::Subscription(SubscriptionPayload {
                channel_id,
                subscriber_channel_id: &subscription.subscriber_channel_id,
                subscriber_nickname: &subscription.subscriber_nickname,
                tier_no: subscription.tier_no,
                tier_name: &subscription.tier_name,
                month: subscription.month,
            }),
        }
    }
}

/// The JSON of an event.
#[derive(Serialize)]
#[serde(untagged)]
enum Payload<'a> {
    Chat(ChatPayload<'a>),
    Donation(DonationPayload<'a>),
    Subscription(SubscriptionPayload<'a>),
}

/// A chat message on a subscribed channel.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChatPayload<'a> {
    /// Channel of the event.
    channel_id: &'a ChannelId,
    /// Author.
    sender_channel_id: &'a ChannelId,
    /// For temporary restriction and message hiding.
    chat_channel_id: &'a str,
    /// How the author appears.
    profile: ProfilePayload<'a>,
    /// What the author is in this chat.
    user_role_code: UserRoleCode,
    /// The text, as it was sent.
    #[schemars(length(min = 1, max = 100))]
    content: &'a str,
    /// Emoji identifiers in the text, each with the address of its picture.
    emojis: &'a Emojis,
    /// Milliseconds since 1970, UTC; the `messageTime` of a hide call.
    message_time: i64,
    /// Only in the observed profile: when the event was sent on, Korea time.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_sent_at: Option<String>,
}

/// How the author of a chat message appears.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProfilePayload<'a> {
    /// The author's name.
    nickname: &'a str,
    /// Those that the platform reported with the message, else those of the author's role and subscription.
    badges: &'a [Badge],
    /// Whether the author carries the platform's mark.
    verified_mark: bool,
    /// Only in the observed profile: the same as at the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_role_code: Option<UserRoleCode>,
}

/// A donation on a subscribed channel.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DonationPayload<'a> {
    /// How it is shown.
    donation_type: DonationType,
    /// Channel of the event.
    channel_id: &'a ChannelId,
    /// Who gave; empty for an anonymous donor.
    donator_channel_id: &'a str,
    /// The donor's name.
    donator_nickname: &'a str,
    /// The amount in won, in digits.
    #[schemars(regex(pattern = r"^[0-9]{1,12}$"))]
    pay_amount: &'a str,
    /// What the donor wrote.
    donation_text: &'a str,
    /// Emoji identifiers in the text, each with the address of its picture.
    emojis: &'a Emojis,
    /// Only in the observed profile: when the event was sent on, Korea time.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_sent_at: Option<String>,
}

/// A paid subscription on a subscribed channel.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SubscriptionPayload<'a> {
    /// Channel of the event.
    channel_id: &'a ChannelId,
    /// Who subscribed.
    subscriber_channel_id: &'a ChannelId,
    /// The subscriber's name.
    subscriber_nickname: &'a str,
    /// The tier.
    #[schemars(range(min = 1, max = 2))]
    tier_no: i64,
    /// The subscription's brand name.
    tier_name: &'a str,
    /// Months subscribed.
    #[schemars(range(min = 0))]
    month: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(id: &str) -> ChannelId {
        ChannelId::stored(id.into())
    }

    fn json(payload: impl Serialize) -> String {
        serde_json::to_string(&payload).unwrap()
    }

    fn event(kind: EventKind) -> Event {
        Event { channel_id: channel("c"), sent_at: Timestamp::from_millis(1_784_385_132_345), kind }
    }

    #[test]
    fn chat_in_both_profiles() {
        let chat = event(EventKind::Chat(ChatEvent {
            sender_channel_id: channel("s"),
            nickname: "별".into(),
            badges: Vec::new(),
            verified_mark: true,
            user_role_code: UserRoleCode::StreamingChatManager,
            chat_channel_id: "chat-c".into(),
            content: "안녕 👋".into(),
            emojis: [("{:a:}".to_owned(), "https://e/a.png".to_owned())].into(),
            message_time: Timestamp::from_millis(5),
        }));
        assert_eq!(
            json(chat.payload(Profile::Documented)),
            r#"{"channelId":"c","senderChannelId":"s","chatChannelId":"chat-c","profile":{"nickname":"별","badges":[],"verifiedMark":true},"userRoleCode":"streaming_chat_manager","content":"안녕 👋","emojis":{"{:a:}":"https://e/a.png"},"messageTime":5}"#
        );
        assert_eq!(
            json(chat.payload(Profile::Observed)),
            r#"{"channelId":"c","senderChannelId":"s","chatChannelId":"chat-c","profile":{"nickname":"별","badges":[],"verifiedMark":true,"userRoleCode":"streaming_chat_manager"},"userRoleCode":"streaming_chat_manager","content":"안녕 👋","emojis":{"{:a:}":"https://e/a.png"},"messageTime":5,"eventSentAt":"2026-07-18 23:32:12"}"#
        );
    }

    #[test]
    fn donation_with_and_without_a_donor() {
        let donation = |donator| {
            let event = event(EventKind::Donation(DonationEvent {
                donation_type: DonationType::Video,
                donator,
                pay_amount: "1000".into(),
                donation_text: "힘내세요".into(),
                emojis: Emojis::new(),
            }));
            json(event.payload(Profile::Documented))
        };
        assert_eq!(
            donation(Some((channel("d"), "달".into()))),
            r#"{"donationType":"VIDEO","channelId":"c","donatorChannelId":"d","donatorNickname":"달","payAmount":"1000","donationText":"힘내세요","emojis":{}}"#
        );
        assert!(donation(None).contains(r#""donatorChannelId":"","donatorNickname":"익명의 후원자""#));
    }
}
