//! What all operator pages have in common: the navigation between them, and small parts.

use domain::application::percent_encode;
use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::{Invalid, Refusal, Rule};
use web::pages::{Lang, Moment};
use web::{OperatorPerson, Visitor};

use super::paths::{APPLICATIONS, AUDIT, KEYS, ORGANIZATIONS, OVERVIEW, PEOPLE, REQUESTS, WEBHOOKS};

/// A part of the operator pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Requests,
    Applications,
    People,
    Organizations,
    Webhooks,
    Keys,
    Audit,
}

impl Section {
    const ALL: [Self; 8] = [
        Self::Overview,
        Self::Requests,
        Self::Applications,
        Self::People,
        Self::Organizations,
        Self::Webhooks,
        Self::Keys,
        Self::Audit,
    ];

    /// The address.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Overview => OVERVIEW,
            Self::Requests => REQUESTS,
            Self::Applications => APPLICATIONS,
            Self::People => PEOPLE,
            Self::Organizations => ORGANIZATIONS,
            Self::Webhooks => WEBHOOKS,
            Self::Keys => KEYS,
            Self::Audit => AUDIT,
        }
    }

    /// The heading.
    pub const fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Overview => lang.pick("현황", "Overview"),
            Self::Requests => lang.pick("요청", "Requests"),
            Self::Applications => lang.pick("애플리케이션", "Applications"),
            Self::People => lang.pick("사람", "People"),
            Self::Organizations => lang.pick("조직", "Organizations"),
            Self::Webhooks => lang.pick("웹훅", "Webhooks"),
            Self::Keys => lang.pick("키와 운영자", "Keys and operators"),
            Self::Audit => lang.pick("감사 로그", "Audit log"),
        }
    }

    const fn role(self) -> OperatorRole {
        match self {
            Self::Keys | Self::Audit => OperatorRole::Admin,
            _ => OperatorRole::Read,
        }
    }
}

/// A link of the navigation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionLink {
    pub href: &'static str,
    pub label: &'static str,
    pub is_here: bool,
}

/// The navigation between the operator pages.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub label: &'static str,
    pub links: Vec<SectionLink>,
}

impl Frame {
    /// The navigation with the sections that the operator may see.
    pub fn new<R>(operator: &OperatorPerson<R>, here: Section) -> Self {
        let lang = operator.visitor().lang();
        let seen = Section::ALL.into_iter().filter(|section| section.role() <= operator.role);
        let link = |section: Section| SectionLink {
            href: section.path(),
            label: section.title(lang),
            is_here: section == here,
        };
        Self { label: lang.pick("운영 메뉴", "Operation"), links: seen.map(link).collect() }
    }
}

/// A small label. `kind` is `plain`, `good`, `warn` or `bad`.
#[derive(Clone, Debug)]
pub(crate) struct Badge {
    pub kind: &'static str,
    pub text: &'static str,
}

impl Badge {
    pub const fn new(kind: &'static str, text: &'static str) -> Self {
        Self { kind, text }
    }
}

/// A value in a table or a list of facts. Texts are untrusted.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    Text(String),
    /// A text of several lines.
    Prose(String),
    Code(String),
    Moment(Moment),
    Link {
        href: String,
        text: String,
    },
    Badge(Badge),
    Nothing,
}

impl Shown {
    /// A point in time, if there is one.
    pub fn moment(at: Option<domain::Timestamp>, visitor: &Visitor) -> Self {
        at.map_or(Self::Nothing, |at| Self::Moment(Moment::of(at, visitor.now(), visitor.lang())))
    }
}

/// An address with these parameters; empty ones are left out.
pub(crate) fn href(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(name);
        address.push('=');
        percent_encode(value, &mut address);
    }
    address
}

/// The refusal of what does not exist.
pub(crate) const fn not_found(resource: Resource) -> Refusal {
    Refusal::NotFound(resource)
}

/// The refusal of a form with a button that the page does not have.
pub(crate) fn unknown_action() -> Refusal {
    Invalid::new("action", Rule::Text).into()
}

/// The name of a role.
pub(crate) const fn role_name(role: OperatorRole, lang: Lang) -> &'static str {
    match role {
        OperatorRole::Read => lang.pick("조회", "Read"),
        OperatorRole::Write => lang.pick("변경", "Write"),
        OperatorRole::Admin => lang.pick("관리", "Admin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_parameters_encoded() {
        assert_eq!(href("/operator/people", &[("q", ""), ("next", "")]), "/operator/people");
        assert_eq!(
            href("/operator/people", &[("q", "가 &"), ("by", "name")]),
            "/operator/people?q=%EA%B0%80%20%26&by=name"
        );
    }
}
