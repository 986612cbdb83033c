//! What sessions receive: the payloads of the socket's events, as JSON (spec section 2, "Session messages").

use serde::Serialize;

use crate::channel::UserRoleCode;
use crate::chat::{DonationType, Emojis};
use crate::session::{ChangeKind, EventType, SessionChange};
use crate::{ChannelId, Profile, SessionKey, Timestamp};

/// Something that happened on a channel, for every session subscribed to it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The channel.
    pub channel_id: ChannelId,
    /// When it was sent on, for clients of the observed profile.
    pub sent_at: Timestamp,
    /// What happened.
    pub happening: Happening,
}

/// The kinds of happenings.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A chat message.
    Chat(ChatHappening),
    /// A donation.
    Donation(DonationHappening),
    /// A paid subscription.
    Subscription(SubscriptionHappening),
}

/// A chat message that was posted.
#[derive(Clone, Debug)]
pub struct ChatHappening {
    /// Its author.
    pub sender_channel_id: ChannelId,
    /// The author's name.
    pub nickname: String,
    /// Whether the author carries the platform's mark.
    pub verified_mark: bool,
    /// What the author is in this chat.
    pub user_role_code: UserRoleCode,
    /// The chat that it stands in.
    pub chat_channel_id: String,
    /// Its text.
    pub content: String,
    /// Emojis in the text.
    pub emojis: Emojis,
    /// When it was posted.
    pub message_time: Timestamp,
}

/// A donation that was made.
#[derive(Clone, Debug)]
pub struct DonationHappening {
    /// How it is shown.
    pub donation_type: DonationType,
    /// Who gave; `None` for an anonymous donor.
    pub donator: Option<(ChannelId, String)>,
    /// The amount in won.
    pub pay_amount: String,
    /// What the donor wrote.
    pub donation_text: String,
    /// Emojis in that text.
    pub emojis: Emojis,
}

/// A paid subscription that began or went on.
#[derive(Clone, Debug)]
pub struct SubscriptionHappening {
    /// Who subscribed.
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
    /// The kind of subscription that receives it; its name is the event's name on the socket.
    pub fn event_type(&self) -> EventType {
        match self.happening {
            Happening::Chat(_) => EventType::Chat,
            Happening::Donation(_) => EventType::Donation,
            Happening::Subscription(_) => EventType::Subscription,
        }
    }

    /// The payload as JSON text.
    pub fn payload(&self, profile: Profile) -> String {
        let observed = profile == Profile::Observed;
        let event_sent_at = observed.then(|| self.sent_at.for_profile(profile));
        let channel_id = self.channel_id.as_str();
        match &self.happening {
            Happening::Chat(chat) => json(&ChatPayload {
                channel_id,
                sender_channel_id: chat.sender_channel_id.as_str(),
                chat_channel_id: &chat.chat_channel_id,
                profile: ProfilePayload {
                    nickname: &chat.nickname,
                    badges: [],
                    verified_mark: chat.verified_mark,
                    user_role_code: observed.then_some(chat.user_role_code),
                },
                user_role_code: chat.user_role_code,
                content: &chat.content,
                emojis: &chat.emojis,
                message_time: chat.message_time.as_millis(),
                event_sent_at,
            }),
            Happening::Donation(donation) => json(&DonationPayload {
                donation_type: donation.donation_type.name(),
                channel_id,
                donator_channel_id: donation.donator.as_ref().map_or("", |(id, _)| id.as_str()),
                donator_nickname: donation.donator.as_ref().map_or(ANONYMOUS_DONATOR, |(_, name)| name),
                pay_amount: &donation.pay_amount,
                donation_text: &donation.donation_text,
                emojis: &donation.emojis,
                event_sent_at,
            }),
            Happening::Subscription(subscription) => json(&SubscriptionPayload {
                channel_id,
                subscriber_channel_id: subscription.subscriber_channel_id.as_str(),
                subscriber_nickname: &subscription.subscriber_nickname,
                tier_no: subscription.tier_no,
                tier_name: &subscription.tier_name,
                month: subscription.month,
            }),
        }
    }
}

/// The name of the service's own messages on the socket.
pub const SYSTEM: &str = "SYSTEM";

/// The payload of SYSTEM `connected`.
pub fn system_connected(session_key: &SessionKey) -> String {
    json(&System { kind: "connected", data: Connected { session_key } })
}

