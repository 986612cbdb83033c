//! The navigation beside every page of the documentation.

use domain::event::EventType;

use super::groups::group_of;
use super::place::DocsPlace;
use super::sections::sections;
use super::texts::texts;
use crate::contract::Operation;
use crate::pages::Lang;
use crate::router;

/// The navigation.
#[derive(Debug)]
pub struct Navigation {
    /// Its parts.
    pub parts: Vec<NavigationPart>,
    /// What is searched for.
    pub asked: String,
}

/// Links under a heading.
#[derive(Debug)]
pub struct NavigationPart {
    /// The heading; empty for none.
    pub heading: &'static str,
    /// The links.
    pub links: Vec<PlaceLink>,
}

/// A link to a page of the documentation.
#[derive(Debug)]
pub struct PlaceLink {
    /// Its address.
    pub href: String,
    /// Its text.
    pub label: &'static str,
    /// A sentence about the page.
    pub about: &'static str,
    /// Whether this is the page.
    pub is_here: bool,
    /// The parts of the page, if this is the page.
    pub parts: Vec<PartLink>,
}

/// A link to a part of the page.
#[derive(Debug)]
pub struct PartLink {
    /// The anchor.
    pub id: String,
    /// The method of an operation.
    pub method: &'static str,
    /// The heading.
    pub label: String,
}

impl Navigation {
    /// The parts of the page.
    pub fn parts_here(&self) -> &[PartLink] {
        let here = self.parts.iter().flat_map(|part| &part.links).find(|link| link.is_here);
        here.map_or(&[], |link| &link.parts)
    }

    /// The navigation of a page.
    pub fn of(here: Option<DocsPlace>, lang: Lang) -> Self {
        let t = texts(lang);
        let part = |heading, belongs: fn(DocsPlace) -> bool| NavigationPart {
            heading,
            links: DocsPlace::all()
                .filter(|place| belongs(*place))
                .map(|place| link(place, here, lang))
                .collect(),
        };
        let parts = vec![
            part("", |place| matches!(place, DocsPlace::Overview)),
            part(t.guides, |place| matches!(place, DocsPlace::Guide(_))),
            part(t.open_api, |place| matches!(place, DocsPlace::Group(group) if !group.is_platform())),
            part(t.realtime, |place| matches!(place, DocsPlace::Events | DocsPlace::Webhook)),
            part(t.platform_api, |place| matches!(place, DocsPlace::Group(group) if group.is_platform())),
        ];
        Self { parts, asked: String::new() }
    }
}

fn link(place: DocsPlace, here: Option<DocsPlace>, lang: Lang) -> PlaceLink {
    let is_here = here.is_some_and(|here| here.href() == place.href());
    let parts = if is_here { parts(place, lang) } else { Vec::new() };
    PlaceLink { href: place.href(), label: place.title(lang), about: place.about(lang), is_here, parts }
}

/// The parts of a page.
fn parts(place: DocsPlace, lang: Lang) -> Vec<PartLink> {
    let part = |id: &str, label: &str| PartLink { id: id.to_owned(), method: "", label: label.to_owned() };
    let t = texts(lang);
    match place {
        DocsPlace::Overview => Vec::new(),
        DocsPlace::Group(group) => {
            let is_own = |each: &&Operation| group_of(each).is_some_and(|own| own.slug == group.slug);
            let link = |operation: &Operation| PartLink {
                method: operation.method,
                ..part(operation.summary.id, lang.pick(operation.summary.korean, operation.summary.english))
            };
            router::operations().iter().filter(is_own).map(link).collect()
        }
        DocsPlace::Events => {
            let events = ["SYSTEM"].into_iter().chain(EventType::ALL.map(EventType::name));
            std::iter::once(part("listening", t.listening))
                .chain(events.map(|name| part(name, name)))
                .collect()
        }
        DocsPlace::Webhook => vec![
            part("drop_reward_claim", "drop_reward_claim"),
            part("verifying", t.verifying),
            part("attempts", t.attempts),
        ],
        DocsPlace::Guide(guide) => {
            let sections = sections(guide.text(lang)).into_iter().filter(|section| !section.id.is_empty());
            sections.map(|section| part(&section.id, &section.title)).collect()
        }
    }
}
