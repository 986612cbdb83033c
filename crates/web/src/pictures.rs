//! The default pictures of channels, categories and badges (`docs/spec/channels.md#pictures`). They were
//! drawn for Stagedoor. Every listener except the health listener serves them, at constant addresses.

use axum::Router;
use axum::routing::get;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE};

use crate::Web;

/// How long a cache may keep a picture: a day.
const CACHED: &str = "public, max-age=86400";

macro_rules! pictures {
    ($($(#[$doc:meta])* $name:ident = $file:literal;)+) => {
        /// A default picture.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Picture {
            $($(#[$doc])* $name,)+
        }

        impl Picture {
            const fn path(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("/pictures/", $file),)+
                }
            }
        }

        /// The paths.
        pub(crate) const PATHS: &[(&str, &str)] = &[$((Picture::$name.path(), "GET"),)+];

        /// The routes.
        pub(crate) fn paths() -> Router<Web> {
            Router::new()$(.route(Picture::$name.path(), get(async || {
                const PNG: &[u8] = include_bytes!(concat!("../pictures/", $file));
                let headers = [
                    (CONTENT_TYPE, "image/png"),
                    (CACHE_CONTROL, CACHED),
                    // Overlays of any origin draw them on canvases.
                    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
                ];
                (headers, PNG)
            })))+
        }
    };
}

pictures! {
    /// A channel that has no picture.
    Channel = "channel.png";
    /// A category that has no poster.
    Category = "category.png";
    /// The badge of a streamer in the streamer's own chat.
    BadgeStreamer = "badge-streamer.png";
    /// The badge of a channel manager.
    BadgeChannelManager = "badge-channel-manager.png";
    /// The badge of a chat manager.
    BadgeChatManager = "badge-chat-manager.png";
    /// The badge of a subscriber.
    BadgeSubscriber = "badge-subscriber.png";
}

impl Web {
    /// The address of a picture.
    pub(crate) fn picture(&self, picture: Picture) -> String {
        [&self.config().base_url, picture.path()].concat()
    }
}

#[cfg(test)]
mod tests {
    use service::badges::{
        CHANNEL_MANAGER_PICTURE, CHAT_MANAGER_PICTURE, STREAMER_PICTURE, SUBSCRIBER_PICTURE,
    };

    use super::*;

    #[test]
    fn every_badge_has_a_picture() {
        for (picture, path) in [
            (Picture::BadgeStreamer, STREAMER_PICTURE),
            (Picture::BadgeChannelManager, CHANNEL_MANAGER_PICTURE),
            (Picture::BadgeChatManager, CHAT_MANAGER_PICTURE),
            (Picture::BadgeSubscriber, SUBSCRIBER_PICTURE),
        ] {
            assert_eq!(picture.path(), path);
        }
    }
}
