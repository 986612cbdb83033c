//! The navigation beside a page of the studio. In the studio of another channel it says whose it is.

use crate::studio::chat_row::role_name;
use crate::studio::desk::Desk;
use crate::studio::frame::StudioPlace;

/// The navigation.
#[derive(Debug)]
pub(crate) struct StudioNav {
    /// Its name.
    pub label: &'static str,
    /// Its links.
    pub links: Vec<StudioLink>,
    /// The name of the channel and the role of the person, in the studio of another channel. The name is
    /// untrusted.
    pub of: Option<(String, &'static str)>,
    /// The words of the way back to the own studio.
    pub mine: &'static str,
}

/// A link to a page of the studio.
#[derive(Debug)]
pub(crate) struct StudioLink {
    /// The address.
    pub href: String,
    /// The text.
    pub label: &'static str,
    /// Whether it is this page.
    pub is_here: bool,
}

impl StudioNav {
    /// The navigation of a page.
    pub(crate) fn at(place: StudioPlace, desk: &Desk) -> Self {
        let lang = desk.visitor.lang();
        let link = |other: StudioPlace| {
            let href = desk.may_see(other)?;
            Some(StudioLink { href, label: other.label(lang), is_here: other == place })
        };
        Self {
            label: lang.pick("스튜디오", "Studio"),
            links: StudioPlace::ALL.into_iter().filter_map(link).collect(),
            of: (!desk.is_own()).then(|| (desk.channel_name.clone(), role_name(desk.role, lang))),
            mine: lang.pick("내 스튜디오로", "To your own studio"),
        }
    }
}
