//! Samples of the platform API, with the ids of the seeded world.

use super::sample::Sample;

pub(super) const SAMPLES: &[Sample] = &[
    // Operator keys.
    Sample::of("addOperatorKey")
        .body(
            r#"{
  "name": "support",
  "role": "read"
}"#,
        )
        .keep(&[("/content/keyId", "KEY_ID")]),
    Sample::of("listOperatorKeys").query(&[("size", "20")]),
    Sample::of("revokeOperatorKey").path(&["KEY_ID"]),
    // Organizations and applications.
    Sample::of("putOrganization").path(&["star-games"]).body(
        r#"{
  "organizationName": "별 게임즈",
  "verified": true
}"#,
    ),
    Sample::of("listOrganizations").query(&[("size", "20")]),
    Sample::of("disableOrganization").path(&["star-games"]),
    Sample::of("enableOrganization").path(&["star-games"]),
    Sample::of("putApplication").path(&["my-bot"]).body(
        r#"{
  "name": "내 봇",
  "redirectUris": ["https://bot.example/callback"],
  "scopes": ["유저 정보 조회", "채팅 메시지 조회", "채팅 메시지 쓰기"],
  "organizationId": "star-games",
  "homepageUrl": "https://bot.example/"
}"#,
    ),
    Sample::of("showApplication").path(&["my-bot"]),
    Sample::of("listApplications").query(&[("organizationId", "star-games")]),
    Sample::of("putOrganizationMember").path(&["star-games", "streamer-haneul"]).body(
        r#"{
  "role": "admin"
}"#,
    ),
    Sample::of("listOrganizationMembers").path(&["star-games"]),
    Sample::of("deleteOrganizationMember").path(&["star-games", "viewer-dal"]),
    Sample::of("addReviewRequest")
        .body(
            r#"{
  "channelId": "streamer-haneul",
  "kind": "drops",
  "clientId": "my-bot",
  "message": "새 게임의 보상을 지급합니다."
}"#,
        )
        .keep(&[("/content/requestId", "REQUEST_ID")]),
    Sample::of("listReviewRequests").query(&[("size", "20")]),
    Sample::of("decideReviewRequest").path(&["REQUEST_ID"]).body(
        r#"{
  "decision": "approve",
  "note": "확인했습니다."
}"#,
    ),
    Sample::of("addApplicationSecret").path(&["my-bot"]),
    Sample::of("listApplicationSecrets")
        .path(&["my-bot"])
        .keep(&[("/content/data/0/secretId", "SECRET_ID")]),
    Sample::of("putApplicationSecretExpiry").path(&["my-bot", "SECRET_ID"]).body(
        r#"{
  "expiresDate": "2030-01-01T00:00:00Z"
}"#,
    ),
    Sample::of("deleteApplicationSecret").path(&["my-bot", "SECRET_ID"]),
    Sample::of("showAffectedByTokens").path(&["demo"]),
    Sample::of("endApplicationTokens").path(&["my-bot"]),
    Sample::of("deleteApplicationSecrets").path(&["my-bot"]),
    Sample::of("putApplicationQuota").path(&["my-bot"]).body(
        r#"{
  "percent": 25
}"#,
    ),
    Sample::of("deleteApplicationQuota").path(&["my-bot"]),
    Sample::of("listApplicationLoad").query(&[("by", "refused"), ("minutes", "5")]),
    Sample::of("disableApplication").path(&["my-bot"]),
    Sample::of("enableApplication").path(&["my-bot"]),
    Sample::of("restoreApplication").path(&["my-bot"]),
    Sample::of("withdrawConsent").path(&["demo", "viewer-nuri"]),
    // Webhooks.
    Sample::of("putWebhook").path(&["my-bot"]).body(
        r#"{
  "url": "https://game.example/webhook"
}"#,
    ),
    Sample::of("getWebhook").path(&["my-bot"]),
    Sample::of("addWebhookSecret").path(&["my-bot"]).keep(&[("/content/secretId", "WEBHOOK_SECRET_ID")]),
    Sample::of("getWebhookSecrets")
        .path(&["my-bot"])
        .keep(&[("/content/data/0/secretId", "OLD_WEBHOOK_SECRET_ID")]),
    Sample::of("activateWebhookSecret").path(&["my-bot", "WEBHOOK_SECRET_ID"]),
    Sample::of("deleteWebhookSecret").path(&["my-bot", "OLD_WEBHOOK_SECRET_ID"]),
    Sample::of("deleteWebhook").path(&["my-bot"]),
    // Channels and people.
    Sample::of("putChannel").path(&["new-streamer"]).body(
        r#"{
  "channelName": "새 스트리머",
  "login": "new-streamer",
  "password": "correct horse battery staple"
}"#,
    ),
    Sample::of("showChannel").path(&["streamer-haneul"]),
    Sample::of("listChannels").query(&[("size", "2")]),
    Sample::of("barChannel").path(&["new-streamer"]),
    Sample::of("unbarChannel").path(&["new-streamer"]),
    Sample::of("endBrowserSessions").path(&["new-streamer"]),
    Sample::of("issuePasswordReset").path(&["new-streamer"]),
    Sample::of("removeTwoFactor").path(&["new-streamer"]),
    Sample::of("putOperatorRole").path(&["new-streamer"]).body(
        r#"{
  "role": "read"
}"#,
    ),
    Sample::of("listOperators").query(&[("size", "20")]),
    Sample::of("deleteOperatorRole").path(&["new-streamer"]),
    Sample::of("listAuditLog").query(&[("subject", "new-streamer"), ("size", "2")]),
    Sample::of("putManager").path(&["new-streamer", "viewer-dal"]).body(
        r#"{
  "userRole": "STREAMING_CHAT_MANAGER"
}"#,
    ),
    Sample::of("deleteManager").path(&["new-streamer", "viewer-dal"]),
    Sample::of("putFollower").path(&["new-streamer", "viewer-mina"]),
    Sample::of("deleteFollower").path(&["new-streamer", "viewer-mina"]),
    // Broadcasts and events.
    Sample::of("putCategory").path(&["board-games"]).body(
        r#"{
  "categoryType": "GAME",
  "categoryValue": "보드게임"
}"#,
    ),
    Sample::of("putLive").path(&["streamer-bada"]).body(
        r#"{
  "liveTitle": "바다와 축구 보기",
  "categoryId": "football",
  "tags": ["축구", "응원"],
  "concurrentUserCount": 42
}"#,
    ),
    Sample::of("endLive").path(&["streamer-bada"]),
    Sample::of("reissueStreamKey").path(&["streamer-bada"]),
    Sample::of("reportChat")
        .path(&["streamer-haneul"])
        .body(
            r#"{
  "senderChannelId": "viewer-byeol",
  "message": "안녕하세요!"
}"#,
        )
        .keep(&[("/content/chatChannelId", "CHAT_CHANNEL_ID"), ("/content/messageTime", "1784385132345")]),
    Sample::of("reportDonation").path(&["streamer-haneul"]).body(
        r#"{
  "donationType": "CHAT",
  "payAmount": "10000",
  "donatorChannelId": "viewer-dal",
  "donationText": "항해를 응원합니다!"
}"#,
    ),
    Sample::of("reportSubscription").path(&["streamer-haneul"]).body(
        r#"{
  "subscriberChannelId": "viewer-mina",
  "tierNo": 1,
  "tierName": "팬",
  "month": 1
}"#,
    ),
    Sample::of("reportEvents").body(
        r#"{"kind": "chat", "channelId": "streamer-sol", "senderChannelId": "viewer-byeol", "message": "hello"}
{"kind": "donation", "channelId": "streamer-sol", "donationType": "CHAT", "payAmount": "1000"}
"#,
    ),
    // Drops.
    Sample::of("putCampaign").path(&["second-voyage"]).body(
        r#"{
  "campaignName": "두 번째 항해",
  "organizationId": "sandbox-games",
  "categoryId": "star-voyage",
  "rewards": [
    {"rewardId": "anchor", "rewardName": "은빛 닻", "watchMinutes": 60}
  ]
}"#,
    ),
    Sample::of("showCampaign").path(&["second-voyage"]),
    Sample::of("listCampaigns").query(&[("organizationId", "sandbox-games")]),
    Sample::of("disableCampaign").path(&["second-voyage"]),
    Sample::of("enableCampaign").path(&["second-voyage"]),
    Sample::of("deleteCampaign").path(&["second-voyage"]),
    Sample::of("reportWatching").body(
        r#"{
  "channelId": "streamer-haneul",
  "viewerChannelIds": ["viewer-nuri"],
  "minutes": 30
}"#,
    ),
    Sample::of("claimReward").body(
        r#"{
  "campaignId": "first-voyage",
  "rewardId": "lighthouse",
  "channelId": "viewer-nuri"
}"#,
    ),
    Sample::of("showDropsProgress").path(&["first-voyage", "viewer-nuri"]),
    // What a listener does with the message about the claim, and the lists of messages.
    Sample::of("fetchListenerAttempts")
        .body(
            r#"{
  "waitSeconds": 5,
  "size": 1
}"#,
        )
        .keep(&[("/content/data/0/messageId", "MESSAGE_ID")]),
    Sample::of("reportListenerAttempt").path(&["MESSAGE_ID"]).body(
        r#"{
  "number": 1,
  "status": 200,
  "durationMs": 12
}"#,
    ),
    Sample::of("getWebhookDeliveries").path(&["drops"]).query(&[("size", "2")]),
    Sample::of("getWebhookDelivery").path(&["drops", "MESSAGE_ID"]),
    Sample::of("resendWebhookDelivery").path(&["drops", "MESSAGE_ID"]),
    Sample::of("resendWebhookDeliveries").path(&["drops"]).body(
        r#"{
  "from": "2026-11-25T00:00:00Z",
  "to": "2026-11-26T00:00:00Z",
  "state": "DEAD"
}"#,
    ),
    // Sessions.
    Sample::of("listSessions").query(&[("clientId", "demo"), ("size", "2")]),
    Sample::of("showSession").path(&["SESSION_KEY"]),
    // What was made for the samples.
    Sample::of("deleteChannel").path(&["new-streamer"]),
    Sample::of("deleteApplication").path(&["my-bot"]),
    Sample::of("deleteOrganization").path(&["star-games"]),
];
