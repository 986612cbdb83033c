//! What belongs to a person, an application or an organization, as tables with links to the pages of each.

use std::collections::{BTreeSet, HashMap};

use domain::session::SessionDetails;
use domain::user_agent::device;
use domain::{ChannelId, OrganizationId};
use service::SessionFilter;
use web::Visitor;
use web::pages::{Lang, Moment};

use super::detail::DetailTable;
use super::frame::Shown;
use super::paths::{APPLICATIONS, ORGANIZATIONS, PEOPLE};
use crate::developers::role_name;

/// Rows of a table.
const ROWS_SHOWN: i64 = 20;

fn link(path: &str, id: &str, text: &str) -> Shown {
    Shown::Link { href: format!("{path}/{id}"), text: text.to_owned() }
}

/// The applications of a person, also those of the person's organizations.
pub(super) async fn applications_of(
    visitor: &Visitor,
    person: &ChannelId,
) -> Result<DetailTable, service::Error> {
    let lang = visitor.lang();
    let found = visitor.web().service().applications_of_person(person, ROWS_SHOWN, None).await?;
    let rows = found.items.iter().map(|one| {
        let application = &one.life.application;
        let organization = application.organization.as_ref();
        vec![
            link(APPLICATIONS, application.client_id.as_str(), &application.name),
            organization
                .map_or(Shown::Nothing, |of| link(ORGANIZATIONS, of.organization_id.as_str(), &of.name)),
            Shown::Text(role_name(one.role, lang).to_owned()),
        ]
    });
    Ok(DetailTable {
        id: "applications",
        heading: lang.pick("애플리케이션", "Applications"),
        headers: vec![
            lang.pick("애플리케이션", "Application"),
            lang.pick("조직", "Organization"),
            lang.pick("역할", "Role"),
        ],
        rows: rows.collect(),
        empty: lang.pick("애플리케이션이 없습니다.", "There is none."),
    })
}

/// The organizations of a person.
pub(super) async fn organizations_of(
    visitor: &Visitor,
    person: &ChannelId,
) -> Result<DetailTable, service::Error> {
    let lang = visitor.lang();
    let found = visitor.web().service().memberships(person).await?;
    let rows = found.iter().map(|one| {
        let organization = &one.organization;
        vec![
            link(ORGANIZATIONS, organization.organization_id.as_str(), &organization.name),
            Shown::Text(role_name(one.role, lang).to_owned()),
            Shown::moment(Some(one.created_at), visitor),
        ]
    });
    Ok(DetailTable {
        id: "organizations",
        heading: lang.pick("조직", "Organizations"),
        headers: vec![
            lang.pick("조직", "Organization"),
            lang.pick("역할", "Role"),
            lang.pick("가입", "Since"),
        ],
        rows: rows.collect(),
        empty: lang.pick("조직이 없습니다.", "There is none."),
    })
}

/// The applications that a person has allowed something, the latest first.
pub(super) async fn connected_to(
    visitor: &Visitor,
    person: &ChannelId,
) -> Result<DetailTable, service::Error> {
    let lang = visitor.lang();
    let found = visitor.web().service().connected_applications(person, None).await?;
    let rows = found.applications.iter().map(|one| {
        vec![
            link(APPLICATIONS, one.application.client_id.as_str(), &one.application.name),
            Shown::moment(Some(one.created_at), visitor),
            Shown::moment(one.last_used_at, visitor),
        ]
    });
    Ok(DetailTable {
        id: "connected",
        heading: lang.pick("허용한 앱", "Connected apps"),
        headers: vec![
            lang.pick("애플리케이션", "Application"),
            lang.pick("허용", "Allowed"),
            lang.pick("마지막 토큰", "Last token"),
        ],
        rows: rows.collect(),
        empty: lang.pick("허용한 앱이 없습니다.", "There is none."),
    })
}

