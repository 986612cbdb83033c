//! Every endpoint, in the order of spec section 4. Each handler's own line says which scope and quota it takes.

use axum::Router;
use axum::routing::{delete, get, patch, post, put};

use crate::auth::{sign_in, tokens};
use crate::caller::scope;
use crate::open::{categories, channels, chats, lives, sessions, streams, users};
use crate::platform;
use crate::{Web, finish};

/// All of HTTP but the sockets: an unknown path, a wrong method, a panic and a refusal all leave here in the envelope.
pub fn router(web: Web) -> Router {
    let routes = Router::new()
        // 4.1 Authorization and tokens
        .route("/account-interlock", get(sign_in::show).post(sign_in::submit))
        .route("/auth/v1/token", post(tokens::issue))
        .route("/auth/v1/token/revoke", post(tokens::revoke))
        .route("/auth/v1/revoke", post(tokens::revoke))
        // 4.2 User and channel
        .route("/open/v1/users/me", get(users::me))
        .route("/open/v1/channels", get(channels::query))
        // 4.3 Category and live
        .route("/open/v1/categories/search", get(categories::search))
        .route("/open/v1/lives", get(lives::list))
        .route("/open/v1/streams/key", get(streams::key))
        .route("/open/v1/lives/setting", get(lives::setting))
        .route("/open/v1/lives/setting", patch(lives::change_setting))
        // 4.4 Chat
        .route("/open/v1/chats/send", post(chats::send))
        // 4.5 Sessions
        .route("/open/v1/sessions/auth/client", get(sessions::client_url))
        .route("/open/v1/sessions/auth", get(sessions::user_url))
        .route("/open/v1/sessions/client", get(sessions::client_list))
        .route("/open/v1/sessions", get(sessions::user_list))
        .route("/open/v1/sessions/events/subscribe/chat", post(sessions::subscribe::<scope::ChatRead>))
        .route(
            "/open/v1/sessions/events/subscribe/donation",
            post(sessions::subscribe::<scope::DonationRead>),
        )
        .route(
            "/open/v1/sessions/events/subscribe/subscription",
            post(sessions::subscribe::<scope::SubscriptionRead>),
        )
        .route("/open/v1/sessions/events/unsubscribe/chat", post(sessions::unsubscribe::<scope::ChatRead>))
        .route(
            "/open/v1/sessions/events/unsubscribe/donation",
            post(sessions::unsubscribe::<scope::DonationRead>),
        )
        .route(
            "/open/v1/sessions/events/unsubscribe/subscription",
            post(sessions::unsubscribe::<scope::SubscriptionRead>),
        )
        // The platform API
        .route("/platform/v1/organizations/{organizationId}", put(platform::applications::put_organization))
        .route("/platform/v1/applications/{clientId}", put(platform::applications::put))
        .route("/platform/v1/applications/{clientId}/secrets", post(platform::applications::add_secret))
        .route("/platform/v1/channels/{channelId}", put(platform::channels::put))
        .route("/platform/v1/channels/{channelId}/chats", post(platform::happenings::chat))
        .route("/platform/v1/channels/{channelId}/donations", post(platform::happenings::donation))
        .route("/platform/v1/channels/{channelId}/subscriptions", post(platform::happenings::subscription))
        .route("/platform/v1/channels/{channelId}/live", put(platform::lives::put))
        .route("/platform/v1/channels/{channelId}/live", delete(platform::lives::end))
        .route("/platform/v1/channels/{channelId}/stream-key", post(platform::lives::reissue_stream_key))
        .route("/platform/v1/categories/{categoryId}", put(platform::categories::put));
    finish::around(routes, web)
}
