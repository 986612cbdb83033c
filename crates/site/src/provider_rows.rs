//! The providers on the page of an account.

use domain::upstream::may_unlink;
use service::upstream::LinkedProvider;
use upstream::Upstreams;
use web::pages::{Lang, Moment};
use web::{FormTarget, Person};

use crate::providers::{label, link_path, unlink_path};

/// A provider of the configuration, or one that is linked and not there any more.
#[derive(Debug)]
pub(crate) struct ProviderRow<'a> {
    pub label: &'a str,
    pub linked: Option<LinkedRow>,
    /// The form that links or unlinks it; `None` where neither is possible.
    pub form: Option<FormTarget>,
}

/// A link.
#[derive(Debug)]
pub(crate) struct LinkedRow {
    pub shown_as: Option<String>,
    pub since: Moment,
    pub last_used: Moment,
}

/// The providers of a person: those of the configuration, in the order of the file. The button that unlinks
/// is missing where it would be refused.
pub(crate) async fn provider_rows<'a>(
    person: &'a Person,
    upstreams: &'a Upstreams,
    has_password: bool,
) -> Result<Vec<ProviderRow<'a>>, service::Error> {
    let visitor = &person.visitor;
    let linked = visitor.web().service().linked_providers(&person.channel_id).await?;
    let find = |name: &str| linked.iter().find(|linked| linked.provider == name);
    let usable = upstreams.iter().filter(|provider| find(&provider.settings().name).is_some()).count();
    let rows = upstreams.iter().map(|provider| {
        let name = &provider.settings().name;
        let linked = find(name);
        let form = match linked {
            None => Some(visitor.form(link_path(name))),
            Some(_) if may_unlink(has_password, usable - 1) => Some(visitor.form(unlink_path(name))),
            Some(_) => None,
        };
        let linked = linked.map(|linked| row(person, linked));
        ProviderRow { label: label(provider, visitor.lang()), linked, form }
    });
    Ok(rows.collect())
}

fn row(person: &Person, linked: &LinkedProvider) -> LinkedRow {
    let (now, lang) = (person.visitor.now(), person.visitor.lang());
    LinkedRow {
        shown_as: linked.shown_as.clone(),
        since: Moment::of(linked.created_at, now, lang),
        last_used: Moment::of(linked.last_used_at, now, lang),
    }
}

/// The words.
#[derive(Debug)]
pub(crate) struct LinkTexts {
    pub title: &'static str,
    pub about: &'static str,
    pub since: &'static str,
    pub last_used: &'static str,
    pub not_linked: &'static str,
    pub link: &'static str,
    pub unlink: &'static str,
    pub unlink_question: &'static str,
    pub last_way_in: &'static str,
}

/// The words in this language.
pub(crate) fn link_texts(lang: Lang) -> &'static LinkTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: LinkTexts = LinkTexts {
    title: "다른 계정으로 로그인",
    about: "연결한 계정으로 이 계정에 로그인할 수 있습니다.",
    since: "연결한 날:",
    last_used: "마지막 로그인:",
    not_linked: "연결하지 않음",
    link: "연결",
    unlink: "연결 끊기",
    unlink_question: "그 계정으로는 더 로그인할 수 없습니다.",
    last_way_in: "로그인할 수 있는 유일한 방법입니다.",
};

const EN: LinkTexts = LinkTexts {
    title: "Sign in with another account",
    about: "You can sign in to this account with each account that is linked.",
    since: "Linked:",
    last_used: "Last sign-in:",
    not_linked: "Not linked",
    link: "Link",
    unlink: "Unlink",
    unlink_question: "You can no longer sign in with that account.",
    last_way_in: "It is your only way to sign in.",
};
