//! The webhook that tells a game publisher of a claimed reward: its headers and its body (spec section 6; decisions 5).

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::drops::RewardClaim;
use crate::{CampaignId, ChannelId, ClaimId, RewardId, Timestamp};

/// What header names begin with, unless the operator chose something else.
pub const HEADER_PREFIX: &str = "Service-Event-Message-";
/// The kind of event, in `-Data-Type` and in the body.
pub const DROP_REWARD_CLAIM: &str = "drop_reward_claim";
/// The version of the body's frame and of its event.
pub const VERSION: &str = "1";

/// The headers of a delivery: the name after the prefix, and what it holds.
pub const HEADERS: [(&str, &str); 8] = [
    ("Id", "The message's id, a UUID: the same in every attempt."),
    ("Timestamp", "When this attempt was signed: RFC 3339, UTC, with milliseconds."),
    ("Signature", "`sha256=` and the HMAC-SHA256 of id, timestamp and raw body, in lower-case hex."),
    ("Type", "Always `notification`."),
    ("Data-Type", "The kind of event: `drop_reward_claim`."),
    ("Version", "The version of the body's frame."),
    ("Data-Version", "The version of the event."),
    ("Retry", "Which attempt this is after the first; on those only."),
];

/// The body of a delivery, as the text that is signed.
pub fn body(message_id: &str, timestamp: Timestamp, claim: &RewardClaim) -> String {
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
    let event = EventFrame { kind: DROP_REWARD_CLAIM, version: VERSION, data };
    let notification = Notification { version: VERSION, message_id, timestamp: timestamp.rfc3339(), event };
    // Plain structs of texts: there is nothing in them that JSON cannot say.
    serde_json::to_string(&notification).unwrap_or_default()
}

/// The schema of the body, made from the types that are written.
pub fn schema(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Notification<'_>>()
}

/// The body of the drops webhook. Provisional.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Notification<'a> {
    /// The version of this frame.
    version: &'a str,
    /// The message's id, as in the header.
    message_id: &'a str,
    /// When this attempt was signed, as in the header.
    timestamp: String,
    /// What happened.
    event: EventFrame<'a>,
}

/// What happened.
#[derive(Serialize, JsonSchema)]
struct EventFrame<'a> {
    /// The kind of event: `drop_reward_claim`.
    #[serde(rename = "type")]
    kind: &'a str,
    /// The version of the data.
    version: &'a str,
    /// The claim.
    data: ClaimData<'a>,
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
    use crate::drops::FulfillmentState;

    #[test]
    fn the_body_is_spelled_as_the_decisions_say() {
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
        assert_eq!(
            body("id", Timestamp::from_millis(1_784_385_132_345), &claim),
            r#"{"version":"1","messageId":"id","timestamp":"2026-07-18T14:32:12.345Z","event":{"type":"drop_reward_claim","version":"1","data":{"claimId":"claim","campaignId":"campaign","rewardId":"reward","categoryId":"category","categoryName":"스타 보이지","channelId":"byeol","fulfillmentState":"CLAIMED","claimedDate":"2026-07-18T14:32:12.345Z","updatedDate":"2026-07-18T14:32:12.345Z"}}}"#
        );
    }
}
