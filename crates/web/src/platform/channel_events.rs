//! Chat messages, donations and paid subscriptions, as the platform reports them.

use axum::extract::State;
use domain::chat::{Badge, DonationType, Emojis, MessageText};
use domain::limits::{
    BADGES_MAX, CHAT_MESSAGE_CHARS_MAX, DONATION_TEXT_CHARS_MAX, EMOJIS_MAX, NAME_CHARS_MAX,
    PAY_AMOUNT_DIGITS_MAX,
};
use domain::{ChannelId, MessageId};
use schemars::JsonSchema;
use serde::Serialize;
use service::channel_events::{Donation, MONTHS_MAX, PaidSubscription, TIERS};
use service::chats::ChatMessage;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, Success};
use crate::input::objects::objects;
use crate::input::values::{chars, date, id, integer, text, text_map, web_address};
use crate::input::{Body, Form, JsonForm, JsonText, optional, record, required};
use crate::path::ChannelPath;
use crate::platform::KeyHeader;

/// A viewer's chat message.
#[derive(Debug)]
pub struct PostChat {
    sender: ChannelId,
    message: MessageText,
    emojis: Emojis,
    badges: Option<Vec<Badge>>,
}

/// Emoji identifiers, each with the address of its picture.
fn emojis() -> impl JsonForm<Out = Emojis> {
    let emojis = text_map(chars(1, NAME_CHARS_MAX), web_address(), EMOJIS_MAX)
        .about("Emoji identifiers in the text, each with the address of its picture.");
    optional("emojis", emojis).map(Option::unwrap_or_default)
}

/// The badges of the author of a message. An error within a badge names the list.
fn badges() -> impl JsonForm<Out = Option<Vec<Badge>>> {
    let badge = || record!(Badge { image_url: required("imageUrl", web_address()) });
    let badges = objects(badge, 0, BADGES_MAX).about(
        "The sender's badges, none if the list is empty. Left out: those of the sender's role and subscription, with \
         pictures of the service's own.",
    );
    optional("badges", badges).with_error_field("badges")
}

impl Body for PostChat {
    fn form() -> impl JsonForm<Out = Self> {
        record!(Self {
            sender: required("senderChannelId", id(ChannelId::parse)),
            message: required("message", chars(1, CHAT_MESSAGE_CHARS_MAX)).try_map(MessageText::parse),
            emojis: emojis(),
            badges: badges(),
        })
    }
}

impl From<PostChat> for ChatMessage {
    fn from(PostChat { sender, message, emojis, badges }: PostChat) -> Self {
        Self { sender, text: message, emojis, badges }
    }
}

/// A chat message that was posted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostedChat {
    /// The message.
    message_id: MessageId,
    /// When it was posted, in milliseconds.
    message_time: i64,
    /// The chat that it stands in.
    chat_channel_id: String,
}

pub(crate) const CHAT: Summary =
    Summary::new("reportChat", "A viewer writes a chat message", "시청자 채팅").refuses(&[403, 404]);

/// `POST /platform/v1/channels/{channelId}/chats`: CHAT event.
pub async fn chat(
    _: Operator,
    State(web): State<Web>,
    ChannelPath(channel): ChannelPath,
    key: KeyHeader,
    JsonText(body, text): JsonText<PostChat>,
) -> Answer<PostedChat> {
    let posted = web.service().post_message(&channel, body.into(), key.bind(&text)?).await?;
    Ok(Success(PostedChat {
        message_id: posted.message_id,
        message_time: posted.message_time.as_millis(),
        chat_channel_id: posted.chat_channel_id,
    }))
}

impl Body for Donation {
    fn form() -> impl JsonForm<Out = Self> {
        let amount =
            text().with(|kind| kind.pattern(&format!("^(0|[1-9][0-9]{{0,{}}})$", PAY_AMOUNT_DIGITS_MAX - 1)));
        let donation_type = text().one_of(DonationType::NAMES).parsed(DonationType::parse);
        let donator = id(ChannelId::parse).about("Left out: an anonymous donor.");
        let text = chars(0, DONATION_TEXT_CHARS_MAX);
        record!(Self {
            donation_type: required("donationType", donation_type),
            donator: optional("donatorChannelId", donator),
            pay_amount: required("payAmount", amount.about("In won.")),
            donation_text: optional("donationText", text).map(Option::unwrap_or_default),
            emojis: emojis(),
        })
    }
}

pub(crate) const DONATION: Summary =
    Summary::new("reportDonation", "A viewer donates", "시청자 후원").refuses(&[404]);

/// `POST /platform/v1/channels/{channelId}/donations`: DONATION event.
pub async fn donation(
    _: Operator,
    State(web): State<Web>,
    ChannelPath(channel): ChannelPath,
    key: KeyHeader,
    JsonText(donation, text): JsonText<Donation>,
) -> Answer<()> {
    web.service().donate(&channel, donation, key.bind(&text)?).await?;
    Ok(NOTHING)
}

impl Body for PaidSubscription {
    fn form() -> impl JsonForm<Out = Self> {
        record!(Self {
            subscriber: required("subscriberChannelId", id(ChannelId::parse)),
            tier_no: required("tierNo", integer(TIERS.0, TIERS.1)),
            tier_name: required("tierName", chars(1, NAME_CHARS_MAX)),
            month: required("month", integer(0, MONTHS_MAX)),
            created: optional("createdDate", date().about("Left out: now.")),
        })
    }
}

pub(crate) const SUBSCRIPTION: Summary =
    Summary::new("reportSubscription", "A viewer pays for a subscription", "시청자 구독").refuses(&[404]);

/// `POST /platform/v1/channels/{channelId}/subscriptions`: subscriber row and SUBSCRIPTION event.
pub async fn subscription(
    _: Operator,
    State(web): State<Web>,
    ChannelPath(channel): ChannelPath,
    key: KeyHeader,
    JsonText(paid, text): JsonText<PaidSubscription>,
) -> Answer<()> {
    web.service().subscribe_paid(&channel, paid, key.bind(&text)?).await?;
    Ok(NOTHING)
}
