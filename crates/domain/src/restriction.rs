//! Restriction of channels: for good until released (활동제한), or for a minute (`docs/spec/restriction.md`).

use crate::channel::UserRole;
use crate::{ChannelId, Timestamp};

/// The facts about a channel that another channel wants to restrict or release.
#[derive(Clone, Debug)]
pub struct Target {
    /// The channel.
    pub channel_id: ChannelId,
    /// The role that the restricting channel gave it.
    pub role: Option<UserRole>,
}

/// Why a restriction or a release is refused: always 400, each with its own message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestrictionRefusal {
    /// The channel does not exist.
    NoSuchUser,
    /// A channel cannot restrict itself.
    Oneself,
    /// Managers of the channel cannot be restricted.
    Manager,
    /// The channel is already restricted.
    AlreadyRestricted,
    /// The channel is already temporarily restricted.
    AlreadyTemporarilyRestricted,
    /// There is no activity restriction to release.
    NotRestricted,
    /// There is no temporary restriction to release.
    NotTemporarilyRestricted,
    /// The chat does not exist.
    NoSuchChat,
}

impl RestrictionRefusal {
    /// The value of `rule` in a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSuchUser => "no-such-user",
            Self::Oneself => "oneself",
            Self::Manager => "manager",
            Self::AlreadyRestricted => "already-restricted",
            Self::AlreadyTemporarilyRestricted => "already-temporarily-restricted",
            Self::NotRestricted => "not-restricted",
            Self::NotTemporarilyRestricted => "not-temporarily-restricted",
            Self::NoSuchChat => "no-such-chat",
        }
    }

    /// The message, in Korean and in English.
    pub const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::NoSuchUser => {
                ("targetChannelId: 존재하지 않는 사용자입니다.", "targetChannelId: there is no such user.")
            }
            Self::Oneself => (
                "targetChannelId: 자신은 제한할 수 없습니다.",
                "targetChannelId: you cannot restrict yourself.",
            ),
            Self::Manager => (
                "targetChannelId: 채널 관리자 계정은 제한하거나 해제할 수 없습니다.",
                "targetChannelId: accounts of channel managers cannot be restricted or released.",
            ),
            Self::AlreadyRestricted => (
                "targetChannelId: 이미 활동제한된 사용자입니다.",
                "targetChannelId: the user is restricted already.",
            ),
            Self::AlreadyTemporarilyRestricted => (
                "targetChannelId: 이미 임시제한된 사용자입니다.",
                "targetChannelId: the user is temporarily restricted already.",
            ),
            Self::NotRestricted => (
                "targetChannelId: 활동제한된 사용자가 아닙니다.",
                "targetChannelId: the user is not restricted.",
            ),
            Self::NotTemporarilyRestricted => (
                "targetChannelId: 임시제한된 사용자가 아닙니다.",
                "targetChannelId: the user is not temporarily restricted.",
            ),
            Self::NoSuchChat => {
                ("chatChannelId: 존재하지 않는 채팅 채널입니다.", "chatChannelId: there is no such chat.")
            }
        }
    }
}

/// Whether `target` may be restricted by `channel`. The database decides whether it is restricted already.
///
/// # Errors
/// [`RestrictionRefusal`] for the channel itself, for an unknown channel, and for managers.
pub fn may_restrict(
    channel: &ChannelId,
    id: &ChannelId,
    target: Option<&Target>,
) -> Result<(), RestrictionRefusal> {
    match target {
        _ if channel == id => Err(RestrictionRefusal::Oneself),
        None => Err(RestrictionRefusal::NoSuchUser),
        Some(Target { role: Some(_), .. }) => Err(RestrictionRefusal::Manager),
        Some(Target { role: None, .. }) => Ok(()),
    }
}

/// Whether `target` may be released by `channel`. A manager may be, who was restricted before the role was
/// given. Returns the refusal for the case that the target is not restricted.
///
/// # Errors
/// [`RestrictionRefusal`] for the channel itself and for an unknown channel.
pub fn may_release(
    channel: &ChannelId,
    id: &ChannelId,
    target: Option<&Target>,
    not_restricted: RestrictionRefusal,
) -> Result<RestrictionRefusal, RestrictionRefusal> {
    match may_restrict(channel, id, target) {
        Err(RestrictionRefusal::Manager) => Ok(RestrictionRefusal::Manager),
        checked => checked.map(|()| not_restricted),
    }
}

/// The restrictions of a viewer in a chat, apart from the chat's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestrictionStatus {
    /// The viewer is under an activity restriction.
    pub restricted: bool,
    /// The end of the viewer's temporary restriction.
    pub until: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_and_the_channel_itself_cannot_be_restricted() {
        let id = |id: &str| ChannelId::stored(id.into());
        let check = |target: &str, known: Option<Option<UserRole>>, expected| {
            let facts = known.map(|role| Target { channel_id: id(target), role });
            assert_eq!(may_restrict(&id("me"), &id(target), facts.as_ref()), expected, "{target} {known:?}");
        };
        check("viewer", Some(None), Ok(()));
        check("me", Some(None), Err(RestrictionRefusal::Oneself));
        check("missing", None, Err(RestrictionRefusal::NoSuchUser));
        for role in UserRole::GIVEN {
            check("manager", Some(Some(role)), Err(RestrictionRefusal::Manager));
        }
    }

    #[test]
    fn managers_can_be_released_but_not_the_channel_itself() {
        use RestrictionRefusal::{Manager, NoSuchUser, NotRestricted, Oneself};
        let id = |id: &str| ChannelId::stored(id.into());
        let check = |target: &str, known: Option<Option<UserRole>>, expected| {
            let facts = known.map(|role| Target { channel_id: id(target), role });
            let found = may_release(&id("me"), &id(target), facts.as_ref(), NotRestricted);
            assert_eq!(found, expected, "{target} {known:?}");
        };
        check("viewer", Some(None), Ok(NotRestricted));
        check("manager", Some(Some(UserRole::GIVEN[0])), Ok(Manager));
        check("me", Some(None), Err(Oneself));
        check("missing", None, Err(NoSuchUser));
    }
}
