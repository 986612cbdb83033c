//! Channels and the roles that people have in them (spec section 2).

use serde::Serialize;

use crate::ChannelId;

/// A channel, as the channel query answers it.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its id, which is its owner's id too.
    pub channel_id: ChannelId,
    /// Its name.
    pub name: String,
    /// Its picture.
    pub image_url: Option<String>,
    /// How many channels follow it.
    pub follower_count: i64,
    /// Whether it carries the platform's mark.
    pub verified_mark: bool,
}

/// What somebody is in a channel (spec section 2, "Channel manager").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UserRole {
    /// The streamer.
    StreamingChannelOwner,
    /// May do everything for the streamer.
    StreamingChannelManager,
    /// Looks after the chat.
    StreamingChatManager,
    /// Looks after the money.
    StreamingSettlementManager,
}

impl UserRole {
    /// The roles that a channel can give away; the owner is implied.
    pub const GIVEN: [Self; 3] =
        [Self::StreamingChannelManager, Self::StreamingChatManager, Self::StreamingSettlementManager];

    /// The name on the wire and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StreamingChannelOwner => "STREAMING_CHANNEL_OWNER",
            Self::StreamingChannelManager => "STREAMING_CHANNEL_MANAGER",
            Self::StreamingChatManager => "STREAMING_CHAT_MANAGER",
            Self::StreamingSettlementManager => "STREAMING_SETTLEMENT_MANAGER",
        }
    }

    /// The given-away role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::GIVEN.into_iter().find(|role| role.name() == name)
    }
}

/// `userRoleCode` of a CHAT event (spec section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRoleCode {
    /// The channel's owner.
    Streamer,
    /// Anybody without a role in the chat.
    CommonUser,
    /// A channel manager.
    StreamingChannelManager,
    /// A chat manager.
    StreamingChatManager,
}

impl UserRoleCode {
    /// What `sender` is in the chat of `channel`, given the role that the channel gave them.
    pub fn of(channel: &ChannelId, sender: &ChannelId, role: Option<UserRole>) -> Self {
        match role {
            _ if channel == sender => Self::Streamer,
            Some(UserRole::StreamingChannelOwner) => Self::Streamer,
            Some(UserRole::StreamingChannelManager) => Self::StreamingChannelManager,
            Some(UserRole::StreamingChatManager) => Self::StreamingChatManager,
            Some(UserRole::StreamingSettlementManager) | None => Self::CommonUser,
        }
    }
}
