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

/// Maximum number of entries in a batch. In a larger batch the sync would cost an entry hardly less, and the
/// locks would be held for longer. The send queue of a session has room for more events than this.
pub const BATCH_MAX: usize = 128;

/// An entry and its idempotency key.
#[derive(Clone, Debug)]
pub struct KeyedEntry {
    /// The entry.
    pub entry: Entry,
    /// An entry with a key takes effect once, however often it is reported.
    pub key: Option<IdempotencyKey>,
}

/// One change of a batch.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A channel, made or replaced; with credentials its owner can sign in.
    Channel(ChannelRecord, Option<LoginCredentials>),
    /// A category, made or replaced.
    Category(Category),
    /// What happened on a channel.
    Event(ChannelId, ChannelEvent),
}

/// What happens on a channel.
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
        /// Who follows.
        follower: ChannelId,
        /// Since when; `None` for since now.
        created: Option<Timestamp>,
    },
    /// The end of a follow.
    Unfollow {
        /// Who followed.
        follower: ChannelId,
    },
    /// A role in the channel.
    Manager {
        /// Who has it.
        manager: ChannelId,
        /// The role.
        role: UserRole,
    },
    /// The end of a role.
    Unmanager {
        /// Who had it.
        manager: ChannelId,
    },
    /// What is on air.
    Live(LiveReport),
    /// The end of what is on air.
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
