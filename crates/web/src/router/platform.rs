//! The platform API, `/platform/v1`.

use crate::contract::Section;
use crate::contract::routes::{Routes, delete, get, post, put};
use crate::platform::{
    applications, audit_log, categories, channel_events, channels, consents, drops, events, keys, lives,
    load, members, operators, organizations, relations, review_requests, secrets, sessions, watching,
    webhooks,
};

const SECTION: Section = Section {
    tag: "Platform API",
    about: "What the platform itself reports and decides, with the operator's key.",
    korean: "플랫폼 API",
};

/// The platform API.
pub(crate) fn platform() -> Routes {
    key().and(application()).and(webhook()).and(session()).and(channel()).and(drops_and_bulk())
}

/// Operator keys, operators and the audit log.
fn key() -> Routes {
    Routes::of(&SECTION)
        .route("/platform/v1/keys", post(keys::add, keys::ADD).get(keys::list, keys::LIST))
        .route("/platform/v1/keys/{keyId}", delete(keys::revoke, keys::REVOKE))
        .route("/platform/v1/operators", get(operators::list, operators::LIST))
        .route("/platform/v1/audit-log", get(audit_log::list, audit_log::LIST))
}

/// Organizations and applications.
fn application() -> Routes {
    Routes::of(&SECTION)
        .route(
            "/platform/v1/organizations/{organizationId}",
            put(applications::put_organization, applications::PUT_ORGANIZATION)
                .delete(organizations::delete, organizations::DELETE),
        )
        .route("/platform/v1/organizations", get(organizations::list, organizations::LIST))
        .route(
            "/platform/v1/organizations/{organizationId}/disabled",
            put(organizations::disable, organizations::DISABLE)
                .delete(organizations::enable, organizations::ENABLE),
        )
        .route("/platform/v1/organizations/{organizationId}/members", get(members::list, members::LIST))
        .route(
            "/platform/v1/organizations/{organizationId}/members/{channelId}",
            put(members::put, members::PUT).delete(members::delete, members::DELETE),
        )
        .route(
            "/platform/v1/review-requests",
            post(review_requests::add, review_requests::ADD)
                .get(review_requests::list, review_requests::LIST),
        )
        .route(
            "/platform/v1/review-requests/{requestId}",
            put(review_requests::decide, review_requests::DECIDE),
        )
        .route(
            "/platform/v1/applications/{clientId}",
            put(applications::put, applications::PUT)
                .get(applications::show, applications::SHOW)
                .delete(applications::delete, applications::DELETE),
        )
        .route("/platform/v1/applications", get(applications::list_all, applications::LIST_ALL))
        .route(
            "/platform/v1/applications/{clientId}/disabled",
            put(applications::disable, applications::DISABLE)
                .delete(applications::enable, applications::ENABLE),
        )
        .route(
            "/platform/v1/applications/{clientId}/quota",
            put(load::put_quota, load::PUT_QUOTA).delete(load::delete_quota, load::DELETE_QUOTA),
        )
        .route("/platform/v1/application-load", get(load::list, load::LIST))
        .route(
            "/platform/v1/applications/{clientId}/secrets",
            post(secrets::add, secrets::ADD)
                .get(secrets::list, secrets::LIST)
                .delete(secrets::delete_all, secrets::DELETE_ALL),
        )
        .route(
            "/platform/v1/applications/{clientId}/tokens",
            get(secrets::affected, secrets::AFFECTED).delete(secrets::end_tokens, secrets::END_TOKENS),
        )
        .route(
            "/platform/v1/applications/{clientId}/secrets/{secretId}",
            put(secrets::put, secrets::PUT).delete(secrets::delete, secrets::DELETE),
        )
        .route(
            "/platform/v1/applications/{clientId}/restore",
            post(applications::restore, applications::RESTORE),
        )
}

/// Webhooks of applications.
fn webhook() -> Routes {
    Routes::of(&SECTION)
        .route(
            "/platform/v1/applications/{clientId}/webhook",
            put(webhooks::put, webhooks::PUT)
                .get(webhooks::show, webhooks::SHOW)
                .delete(webhooks::delete, webhooks::DELETE),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/secrets",
            post(webhooks::add_secret, webhooks::ADD_SECRET).get(webhooks::secrets, webhooks::SECRETS),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/secrets/{secretId}",
            delete(webhooks::delete_secret, webhooks::DELETE_SECRET),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/secrets/{secretId}/activate",
            post(webhooks::activate_secret, webhooks::ACTIVATE_SECRET),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/deliveries",
            get(webhooks::deliveries, webhooks::DELIVERIES),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/deliveries/{messageId}",
            get(webhooks::delivery, webhooks::DELIVERY),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/deliveries/{messageId}/resend",
            post(webhooks::resend, webhooks::RESEND),
        )
        .route(
            "/platform/v1/applications/{clientId}/webhook/resend",
            post(webhooks::resend_window, webhooks::RESEND_WINDOW),
        )
}

