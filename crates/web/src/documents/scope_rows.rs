//! The scopes with what they allow and the calls that need them.

use domain::Scope;

use super::groups::group_of;
use super::place::DOCS;
use crate::contract::Operation;
use crate::pages::{Lang, scope_label, scope_sentence};
use crate::router;

/// A scope on a page of the documentation.
pub struct ScopeRow {
    /// Its name in ASCII, which is also its anchor.
    pub key: &'static str,
    /// Its name in the language of the page.
    pub label: &'static str,
    /// Its name in the answers.
    pub name: &'static str,
    /// What it allows.
    pub about: &'static str,
    /// The calls that need it: address, method, path, summary.
    pub calls: Vec<(String, &'static str, &'static str, &'static str)>,
}

/// Every scope.
pub fn scope_rows(lang: Lang) -> Vec<ScopeRow> {
    Scope::ALL.map(|scope| row(scope, lang)).into()
}

fn row(scope: Scope, lang: Lang) -> ScopeRow {
    let needs = |each: &&Operation| each.scope == Some(scope);
    let call = |each: &Operation| {
        let group = group_of(each)?.slug;
        let summary = lang.pick(each.summary.korean, each.summary.english);
        Some((format!("{DOCS}/{group}#{}", each.summary.id), each.method, each.path, summary))
    };
    ScopeRow {
        key: scope.key(),
        label: scope_label(scope, lang),
        name: scope.name(),
        about: scope_sentence(scope, lang),
        calls: router::operations().iter().filter(needs).filter_map(call).collect(),
    }
}
