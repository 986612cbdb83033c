//! Samples of the open API, with the ids of the seeded world.

use super::sample::Sample;

pub(super) const SAMPLES: &[Sample] = &[
    Sample::of("showSignIn").query(&[
        ("clientId", "demo"),
        ("redirectUri", "http://127.0.0.1:9999/callback"),
        ("state", "STATE"),
    ]),
    Sample::of("issueToken").body(
        r#"{
  "grantType": "authorization_code",
  "clientId": "demo",
  "clientSecret": "CLIENT_SECRET",
  "code": "CODE",
  "state": "STATE"
}"#,
    ),
    Sample::of("getMe"),
    Sample::of("getChannels").query(&[("channelIds", "streamer-haneul,streamer-bada")]),
    Sample::of("getStreamingRoles"),
    Sample::of("getFollowers").query(&[("page", "0"), ("size", "2")]),
    Sample::of("getSubscribers").query(&[("page", "0"), ("size", "2"), ("sort", "LONGER")]),
    Sample::of("searchCategories").query(&[("query", "스타")]),
    Sample::of("getLives").query(&[("size", "2")]),
    Sample::of("getStreamKey"),
    Sample::of("changeBroadcastSetting").body(
        r#"{
  "defaultLiveTitle": "오늘은 은하수까지",
  "categoryType": "GAME",
  "categoryId": "star-voyage",
  "tags": ["우주", "항해"]
}"#,
    ),
    Sample::of("getBroadcastSetting"),
    Sample::of("changeChatSettings").body(
        r#"{
  "chatAvailableGroup": "FOLLOWER",
  "minFollowerMinute": 0,
  "chatSlowModeSec": 3
}"#,
    ),
    Sample::of("getChatSettings"),
    Sample::of("sendChat").body(
        r#"{
  "message": "어서 오세요 👋"
}"#,
    ),
    Sample::of("putNotice").body(
        r#"{
  "message": "10시에 항해를 시작합니다."
}"#,
    ),
    Sample::of("createUserSession"),
    Sample::of("createClientSession"),
    Sample::of("subscribeChat").query(&[("sessionKey", "SESSION_KEY")]),
    Sample::of("subscribeDonation").query(&[("sessionKey", "SESSION_KEY")]),
    Sample::of("subscribeSubscription").query(&[("sessionKey", "SESSION_KEY")]),
    Sample::of("getClientSessions").query(&[("page", "0"), ("size", "2")]),
    Sample::of("getUserSessions").query(&[("page", "0"), ("size", "2")]),
    Sample::of("unsubscribeDonation").query(&[("sessionKey", "SESSION_KEY")]),
    Sample::of("unsubscribeSubscription").query(&[("sessionKey", "SESSION_KEY")]),
    Sample::of("beginListening"),
];

/// Samples that need what the platform has reported before.
pub(super) const LAST_SAMPLES: &[Sample] = &[
    Sample::of("hideMessage").body(
        r#"{
  "chatChannelId": "CHAT_CHANNEL_ID",
  "messageTime": 1784385132345,
  "senderChannelId": "viewer-byeol"
}"#,
    ),
    Sample::of("getRewardClaims")
        .query(&[("campaignId", "first-voyage"), ("page.size", "2")])
        .keep(&[("/content/data/0/claimId", "CLAIM_ID")]),
    Sample::of("updateRewardClaims").body(
        r#"{
  "claimIds": ["CLAIM_ID"],
  "fulfillmentState": "FULFILLED"
}"#,
    ),
    Sample::of("restrict").body(
        r#"{
  "targetChannelId": "viewer-gureum"
}"#,
    ),
    Sample::of("getRestricted").query(&[("size", "30")]),
    Sample::of("release").body(
        r#"{
  "targetChannelId": "viewer-gureum"
}"#,
    ),
    Sample::of("restrictTemporarily").body(
        r#"{
  "targetChannelId": "viewer-gureum",
  "chatChannelId": "CHAT_CHANNEL_ID"
}"#,
    ),
    Sample::of("releaseTemporarily").body(
        r#"{
  "targetChannelId": "viewer-gureum",
  "chatChannelId": "CHAT_CHANNEL_ID"
}"#,
    ),
    Sample::of("unsubscribeChat").query(&[("sessionKey", "SESSION_KEY")]),
    Sample::of("evictSession").path(&["SESSION_KEY"]),
    Sample::of("revokeToken").body(
        r#"{
  "clientId": "demo",
  "clientSecret": "CLIENT_SECRET",
  "token": "REFRESH_TOKEN"
}"#,
    ),
    Sample::of("revokeTokenAlias").body(
        r#"{
  "clientId": "demo",
  "clientSecret": "CLIENT_SECRET",
  "token": "REFRESH_TOKEN"
}"#,
    ),
];
