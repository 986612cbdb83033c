//! Channels and the roles that people have in them (`docs/spec/channels.md`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChannelId, Invalid, Rule, Timestamp};

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

/// A person with a role in a channel (`docs/spec/channels.md#managers`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// That channel's name.
    pub name: String,
    /// The role.
    pub role: UserRole,
    /// When the role was given; for the owner, when the channel was created.
    pub created_at: Timestamp,
}

/// A follower of a channel (`docs/spec/channels.md#followers`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follower {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// That channel's name.
    pub name: String,
    /// When the person followed.
    pub created_at: Timestamp,
}

/// A paying subscriber of a channel (`docs/spec/channels.md#subscribers`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// That channel's name.
    pub name: String,
    /// Months subscribed.
    pub month: i64,
    /// 1 or 2.
    pub tier_no: i64,
    /// The name of the tier.
    pub tier_name: String,
    /// The day of the first subscription.
    pub created_at: Timestamp,
}

/// How subscribers are ordered (`docs/spec/channels.md#subscribers`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubscriberSort {
    /// The newest subscription first.
    #[default]
    Recent,
    /// The longest subscription first.
    Longer,
}

impl SubscriberSort {
    /// Reads the value of `sort`.
    ///
    /// # Errors
    /// `Invalid` for any but the two names.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        match name {
            "RECENT" => Ok(Self::Recent),
            "LONGER" => Ok(Self::Longer),
            _ => Err(Invalid::new("sort", Rule::OneOf(&["RECENT", "LONGER"]))),
        }
    }
}

/// What somebody is in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// The roles that a channel can give. The owner's is implied.
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

    /// The role of that name that a channel can give.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::GIVEN.into_iter().find(|role| role.name() == name)
    }

    /// Parses a role that a channel gives.
    ///
    /// # Errors
    /// `Invalid` for any other than [`Self::GIVEN`].
    pub fn parse_given(name: &str) -> Result<Self, Invalid> {
        const NAMES: [&str; 3] =
            [UserRole::GIVEN[0].name(), UserRole::GIVEN[1].name(), UserRole::GIVEN[2].name()];
        Self::from_name(name).ok_or(Invalid::new("userRole", Rule::OneOf(&NAMES)))
    }
}

/// `userRoleCode` of a CHAT event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The role of `sender` in the chat of `channel`, given the role from the channel.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_but_ownership_can_be_given() {
        for role in UserRole::GIVEN {
            assert_eq!(UserRole::parse_given(role.name()), Ok(role));
        }
        for name in ["STREAMING_CHANNEL_OWNER", "streaming_chat_manager", "", "OWNER"] {
            assert!(UserRole::parse_given(name).is_err(), "{name}");
        }
    }

    #[test]
    fn subscribers_have_two_orders() {
        assert_eq!(SubscriberSort::parse("RECENT"), Ok(SubscriberSort::Recent));
        assert_eq!(SubscriberSort::parse("LONGER"), Ok(SubscriberSort::Longer));
        for name in ["", "recent", "LONGEST", "RECENT "] {
            assert!(SubscriberSort::parse(name).is_err(), "{name}");
        }
    }
}
