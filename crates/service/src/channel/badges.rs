//! The default badges of senders in a chat, for messages whose badges the platform does not report. Roles
//! and subscribers have badges. The service serves their pictures.

use domain::channel::UserRoleCode;
use domain::chat::Badge;

use crate::Service;

/// The path of a picture, appended to the base URL.
pub const STREAMER_PICTURE: &str = "/pictures/badge-streamer.png";
/// See [`STREAMER_PICTURE`].
pub const CHANNEL_MANAGER_PICTURE: &str = "/pictures/badge-channel-manager.png";
/// See [`STREAMER_PICTURE`].
pub const CHAT_MANAGER_PICTURE: &str = "/pictures/badge-chat-manager.png";
/// See [`STREAMER_PICTURE`].
pub const SUBSCRIBER_PICTURE: &str = "/pictures/badge-subscriber.png";

impl Service {
    /// Sets the base URL of the service's pictures. Before this call no channel has default badges.
    pub fn serve_pictures_at(&self, base_url: &str) {
        // A node has one base URL, so a second call changes nothing.
        let _ = self.0.pictures.set(base_url.into());
    }
}

/// The default badges of a sender. The badge of the role is first.
pub(crate) fn default_badges(base_url: Option<&str>, role: UserRoleCode, subscriber: bool) -> Vec<Badge> {
    let Some(base_url) = base_url else { return Vec::new() };
    let role = match role {
        UserRoleCode::Streamer => Some(STREAMER_PICTURE),
        UserRoleCode::StreamingChannelManager => Some(CHANNEL_MANAGER_PICTURE),
        UserRoleCode::StreamingChatManager => Some(CHAT_MANAGER_PICTURE),
        UserRoleCode::CommonUser => None,
    };
    let pictures = role.into_iter().chain(subscriber.then_some(SUBSCRIBER_PICTURE));
    pictures.map(|picture| Badge { image_url: [base_url, picture].concat() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_subscribers_have_badges() {
        let badges = |role, subscriber| {
            let badges = default_badges(Some("https://b"), role, subscriber);
            badges.into_iter().map(|badge| badge.image_url).collect::<Vec<_>>()
        };
        assert_eq!(badges(UserRoleCode::Streamer, false), ["https://b/pictures/badge-streamer.png"]);
        assert_eq!(
            badges(UserRoleCode::StreamingChatManager, true),
            ["https://b/pictures/badge-chat-manager.png", "https://b/pictures/badge-subscriber.png"]
        );
        assert_eq!(badges(UserRoleCode::CommonUser, true), ["https://b/pictures/badge-subscriber.png"]);
        assert!(badges(UserRoleCode::CommonUser, false).is_empty());
        assert!(default_badges(None, UserRoleCode::Streamer, true).is_empty());
    }
}
