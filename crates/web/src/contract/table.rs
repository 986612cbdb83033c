//! What no type says about an operation: its name and what it is for, in both languages, and the statuses that only its
//! function of the service refuses with. One row for each route, in the order of the router; a test compares the two.

use super::operation::Row;
use super::platform_table;

/// Operations that belong together.
pub struct Section {
    /// The tag in the document.
    pub tag: &'static str,
    /// What they are for.
    pub about: &'static str,
    /// The heading in Korean.
    pub korean: &'static str,
    /// Its operations.
    pub rows: &'static [Row],
}

/// All of them.
pub const SECTIONS: &[Section] = &[
    Section {
        tag: "Authorization and tokens",
        about: "The pages of the sign-in, and the tokens that it ends in.",
        korean: "인증과 토큰",
        rows: &[
            (
                "GET /account-interlock",
                "showSignIn",
                "Show the page that signs in or asks for consent",
                "로그인 또는 동의 페이지 표시",
                &[],
            ),
            (
                "POST /account-interlock",
                "submitSignIn",
                "Sign in, allow or deny",
                "로그인, 허용 또는 거부",
                &[],
            ),
            (
                "POST /auth/v1/token",
                "issueToken",
                "Exchange a code, or refresh a token",
                "토큰 발급 및 갱신",
                &[],
            ),
            (
                "POST /auth/v1/token/revoke",
                "revokeToken",
                "Revoke every token of the client and user",
                "토큰 삭제",
                &[],
            ),
            ("POST /auth/v1/revoke", "revokeTokenAlias", "Another path of the same", "토큰 삭제(별칭)", &[]),
        ],
    },
    Section {
        tag: "User and channel",
        about: "The signed-in user, and channels with those who follow, subscribe to and manage them.",
        korean: "유저와 채널",
        rows: &[
            ("GET /open/v1/users/me", "getMe", "The signed-in user", "로그인한 유저 조회", &[404]),
            ("GET /open/v1/channels", "getChannels", "Channels by their ids", "채널 정보 조회", &[]),
            (
                "GET /open/v1/channels/streaming-roles",
                "getStreamingRoles",
                "Who helps to run the channel, the owner first",
                "채널 관리자 조회",
                &[],
            ),
            (
                "GET /open/v1/channels/followers",
                "getFollowers",
                "The channel's followers, newest first",
                "채널 팔로워 조회",
                &[],
            ),
            (
                "GET /open/v1/channels/subscribers",
                "getSubscribers",
                "The channel's subscribers",
                "채널 구독자 조회",
                &[],
            ),
        ],
    },
    Section {
        tag: "Category and live",
        about: "Categories, the live list, the broadcast setting and the stream key.",
        korean: "카테고리와 라이브",
        rows: &[
            (
                "GET /open/v1/categories/search",
                "searchCategories",
                "Categories by a part of their name",
                "카테고리 검색",
                &[],
            ),
            ("GET /open/v1/lives", "getLives", "Who is on air, most viewers first", "라이브 목록 조회", &[]),
            ("GET /open/v1/streams/key", "getStreamKey", "The stream key", "스트림키 조회", &[404]),
            (
                "GET /open/v1/lives/setting",
                "getBroadcastSetting",
                "The broadcast setting",
                "방송 설정 조회",
                &[404],
            ),
            (
                "PATCH /open/v1/lives/setting",
                "changeBroadcastSetting",
                "Change what is given of the broadcast setting",
                "방송 설정 변경",
                &[404],
            ),
        ],
    },
    Section {
        tag: "Chat",
        about: "Chat messages, the notice and the settings of the chat.",
        korean: "채팅",
        rows: &[
            (
                "POST /open/v1/chats/send",
                "sendChat",
                "Post a message to the token owner's channel",
                "채팅 메시지 전송",
                &[404],
            ),
            (
                "POST /open/v1/chats/notice",
                "putNotice",
                "Pin a new text, or a message of the chat",
                "채팅 공지 등록",
                &[404],
            ),
            (
                "GET /open/v1/chats/settings",
                "getChatSettings",
                "The chat's settings",
                "채팅 설정 조회",
                &[404],
            ),
            (
                "PUT /open/v1/chats/settings",
                "changeChatSettings",
                "Change the settings that are given",
                "채팅 설정 변경",
                &[404],
            ),
            (
                "POST /open/v1/chats/blind-message",
                "hideMessage",
                "Hide a message of the caller's own chat",
                "메시지 숨기기",
                &[404],
            ),
        ],
    },
    Section {
        tag: "Sessions",
        about: "Addresses of sockets, sessions, and what they are subscribed to.",
        korean: "세션",
        rows: &[
            (
                "GET /open/v1/sessions/auth/client",
                "createClientSession",
                "An address for a socket of the application",
                "세션 생성(클라이언트)",
                &[],
            ),
            (
                "GET /open/v1/sessions/auth",
                "createUserSession",
                "An address for a socket of the user",
                "세션 생성(유저)",
                &[],
            ),
            (
                "GET /open/v1/sessions/client",
                "getClientSessions",
                "The application's sessions",
                "세션 목록 조회(클라이언트)",
                &[],
            ),
            ("GET /open/v1/sessions", "getUserSessions", "The user's sessions", "세션 목록 조회(유저)", &[]),
            (
                "POST /open/v1/sessions/events/subscribe/chat",
                "subscribeChat",
                "Subscribe to chat messages",
                "채팅 이벤트 구독",
                &[404],
            ),
            (
                "POST /open/v1/sessions/events/subscribe/donation",
                "subscribeDonation",
                "Subscribe to donations",
                "후원 이벤트 구독",
                &[404],
            ),
            (
                "POST /open/v1/sessions/events/subscribe/subscription",
                "subscribeSubscription",
                "Subscribe to paid subscriptions",
                "구독 이벤트 구독",
                &[404],
            ),
            (
                "POST /open/v1/sessions/events/unsubscribe/chat",
                "unsubscribeChat",
                "End a subscription to chat messages",
                "채팅 이벤트 구독 취소",
                &[404],
            ),
            (
                "POST /open/v1/sessions/events/unsubscribe/donation",
                "unsubscribeDonation",
                "End a subscription to donations",
                "후원 이벤트 구독 취소",
                &[404],
            ),
            (
                "POST /open/v1/sessions/events/unsubscribe/subscription",
                "unsubscribeSubscription",
                "End a subscription to paid subscriptions",
                "구독 이벤트 구독 취소",
                &[404],
            ),
        ],
    },
    Section {
        tag: "Drops",
        about: "Reward claims, and the listener that fetches webhook messages.",
        korean: "드롭스",
        rows: &[
            (
                "GET /open/v1/drops/reward-claims",
                "getRewardClaims",
                "Reward claims of the organization, newest first",
                "드롭스 리워드 지급 요청 조회",
                &[],
            ),
            (
                "PUT /open/v1/drops/reward-claims",
                "updateRewardClaims",
                "Say which rewards were given",
                "드롭스 리워드 지급 상태 변경",
                &[],
            ),
            (
                "POST /open/v1/drops/webhook/listener",
                "beginListening",
                "Have a listener fetch the messages to the webhook",
                "웹훅 리스너 시작",
                &[400, 404],
            ),
            (
                "POST /open/v1/drops/webhook/listener/attempts",
                "fetchListenerAttempts",
                "Attempts for the listener to make, waited for",
                "웹훅 리스너 전송 조회",
                &[404],
            ),
            (
                "POST /open/v1/drops/webhook/listener/attempts/{messageId}",
                "reportListenerAttempt",
                "What came of an attempt of the listener",
                "웹훅 리스너 전송 결과 등록",
                &[404],
            ),
        ],
    },
    Section {
        tag: "Restriction",
        about: "Activity restriction and temporary restriction of channels.",
        korean: "활동제한",
        rows: &[
            (
                "POST /open/v1/restrict-channels",
                "restrict",
                "Restrict a channel until it is released",
                "활동제한 추가",
                &[],
            ),
            (
                "DELETE /open/v1/restrict-channels",
                "release",
                "Release a restricted channel",
                "활동제한 해제",
                &[],
            ),
            (
                "GET /open/v1/restrict-channels",
                "getRestricted",
                "Restricted channels, newest first",
                "활동제한 목록 조회",
                &[],
            ),
            (
                "POST /open/v1/temporary-restrict-channels",
                "restrictTemporarily",
                "Restrict a channel in the chat for a minute",
                "임시제한 추가",
                &[],
            ),
            (
                "DELETE /open/v1/temporary-restrict-channels",
                "releaseTemporarily",
                "Release a temporarily restricted channel",
                "임시제한 해제",
                &[],
            ),
        ],
    },
    Section {
        tag: "Platform API",
        about: "What the platform itself reports and decides, with the operator's key.",
        korean: "플랫폼 API",
        rows: platform_table::ROWS,
    },
];
