//! The page around its changing parts, and the page that asks for the operator's key.

use std::sync::Arc;

use askama::Template;
use axum::response::{IntoResponse, Response};
use domain::Language;
use form_urlencoded::Serializer;
use http::StatusCode;
use service::due::DueKind;

use super::assets::{script_href, style_href};
use super::effects::FaultForm;
use super::handle::Console;
use super::html::{html_answer, write};
use super::kinds::{self, Control, Group};
use super::korean::in_language;
use super::networks::{NetworkView, networks};
use super::record::{ROWS_MAX, RecordRow, Rows, kind_name};
use super::regions::Regions;
use super::texts::Texts;
use super::view::View;
use crate::filter::Filter;
use crate::http::trigger::{Field, KINDS, Kind};
use crate::log::{Log, Record, RecordKind};

/// The kinds of records, in the order of the filter.
const RECORD_KINDS: [RecordKind; 9] = [
    RecordKind::Request,
    RecordKind::Event,
    RecordKind::Frame,
    RecordKind::Delivery,
    RecordKind::Mail,
    RecordKind::Trigger,
    RecordKind::Clock,
    RecordKind::Due,
    RecordKind::Fault,
];

/// Asks for the operator's key.
#[derive(Template)]
#[template(path = "console/key.html")]
pub(super) struct KeyPage {
    t: &'static Texts,
    is_wrong: bool,
    style: String,
}

impl KeyPage {
    /// The answer with this page.
    pub fn answer(view: &View, is_wrong: bool) -> Response {
        let page = Self { t: Texts::of(view.language), is_wrong, style: style_href() };
        match write(&page) {
            Ok(html) => html_answer(StatusCode::UNAUTHORIZED, html),
            Err(problem) => problem.into_response(),
        }
    }
}

/// The console.
#[derive(Template)]
#[template(path = "console/page.html")]
pub(super) struct Page<'a> {
    t: &'static Texts,
    view: &'a View,
    regions: Regions,
    base_url: String,
    style: String,
    script: String,
    language_href: String,
    /// The result of a form.
    result: Option<String>,
    groups: Vec<GroupView>,
    record_kinds: Vec<NamedKind>,
    due_kinds: Vec<NamedKind>,
    fault_form: FaultForm,
    networks: Vec<NetworkView>,
    rows: String,
    /// Why the filter is wrong.
    wrong_filter: Option<String>,
    /// The mark of the newest record of the page.
    mark: u64,
}

/// A kind with its name for people.
struct NamedKind {
    name: &'static str,
    label: String,
}

impl NamedKind {
    /// The name of the API stays beside a translation, because commands and filters need it.
    fn new(name: &'static str, view: &View) -> Self {
        match in_language(view.language, name) {
            label if label == name => Self { name, label: name.to_owned() },
            label => Self { name, label: format!("{label} · {name}") },
        }
    }
}

/// Triggers of one group.
struct GroupView {
    label: &'static str,
    kinds: Vec<KindView>,
}

struct KindView {
    name: &'static str,
    label: &'static str,
    /// What happens.
    summary: &'static str,
    fields: Vec<FieldView>,
    /// The fields that few need.
    folded: Vec<FieldView>,
    is_first: bool,
}

struct FieldView {
    /// The name in the form, with its type.
    name: String,
    id: String,
    label: &'static str,
    /// What stands for an empty field.
    hint: String,
    value: &'static str,
    control: ControlView,
    is_required: bool,
}

enum ControlView {
    /// One of the list with this id.
    Listed(&'static str),
    /// One of these values.
    Choice(Vec<(String, String)>),
    Number,
    Flag,
    Text,
}

impl<'a> Page<'a> {
    /// The answer with this page, and the result of a form in it.
    pub async fn answer(console: &Console, view: &'a View, result: Option<String>) -> Response {
        let regions = Regions::of(console, view).await;
        let html = regions.and_then(|regions| write(&Self::new(console, view, regions, result)));
        match html {
            Ok(html) => html_answer(StatusCode::OK, html),
            Err(problem) => problem.into_response(),
        }
    }

    fn new(console: &Console, view: &'a View, regions: Regions, result: Option<String>) -> Self {
        let t = Texts::of(view.language);
        let log = console.sandbox().log();
        let mark = log.mark();
        let filter = view.filter();
        let newest = filter.as_ref().map(|filter| newest(log, mark, filter)).unwrap_or_default();
        let rows = newest.iter().rev().map(|record| RecordRow::of(record, view.language)).collect();
        let rows = Rows { t, rows, skipped: 0 }.render().unwrap_or_default();
        Self {
            t,
            view,
            base_url: console.sandbox().parts().map(|parts| parts.base_url.clone()).unwrap_or_default(),
            style: style_href(),
            script: script_href(),
            language_href: language_href(view, t),
            result,
            groups: Group::ALL.into_iter().filter_map(|group| group_view(group, view, &regions)).collect(),
            regions,
            record_kinds: RECORD_KINDS
                .into_iter()
                .map(|kind| NamedKind::new(kind_name(kind), view))
                .collect(),
            networks: networks(view.language),
            fault_form: FaultForm::of(view.language),
            due_kinds: DueKind::all().map(|kind| NamedKind::new(kind.name(), view)).collect(),
            rows,
            wrong_filter: filter.err().map(|wrong| format!("{}: {}", wrong.field, wrong.rule)),
            mark,
        }
    }

