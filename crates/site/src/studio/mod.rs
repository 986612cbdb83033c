//! `/studio`: the pages of a streamer. Each calls the operations of the REST API for the channel of the
//! studio, so rules and events are the same. Managers find the pages that their role opens at
//! `/studio/channels/{channelId}`.

mod at;
mod audience;
mod broadcast;
mod chat;
mod chat_row;
mod chat_settings;
mod desk;
mod frame;
mod managed;
mod managers;
mod nav;
mod overview;
mod people;
mod restrictions;
mod stream_key;

use axum::routing::{get, post};
use web::{Router, Web};

use crate::studio::broadcast::CATEGORY;
use crate::studio::chat::MESSAGES;
use crate::studio::frame::StudioPlace;
use crate::studio::managers::REMOVE;
use crate::studio::people::PEOPLE;
use crate::studio::restrictions::LIFT;
use crate::studio::stream_key::REPLACE;

const OVERVIEW: &str = StudioPlace::Overview.path();
const CHAT: &str = StudioPlace::Chat.path();
const BROADCAST: &str = StudioPlace::Broadcast.path();
const CHAT_SETTINGS: &str = StudioPlace::ChatSettings.path();
const RESTRICTIONS: &str = StudioPlace::Restrictions.path();
const MANAGERS: &str = StudioPlace::Managers.path();
const FOLLOWERS: &str = StudioPlace::Followers.path();
const SUBSCRIBERS: &str = StudioPlace::Subscribers.path();
const STREAM_KEY: &str = StudioPlace::StreamKey.path();
const CHANNELS: &str = StudioPlace::Channels.path();

/// The pages of a managed channel that a role can open.
const OVERVIEW_OF: &str = "/studio/channels/{channelId}";
const CHAT_OF: &str = "/studio/channels/{channelId}/chat";
const MESSAGES_OF: &str = "/studio/channels/{channelId}/chat/messages";
const BROADCAST_OF: &str = "/studio/channels/{channelId}/broadcast";
const CATEGORY_OF: &str = "/studio/channels/{channelId}/broadcast/category";
const CHAT_SETTINGS_OF: &str = "/studio/channels/{channelId}/chat-settings";
const RESTRICTIONS_OF: &str = "/studio/channels/{channelId}/restrictions";
const LIFT_OF: &str = "/studio/channels/{channelId}/restrictions/lift";
const FOLLOWERS_OF: &str = "/studio/channels/{channelId}/followers";
const SUBSCRIBERS_OF: &str = "/studio/channels/{channelId}/subscribers";

/// The paths of the pages, with their methods, for the metrics.
pub(crate) const PATHS: [(&str, &str); 36] = [
    (OVERVIEW, "GET"),
    (CHAT, "GET"),
    (CHAT, "POST"),
    (MESSAGES, "GET"),
    (BROADCAST, "GET"),
    (BROADCAST, "POST"),
    (CATEGORY, "POST"),
    (CHAT_SETTINGS, "GET"),
    (CHAT_SETTINGS, "POST"),
    (RESTRICTIONS, "GET"),
    (RESTRICTIONS, "POST"),
    (LIFT, "POST"),
    (MANAGERS, "GET"),
    (MANAGERS, "POST"),
    (REMOVE, "POST"),
    (PEOPLE, "GET"),
    (FOLLOWERS, "GET"),
    (SUBSCRIBERS, "GET"),
    (STREAM_KEY, "GET"),
    (STREAM_KEY, "POST"),
    (REPLACE, "POST"),
    (CHANNELS, "GET"),
    (OVERVIEW_OF, "GET"),
    (CHAT_OF, "GET"),
    (CHAT_OF, "POST"),
    (MESSAGES_OF, "GET"),
    (BROADCAST_OF, "GET"),
    (BROADCAST_OF, "POST"),
    (CATEGORY_OF, "POST"),
    (CHAT_SETTINGS_OF, "GET"),
    (CHAT_SETTINGS_OF, "POST"),
    (RESTRICTIONS_OF, "GET"),
    (RESTRICTIONS_OF, "POST"),
    (LIFT_OF, "POST"),
    (FOLLOWERS_OF, "GET"),
    (SUBSCRIBERS_OF, "GET"),
];

/// The routes of the pages.
pub(crate) fn routes() -> Router<Web> {
    Router::new()
        .route(OVERVIEW, get(overview::show))
        .route(CHAT, get(chat::show).post(chat::act))
        .route(MESSAGES, get(chat::messages))
        .route(BROADCAST, get(broadcast::show).post(broadcast::submit))
        .route(CATEGORY, post(broadcast::submit_category))
        .route(CHAT_SETTINGS, get(chat_settings::show).post(chat_settings::submit))
        .route(RESTRICTIONS, get(restrictions::show).post(restrictions::restrict))
        .route(LIFT, post(restrictions::lift))
        .route(MANAGERS, get(managers::show).post(managers::give))
        .route(REMOVE, post(managers::remove))
        .route(PEOPLE, get(people::suggest))
        .route(FOLLOWERS, get(audience::followers))
        .route(SUBSCRIBERS, get(audience::subscribers))
        .route(STREAM_KEY, get(stream_key::show).post(stream_key::reveal))
        .route(REPLACE, post(stream_key::replace))
        .route(CHANNELS, get(managed::show))
        .merge(routes_of_managed())
}

fn routes_of_managed() -> Router<Web> {
    Router::new()
        .route(OVERVIEW_OF, get(overview::show))
        .route(CHAT_OF, get(chat::show).post(chat::act))
        .route(MESSAGES_OF, get(chat::messages))
        .route(BROADCAST_OF, get(broadcast::show).post(broadcast::submit))
        .route(CATEGORY_OF, post(broadcast::submit_category))
        .route(CHAT_SETTINGS_OF, get(chat_settings::show).post(chat_settings::submit))
        .route(RESTRICTIONS_OF, get(restrictions::show).post(restrictions::restrict))
        .route(LIFT_OF, post(restrictions::lift))
        .route(FOLLOWERS_OF, get(audience::followers))
        .route(SUBSCRIBERS_OF, get(audience::subscribers))
}
