//! The navigation beside every page of the documentation.

use super::groups::group_of;
use super::place::DocsPlace;
use super::texts::texts;
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
    /// The operations of the page, if this is the page.
    pub operations: Vec<OperationLink>,
}

/// A link to an operation of the page.
#[derive(Debug)]
pub struct OperationLink {
    /// The anchor.
    pub id: &'static str,
    /// The method.
    pub method: &'static str,
    /// What it does.
    pub label: &'static str,
}

impl Navigation {
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
    let operations = match place {
        DocsPlace::Group(group) if is_here => {
            let operations = router::operations();
            let own =
                operations.iter().filter(|each| group_of(each).is_some_and(|own| own.slug == group.slug));
            let link = |operation: &crate::contract::Operation| OperationLink {
                id: operation.summary.id,
                method: operation.method,
                label: lang.pick(operation.summary.korean, operation.summary.english),
            };
            own.map(link).collect()
        }
        _ => Vec::new(),
    };
    PlaceLink { href: place.href(), label: place.title(lang), about: place.about(lang), is_here, operations }
}
