//! `/studio`: the pages of a streamer. Each calls the operations of the REST API for the channel of the
//! person who is signed in, so rules and events are the same. No page names a channel in its address.

mod audience;
mod broadcast;
mod chat;
mod chat_row;
mod chat_settings;
mod frame;
mod managers;
mod overview;
mod restrictions;
mod stream_key;

use axum::routing::{get, post};
use web::{Router, Web};

use crate::studio::broadcast::CATEGORY;
use crate::studio::chat::MESSAGES;
use crate::studio::frame::StudioPlace;
use crate::studio::managers::REMOVE;
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

/// The paths of the pages, with their methods, for the metrics.
pub(crate) const PATHS: [(&str, &str); 20] = [
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
    (FOLLOWERS, "GET"),
    (SUBSCRIBERS, "GET"),
    (STREAM_KEY, "GET"),
    (STREAM_KEY, "POST"),
    (REPLACE, "POST"),
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
        .route(FOLLOWERS, get(audience::followers))
        .route(SUBSCRIBERS, get(audience::subscribers))
        .route(STREAM_KEY, get(stream_key::show).post(stream_key::reveal))
        .route(REPLACE, post(stream_key::replace))
}
