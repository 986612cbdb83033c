//! `/operator/organizations`: organizations, verified, disabled and enabled.

use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::{OrganizationId, Refusal};
use service::organizations::OrganizationDetails;
use web::pages::{Flash, Lang};
use web::{OperatorPerson, PageAnswer, PathId, PostedByOperator, Visitor, role};

use super::detail::{Act, Detail, DetailTable};
use super::frame::{Badge, Section, Shown, href, not_found, unknown_action};
use super::list::{ItemList, ListRow, Search, nothing_here, searched};
use super::paths::{APPLICATIONS, AUDIT, ORGANIZATIONS, PAGE_SIZE};
use super::related::members_of;

/// Applications that the page of an organization shows.
const APPLICATIONS_SHOWN: i64 = 50;

/// `GET /operator/organizations?q=&next=`.
pub(super) async fn list(operator: OperatorPerson<role::Read>) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let next = visitor.request().parameter("next");
    let text = searched(&visitor.request().parameter("q").unwrap_or_default());
    let service = visitor.web().service();
    let page = match text.is_empty() {
        true => service.organizations(PAGE_SIZE, next.as_deref()).await?,
        false => service.organizations_called(&text, PAGE_SIZE, next.as_deref()).await?,
    };
    let list = ItemList {
        section: Section::Organizations,
        lead: lang.pick(
            "드롭스는 인증된 조직의 애플리케이션만 쓸 수 있습니다.",
            "Only applications of a verified organization may use drops.",
        ),
        search: Some(Search::of(&text, lang.pick("이름 또는 ID", "Name or id"), lang)),
        states: Vec::new(),
        headers: vec![lang.pick("조직", "Organization"), lang.pick("사용 중지", "Disabled")],
        rows: page.items.iter().map(|item| row(item, visitor)).collect(),
        empty: (
            lang.pick("찾은 조직이 없습니다.", "No organization was found."),
            nothing_here(page.next.is_some(), lang),
        ),
        parameters: vec![("q", text)],
        is_later: next.is_some(),
        next: page.next,
    };
    list.page(&operator)
}

fn badges(details: &OrganizationDetails, lang: Lang) -> Vec<Badge> {
    let verified = if details.organization.verified {
        Badge::new("good", lang.pick("인증됨", "Verified"))
    } else {
        Badge::new("plain", lang.pick("인증 전", "Not verified"))
    };
    let disabled = details.disabled_at.map(|_| Badge::new("bad", lang.pick("사용 중지됨", "Disabled")));
    [Some(verified), disabled].into_iter().flatten().collect()
}

fn row(details: &OrganizationDetails, visitor: &Visitor) -> ListRow {
    let organization = &details.organization;
    ListRow {
        href: format!("{ORGANIZATIONS}/{}", organization.organization_id),
        name: organization.name.clone(),
        hint: organization.organization_id.to_string(),
        badges: badges(details, visitor.lang()),
        cells: vec![Shown::moment(details.disabled_at, visitor)],
    }
}

/// `GET /operator/organizations/{organizationId}`.
pub(super) async fn show(operator: OperatorPerson<role::Read>, PathId(id): PathId) -> PageAnswer {
    detail(&operator, &organization_id(&id)?).await?.page(&operator)
}

/// `POST /operator/organizations/{organizationId}`: what the button says.
pub(super) async fn change(
    PathId(id): PathId,
    PostedByOperator { operator, fields }: PostedByOperator<role::Write>,
) -> PageAnswer {
    let (id, service) = (organization_id(&id)?, operator.service());
    match fields.text("action") {
        "verify" => service.verify_organization(&id, true).await?,
        "unverify" => service.verify_organization(&id, false).await?,
        "disable" => service.disable_organization(&id).await?,
        "enable" => service.enable_organization(&id).await?,
        _ => return Err(unknown_action().into()),
    }
    let visitor = operator.visitor();
    Ok(visitor.redirect(visitor.request().path(), Some(Flash::Done)))
}

fn organization_id(id: &str) -> Result<OrganizationId, Refusal> {
    OrganizationId::parse("organizationId", id).map_err(|_| not_found(Resource::Organization))
}

async fn detail<R>(operator: &OperatorPerson<R>, id: &OrganizationId) -> Result<Detail, service::Error> {
    let visitor = operator.visitor();
    let (lang, service) = (visitor.lang(), visitor.web().service());
    let details = service.organization_details(id).await?;
    let page = service.applications(Some(id.clone()), APPLICATIONS_SHOWN, None).await?;
    let rows = page.applications.iter().map(|life| {
        vec![
            Shown::Link {
                href: format!("{APPLICATIONS}/{}", life.application.client_id),
                text: life.application.name.clone(),
            },
            Shown::Code(life.application.client_id.to_string()),
            Shown::moment(life.disabled_at, visitor),
        ]
    });
    let table = DetailTable {
        id: "applications",
        heading: lang.pick("애플리케이션", "Applications"),
        headers: vec![lang.pick("애플리케이션", "Application"), "ID", lang.pick("사용 중지", "Disabled")],
        rows: rows.collect(),
        empty: lang.pick("애플리케이션이 없습니다.", "It has no application."),
    };
    let mut links = Vec::new();
    if operator.role >= OperatorRole::Admin {
        links.push((
            href(AUDIT, &[("subject", id.as_str())]),
            lang.pick("감사 로그에서 보기", "In the audit log"),
        ));
    }
    let may_change = operator.role >= OperatorRole::Write;
    Ok(Detail {
        section: Section::Organizations,
        name: details.organization.name.clone(),
        id: id.to_string(),
        badges: badges(&details, lang),
        facts: vec![(lang.pick("사용 중지", "Disabled"), Shown::moment(details.disabled_at, visitor))],
        tables: vec![members_of(visitor, id).await?, table],
        links,
        once: None,
        form: visitor.form(format!("{ORGANIZATIONS}/{id}")),
        acts: if may_change { acts(&details, lang) } else { Vec::new() },
        choice: None,
    })
}

fn acts(details: &OrganizationDetails, lang: Lang) -> Vec<Act> {
    let verify = if details.organization.verified {
        Act::danger(
            "unverify",
            lang.pick("인증 취소", "Revoke the verification"),
            lang.pick(
                "애플리케이션의 드롭스 호출이 거부되고 웹훅이 멈춥니다.",
                "Its applications are refused for drops, and their webhooks are on hold.",
            ),
        )
    } else {
        Act::new(
            "verify",
            lang.pick("인증", "Verify"),
            lang.pick("애플리케이션이 드롭스를 쓸 수 있게 됩니다.", "Its applications may use drops."),
        )
    };
    let switch = if details.disabled_at.is_some() {
        Act::new(
            "enable",
            lang.pick("사용 재개", "Enable"),
            lang.pick("전에 인증되었다면 다시 인증된 조직입니다.", "It is verified again, if it was before."),
        )
    } else {
        Act::danger(
            "disable",
            lang.pick("사용 중지", "Disable"),
            lang.pick(
                "재개할 때까지 인증되지 않은 조직으로 다룹니다.",
                "It counts as unverified until it is enabled again.",
            ),
        )
    };
    vec![verify, switch]
}
