//! `/developers`: the applications and organizations of a person.

use askama::Template;
use service::organization_members::Membership;
use service::owned_applications::PersonApplication;
use web::pages::{AppFace, Area, Lang, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, Person, Visitor};

use super::access::is_cursor;
use super::frame::{address, role_name};
use super::paths::{DEVELOPERS, NEW_ORGANIZATION, REGISTER};
use super::state::AppState;

/// Applications on one page.
const PAGE_SIZE: i64 = 20;

struct AppLine<'a> {
    name: &'a str,
    href: String,
    logo: Option<String>,
    organization: Option<&'a str>,
    scopes: usize,
    last_used: Moment,
    state: AppState,
}

struct OrganizationLine<'a> {
    name: &'a str,
    href: String,
    role: &'static str,
    is_verified: bool,
    is_disabled: bool,
}

/// An invitation to an organization.
struct InvitationLine<'a> {
    name: &'a str,
    role: &'static str,
    form: FormTarget,
}

#[derive(Template)]
#[template(path = "site/developers/list.html")]
struct DevelopersPage<'a> {
    shell: Shell<'a>,
    t: &'static ListTexts,
    apps: Vec<AppLine<'a>>,
    organizations: Vec<OrganizationLine<'a>>,
    invitations: Vec<InvitationLine<'a>>,
    register: &'static str,
    new_organization: &'static str,
    first: Option<String>,
    next: Option<String>,
}

impl DevelopersPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET /developers`. `next` is the cursor of a further page.
pub(crate) async fn show(person: Person) -> PageAnswer {
    let Person { visitor, channel_id, .. } = &person;
    let (service, lang) = (visitor.web().service(), visitor.lang());
    let cursor = visitor.request().parameter("next");
    let found = service.applications_of_person(channel_id, PAGE_SIZE, cursor.as_deref()).await;
    // A cursor of another person or of an older key begins again.
    let found = match found {
        Err(error) if is_cursor(&error.refusal()) => {
            return Ok(visitor.redirect(DEVELOPERS, None));
        }
        found => found?,
    };
    let memberships = service.memberships(channel_id).await?;
    let invitations = service.invitations_of_person(channel_id).await?;
    let is_first = cursor.is_none();
    visitor.page(&DevelopersPage {
        shell: visitor.shell(Area::Developers),
        t: texts(lang),
        apps: found.items.iter().map(|item| app_line(visitor, item)).collect(),
        organizations: memberships.iter().map(|one| organization_line(one, lang)).collect(),
        invitations: invitations
            .iter()
            .map(|invitation| InvitationLine {
                name: &invitation.organization_name,
                role: role_name(invitation.role, lang),
                form: visitor
                    .form(format!("{DEVELOPERS}/organizations/{}/invitation", invitation.organization_id)),
            })
            .collect(),
        register: REGISTER,
        new_organization: NEW_ORGANIZATION,
        first: (!is_first).then(|| DEVELOPERS.to_owned()),
        next: found.next.map(|next| format!("{DEVELOPERS}?next={next}")),
    })
}

fn app_line<'a>(visitor: &Visitor, item: &'a PersonApplication) -> AppLine<'a> {
    let (now, lang) = (visitor.now(), visitor.lang());
    let application = &item.life.application;
    AppLine {
        name: &application.name,
        href: address(application.client_id.as_str(), ""),
        logo: AppFace::of(application).logo,
        organization: application.organization.as_ref().map(|organization| organization.name.as_str()),
        scopes: application.scopes.iter().count(),
        last_used: Moment::of(item.life.last_used_at, now, lang),
        state: AppState::of(&item.life, now, lang),
    }
}

fn organization_line(membership: &Membership, lang: Lang) -> OrganizationLine<'_> {
    let organization = &membership.organization;
    OrganizationLine {
        name: &organization.name,
        href: format!("{DEVELOPERS}/organizations/{}", organization.organization_id),
        role: role_name(membership.role, lang),
        is_verified: organization.verified,
        is_disabled: membership.disabled_at.is_some(),
    }
}

struct ListTexts {
    title: &'static str,
    lead: &'static str,
    apps: &'static str,
    app: &'static str,
    state: &'static str,
    scopes: &'static str,
    last_used: &'static str,
    open: &'static str,
    register: &'static str,
    no_apps: &'static str,
    no_apps_about: &'static str,
    organizations: &'static str,
    organizations_about: &'static str,
    no_organizations: &'static str,
    new_organization: &'static str,
    role: &'static str,
    verified: &'static str,
    not_verified: &'static str,
    disabled: &'static str,
    invitations: &'static str,
    invited_as: &'static str,
    accept: &'static str,
    decline: &'static str,
}

fn texts(lang: Lang) -> &'static ListTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ListTexts = ListTexts {
    title: "개발자 센터",
    lead: "앱을 등록하고 권한과 시크릿을 관리합니다. 조직을 만들면 여러 사람이 함께 앱을 관리할 수 있습니다.",
    apps: "내 앱",
    app: "앱",
    state: "상태",
    scopes: "권한",
    last_used: "마지막 사용",
    open: "열기",
    register: "앱 등록",
    no_apps: "등록한 앱이 없습니다.",
    no_apps_about: "앱을 등록하면 바로 클라이언트 ID와 시크릿을 받습니다.",
    organizations: "조직",
    organizations_about: "드롭스를 쓰려면 인증된 조직이 필요합니다.",
    no_organizations: "속한 조직이 없습니다.",
    new_organization: "조직 만들기",
    role: "역할",
    verified: "인증됨",
    not_verified: "인증되지 않음",
    disabled: "운영자가 사용 중지",
    invitations: "받은 초대",
    invited_as: "초대받은 역할:",
    accept: "수락",
    decline: "거절",
};

const EN: ListTexts = ListTexts {
    title: "Developer center",
    lead: "Register apps and manage their scopes and secrets. In an organization several people manage apps together.",
    apps: "Your apps",
    app: "App",
    state: "State",
    scopes: "Scopes",
    last_used: "Last used",
    open: "Open",
    register: "Register an app",
    no_apps: "You have no app yet.",
    no_apps_about: "Register one, and you get its client id and its secret at once.",
    organizations: "Organizations",
    organizations_about: "Drops (드롭스) take a verified organization.",
    no_organizations: "You are in no organization.",
    new_organization: "Make an organization",
    role: "Role",
    verified: "Verified",
    not_verified: "Not verified",
    disabled: "Disabled by the operator",
    invitations: "Invitations",
    invited_as: "Invited as:",
    accept: "Accept",
    decline: "Decline",
};