/// Consents and sessions.
fn session() -> Routes {
    Routes::of(&SECTION)
        .route("/platform/v1/consents/{clientId}/{channelId}", delete(consents::withdraw, consents::WITHDRAW))
        .route("/platform/v1/sessions", get(sessions::list, sessions::LIST))
        .route(
            "/platform/v1/sessions/{sessionKey}",
            get(sessions::show, sessions::SHOW).delete(sessions::evict, sessions::EVICT),
        )
}

/// Channels, and the events on them.
fn channel() -> Routes {
    Routes::of(&SECTION)
        .route(
            "/platform/v1/channels/{channelId}",
            put(channels::put, channels::PUT)
                .get(channels::show, channels::SHOW)
                .delete(channels::delete, channels::DELETE),
        )
        .route("/platform/v1/channels", get(channels::list, channels::LIST))
        .route(
            "/platform/v1/channels/{channelId}/bar",
            put(channels::bar, channels::BAR).delete(channels::unbar, channels::UNBAR),
        )
        .route(
            "/platform/v1/channels/{channelId}/browser-sessions",
            delete(channels::sign_out, channels::SIGN_OUT),
        )
        .route(
            "/platform/v1/channels/{channelId}/password-reset",
            post(channels::reset_password, channels::RESET_PASSWORD),
        )
        .route(
            "/platform/v1/channels/{channelId}/operator-role",
            put(operators::put, operators::PUT).delete(operators::delete, operators::DELETE),
        )
        .route(
            "/platform/v1/channels/{channelId}/two-factor",
            delete(channels::remove_two_factor, channels::REMOVE_TWO_FACTOR),
        )
        .route(
            "/platform/v1/channels/{channelId}/managers/{managerChannelId}",
            put(relations::put_manager, relations::PUT_MANAGER)
                .delete(relations::delete_manager, relations::DELETE_MANAGER),
        )
        .route(
            "/platform/v1/channels/{channelId}/followers/{followerChannelId}",
            put(relations::put_follower, relations::PUT_FOLLOWER)
                .delete(relations::delete_follower, relations::DELETE_FOLLOWER),
        )
        .route("/platform/v1/channels/{channelId}/chats", post(channel_events::chat, channel_events::CHAT))
        .route(
            "/platform/v1/channels/{channelId}/donations",
            post(channel_events::donation, channel_events::DONATION),
        )
        .route(
            "/platform/v1/channels/{channelId}/subscriptions",
            post(channel_events::subscription, channel_events::SUBSCRIPTION),
        )
        .route(
            "/platform/v1/channels/{channelId}/live",
            put(lives::put, lives::PUT).delete(lives::end, lives::END),
        )
        .route(
            "/platform/v1/channels/{channelId}/stream-key",
            post(lives::reissue_stream_key, lives::REISSUE_STREAM_KEY),
        )
}

/// Categories, drops, and events in bulk.
fn drops_and_bulk() -> Routes {
    Routes::of(&SECTION)
        .route("/platform/v1/categories/{categoryId}", put(categories::put, categories::PUT))
        .route(
            "/platform/v1/drops/campaigns/{campaignId}",
            put(drops::put_campaign, drops::PUT_CAMPAIGN)
                .get(drops::show_campaign, drops::SHOW_CAMPAIGN)
                .delete(organizations::delete_campaign, organizations::DELETE_CAMPAIGN),
        )
        .route(
            "/platform/v1/drops/campaigns",
            get(organizations::list_campaigns, organizations::LIST_CAMPAIGNS),
        )
        .route(
            "/platform/v1/drops/campaigns/{campaignId}/disabled",
            put(organizations::disable_campaign, organizations::DISABLE_CAMPAIGN)
                .delete(organizations::enable_campaign, organizations::ENABLE_CAMPAIGN),
        )
        .route(
            "/platform/v1/drops/campaigns/{campaignId}/progress/{channelId}",
            get(watching::progress, watching::PROGRESS),
        )
        .route("/platform/v1/drops/watching", post(watching::report, watching::REPORT))
        .route("/platform/v1/drops/claims", post(drops::claim, drops::CLAIM))
        .route("/platform/v1/events", post(events::report, events::REPORT))
}
