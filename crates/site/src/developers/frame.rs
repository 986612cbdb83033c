//! What the pages of an application share: its head and its tabs.

use domain::member::MemberRole;
use service::owned_applications::DeveloperApplication;
use web::Visitor;
use web::pages::{AppFace, Lang};

use super::find_words::{FindWords, find_words};
use super::paths::DEVELOPERS;
use super::state::AppState;

/// A tab of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppTab {
    /// What it is.
    Overview,
    /// Name, addresses, logo.
    Settings,
    /// What it asks people for.
    Scopes,
    /// How it proves who it is.
    Secrets,
    /// Its sockets.
    Sessions,
    /// Its requests and quotas.
    Usage,
    /// The webhook and its messages.
    Webhook,
    /// Whether its addresses are reached.
    Connection,
    /// Disable, hand over, delete.
    Manage,
}

/// Each tab: the end of its path, its words, and the role that sees it.
const TABS: [(AppTab, &str, &str, &str, MemberRole); 9] = [
    (AppTab::Overview, "", "개요", "Overview", MemberRole::Viewer),
    (AppTab::Settings, "/settings", "설정", "Settings", MemberRole::Developer),
    (AppTab::Scopes, "/scopes", "권한", "Scopes", MemberRole::Developer),
    (AppTab::Secrets, "/secrets", "시크릿", "Secrets", MemberRole::Developer),
    (AppTab::Sessions, "/sessions", "세션", "Sessions", MemberRole::Viewer),
    (AppTab::Usage, "/usage", "사용량", "Usage", MemberRole::Viewer),
    (AppTab::Webhook, "/webhook", "웹훅", "Webhook", MemberRole::Viewer),
    (AppTab::Connection, "/connection", "연결 테스트", "Connection test", MemberRole::Developer),
    (AppTab::Manage, "/manage", "관리", "Manage", MemberRole::Developer),
];

/// A link to a tab.
#[derive(Debug)]
pub(crate) struct TabLink {
    pub href: String,
    pub label: &'static str,
    pub is_here: bool,
}

/// The head and the tabs of an application's page.
#[derive(Debug)]
pub(crate) struct AppFrame<'a> {
    pub name: &'a str,
    /// The name of its organization, and the address of that organization's page.
    pub organization: Option<(&'a str, String)>,
    pub is_verified: bool,
    pub logo: Option<String>,
    pub state: AppState,
    pub tabs: Vec<TabLink>,
    /// The words of the way back, and of the tabs' list.
    pub up: &'static str,
    pub tabs_label: &'static str,
    pub verified: &'static str,
    /// The words of the field that takes any id.
    pub find: &'static FindWords,
}

impl<'a> AppFrame<'a> {
    /// The frame of an application's page.
    pub(crate) fn new(visitor: &Visitor, application: &'a DeveloperApplication, here: AppTab) -> Self {
        let (lang, now) = (visitor.lang(), visitor.now());
        let life = &application.details.life;
        let app = &life.application;
        let organization = app.organization.as_ref();
        let is_deleted = life.deleted_at.is_some();
        let tab = |(tab, end, ko, en, _): (AppTab, &str, &'static str, &'static str, MemberRole)| TabLink {
            href: address(app.client_id.as_str(), end),
            label: lang.pick(ko, en),
            is_here: tab == here,
        };
        // Of a deleted application only restoring is left.
        let is_shown = |tab: AppTab, role| {
            application.role >= role && (!is_deleted || matches!(tab, AppTab::Overview | AppTab::Manage))
        };
        Self {
            name: &app.name,
            organization: organization.map(|organization| {
                let id = organization.organization_id.as_str();
                (organization.name.as_str(), format!("{DEVELOPERS}/organizations/{id}"))
            }),
            is_verified: organization.is_some_and(|organization| organization.verified),
            logo: AppFace::of(app).logo,
            state: AppState::of(life, now, lang),
            tabs: TABS.into_iter().filter(|(tab, .., role)| is_shown(*tab, *role)).map(tab).collect(),
            up: lang.pick("개발자 센터", "Developer center"),
            tabs_label: lang.pick("앱 메뉴", "Pages of this app"),
            verified: lang.pick("인증된 조직", "Verified organization"),
            find: find_words(lang),
        }
    }
}

/// The address of a page of an application. `end` begins with a slash.
pub(crate) fn address(client_id: &str, end: &str) -> String {
    format!("{DEVELOPERS}/applications/{client_id}{end}")
}

/// The name of a role.
pub(crate) fn role_name(role: MemberRole, lang: Lang) -> &'static str {
    match role {
        MemberRole::Admin => lang.pick("관리자", "Admin"),
        MemberRole::Developer => lang.pick("개발자", "Developer"),
        MemberRole::Viewer => lang.pick("보기 전용", "Viewer"),
    }
}
