//! A list on the operator pages, as plain data.

use askama::Template;
use web::pages::{Area, Shell, filters};
use web::{OperatorPerson, PageAnswer};

use super::frame::{Badge, Frame, Section, Shown, href};

/// The field with which a list is searched.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub label: &'static str,
    pub button: &'static str,
    pub value: String,
    /// What is searched: value, label, whether it is chosen.
    pub by: Vec<(&'static str, &'static str, bool)>,
    pub by_label: &'static str,
}

/// A part of a list, by the state of its items.
#[derive(Clone, Debug)]
pub(crate) struct StateLink {
    pub href: String,
    pub label: &'static str,
    pub is_here: bool,
}

/// An item.
#[derive(Clone, Debug)]
pub(crate) struct ListRow {
    pub href: String,
    pub name: String,
    pub hint: String,
    pub badges: Vec<Badge>,
    pub cells: Vec<Shown>,
}

/// A list with its search.
#[derive(Clone, Debug)]
pub(crate) struct ItemList {
    pub section: Section,
    pub lead: &'static str,
    pub search: Option<Search>,
    pub states: Vec<StateLink>,
    /// The headings of the columns: the name's first.
    pub headers: Vec<&'static str>,
    pub rows: Vec<ListRow>,
    /// What stands in place of an empty list.
    pub empty: (&'static str, &'static str),
    /// The parameters of this list, for the links to other pages.
    pub parameters: Vec<(&'static str, String)>,
    /// Whether this is a later page.
    pub is_later: bool,
    /// The cursor of the next page.
    pub next: Option<String>,
}

#[derive(Template)]
#[template(path = "site/operator/list.html")]
struct ListPage<'a> {
    shell: Shell<'a>,
    frame: Frame,
    list: ItemList,
    first: Option<String>,
    next: Option<String>,
}

impl ListPage<'_> {
    fn title(&self) -> &'static str {
        self.list.section.title(self.shell.lang)
    }
}

impl ItemList {
    /// The page with this list.
    pub fn page<R>(self, operator: &OperatorPerson<R>) -> PageAnswer {
        let path = self.section.path();
        let mut parameters: Vec<_> =
            self.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let first = self.is_later.then(|| href(path, &parameters));
        let next = self.next.as_deref().map(|next| {
            parameters.push(("next", next));
            href(path, &parameters)
        });
        let visitor = operator.visitor();
        let (shell, frame) = (visitor.shell(Area::Operator), Frame::new(operator, self.section));
        visitor.page(&ListPage { shell, frame, first, next, list: self })
    }
}
