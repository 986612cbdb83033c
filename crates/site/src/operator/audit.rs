//! `/operator/audit`: who changed what, for administrators.

use askama::Template;
use domain::Timestamp;
use domain::audit::{ActorKind, AuditAction, AuditEntry, SubjectKind};
use domain::limits::DAY_MS;
use service::audit_log::AuditFilter;
use web::pages::{Area, Lang, Moment, Shell, filters};
use web::{OperatorPerson, PageAnswer, Visitor, role};

use super::frame::{Frame, Section, href};
use super::paths::{APPLICATIONS, AUDIT, KEYS, ORGANIZATIONS, PAGE_SIZE, PEOPLE};
use crate::audit_words::{details, entry_sentence, sentence};

/// An entry in the list.
struct EntryRow {
    /// Who it was.
    actor: String,
    /// The page of who it was.
    actor_href: Option<String>,
    /// What was done, with the thing that it was done to.
    sentence: &'static str,
    subject: String,
    /// The name of the thing, if it has one now.
    subject_name: String,
    subject_href: Option<String>,
    details: Vec<(String, String)>,
    at: Moment,
    request_id: String,
}

#[derive(Template)]
#[template(path = "site/operator/audit.html")]
struct AuditPage<'a> {
    shell: Shell<'a>,
    frame: Frame,
    t: &'static AuditTexts,
    subject: String,
    actor: String,
    /// The first and the last day, UTC.
    from: String,
    to: String,
    actions: Vec<(&'static str, &'static str, bool)>,
    rows: Vec<EntryRow>,
    first: Option<String>,
    next: Option<String>,
}

impl AuditPage<'_> {
    fn title(&self) -> &'static str {
        Section::Audit.title(self.shell.lang)
    }
}

/// `GET /operator/audit?subject=&actor=&action=&from=&to=&next=`.
pub(super) async fn list(operator: OperatorPerson<role::Admin>) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let parameter = |name| visitor.request().parameter(name).unwrap_or_default();
    let text = |name| parameter(name).trim().replace('\0', "");
    let (subject, actor) = (text("subject"), text("actor"));
    let action = AuditAction::from_name(&parameter("action"));
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let (from, since) = day(&text("from"), 0);
    let (to, until) = day(&text("to"), DAY_MS);
    let filter = AuditFilter { subject: given(&subject), actor: given(&actor), action, since, until };
    let next = visitor.request().parameter("next");
    let page = visitor.web().service().audit_log(filter, PAGE_SIZE, next.as_deref()).await?;
    let action_text = action.map_or("", AuditAction::name);
    let address = |next: &str| {
        let filter = [("subject", subject.as_str()), ("actor", actor.as_str()), ("action", action_text)];
        let place = [("from", from.as_str()), ("to", to.as_str()), ("next", next)];
        href(AUDIT, &[filter, place].concat())
    };
    visitor.page(&AuditPage {
        first: next.is_some().then(|| address("")),
        next: page.next.as_deref().map(address),
        shell: visitor.shell(Area::Operator),
        frame: Frame::new(&operator, Section::Audit),
        t: texts(lang),
        actions: AuditAction::ALL
            .iter()
            .map(|one| (one.name(), sentence(*one, lang), action == Some(*one)))
            .collect(),
        rows: page.items.into_iter().map(|entry| row(entry, visitor)).collect(),
        subject,
        actor,
        from,
        to,
    })
}

/// A day as it was chosen, and the time some milliseconds after its beginning; empty and `None` for
/// anything else.
fn day(text: &str, after_ms: i64) -> (String, Option<Timestamp>) {
    match Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")) {
        Some(at) => (text.to_owned(), Some(at.plus_ms(after_ms))),
        None => (String::new(), None),
    }
}

fn row(entry: AuditEntry, visitor: &Visitor) -> EntryRow {
    let lang = visitor.lang();
    EntryRow {
        actor: actor_name(&entry, lang),
        actor_href: actor_page(&entry),
        sentence: entry_sentence(entry.action, &entry.details, lang),
        subject_href: subject_page(&entry),
        subject: entry.subject_id,
        subject_name: entry.subject_name,
        details: details(&entry.details, lang),
        at: Moment::of(entry.created_at, visitor.now(), lang),
        request_id: entry.request_id,
    }
}

fn actor_name(entry: &AuditEntry, lang: Lang) -> String {
    match (entry.actor_kind, entry.actor_name.as_str()) {
        (ActorKind::ConfiguredKey, _) => lang.pick("설정 파일의 키", "The configured key").to_owned(),
        (_, "") => entry.actor_id.clone(),
        (_, name) => name.to_owned(),
    }
}

fn actor_page(entry: &AuditEntry) -> Option<String> {
    match entry.actor_kind {
        ActorKind::OperatorKey => Some(format!("{KEYS}/{}", entry.actor_id)),
        ActorKind::Person => Some(format!("{PEOPLE}/{}", entry.actor_id)),
        ActorKind::ConfiguredKey | ActorKind::Command => None,
    }
}

fn subject_page(entry: &AuditEntry) -> Option<String> {
    let path = match entry.subject_kind {
        SubjectKind::Application => APPLICATIONS,
        SubjectKind::Channel => PEOPLE,
        SubjectKind::OperatorKey => KEYS,
        SubjectKind::Organization => ORGANIZATIONS,
        SubjectKind::Campaign | SubjectKind::Category | SubjectKind::Session => return None,
    };
    Some(format!("{path}/{}", entry.subject_id))
}

/// The words of the page.
struct AuditTexts {
    lead: &'static str,
    subject: &'static str,
    actor: &'static str,
    action: &'static str,
    any: &'static str,
    search: &'static str,
    id_hint: &'static str,
    from: &'static str,
    to: &'static str,
    request: &'static str,
    none: &'static str,
    none_about: &'static str,
}

fn texts(lang: Lang) -> &'static AuditTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: AuditTexts = AuditTexts {
    lead: "플랫폼 API와 이 페이지, 개발자 센터에서 누가 무엇을 바꿨는지, 400일 동안 보관합니다.",
    subject: "대상의 ID",
    actor: "실행한 사람 또는 키의 ID",
    action: "한 일",
    any: "모두",
    search: "찾기",
    id_hint: "비워 두면 모두.",
    from: "이날부터 (UTC)",
    to: "이날까지 (UTC)",
    request: "요청",
    none: "기록이 없습니다.",
    none_about: "조건을 줄여 보세요.",
};

const EN: AuditTexts = AuditTexts {
    lead: "Who changed what, over the platform API, on these pages and in the developer center, for 400 days.",
    subject: "Id of what was changed",
    actor: "Id of the person or key",
    action: "What was done",
    any: "Anything",
    search: "Search",
    id_hint: "Empty: any.",
    from: "From (UTC)",
    to: "To (UTC)",
    request: "Request",
    none: "There is no entry.",
    none_about: "Try fewer conditions.",
};
