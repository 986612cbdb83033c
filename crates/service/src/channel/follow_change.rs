//! A follow or an unfollow that shares a transaction with others.

use domain::{ChannelId, Timestamp};

/// A follow or an unfollow.
pub(crate) struct FollowChange {
    /// The channel.
    pub channel: ChannelId,
    /// The follower.
    pub follower: ChannelId,
    /// Whether the follower follows or ends the follow.
    pub kind: FollowKind,
}

/// What a follower does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowKind {
    /// Follows, since a day that the caller gives, or since now.
    Follow {
        created: Option<Timestamp>,
    },
    Unfollow,
}
