//! What happened in a world, as a world file has it: chat messages, restrictions, watched minutes, and the
//! messages to webhooks.

use std::collections::BTreeMap;

use domain::chat::{MessageText, check_emojis};
use domain::delivery::DeliveryState;
use domain::outbound::SendFailure;
use domain::{CampaignId, ChannelId, ClaimId, DeliveryId, Invalid, Language, MessageSeries, Rule, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service::deliveries::{AttemptRecord, Delivery, DeliveryDetails};
use service::world_rows::{MessageRow, RestrictionRow, RestrictionSpan};

use super::mistake::{Converted, WorldFileError, date, id, needed_date};

/// Length of the id of a message to a webhook, in characters.
const DELIVERY_ID_CHARS: usize = 36;
/// Maximum number of attempts of one message.
const ATTEMPTS_MAX: i64 = 1_000_000;

/// A chat message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageItem {
    /// The channel of the chat.
    pub channel_id: String,
    /// Who wrote it.
    pub sender_channel_id: String,
    /// The text.
    pub content: String,
    /// The emojis in the text, each with the address of its picture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub emojis: BTreeMap<String, String>,
    /// When it was posted. One sender has one message of a time in a chat.
    pub message_time: String,
    /// When it was hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_date: Option<String>,
}

/// A restriction of a channel in the chat of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestrictionItem {
    /// The channel of the chat.
    pub channel_id: String,
    /// Who may not send.
    pub restricted_channel_id: String,
    /// Since when, for a restriction until it is released. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_date: Option<String>,
    /// Until when, for a temporary restriction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
}

/// The minutes that a viewer has watched for a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchedItem {
    /// A campaign of this file.
    pub campaign_id: String,
    /// The viewer.
    pub channel_id: String,
    /// Minutes in all.
    pub minutes: i64,
}

/// A message to a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeliveryItem {
    /// The id: a UUID.
    pub message_id: String,
    /// The claim that it reports; left out for a test message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<String>,
    /// Its data: the JSON text that is signed.
    pub data: String,
    /// WAITING, DELIVERED or DEAD.
    pub state: String,
    /// When a waiting message is attempted.
    pub due_date: String,
    /// Number of attempts, also of those that have no result.
    #[serde(default)]
    pub attempts: i64,
    /// Failed attempts since it was last to be sent anew. The retries go on from there.
    #[serde(default)]
    pub failures: i64,
    /// When it was written.
    pub created_date: String,
    /// When its state last changed.
    pub changed_date: String,
    /// The attempts, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<AttemptItem>,
}

/// The result of an attempt to send a message to a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptItem {
    /// The number, from 1.
    pub number: i64,
    /// When it began.
    pub began_date: String,
    /// The time in its headers and its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_date: Option<String>,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub duration_ms: i64,
    /// The status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The beginning of the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
}

impl MessageItem {
    /// The item of a message; `None` if its emojis are damaged.
    pub(super) fn of(row: MessageRow) -> Option<Self> {
        Some(Self {
            channel_id: row.channel_id.to_string(),
            sender_channel_id: row.sender.to_string(),
            content: row.content,
            emojis: serde_json::from_str(&row.emojis).ok()?,
            message_time: row.message_time.rfc3339(),
            hidden_date: row.hidden_at.map(Timestamp::rfc3339),
        })
    }

    pub(super) fn convert(&self, path: &str) -> Converted<MessageRow> {
        let channel_id = id(path, ChannelId::parse("channelId", &self.channel_id))?;
        let sender = id(path, ChannelId::parse("senderChannelId", &self.sender_channel_id))?;
        let rule = |invalid: Invalid| {
            WorldFileError::new(format!("{path}.content"), invalid.rule.text(Language::English))
        };
        MessageText::parse(self.content.clone()).map_err(rule)?;
        id(path, check_emojis(&self.emojis))?;
        let message_time = needed_date(path, "messageTime", &self.message_time)?;
        Ok(MessageRow {
            message_id: MessageSeries::of(&channel_id, &sender).id_at(message_time),
            channel_id,
            sender,
            content: self.content.clone(),
            // A map of texts can always be serialized.
            emojis: serde_json::to_string(&self.emojis).unwrap_or_default(),
            message_time,
            hidden_at: date(path, "hiddenDate", self.hidden_date.as_deref())?,
        })
    }
}

impl RestrictionItem {
    pub(super) fn of(channel: &ChannelId, row: &RestrictionRow) -> Self {
        let (created, end) = match row.span {
            RestrictionSpan::Since(at) => (Some(at), None),
            RestrictionSpan::Until(at) => (None, Some(at)),
        };
        Self {
            channel_id: channel.to_string(),
            restricted_channel_id: row.target.to_string(),
            created_date: created.map(Timestamp::rfc3339),
            end_date: end.map(Timestamp::rfc3339),
        }
    }

