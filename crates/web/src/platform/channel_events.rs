//! Chat messages, donations and paid subscriptions, as the platform reports them.

use axum::extract::State;
use domain::chat::{Badge, DonationType, Emojis, MessageText};
use domain::limits::{
    BADGES_MAX, CHAT_MESSAGE_CHARS_MAX, DONATION_TEXT_CHARS_MAX, EMOJIS_MAX, NAME_CHARS_MAX,
    PAY_AMOUNT_DIGITS_MAX,
};
use domain::{ChannelId, Invalid, MessageId};
use schemars::JsonSchema;
use serde::Serialize;
use service::channel_events::{Donation, MONTHS_MAX, PaidSubscription, TIERS};
use service::chats::ChatMessage;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::contract::shape::{
    Kind, Shape, chars, date, id, integer, list, map, object, one_of, optional, required, text, web_address,
};
use crate::envelope::{Answer, NOTHING, Success};
use crate::input::{Body, Fields, JsonText};
use crate::platform::{ChannelPath, KeyHeader};

/// A viewer's chat message.
#[derive(Debug)]
pub struct PostChat {
    sender: ChannelId,
    message: MessageText,
    emojis: Emojis,
    badges: Option<Vec<Badge>>,
}

/// Emoji identifiers, each with the address of its picture.
fn emojis() -> Kind {
    map(chars(1, NAME_CHARS_MAX), web_address(), EMOJIS_MAX)
        .about("Emoji identifiers in the text, each with the address of its picture.")
}

/// The badges of the author of a message.
fn badges() -> Kind {
    let badge = Shape::of([required("imageUrl", web_address())]);
    list(object(&badge), 0, BADGES_MAX).about(
        "The sender's badges, none if the list is empty. Left out: those of the sender's role and subscription, with \
         pictures of the service's own.",
    )
}

impl Body for PostChat {
    fn shape() -> Shape {
        Shape::of([
            required("senderChannelId", id()),
            required("message", chars(1, CHAT_MESSAGE_CHARS_MAX)),
            optional("emojis", emojis()),
            optional("badges", badges()),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        let badge = |fields: &Fields| Ok(Badge { image_url: fields.text("imageUrl").map_err(in_badges)? });
        let badges = fields.optional_objects("badges")?;
        Ok(Self {
            sender: ChannelId::parse("senderChannelId", fields.str("senderChannelId")?)?,
            message: MessageText::parse(fields.text("message")?)?,
            emojis: fields.text_map("emojis")?,
            badges: badges.map(|badges| badges.iter().map(badge).collect()).transpose()?,
        })
    }
}

/// What is wrong within a badge is told of the list.
fn in_badges(wrong: Invalid) -> Invalid {
    Invalid::new("badges", wrong.rule)
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
    fn shape() -> Shape {
        let amount = text().pattern(&format!("^(0|[1-9][0-9]{{0,{}}})$", PAY_AMOUNT_DIGITS_MAX - 1));
        Shape::of([
            required("donationType", one_of(DonationType::NAMES)),
            optional("donatorChannelId", id().about("Left out: an anonymous donor.")),
            required("payAmount", amount.about("In won.")),
            optional("donationText", chars(0, DONATION_TEXT_CHARS_MAX)),
            optional("emojis", emojis()),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        let donator = fields.optional_text("donatorChannelId")?;
        Ok(Self {
            donation_type: DonationType::parse(&fields.text("donationType")?)?,
            donator: donator.map(|id| ChannelId::parse("donatorChannelId", &id)).transpose()?,
            pay_amount: fields.text("payAmount")?,
            donation_text: fields.optional_text("donationText")?.unwrap_or_default(),
            emojis: fields.text_map("emojis")?,
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
    fn shape() -> Shape {
        Shape::of([
            required("subscriberChannelId", id()),
            required("tierNo", integer(TIERS.0, TIERS.1)),
            required("tierName", chars(1, NAME_CHARS_MAX)),
            required("month", integer(0, MONTHS_MAX)),
            optional("createdDate", date().about("Left out: now.")),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        Ok(Self {
            subscriber: ChannelId::parse("subscriberChannelId", &fields.text("subscriberChannelId")?)?,
            tier_no: fields.integer("tierNo", TIERS.0, TIERS.1)?,
            tier_name: fields.text("tierName")?,
            month: fields.integer("month", 0, MONTHS_MAX)?,
            created: fields.optional_date("createdDate")?,
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
