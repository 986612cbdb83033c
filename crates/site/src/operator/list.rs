//! A list on the operator pages, as plain data.

use askama::Template;
use domain::limits::NAME_CHARS_MAX;
use web::pages::{Area, Lang, Shell, filters};
use web::{OperatorPerson, PageAnswer};

use super::frame::{Badge, Frame, Section, Shown, href};

/// The field with which a list is searched.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub label: &'static str,
    pub button: &'static str,
    pub value: String,
}

impl Search {
    /// The field of a list that is searched for this text.
    pub fn of(text: &str, label: &'static str, lang: Lang) -> Self {
        Self { label, button: lang.pick("찾기", "Search"), value: text.to_owned() }
    }
}

/// The text that a list is searched for.
pub(crate) fn searched(parameter: &str) -> String {
    parameter.trim().replace('\0', "").chars().take(NAME_CHARS_MAX).collect()
}

/// What stands below an empty list. One page of a search looks at many names, but not at all.
pub(crate) const fn nothing_here(has_next: bool, lang: Lang) -> &'static str {
    match has_next {
        true => lang.pick(
            "이름이 많아 일부만 찾았습니다. ‘다음’을 눌러 계속 찾아 보세요.",
            "There are many names, and these are only some of them. Go on with “Next”.",
        ),
        false => lang.pick("다른 값으로 찾아 보세요.", "Try another value."),
    }
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
