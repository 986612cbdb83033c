//! `…/history` of an application and of an organization: who changed it, for its members.

use askama::Template;
use domain::ChannelId;
use domain::audit::{ActorKind, AuditEntry};
use domain::limits::ORGANIZATION_MEMBERS_MAX;
use domain::member::MemberRole;
use service::audit_log::AuditFilter;
use web::pages::{Area, Lang, Moment, Shell, filters};
use web::{PageAnswer, PathId, Person};

use super::access::{application, organization};
use super::frame::address;
use super::paths::DEVELOPERS;
use crate::audit_words::{details, entry_sentence};

/// Entries on one page.
const PAGE_SIZE: i64 = 30;

struct HistoryRow {
    actor: String,
    sentence: &'static str,
    details: Vec<(String, String)>,
    at: Moment,
}

#[derive(Template)]
#[template(path = "site/developers/history.html")]
struct HistoryPage<'a> {
    shell: Shell<'a>,
    t: &'static HistoryTexts,
    /// The name of the application or the organization. Untrusted.
    name: &'a str,
    up: String,
    rows: Vec<HistoryRow>,
    first: Option<String>,
    next: Option<String>,
}

impl HistoryPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// What has a history, and who may be named in it.
struct HistoryOf<'a> {
    id: &'a str,
    name: &'a str,
    up: String,
    members: Vec<ChannelId>,
}

/// `GET /developers/applications/{clientId}/history?next=`.
pub(super) async fn of_application(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = application(&person, &id, MemberRole::Viewer).await?;
    let app = &application.details.life.application;
    let members = match &app.organization {
        Some(organization) => members(&person, &organization.organization_id).await?,
        None => app.owner.iter().cloned().collect(),
    };
    let up = address(app.client_id.as_str(), "");
    page(&person, HistoryOf { id: app.client_id.as_str(), name: &app.name, up, members }).await
}

/// `GET /developers/organizations/{organizationId}/history?next=`.
pub(super) async fn of_organization(PathId(id): PathId, person: Person) -> PageAnswer {
    let membership = organization(&person, &id, MemberRole::Viewer).await?;
    let organization = &membership.organization;
    let id = &organization.organization_id;
    let members = members(&person, id).await?;
    let up = format!("{DEVELOPERS}/organizations/{id}");
    page(&person, HistoryOf { id: id.as_str(), name: &organization.name, up, members }).await
}

async fn members(person: &Person, id: &domain::OrganizationId) -> Result<Vec<ChannelId>, service::Error> {
    let service = person.visitor.web().service();
    let members = service.organization_members(id, ORGANIZATION_MEMBERS_MAX, None).await?.items;
    Ok(members.into_iter().map(|member| member.channel_id).collect())
}

async fn page(person: &Person, of: HistoryOf<'_>) -> PageAnswer {
    let (visitor, lang) = (&person.visitor, person.visitor.lang());
    let filter = AuditFilter { subject: Some(of.id.to_owned()), ..AuditFilter::default() };
    let cursor = visitor.request().parameter("next");
    let found = visitor.web().service().audit_log(filter, PAGE_SIZE, cursor.as_deref()).await?;
    let here = visitor.request().path();
    let t = texts(lang);
    let row = |entry: AuditEntry| HistoryRow {
        actor: actor(&entry, &of.members, t),
        sentence: entry_sentence(entry.action, &entry.details, lang),
        details: details(&entry.details, lang),
        at: Moment::of(entry.created_at, visitor.now(), lang),
    };
    visitor.page(&HistoryPage {
        shell: visitor.shell(Area::Developers),
        t,
        name: of.name,
        first: cursor.is_some().then(|| here.to_owned()),
        next: found.next.map(|next| format!("{here}?next={next}")),
        rows: found.items.into_iter().map(row).collect(),
        up: of.up.clone(),
    })
}

/// Who it was. Only those who belong to it now are named: operators are the operator, and others have left.
fn actor(entry: &AuditEntry, members: &[ChannelId], t: &HistoryTexts) -> String {
    let is_member = members.iter().any(|member| member.as_str() == entry.actor_id);
    match (entry.actor_kind, is_member, entry.actor_name.as_str()) {
        (ActorKind::Person, true, name) if !name.is_empty() => name.to_owned(),
        (ActorKind::Person, ..) => t.other.to_owned(),
        _ => t.operator.to_owned(),
    }
}

struct HistoryTexts {
    title: &'static str,
    lead: &'static str,
    operator: &'static str,
    other: &'static str,
    none: &'static str,
    none_about: &'static str,
}

const fn texts(lang: Lang) -> &'static HistoryTexts {
    const KO: HistoryTexts = HistoryTexts {
        title: "변경 기록",
        lead: "누가 무엇을 바꿨는지, 400일 동안 보관합니다.",
        operator: "운영자",
        other: "운영자 또는 이전 구성원",
        none: "기록이 없습니다.",
        none_about: "바꾼 것이 있으면 여기에 표시됩니다.",
    };
    const EN: HistoryTexts = HistoryTexts {
        title: "History",
        lead: "Who changed what, for 400 days.",
        operator: "The operator",
        other: "The operator or a former member",
        none: "There is no entry.",
        none_about: "Changes are listed here.",
    };
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}