    /// The channel, and the restriction. A lasting one begins at `now`, unless the file says when.
    pub(super) fn convert(&self, path: &str, now: Timestamp) -> Converted<(ChannelId, RestrictionRow)> {
        let created = date(path, "createdDate", self.created_date.as_deref())?;
        let span = match date(path, "endDate", self.end_date.as_deref())? {
            Some(_) if created.is_some() => {
                let rule = "must not be given together with endDate";
                return Err(WorldFileError::new(format!("{path}.createdDate"), rule));
            }
            Some(end) => RestrictionSpan::Until(end),
            None => RestrictionSpan::Since(created.unwrap_or(now)),
        };
        let target = id(path, ChannelId::parse("restrictedChannelId", &self.restricted_channel_id))?;
        Ok((id(path, ChannelId::parse("channelId", &self.channel_id))?, RestrictionRow { target, span }))
    }
}

impl WatchedItem {
    pub(super) fn convert(&self, path: &str) -> Converted<(CampaignId, ChannelId, i64)> {
        let campaign = id(path, CampaignId::parse("campaignId", &self.campaign_id))?;
        let viewer = id(path, ChannelId::parse("channelId", &self.channel_id))?;
        Ok((campaign, viewer, count(path, "minutes", self.minutes, i64::from(i32::MAX))?))
    }
}

impl DeliveryItem {
    pub(super) fn of(details: DeliveryDetails) -> Self {
        let DeliveryDetails { delivery, attempts } = details;
        Self {
            message_id: delivery.message_id.to_string(),
            claim_id: delivery.claim_id.map(|claim| claim.to_string()),
            data: delivery.data,
            state: delivery.state.name().to_owned(),
            due_date: delivery.due_at.rfc3339(),
            attempts: delivery.attempts,
            failures: delivery.failures,
            created_date: delivery.created_at.rfc3339(),
            changed_date: delivery.changed_at.rfc3339(),
            results: attempts.into_iter().map(AttemptItem::of).collect(),
        }
    }

    pub(super) fn convert(&self, path: &str) -> Converted<DeliveryDetails> {
        let is_uuid = self.message_id.len() == DELIVERY_ID_CHARS;
        let message_id =
            DeliveryId::parse("messageId", &self.message_id).ok().filter(|_| is_uuid).ok_or_else(|| {
                WorldFileError::new(format!("{path}.messageId"), "must be a UUID, in 36 characters")
            })?;
        if serde_json::from_str::<serde_json::Value>(&self.data).is_err() {
            return Err(WorldFileError::new(format!("{path}.data"), "must be JSON in a text"));
        }
        let claim = self.claim_id.as_deref().map(|claim| ClaimId::parse("claimId", claim));
        let unknown = || Invalid::new("state", Rule::OneOf(DeliveryState::NAMES));
        let results = self.results.iter().enumerate();
        let results = results.map(|(index, result)| result.convert(&format!("{path}.results[{index}]")));
        let delivery = Delivery {
            message_id,
            claim_id: claim.map(|claim| id(path, claim)).transpose()?,
            data: self.data.clone(),
            state: id(path, DeliveryState::from_name(&self.state).ok_or_else(unknown))?,
            due_at: needed_date(path, "dueDate", &self.due_date)?,
            in_flight: false,
            attempts: count(path, "attempts", self.attempts, ATTEMPTS_MAX)?,
            failures: count(path, "failures", self.failures, ATTEMPTS_MAX)?,
            created_at: needed_date(path, "createdDate", &self.created_date)?,
            changed_at: needed_date(path, "changedDate", &self.changed_date)?,
        };
        Ok(DeliveryDetails { delivery, attempts: results.collect::<Result<_, _>>()? })
    }
}

impl AttemptItem {
    fn of(record: AttemptRecord) -> Self {
        Self {
            number: record.number,
            began_date: record.began_at.rfc3339(),
            signed_date: record.signed_at.map(Timestamp::rfc3339),
            duration_ms: record.duration_ms,
            status: record.status,
            failure: record.failure.map(|failure| failure.name().to_owned()),
            excerpt: record.excerpt,
        }
    }

    fn convert(&self, path: &str) -> Converted<AttemptRecord> {
        let failure = self.failure.as_deref().map(|name| {
            let unknown = || WorldFileError::new(format!("{path}.failure"), "must be the name of a failure");
            SendFailure::of_name(name).ok_or_else(unknown)
        });
        let signed_at = self.signed_date.as_deref().map(|date| needed_date(path, "signedDate", date));
        Ok(AttemptRecord {
            number: count(path, "number", self.number, ATTEMPTS_MAX)?,
            began_at: needed_date(path, "beganDate", &self.began_date)?,
            signed_at: signed_at.transpose()?,
            duration_ms: count(path, "durationMs", self.duration_ms, i64::from(i32::MAX))?,
            status: self.status,
            failure: failure.transpose()?,
            excerpt: self.excerpt.clone(),
        })
    }
}

/// A number from 0 to `max`.
fn count(path: &str, field: &'static str, value: i64, max: i64) -> Converted<i64> {
    let rule = || Invalid::new(field, Rule::Integer { min: 0, max });
    id(path, (0..=max).contains(&value).then_some(value).ok_or_else(rule))
}
