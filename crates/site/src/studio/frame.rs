//! What the pages of the studio share: their navigation, and what is wrong with their forms.

use domain::Refusal;
use web::pages::{FieldErrors, Lang, NavigationLink};
use web::{Failure, Visitor};

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
}

impl StudioPlace {
    const ALL: [Self; 9] = [
        Self::Overview,
        Self::Chat,
        Self::Broadcast,
        Self::ChatSettings,
        Self::Restrictions,
        Self::Managers,
        Self::Followers,
        Self::Subscribers,
        Self::StreamKey,
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
        }
    }
}

/// The navigation beside a page of the studio.
#[derive(Debug)]
pub(crate) struct StudioNav {
    /// The name of the navigation.
    pub label: &'static str,
    /// Its links.
    pub links: Vec<NavigationLink>,
}

impl StudioNav {
    /// The navigation of a page.
    pub(crate) fn at(place: StudioPlace, visitor: &Visitor) -> Self {
        let lang = visitor.lang();
        let link = |other: StudioPlace| NavigationLink {
            href: other.path(),
            label: other.label(lang),
            is_here: other == place,
        };
        Self { label: lang.pick("스튜디오", "Studio"), links: StudioPlace::ALL.map(link).to_vec() }
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