    fn region(&self, id: &str) -> &str {
        self.regions.get(id).unwrap_or_default()
    }

    fn has(&self, id: &str) -> bool {
        self.regions.get(id).is_some()
    }
}

/// The newest records that a filter finds, oldest first. The log is read from its end, because most of it is
/// not needed.
fn newest(log: &Log, mark: u64, filter: &Filter) -> Vec<Arc<Record>> {
    let mut found = Vec::new();
    for window in [2 * ROWS_MAX as u64, 20 * ROWS_MAX as u64, mark] {
        found = log.after(mark.saturating_sub(window));
        found.retain(|record| filter.finds(record));
        if found.len() >= ROWS_MAX || window >= mark {
            break;
        }
    }
    let surplus = found.len().saturating_sub(ROWS_MAX);
    found.split_off(surplus)
}

/// The address of this page in the other language.
fn language_href(view: &View, t: &Texts) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("lang", t.other_tag);
    for (name, value) in [("channel", &view.channel), ("kind", &view.kind), ("where", &view.conditions)] {
        if !value.is_empty() {
            query.append_pair(name, value);
        }
    }
    format!("/?{}", query.finish())
}

fn group_view(group: Group, view: &View, regions: &Regions) -> Option<GroupView> {
    let t = Texts::of(view.language);
    let label = match group {
        Group::Events => t.group_events,
        Group::Channel => t.group_channel,
        Group::Access => t.group_access,
        Group::Connection => t.group_connection,
        Group::Other => t.group_other,
    };
    let kinds = KINDS.iter().filter(|kind| kinds::group(kind) == group);
    let kinds: Vec<KindView> = kinds.map(|kind| kind_view(kind, view.language, regions)).collect();
    (!kinds.is_empty()).then_some(GroupView { label, kinds })
}

fn kind_view(kind: &'static Kind, language: Language, regions: &Regions) -> KindView {
    let field = |field: &'static Field| {
        let Field { name, about, .. } = field;
        let control = kinds::control(kind, field);
        let suffix = if control == Control::Flag { ":flag" } else { "" };
        FieldView {
            name: format!("{name}{suffix}"),
            id: format!("{}-{name}", kind.name),
            label: kinds::field_label(name, language),
            hint: hint(control, about, language),
            value: kinds::value(kind, name),
            control: control_view(control, regions),
            is_required: about.contains("required"),
        }
    };
    let (folded, fields): (Vec<_>, Vec<_>) =
        kind.fields.iter().partition(|field| kinds::is_folded(field.name));
    KindView {
        name: kind.name,
        label: kinds::label(kind, language),
        summary: in_language(language, kind.summary),
        fields: fields.into_iter().map(field).collect(),
        folded: folded.into_iter().map(field).collect(),
        is_first: kind.name == KINDS[0].name,
    }
}

fn hint(control: Control, about: &'static str, language: Language) -> String {
    let t = Texts::of(language);
    match control {
        Control::FirstPerson => t.default_first_person,
        Control::LastPerson => t.default_last_person,
        Control::Application => t.default_application,
        Control::Person | Control::AnyApplication | Control::Session | Control::Scope | Control::Campaign => {
            t.choose
        }
        Control::Choice(_) => t.default_value,
        Control::Number | Control::Flag | Control::Text => in_language(language, about),
    }
    .to_owned()
}

fn control_view(control: Control, regions: &Regions) -> ControlView {
    match control {
        Control::FirstPerson | Control::LastPerson | Control::Person => ControlView::Listed("options-people"),
        Control::Application | Control::AnyApplication => ControlView::Listed("options-applications"),
        Control::Session => ControlView::Listed("options-sessions"),
        Control::Campaign => ControlView::Choice(regions.choices.campaigns.clone()),
        Control::Scope => ControlView::Choice(same(&regions.choices.scopes)),
        Control::Choice(values) => ControlView::Choice(same(values)),
        Control::Number => ControlView::Number,
        Control::Flag => ControlView::Flag,
        Control::Text => ControlView::Text,
    }
}

/// Values that are their own names.
fn same(values: &[&str]) -> Vec<(String, String)> {
    values.iter().map(|value| ((*value).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_records_has_korean() {
        for kind in RECORD_KINDS {
            let name = kind_name(kind);
            assert_ne!(in_language(Language::Korean, name), name);
        }
    }
}
