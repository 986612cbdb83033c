//! The pictures that stand in where nobody gave one (`docs/spec/channels.md#pictures`). Drawn for Stagedoor,
//! and served on every listener but the bare one, at addresses that do not change.

use axum::Router;
use axum::routing::get;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE};

use crate::Web;

/// How long a picture may be kept: a day.
const CACHED: &str = "public, max-age=86400";

macro_rules! pictures {
    ($($(#[$doc:meta])* $name:ident = $file:literal;)+) => {
        /// A picture of the service's own.
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

        /// Where they are.
        pub(crate) const PATHS: &[(&str, &str)] = &[$((Picture::$name.path(), "GET"),)+];

        /// Their routes.
        pub(crate) fn paths() -> Router<Web> {
            Router::new()$(.route(Picture::$name.path(), get(async || {
                const PNG: &[u8] = include_bytes!(concat!("../pictures/", $file));
                let headers = [
                    (CONTENT_TYPE, "image/png"),
                    (CACHE_CONTROL, CACHED),
                    // Overlays draw them on canvases of pages from anywhere.
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
    /// The badge of a streamer in the own chat.
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
    fn badges_lead_to_pictures() {
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
