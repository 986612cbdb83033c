//! The entries of a batch.

use domain::channel::UserRole;
use domain::live::Category;
use domain::{ChannelId, Timestamp};

use crate::channel::channels::{CheckedChannel, LoginCredentials};
use crate::chat::chats::{ChatMessage, Post, Posting};
use crate::drops::RewardRequest;
use crate::live::lives::LiveReport;
use crate::live::watching::WatchingReport;
use crate::platform::channel_events::{Donation, PaidSubscription};
use crate::platform::idempotency::IdempotencyKey;
use crate::{ChannelRecord, Error};

/// Maximum number of entries in a batch. A larger batch would hardly reduce the share of an entry in the
/// sync, and it would hold its locks longer. The send queue of a session has room for more events than this.
pub const BATCH_MAX: usize = 128;

/// An entry and its idempotency key.
#[derive(Clone, Debug)]
pub struct KeyedEntry {
    /// The entry.
    pub entry: Entry,
    /// An entry with a key takes effect once, even if it is reported again.
    pub key: Option<IdempotencyKey>,
}

/// One change of a batch.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A channel to create or replace. With credentials its owner can sign in.
    Channel(ChannelRecord, Option<LoginCredentials>),
    /// A category to create or replace.
    Category(Category),
    /// An event on a channel.
    Event(ChannelId, ChannelEvent),
}

/// An event on a channel, as the platform reports it.
#[derive(Clone, Debug)]
pub enum ChannelEvent {
    /// A chat message.
    Chat(ChatMessage),
    /// A donation.
    Donation(Donation),
    /// A paid subscription.
    Subscription(PaidSubscription),
    /// A follow.
    Follow {
        /// The channel that follows.
        follower: ChannelId,
        /// The beginning; `None` for now.
        created: Option<Timestamp>,
    },
    /// The end of a follow.
    Unfollow {
        /// The channel that followed.
        follower: ChannelId,
    },
    /// A role in the channel.
    Manager {
        /// The manager.
        manager: ChannelId,
        /// The role.
        role: UserRole,
    },
    /// The end of a role.
    Unmanager {
        /// The manager.
        manager: ChannelId,
    },
    /// The live on air.
    Live(LiveReport),
    /// The end of the live on air.
    LiveEnd,
    /// A claim of a reward.
    Claim(RewardRequest),
    /// Watching for drops.
    Watching(WatchingReport),
}

/// An entry after the work that needs no transaction.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) entry: PreparedEntry,
    pub(super) key: Option<IdempotencyKey>,
}

#[derive(Clone)]
pub(super) enum PreparedEntry {
    Channel(Result<CheckedChannel, Error>),
    Category(Category),
    Event(ChannelId, ChannelEvent),
}

impl Prepared {
    pub(super) fn is_chat(&self) -> bool {
        matches!(self.entry, PreparedEntry::Event(_, ChannelEvent::Chat(_)))
    }

    /// The chat message, if the entry is one.
    pub(super) fn post<'a>(&'a self, posting: &'a Posting) -> Option<Post<'a>> {
        let PreparedEntry::Event(channel, ChannelEvent::Chat(message)) = &self.entry else { return None };
        Some(Post { channel, message, posting, key: self.key.as_ref() })
    }
}
