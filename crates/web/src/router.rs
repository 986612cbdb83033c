//! Every endpoint, in the order of the pages of `docs/spec/`. Each handler's own line says which scope and quota it takes.

use crate::auth::{sign_in, tokens};
use crate::caller::scope;
use crate::contract::routes::{Routes, delete, get, post, put};
use crate::open::{
    categories, channels, chat_settings, chats, drops, listener, lives, relations, restrictions, sessions,
    streams, users,
};
use crate::platform;

/// The open API and the sign-in. Each endpoint describes itself in the documents of [`contract`](crate::contract).
pub(crate) fn open() -> Routes {
    Routes::new()
        // Authorization and tokens: `docs/spec/authorization.md`
        .route("/account-interlock", get(sign_in::show).post(sign_in::submit))
        .route("/auth/v1/token", post(tokens::issue))
        .route("/auth/v1/token/revoke", post(tokens::revoke))
        .route("/auth/v1/revoke", post(tokens::revoke))
        // User and channel: `docs/spec/channels.md`
        .route("/open/v1/users/me", get(users::me))
        .route("/open/v1/channels", get(channels::query))
        .route("/open/v1/channels/streaming-roles", get(relations::streaming_roles))
        .route("/open/v1/channels/followers", get(relations::followers))
        .route("/open/v1/channels/subscribers", get(relations::subscribers))
        // Category and live: `docs/spec/lives.md`
        .route("/open/v1/categories/search", get(categories::search))
        .route("/open/v1/lives", get(lives::list))
        .route("/open/v1/streams/key", get(streams::key))
        .route("/open/v1/lives/setting", get(lives::setting).patch(lives::change_setting))
        // Chat: `docs/spec/chat.md`
        .route("/open/v1/chats/send", post(chats::send))
        .route("/open/v1/chats/notice", post(chats::notice))
        .route("/open/v1/chats/settings", get(chat_settings::get).put(chat_settings::put))
        .route("/open/v1/chats/blind-message", post(chats::blind))
        // Sessions: `docs/spec/realtime.md`
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
        // Drops: `docs/spec/drops.md`
        .route("/open/v1/drops/reward-claims", get(drops::query).put(drops::update))
        .route("/open/v1/drops/webhook/listener", post(listener::begin))
        .route("/open/v1/drops/webhook/listener/attempts", post(listener::fetch))
        .route("/open/v1/drops/webhook/listener/attempts/{messageId}", post(listener::report))
        // Restriction: `docs/spec/restriction.md`
        .route(
            "/open/v1/restrict-channels",
            post(restrictions::restrict).delete(restrictions::release).get(restrictions::list),
        )
        .route(
            "/open/v1/temporary-restrict-channels",
            post(restrictions::restrict_temporarily).delete(restrictions::release_temporarily),
        )
}

/// The platform API.
pub(crate) fn platform() -> Routes {
    Routes::new()
        .route(
            "/platform/v1/organizations/{organizationId}",
            put(platform::applications::put_organization).delete(platform::organizations::delete),
        )
        .route("/platform/v1/organizations", get(platform::organizations::list))
        .route(
            "/platform/v1/organizations/{organizationId}/disabled",
            put(platform::organizations::disable).delete(platform::organizations::enable),
        )
        .route(
            "/platform/v1/applications/{clientId}",
            put(platform::applications::put)
                .get(platform::applications::show)
                .delete(platform::applications::delete),
        )
        .route("/platform/v1/applications", get(platform::applications::list_all))
        .route(
            "/platform/v1/applications/{clientId}/disabled",
            put(platform::applications::disable).delete(platform::applications::enable),
        )
        .route(
            "/platform/v1/applications/{clientId}/secrets",
            post(platform::secrets::add).get(platform::secrets::list),
        )
        .route(
            "/platform/v1/applications/{clientId}/secrets/{secretId}",
            put(platform::secrets::put).delete(platform::secrets::delete),
        )
        .route("/platform/v1/applications/{clientId}/restore", post(platform::applications::restore))
        .route(
            "/platform/v1/applications/{clientId}/webhook",
            put(platform::webhooks::put).get(platform::webhooks::show).delete(platform::webhooks::delete),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/secrets",
            post(platform::webhooks::add_secret).get(platform::webhooks::secrets),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/secrets/{secretId}",
            delete(platform::webhooks::delete_secret),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/secrets/{secretId}/activate",
            post(platform::webhooks::activate_secret),
        )
        .route("/platform/v1/applications/{clientId}/webhook/deliveries", get(platform::webhooks::deliveries))
        .route(
            "/platform/v1/applications/{clientId}/webhook/deliveries/{messageId}",
            get(platform::webhooks::delivery),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/deliveries/{messageId}/resend",
            post(platform::webhooks::resend),
        )
        .route("/platform/v1/applications/{clientId}/webhook/resend", post(platform::webhooks::resend_window))
        .route("/platform/v1/consents/{clientId}/{channelId}", delete(platform::consents::withdraw))
        .route("/platform/v1/sessions", get(platform::sessions::list))
        .route(
            "/platform/v1/sessions/{sessionKey}",
            get(platform::sessions::show).delete(platform::sessions::evict),
        )
        .route(
            "/platform/v1/channels/{channelId}",
            put(platform::channels::put).get(platform::channels::show).delete(platform::channels::delete),
        )
        .route("/platform/v1/channels", get(platform::channels::list))
        .route(
            "/platform/v1/channels/{channelId}/bar",
            put(platform::channels::bar).delete(platform::channels::unbar),
        )
        .route("/platform/v1/channels/{channelId}/browser-sessions", delete(platform::channels::sign_out))
        .route(
            "/platform/v1/channels/{channelId}/managers/{managerChannelId}",
            put(platform::relations::put_manager).delete(platform::relations::delete_manager),
        )
        .route(
            "/platform/v1/channels/{channelId}/followers/{followerChannelId}",
            put(platform::relations::put_follower).delete(platform::relations::delete_follower),
        )
        .route("/platform/v1/channels/{channelId}/chats", post(platform::channel_events::chat))
        .route("/platform/v1/channels/{channelId}/donations", post(platform::channel_events::donation))
        .route(
            "/platform/v1/channels/{channelId}/subscriptions",
            post(platform::channel_events::subscription),
        )
        .route(
            "/platform/v1/channels/{channelId}/live",
            put(platform::lives::put).delete(platform::lives::end),
        )
        .route("/platform/v1/channels/{channelId}/stream-key", post(platform::lives::reissue_stream_key))
        .route("/platform/v1/categories/{categoryId}", put(platform::categories::put))
        .route(
            "/platform/v1/drops/campaigns/{campaignId}",
            put(platform::drops::put_campaign)
                .get(platform::drops::show_campaign)
                .delete(platform::organizations::delete_campaign),
        )
        .route("/platform/v1/drops/campaigns", get(platform::organizations::list_campaigns))
        .route(
            "/platform/v1/drops/campaigns/{campaignId}/disabled",
            put(platform::organizations::disable_campaign).delete(platform::organizations::enable_campaign),
        )
        .route(
            "/platform/v1/drops/campaigns/{campaignId}/progress/{channelId}",
            get(platform::watching::progress),
        )
        .route("/platform/v1/drops/watching", post(platform::watching::report))
        .route("/platform/v1/drops/claims", post(platform::drops::claim))
        .route("/platform/v1/events", post(platform::events::report))
}
