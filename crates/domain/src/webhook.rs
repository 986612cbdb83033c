//! The webhook that reports a claimed reward to a game publisher: its headers and its body
//! (`docs/spec/drops.md#webhook`).

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::drops::RewardClaim;
use crate::{CampaignId, ChannelId, ClaimId, ClientId, DeliveryId, RewardId, Timestamp};

/// The default prefix of header names.
pub const HEADER_PREFIX: &str = "Service-Event-Message-";
/// Maximum length of the operator's prefix, in bytes.
pub const HEADER_PREFIX_BYTES_MAX: usize = 64;
/// The kind of event of a claim, in `-Data-Type` and in the body.
pub const DROP_REWARD_CLAIM: &str = "drop_reward_claim";
/// The kind of event of a test message.
pub const WEBHOOK_TEST: &str = "webhook_test";
/// The type of a message, in `-Type`.
pub const NOTIFICATION: &str = "notification";
/// The version of the body and of its event.
pub const VERSION: &str = "1";

/// The headers of a delivery: the name after the prefix, and the meaning.
pub const HEADERS: [(&str, &str); 8] = [
    ("Id", "The message's id, a UUID: the same in every attempt."),
    ("Timestamp", "When this attempt was signed: RFC 3339, UTC, with milliseconds."),
    ("Signature", "`sha256=` and the HMAC-SHA256 of id, timestamp and raw body, in lower-case hex."),
    ("Type", "Always `notification`."),
    ("Data-Type", "The kind of event: `drop_reward_claim`, or `webhook_test` for a test message."),
    ("Version", "The version of the body's frame."),
    ("Data-Version", "The version of the event."),
    ("Retry", "Which attempt this is after the first; on those only."),
];

/// What a message reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A claimed reward.
    Claim,
    /// Nothing: a developer asked for a test message.
    Test,
}

impl MessageKind {
    /// The kind of a message about this claim, or about none.
    pub const fn about(claim: Option<&ClaimId>) -> Self {
        match claim {
            Some(_) => Self::Claim,
            None => Self::Test,
        }
    }

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => DROP_REWARD_CLAIM,
            Self::Test => WEBHOOK_TEST,
        }
    }
}

/// Whether a text may be the prefix of header names. With `Content-`, `Content-Type` would have two meanings.
pub fn is_header_prefix(text: &str) -> bool {
    text.len() <= HEADER_PREFIX_BYTES_MAX
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !text.eq_ignore_ascii_case("content-")
}

/// The data of a claim as JSON. It is stored, so every attempt sends the same data.
pub fn data(claim: &RewardClaim) -> String {
    let data = ClaimData {
        claim_id: &claim.claim_id,
        campaign_id: &claim.campaign_id,
        reward_id: &claim.reward_id,
        category_id: &claim.category_id,
        category_name: &claim.category_name,
        channel_id: &claim.channel_id,
        fulfillment_state: claim.state.name(),
        claimed_date: claim.claimed_at.rfc3339(),
        updated_date: claim.updated_at.rfc3339(),
    };
    // A struct of texts can always be serialized.
    serde_json::to_string(&data).unwrap_or_default()
}

/// The data of a test message as JSON.
pub fn test_data(client_id: &ClientId, requested_at: Timestamp) -> String {
    let data = TestData { client_id, requested_date: requested_at.rfc3339() };
    // A struct of texts can always be serialized.
    serde_json::to_string(&data).unwrap_or_default()
}

/// The body of one attempt, around [`data`] or [`test_data`]. This text is signed. `None` if the data is not
/// JSON.
pub fn body(kind: MessageKind, message_id: &DeliveryId, timestamp: Timestamp, data: &str) -> Option<String> {
    let data: &RawValue = serde_json::from_str(data).ok()?;
    let event = EventFrame { kind: kind.name(), version: VERSION, data };
    let notification = Notification { version: VERSION, message_id, timestamp: timestamp.rfc3339(), event };
    serde_json::to_string(&notification).ok()
}

/// The headers of an attempt, in the order of [`HEADERS`].
pub fn headers(
    prefix: &str,
    kind: MessageKind,
    message_id: &DeliveryId,
    timestamp: Timestamp,
    signature: String,
    number: i64,
) -> Vec<(String, String)> {
    let values = [
        message_id.as_str().to_owned(),
        timestamp.rfc3339(),
        signature,
        NOTIFICATION.to_owned(),
        kind.name().to_owned(),
        VERSION.to_owned(),
        VERSION.to_owned(),
        (number - 1).to_string(),
    ];
    let given = if number > 1 { HEADERS.len() } else { HEADERS.len() - 1 };
    HEADERS
        .iter()
        .zip(values)
        .take(given)
        .map(|((name, _), value)| (format!("{prefix}{name}"), value))
        .collect()
}

/// The schema of the body of a kind of message, generated from the serialized types.
pub fn schema(kind: MessageKind, generator: &mut SchemaGenerator) -> Schema {
    match kind {
        MessageKind::Claim => generator.subschema_for::<Notification<'_, ClaimData<'_>>>(),
        MessageKind::Test => generator.subschema_for::<Notification<'_, TestData<'_>>>(),
    }
}

