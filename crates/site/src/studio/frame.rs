//! What the pages of the studio share: their navigation, and what is wrong with their forms.

use domain::channel::UserRole;
use domain::{Invalid, Refusal, Rule};
use web::Failure;
use web::pages::{FieldErrors, Lang};

use crate::forms::at_field;

/// A page of the studio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StudioPlace {
    /// What happens now.
    Overview,
    /// The chat as it flows.
    Chat,
    /// Title, category and tags.
    Broadcast,
    /// Who may speak.
    ChatSettings,
    /// Who may not.
    Restrictions,
    /// The people who help.
    Managers,
    /// The followers.
    Followers,
    /// The subscribers.
    Subscribers,
    /// The key of the broadcasting program.
    StreamKey,
    /// The channels that the person manages.
    Channels,
}

impl StudioPlace {
    pub(crate) const ALL: [Self; 10] = [
        Self::Overview,
        Self::Chat,
        Self::Broadcast,
        Self::ChatSettings,
        Self::Restrictions,
        Self::Managers,
        Self::Followers,
        Self::Subscribers,
        Self::StreamKey,
        Self::Channels,
    ];

    /// The address.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/studio",
            Self::Chat => "/studio/chat",
            Self::Broadcast => "/studio/broadcast",
            Self::ChatSettings => "/studio/chat-settings",
            Self::Restrictions => "/studio/restrictions",
            Self::Managers => "/studio/managers",
            Self::Followers => "/studio/followers",
            Self::Subscribers => "/studio/subscribers",
            Self::StreamKey => "/studio/stream-key",
            Self::Channels => "/studio/channels",
        }
    }

    /// The name in the navigation, and the title of the page.
    pub(crate) const fn label(self, lang: Lang) -> &'static str {
        match self {
            Self::Overview => lang.pick("한눈에 보기", "Overview"),
            Self::Chat => lang.pick("채팅", "Chat"),
            Self::Broadcast => lang.pick("방송 설정", "Broadcast"),
            Self::ChatSettings => lang.pick("채팅 설정", "Chat settings"),
            Self::Restrictions => lang.pick("활동 제한", "Restrictions"),
            Self::Managers => lang.pick("매니저", "Managers"),
            Self::Followers => lang.pick("팔로워", "Followers"),
            Self::Subscribers => lang.pick("구독자", "Subscribers"),
            Self::StreamKey => lang.pick("스트림 키", "Stream key"),
            Self::Channels => lang.pick("맡은 채널", "Channels you manage"),
        }
    }

    /// Whether a person with this role in the channel sees the page.
    pub(crate) const fn is_open_to(self, role: UserRole) -> bool {
        let needs_owner = matches!(self, Self::Managers | Self::StreamKey | Self::Channels);
        match role {
            UserRole::StreamingChannelOwner => true,
            UserRole::StreamingChannelManager => !needs_owner,
            UserRole::StreamingChatManager => {
                matches!(self, Self::Overview | Self::Chat | Self::Restrictions)
            }
            UserRole::StreamingSettlementManager => false,
        }
    }
}

/// A choice in a list.
#[derive(Debug)]
pub(crate) struct StudioChoice {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub label: String,
    /// Whether it is chosen.
    pub is_selected: bool,
}

/// Puts what is wrong with a restriction or another value at its field. Anything else becomes an error page.
///
/// # Errors
/// The error, if it is about no field.
pub(crate) fn refused(error: service::Error, lang: Lang) -> Result<FieldErrors, Failure> {
    let Refusal::Restriction(refusal) = error.refusal() else { return at_field(error, lang) };
    let (ko, en) = refusal.texts();
    let text = lang.pick(ko, en);
    let (_, sentence) = text.split_once(": ").unwrap_or(("", text));
    let mut errors = FieldErrors::default();
    errors.add("targetChannelId", sentence);
    Ok(errors)
}

/// Whether a cursor of a list was refused.
pub(crate) fn is_cursor(error: &service::Error) -> bool {
    matches!(error.refusal(), Refusal::Invalid(Invalid { rule: Rule::Cursor, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_opens_its_pages() {
        use StudioPlace::{Broadcast, Channels, Chat, ChatSettings, Followers, Managers, Overview};
        use StudioPlace::{Restrictions, StreamKey, Subscribers};
        let open =
            |role| StudioPlace::ALL.into_iter().filter(|place| place.is_open_to(role)).collect::<Vec<_>>();
        assert_eq!(open(UserRole::StreamingChannelOwner), StudioPlace::ALL);
        assert_eq!(
            open(UserRole::StreamingChannelManager),
            [Overview, Chat, Broadcast, ChatSettings, Restrictions, Followers, Subscribers]
        );
        assert_eq!(open(UserRole::StreamingChatManager), [Overview, Chat, Restrictions]);
        assert_eq!(open(UserRole::StreamingSettlementManager), []);
        assert!([Managers, StreamKey, Channels].iter().all(|place| place.path().starts_with("/studio/")));
    }
}
