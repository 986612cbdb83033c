//! Chat messages, donations and their parts (`docs/spec/chat.md`, `docs/spec/realtime.md#events`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{
    BADGES_MAX, CHAT_MESSAGE_CHARS_MAX, DONATION_TEXT_CHARS_MAX, EMOJIS_MAX, NAME_CHARS_MAX,
    PAY_AMOUNT_DIGITS_MAX, URL_BYTES_MAX,
};
use crate::{ChannelId, Invalid, MessageId, Rule, Timestamp, invalid};

/// A chat message's text: 1 to 100 code points after JSON decoding, untrimmed, not blank, without NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText(String);

impl MessageText {
    /// # Errors
    /// `Invalid` naming `message`.
    pub fn parse(text: String) -> Result<Self, Invalid> {
        invalid::text("message", &text, 1, CHAT_MESSAGE_CHARS_MAX)?;
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Emoji identifiers in a text, each with the address of its picture.
pub type Emojis = BTreeMap<String, String>;

/// Checks the emojis that the platform reports with a message.
///
/// # Errors
/// `Invalid` naming `emojis` when there are more than 100, or one has no identifier or no web address.
pub fn check_emojis(emojis: &Emojis) -> Result<(), Invalid> {
    if emojis.len() > EMOJIS_MAX {
        return Err(Invalid::new("emojis", Rule::Items { min: 0, max: EMOJIS_MAX }));
    }
    for (id, url) in emojis {
        invalid::text("emojis", id, 1, NAME_CHARS_MAX)?;
        check_web_address("emojis", url)?;
    }
    Ok(())
}

/// A badge of the author of a chat message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Badge {
    /// The address of its picture.
    pub image_url: String,
}

/// Checks the badges that the platform reports with a message.
///
/// # Errors
/// `Invalid` naming `badges` when there are more than 10, or one has no web address.
pub fn check_badges(badges: &[Badge]) -> Result<(), Invalid> {
    if badges.len() > BADGES_MAX {
        return Err(Invalid::new("badges", Rule::Items { min: 0, max: BADGES_MAX }));
    }
    badges.iter().try_for_each(|badge| check_web_address("badges", &badge.image_url))
}

/// Checks the address of a picture.
///
/// # Errors
/// `Invalid` naming `field` for anything but an `http` or `https` address of at most 2,048 bytes.
pub fn check_web_address(field: &'static str, url: &str) -> Result<(), Invalid> {
    let web = url.starts_with("https://") || url.starts_with("http://");
    if web && url.len() <= URL_BYTES_MAX && !url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Ok(())
    } else {
        Err(Invalid::new(field, Rule::WebAddress))
    }
}

/// The chat of a channel, used for temporary restriction and message hiding. A channel always has one chat,
/// so its name is derived: `chat-` and the channel id.
pub fn chat_channel_id(channel: &ChannelId) -> String {
    ["chat-", channel.as_str()].concat()
}

/// The channel of a chat with that name; `None` if no channel can have it.
pub fn channel_of_chat(chat_channel_id: &str) -> Option<ChannelId> {
    ChannelId::parse("chatChannelId", chat_channel_id.strip_prefix("chat-")?).ok()
}

/// The time of a message: `now`, or a millisecond after the sender's last message in the same chat if that
/// has a later time. So chat, sender and time identify one message.
pub fn message_time(now: Timestamp, last: Option<Timestamp>) -> Timestamp {
    last.map_or(now, |last| now.max(last.plus_ms(1)))
}

/// The pinned text above a chat: a new text, or a message of the chat (`docs/spec/chat.md#notice`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A new text.
    Text(MessageText),
    /// A message of the chat.
    Message(MessageId),
}

/// How a donation is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum DonationType {
    /// With a chat line.
    Chat,
    /// With a video.
    Video,
}

impl DonationType {
    /// The names on the wire.
    pub const NAMES: &'static [&'static str] = &["CHAT", "VIDEO"];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "CHAT",
            Self::Video => "VIDEO",
        }
    }

    /// # Errors
    /// `Invalid` naming `donationType`.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        match name {
            "CHAT" => Ok(Self::Chat),
            "VIDEO" => Ok(Self::Video),
            _ => Err(Invalid::new("donationType", Rule::OneOf(Self::NAMES))),
        }
    }
}

/// Checks `payAmount`: an amount in won, digits only.
///
/// # Errors
/// `Invalid` naming `payAmount`.
pub fn check_pay_amount(amount: &str) -> Result<(), Invalid> {
    let digits =
        (1..=PAY_AMOUNT_DIGITS_MAX).contains(&amount.len()) && amount.bytes().all(|b| b.is_ascii_digit());
    let canonical = amount == "0" || !amount.starts_with('0');
    if digits && canonical { Ok(()) } else { Err(Invalid::new("payAmount", Rule::Amount)) }
}

/// Checks a donation's text, which may be empty.
///
/// # Errors
/// `Invalid` naming `donationText`.
pub fn check_donation_text(text: &str) -> Result<(), Invalid> {
    invalid::text("donationText", text, 0, DONATION_TEXT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_are_at_most_ten_and_have_web_addresses() {
        let badges = |url: &str, count| vec![Badge { image_url: url.to_owned() }; count];
        for (url, count, ok) in [
            ("https://e/b.png", 0, true),
            ("https://e/b.png", BADGES_MAX, true),
            ("https://e/b.png", BADGES_MAX + 1, false),
            ("javascript:x", 1, false),
            ("", 1, false),
        ] {
            assert_eq!(check_badges(&badges(url, count)).is_ok(), ok, "{url} {count}");
        }
    }

    #[test]
    fn a_message_is_later_than_the_senders_last_one() {
        let at = Timestamp::from_millis;
        for (now, last, time) in [(5, None, 5), (5, Some(4), 5), (5, Some(5), 6), (5, Some(90), 91)] {
            assert_eq!(message_time(at(now), last.map(at)), at(time));
        }
    }

    #[test]
    fn a_message_has_1_to_100_code_points() {
        let check = |text: String, ok| assert_eq!(MessageText::parse(text.clone()).is_ok(), ok, "{text:?}");
        check("가".repeat(100), true);
        check("가".repeat(101), false);
        check("👋".repeat(100), true);
        check(String::new(), false);
        check(" \n\t".into(), false);
        check("a\0b".into(), false);
        check(" a ".into(), true);
    }

    #[test]
    fn a_chat_id_is_derived_from_its_channel_id_and_back() {
        let channel = ChannelId::stored("chat-a.b_c".into());
        assert_eq!(channel_of_chat(&chat_channel_id(&channel)), Some(channel));
        for text in ["", "chat-", "chat", "a", "CHAT-a", "chat-a b", "chat-한글", "chat-.."] {
            assert_eq!(channel_of_chat(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_digits_in_won() {
        let check = |amount: &str, ok| assert_eq!(check_pay_amount(amount).is_ok(), ok, "{amount}");
        check("1000", true);
        check("0", true);
        check("007", false);
        check("", false);
        check("-1", false);
        check("1.5", false);
        check("1000000000000", false);
    }
}
