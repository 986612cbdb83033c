//! The pages of the documentation.

use super::groups::{GROUPS, Group};
use super::guides::{GUIDES, Guide};
use crate::pages::Lang;

/// The first page.
pub const DOCS: &str = "/docs";

/// A page of the documentation.
#[derive(Clone, Copy, Debug)]
pub enum DocsPlace {
    /// What the API is, and where to go.
    Overview,
    /// The operations of a group.
    Group(&'static Group),
    /// What comes on the socket of a session.
    Events,
    /// What a webhook receives.
    Webhook,
    /// A guide.
    Guide(&'static Guide),
}

impl DocsPlace {
    /// Every page, in the order of the navigation.
    pub fn all() -> impl Iterator<Item = Self> {
        let guides = GUIDES.iter().map(Self::Guide);
        let (platform, open): (Vec<&Group>, Vec<&Group>) =
            GROUPS.iter().partition(|group| group.is_platform());
        let open = open.into_iter().map(Self::Group);
        let platform = platform.into_iter().map(Self::Group);
        std::iter::once(Self::Overview)
            .chain(guides)
            .chain(open)
            .chain([Self::Events, Self::Webhook])
            .chain(platform)
    }

    /// The page at an address.
    pub fn at(path: &str) -> Option<Self> {
        Self::all().find(|place| place.href() == path)
    }

    /// Its address.
    pub fn href(self) -> String {
        match self {
            Self::Overview => DOCS.to_owned(),
            Self::Group(group) => format!("{DOCS}/{}", group.slug),
            Self::Events => format!("{DOCS}/events"),
            Self::Webhook => format!("{DOCS}/webhook"),
            Self::Guide(guide) => format!("{DOCS}/guides/{}", guide.slug),
        }
    }

    /// Its heading.
    pub fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Overview => lang.pick("API 문서", "API documentation"),
            Self::Group(group) => group.name(lang),
            Self::Events => lang.pick("실시간 이벤트", "Realtime events"),
            Self::Webhook => lang.pick("드롭스 웹훅", "Drops webhook"),
            Self::Guide(guide) => guide.title(lang),
        }
    }

    /// A sentence about it.
    pub fn about(self, lang: Lang) -> &'static str {
        match self {
            Self::Overview => "",
            Self::Group(group) => group.about(lang),
            Self::Events => lang.pick(
                "세션의 소켓으로 오는 메시지입니다. 이벤트마다 받는 방법과 내용의 예가 있습니다.",
                "What comes on the socket of a session: how to subscribe, and a sample of each message.",
            ),
            Self::Webhook => lang.pick(
                "시청자가 보상을 받으면 게임사의 주소로 보내는 메시지입니다.",
                "What is sent to the address of a game publisher when a viewer claims a reward.",
            ),
            Self::Guide(guide) => guide.about(lang),
        }
    }
}
