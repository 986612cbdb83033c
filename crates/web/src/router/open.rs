//! The open API, `/open/v1`, and the sign-in, in the order of the pages of `docs/spec/`.

use crate::auth::{sign_in, tokens};
use crate::contract::Section;
use crate::contract::routes::{Routes, get, post};
use crate::open::{
    categories, channels, chat_settings, chats, drops, listener, lives, relations, restrictions, sessions,
    streams, subscriptions, users,
};

/// The open API and the sign-in.
pub(crate) fn open() -> Routes {
    authorization()
        .and(user_and_channel())
        .and(category_and_live())
        .and(chat())
        .and(session())
        .and(drops_and_webhook())
        .and(restriction())
}

/// Authorization and tokens: `docs/spec/authorization.md`.
fn authorization() -> Routes {
    Routes::of(&Section {
        tag: "Authorization and tokens",
        about: "The pages of the sign-in, and the tokens that it ends in.",
        korean: "인증과 토큰",
    })
    .route("/account-interlock", get(sign_in::show, sign_in::SHOW).post(sign_in::submit, sign_in::SUBMIT))
    .route("/auth/v1/token", post(tokens::issue, tokens::ISSUE))
    .route("/auth/v1/token/revoke", post(tokens::revoke, tokens::REVOKE))
    .route("/auth/v1/revoke", post(tokens::revoke, tokens::REVOKE_ALIAS))
}

/// User and channel: `docs/spec/channels.md`.
fn user_and_channel() -> Routes {
    Routes::of(&Section {
        tag: "User and channel",
        about: "The signed-in user, and channels with those who follow, subscribe to and manage them.",
        korean: "유저와 채널",
    })
    .route("/open/v1/users/me", get(users::me, users::ME))
    .route("/open/v1/channels", get(channels::query, channels::QUERY))
    .route("/open/v1/channels/streaming-roles", get(relations::streaming_roles, relations::STREAMING_ROLES))
    .route("/open/v1/channels/followers", get(relations::followers, relations::FOLLOWERS))
    .route("/open/v1/channels/subscribers", get(relations::subscribers, relations::SUBSCRIBERS))
}

/// Category and live: `docs/spec/lives.md`.
fn category_and_live() -> Routes {
    Routes::of(&Section {
        tag: "Category and live",
        about: "Categories, the live list, the broadcast setting and the stream key.",
        korean: "카테고리와 라이브",
    })
    .route("/open/v1/categories/search", get(categories::search, categories::SEARCH))
    .route("/open/v1/lives", get(lives::list, lives::LIST))
    .route("/open/v1/streams/key", get(streams::key, streams::KEY))
    .route(
        "/open/v1/lives/setting",
        get(lives::setting, lives::SETTING).patch(lives::change_setting, lives::CHANGE_SETTING),
    )
}

/// Chat: `docs/spec/chat.md`.
fn chat() -> Routes {
    Routes::of(&Section {
        tag: "Chat",
        about: "Chat messages, the notice and the settings of the chat.",
        korean: "채팅",
    })
    .route("/open/v1/chats/send", post(chats::send, chats::SEND))
    .route("/open/v1/chats/notice", post(chats::notice, chats::NOTICE))
    .route(
        "/open/v1/chats/settings",
        get(chat_settings::get, chat_settings::GET).put(chat_settings::put, chat_settings::PUT),
    )
    .route("/open/v1/chats/blind-message", post(chats::blind, chats::BLIND))
}

/// Sessions: `docs/spec/realtime.md`.
fn session() -> Routes {
    Routes::of(&Section {
        tag: "Sessions",
        about: "Addresses of sockets, sessions, and what they are subscribed to.",
        korean: "세션",
    })
    .route("/open/v1/sessions/auth/client", get(sessions::client_url, sessions::CLIENT_URL))
    .route("/open/v1/sessions/auth", get(sessions::user_url, sessions::USER_URL))
    .route("/open/v1/sessions/client", get(sessions::client_list, sessions::CLIENT_LIST))
    .route("/open/v1/sessions", get(sessions::user_list, sessions::USER_LIST))
    // `/open/v1/sessions/events/subscribe/…` and `/open/v1/sessions/events/unsubscribe/…`
    .routes(subscriptions::subscribe_routes())
    .routes(subscriptions::unsubscribe_routes())
}

/// Drops: `docs/spec/drops.md`.
fn drops_and_webhook() -> Routes {
    Routes::of(&Section {
        tag: "Drops",
        about: "Reward claims, and the listener that fetches webhook messages.",
        korean: "드롭스",
    })
    .route("/open/v1/drops/reward-claims", get(drops::query, drops::QUERY).put(drops::update, drops::UPDATE))
    .route("/open/v1/drops/webhook/listener", post(listener::begin, listener::BEGIN))
    .route("/open/v1/drops/webhook/listener/attempts", post(listener::fetch, listener::FETCH))
    .route("/open/v1/drops/webhook/listener/attempts/{messageId}", post(listener::report, listener::REPORT))
}

/// Restriction: `docs/spec/restriction.md`.
fn restriction() -> Routes {
    Routes::of(&Section {
        tag: "Restriction",
        about: "Activity restriction and temporary restriction of channels.",
        korean: "활동제한",
    })
    .route(
        "/open/v1/restrict-channels",
        post(restrictions::restrict, restrictions::RESTRICT)
            .delete(restrictions::release, restrictions::RELEASE)
            .get(restrictions::list, restrictions::LIST),
    )
    .route(
        "/open/v1/temporary-restrict-channels",
        post(restrictions::restrict_temporarily, restrictions::RESTRICT_TEMPORARILY)
            .delete(restrictions::release_temporarily, restrictions::RELEASE_TEMPORARILY),
    )
}