/// The body of the drops webhook. Provisional.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Notification<'a, D> {
    /// The version of this frame.
    version: &'a str,
    /// The message's id, as in the header.
    message_id: &'a DeliveryId,
    /// When this attempt was signed, as in the header.
    timestamp: String,
    /// What happened.
    event: EventFrame<'a, D>,
}

/// What happened.
#[derive(Serialize, JsonSchema)]
struct EventFrame<'a, D> {
    /// The kind of event: `drop_reward_claim`, or `webhook_test` for a test message.
    #[serde(rename = "type")]
    kind: &'a str,
    /// The version of the data.
    version: &'a str,
    /// What it reports.
    data: D,
}

/// The data of a test message.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TestData<'a> {
    /// The application whose webhook is tested.
    client_id: &'a ClientId,
    /// When the test was asked for: RFC 3339, UTC.
    requested_date: String,
}

/// A claimed reward.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ClaimData<'a> {
    /// The claim.
    claim_id: &'a ClaimId,
    /// Its campaign.
    campaign_id: &'a CampaignId,
    /// The reward of the campaign.
    reward_id: &'a RewardId,
    /// The campaign's category.
    category_id: &'a str,
    /// The category's name.
    category_name: &'a str,
    /// Who claimed.
    channel_id: &'a ChannelId,
    /// `CLAIMED` or `FULFILLED`.
    fulfillment_state: &'a str,
    /// RFC 3339, UTC.
    claimed_date: String,
    /// RFC 3339, UTC.
    updated_date: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_prefixes_of_header_names_are_allowed() {
        let check = |text: &str, ok| assert_eq!(is_header_prefix(text), ok, "{text}");
        check(HEADER_PREFIX, true);
        check("X-", true);
        check("x", true);
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        for text in ["", "-a", "1a", "a b", "a:", "a\r\nb", "한", "Content-", "CONTENT-"] {
            check(text, false);
        }
    }
    use crate::drops::FulfillmentState;

    #[test]
    fn the_body_has_the_documented_fields() {
        let claim = RewardClaim {
            claim_id: ClaimId::stored("claim".into()),
            campaign_id: CampaignId::stored("campaign".into()),
            reward_id: RewardId::stored("reward".into()),
            category_id: "category".into(),
            category_name: "스타 보이지".into(),
            channel_id: ChannelId::stored("byeol".into()),
            state: FulfillmentState::Claimed,
            claimed_at: Timestamp::from_millis(1_784_385_132_345),
            updated_at: Timestamp::from_millis(1_784_385_132_345),
        };
        let (id, at) = (DeliveryId::stored("id".into()), Timestamp::from_millis(1_784_385_132_345));
        assert_eq!(
            body(MessageKind::Claim, &id, at, &data(&claim)).unwrap_or_default(),
            r#"{"version":"1","messageId":"id","timestamp":"2026-07-18T14:32:12.345Z","event":{"type":"drop_reward_claim","version":"1","data":{"claimId":"claim","campaignId":"campaign","rewardId":"reward","categoryId":"category","categoryName":"스타 보이지","channelId":"byeol","fulfillmentState":"CLAIMED","claimedDate":"2026-07-18T14:32:12.345Z","updatedDate":"2026-07-18T14:32:12.345Z"}}}"#
        );
    }

    #[test]
    fn a_test_message_says_what_it_is() {
        let (id, at) = (DeliveryId::stored("id".into()), Timestamp::from_millis(1_784_385_132_345));
        let kind = MessageKind::about(None);
        let data = test_data(&ClientId::stored("bot".into()), at);
        assert_eq!(
            body(kind, &id, at, &data).unwrap_or_default(),
            r#"{"version":"1","messageId":"id","timestamp":"2026-07-18T14:32:12.345Z","event":{"type":"webhook_test","version":"1","data":{"clientId":"bot","requestedDate":"2026-07-18T14:32:12.345Z"}}}"#
        );
        let headers = headers("X-", kind, &id, at, "sha256=0".into(), 1);
        assert!(headers.contains(&("X-Data-Type".to_owned(), WEBHOOK_TEST.to_owned())));
    }

    #[test]
    fn the_retry_header_is_sent_from_the_second_attempt_on() {
        let of = |number| {
            let id = DeliveryId::stored("id".into());
            let at = Timestamp::from_millis(1_784_385_132_345);
            headers("X-", MessageKind::Claim, &id, at, "sha256=0".into(), number)
        };
        let first = [
            ("X-Id", "id"),
            ("X-Timestamp", "2026-07-18T14:32:12.345Z"),
            ("X-Signature", "sha256=0"),
            ("X-Type", "notification"),
            ("X-Data-Type", "drop_reward_claim"),
            ("X-Version", "1"),
            ("X-Data-Version", "1"),
        ];
        let mut expected = first.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        assert_eq!(of(1), expected);
        expected.push(("X-Retry".to_owned(), "1".to_owned()));
        assert_eq!(of(2), expected);
    }
}
