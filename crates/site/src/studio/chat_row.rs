//! A message of a chat, as the pages of the studio show it.

use domain::channel::UserRole;
use domain::restriction::RestrictionStatus;
use domain::{ChannelId, Timestamp};
use service::chat_log::LoggedMessage;
use web::Visitor;
use web::pages::{Lang, Moment};

/// A message in the list.
#[derive(Debug)]
pub(crate) struct ChatRow<'a> {
    /// Its id.
    pub id: &'a str,
    /// The author's channel.
    pub sender: &'a str,
    /// The author's name. Untrusted; `None` for a deleted account.
    pub name: Option<&'a str>,
    /// The author's role.
    pub role: Option<&'static str>,
    /// The text. Untrusted.
    pub content: &'a str,
    /// When it was posted.
    pub time: Moment,
    /// The same in milliseconds.
    pub ms: i64,
    /// Whether it is hidden.
    pub is_hidden: bool,
    /// Whether the streamer may restrict its author.
    pub may_restrict: bool,
    /// The restriction of its author that runs.
    pub restriction: Option<RowRestriction>,
}

/// A restriction of an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowRestriction {
    /// For a minute.
    Brief,
    /// Until it is lifted.
    UntilLifted,
}

impl RowRestriction {
    fn of(status: RestrictionStatus, now: Timestamp) -> Option<Self> {
        let is_brief = status.until.is_some_and(|until| until > now);
        match status.restricted {
            true => Some(Self::UntilLifted),
            false => is_brief.then_some(Self::Brief),
        }
    }

    /// The button that ends it.
    pub(crate) const fn lift(self) -> &'static str {
        match self {
            Self::Brief => "lift-temporary",
            Self::UntilLifted => "lift",
        }
    }

    pub(crate) const fn is_brief(self) -> bool {
        matches!(self, Self::Brief)
    }
}

impl<'a> ChatRow<'a> {
    /// A message in the chat of `channel`.
    pub(crate) fn new(message: &'a LoggedMessage, channel: &ChannelId, visitor: &Visitor) -> Self {
        let lang = visitor.lang();
        let is_own = message.sender == *channel;
        let owner = is_own.then_some(UserRole::StreamingChannelOwner);
        let role = owner.or(message.role);
        Self {
            id: message.message_id.as_str(),
            sender: message.sender.as_str(),
            name: message.sender_name.as_deref(),
            role: role.map(|role| role_name(role, lang)),
            content: &message.content,
            time: Moment::of(message.message_time, visitor.now(), lang),
            ms: message.message_time.as_millis(),
            is_hidden: message.hidden_at.is_some(),
            may_restrict: role.is_none() && message.sender_name.is_some(),
            restriction: RowRestriction::of(message.restriction, visitor.now()),
        }
    }
}

/// A role in plain words.
pub(crate) const fn role_name(role: UserRole, lang: Lang) -> &'static str {
    match role {
        UserRole::StreamingChannelOwner => lang.pick("스트리머", "Streamer"),
        UserRole::StreamingChannelManager => lang.pick("채널 매니저", "Channel manager"),
        UserRole::StreamingChatManager => lang.pick("채팅 매니저", "Chat manager"),
        UserRole::StreamingSettlementManager => lang.pick("정산 매니저", "Settlement manager"),
    }
}