/// The payload of SYSTEM `subscribed`, `unsubscribed` or `revoked`.
pub fn system_change(change: &SessionChange) -> String {
    json(&System { kind: ChangeKind::name(change.kind), data: &change.subscription })
}

#[derive(Serialize)]
struct System<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    data: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Connected<'a> {
    session_key: &'a SessionKey,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChatPayload<'a> {
    channel_id: &'a str,
    sender_channel_id: &'a str,
    chat_channel_id: &'a str,
    profile: ProfilePayload<'a>,
    user_role_code: UserRoleCode,
    content: &'a str,
    emojis: &'a Emojis,
    message_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_sent_at: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfilePayload<'a> {
    nickname: &'a str,
    /// The platform reports no badges, so there are none to show.
    badges: [(); 0],
    verified_mark: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_role_code: Option<UserRoleCode>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DonationPayload<'a> {
    donation_type: &'a str,
    channel_id: &'a str,
    donator_channel_id: &'a str,
    donator_nickname: &'a str,
    pay_amount: &'a str,
    donation_text: &'a str,
    emojis: &'a Emojis,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_sent_at: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubscriptionPayload<'a> {
    channel_id: &'a str,
    subscriber_channel_id: &'a str,
    subscriber_nickname: &'a str,
    tier_no: i64,
    tier_name: &'a str,
    month: i64,
}

fn json<T: Serialize>(payload: &T) -> String {
    // Payloads are plain structs with text keys: there is nothing in them that JSON cannot say.
    serde_json::to_string(payload).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Subscription;

    fn channel(id: &str) -> ChannelId {
        ChannelId::stored(id.into())
    }

    fn event(happening: Happening) -> Event {
        Event { channel_id: channel("c"), sent_at: Timestamp::from_millis(1_784_385_132_345), happening }
    }

    #[test]
    fn chat_in_both_profiles() {
        let chat = event(Happening::Chat(ChatHappening {
            sender_channel_id: channel("s"),
            nickname: "별".into(),
            verified_mark: true,
            user_role_code: UserRoleCode::StreamingChatManager,
            chat_channel_id: "chat-c".into(),
            content: "안녕 👋".into(),
            emojis: [("{:a:}".to_owned(), "https://e/a.png".to_owned())].into(),
            message_time: Timestamp::from_millis(5),
        }));
        assert_eq!(
            chat.payload(Profile::Documented),
            r#"{"channelId":"c","senderChannelId":"s","chatChannelId":"chat-c","profile":{"nickname":"별","badges":[],"verifiedMark":true},"userRoleCode":"streaming_chat_manager","content":"안녕 👋","emojis":{"{:a:}":"https://e/a.png"},"messageTime":5}"#
        );
        assert_eq!(
            chat.payload(Profile::Observed),
            r#"{"channelId":"c","senderChannelId":"s","chatChannelId":"chat-c","profile":{"nickname":"별","badges":[],"verifiedMark":true,"userRoleCode":"streaming_chat_manager"},"userRoleCode":"streaming_chat_manager","content":"안녕 👋","emojis":{"{:a:}":"https://e/a.png"},"messageTime":5,"eventSentAt":"2026-07-18 23:32:12"}"#
        );
    }

    #[test]
    fn donation_with_and_without_a_donor() {
        let donation = |donator| {
            event(Happening::Donation(DonationHappening {
                donation_type: DonationType::Video,
                donator,
                pay_amount: "1000".into(),
                donation_text: "힘내세요".into(),
                emojis: Emojis::new(),
            }))
            .payload(Profile::Documented)
        };
        assert_eq!(
            donation(Some((channel("d"), "달".into()))),
            r#"{"donationType":"VIDEO","channelId":"c","donatorChannelId":"d","donatorNickname":"달","payAmount":"1000","donationText":"힘내세요","emojis":{}}"#
        );
        assert!(donation(None).contains(r#""donatorChannelId":"","donatorNickname":"익명의 후원자""#));
    }

    #[test]
    fn system_messages() {
        let change = SessionChange {
            version: 1,
            kind: ChangeKind::Revoked,
            subscription: Subscription { event_type: EventType::Chat, channel_id: channel("c") },
        };
        assert_eq!(
            system_change(&change),
            r#"{"type":"revoked","data":{"eventType":"CHAT","channelId":"c"}}"#
        );
        let key = SessionKey::stored("k".into());
        assert_eq!(system_connected(&key), r#"{"type":"connected","data":{"sessionKey":"k"}}"#);
    }
}