/// The members of an organization.
pub(super) async fn members_of(
    visitor: &Visitor,
    organization: &OrganizationId,
) -> Result<DetailTable, service::Error> {
    let lang = visitor.lang();
    let size = domain::limits::ORGANIZATION_MEMBERS_MAX;
    let found = visitor.web().service().organization_members(organization, size, None).await?;
    let rows = found.items.iter().map(|member| {
        vec![
            link(PEOPLE, member.channel_id.as_str(), &member.channel_name),
            Shown::Text(role_name(member.role, lang).to_owned()),
            Shown::moment(Some(member.created_at), visitor),
        ]
    });
    Ok(DetailTable {
        id: "members",
        heading: lang.pick("구성원", "Members"),
        headers: vec![lang.pick("사람", "Person"), lang.pick("역할", "Role"), lang.pick("가입", "Since")],
        rows: rows.collect(),
        empty: lang.pick("구성원이 없습니다.", "It has no member."),
    })
}

/// The browsers in which a person is signed in, the latest sign-ins first.
pub(super) async fn browsers_of(
    visitor: &Visitor,
    person: &ChannelId,
) -> Result<DetailTable, service::Error> {
    let lang = visitor.lang();
    let found = visitor.web().service().browser_sessions(person, None, None).await?;
    let unknown = lang.pick("알 수 없는 브라우저", "Unknown browser");
    let rows = found.browsers.iter().map(|browser| {
        let used = browser.last_used_at;
        vec![
            Shown::Text(device(&browser.user_agent).unwrap_or_else(|| unknown.to_owned())),
            Shown::moment(Some(browser.since), visitor),
            used.map_or(Shown::Nothing, |used| Shown::Moment(Moment::to_the_hour(used, visitor.now(), lang))),
            Shown::Code(browser.address.clone()),
        ]
    });
    Ok(DetailTable {
        id: "browsers",
        heading: lang.pick("로그인한 브라우저", "Signed-in browsers"),
        headers: vec![
            lang.pick("브라우저", "Browser"),
            lang.pick("로그인", "Signed in"),
            lang.pick("마지막 사용", "Last used"),
            lang.pick("주소", "Address"),
        ],
        rows: rows.collect(),
        empty: lang.pick("로그인한 브라우저가 없습니다.", "No browser is signed in."),
    })
}

/// The latest connected sessions of a person or an application.
pub(super) async fn sessions_of(
    visitor: &Visitor,
    filter: SessionFilter,
) -> Result<DetailTable, service::Error> {
    let lang = visitor.lang();
    let filter = SessionFilter { connected: Some(true), ..filter };
    let found = visitor.web().service().list_sessions(filter, ROWS_SHOWN, None).await?;
    let names = names_of_owners(visitor, &found.sessions).await?;
    let named = |path, id: &str| link(path, id, names.get(id).map_or(id, String::as_str));
    let rows = found.sessions.iter().map(|session| {
        vec![
            Shown::Code(session.session_key.to_string()),
            named(APPLICATIONS, session.owner.client_id().as_str()),
            session.owner.channel_id().map_or(Shown::Nothing, |id| named(PEOPLE, id.as_str())),
            Shown::moment(Some(session.connected_at), visitor),
        ]
    });
    Ok(DetailTable {
        id: "sessions",
        heading: sessions_heading(lang),
        headers: vec![
            lang.pick("세션", "Session"),
            lang.pick("애플리케이션", "Application"),
            lang.pick("사람", "Person"),
            lang.pick("연결", "Connected"),
        ],
        rows: rows.collect(),
        empty: lang.pick("연결된 세션이 없습니다.", "No session is connected."),
    })
}

/// The names of the applications and people of sessions, by their ids.
async fn names_of_owners(
    visitor: &Visitor,
    sessions: &[SessionDetails],
) -> Result<HashMap<String, String>, service::Error> {
    let service = visitor.web().service();
    let people: BTreeSet<_> = sessions.iter().filter_map(|session| session.owner.channel_id()).collect();
    let people = service.channels(people.into_iter().cloned().collect()).await?;
    let mut names: HashMap<_, _> =
        people.into_iter().map(|person| (person.channel_id.to_string(), person.name)).collect();
    let applications: BTreeSet<_> = sessions.iter().map(|session| session.owner.client_id()).collect();
    for client_id in applications {
        if let Some(application) = service.application(client_id).await? {
            names.insert(client_id.to_string(), application.name);
        }
    }
    Ok(names)
}

const fn sessions_heading(lang: Lang) -> &'static str {
    lang.pick("연결된 세션 (최근 20개)", "Connected sessions (the latest 20)")
}
