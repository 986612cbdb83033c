//! `/developers/applications/{clientId}`: what an application is.

use askama::Template;
use domain::limits::UNUSED_APPLICATION_MS;
use domain::member::MemberRole;
use web::pages::{AppFace, Area, Lang, Moment, ScopeLine, Shell, filters};
use web::{PageAnswer, PathId, Person};

use super::access::application;
use super::frame::{AppFrame, AppTab, role_name};
use super::usage::countdown;
use crate::affected::counted;

#[derive(Template)]
#[template(path = "site/developers/overview.html")]
struct AppOverviewPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static AppOverviewTexts,
    role: &'static str,
    client_id: &'a str,
    redirect_uris: &'a [String],
    scopes: Vec<ScopeLine<'a>>,
    links: Vec<(&'a str, String)>,
    profile: Option<&'static str>,
    /// People who have tokens of it, and its connected sessions, counted up to a limit.
    users: String,
    sessions: String,
    created: Moment,
    last_used: Option<Moment>,
    /// When it is deleted unless it is used, and the days until then. Not of a deleted application.
    deletes: Option<(Moment, String)>,
}

impl AppOverviewPage<'_> {
    fn title(&self) -> &str {
        self.frame.name
    }
}

/// `GET /developers/applications/{clientId}`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = application(&person, &id, MemberRole::Viewer).await?;
    let visitor = &person.visitor;
    let (lang, now) = (visitor.lang(), visitor.now());
    let life = &application.details.life;
    let app = &life.application;
    let affected = visitor.web().service().affected_by(&app.client_id).await?;
    visitor.page(&AppOverviewPage {
        shell: visitor.shell(Area::Developers),
        frame: AppFrame::new(visitor, &application, AppTab::Overview),
        t: texts(lang),
        role: role_name(application.role, lang),
        client_id: app.client_id.as_str(),
        redirect_uris: &application.details.redirect_uris,
        scopes: app.scopes.iter().map(|scope| ScopeLine::new(scope.name(), lang)).collect(),
        links: AppFace::of(app).links(lang),
        profile: app.profile.map(domain::Profile::name),
        users: counted(affected.users, lang),
        sessions: counted(affected.sessions, lang),
        created: Moment::of(life.created_at, now, lang),
        last_used: life.last_use().map(|at| Moment::of(at, now, lang)),
        deletes: life.deleted_at.is_none().then(|| {
            let at = life.last_used_at.plus_ms(UNUSED_APPLICATION_MS);
            (Moment::of(at, now, lang), countdown(at, now, lang))
        }),
    })
}

struct AppOverviewTexts {
    history: &'static str,
    client_id: &'static str,
    client_id_note: &'static str,
    users: &'static str,
    sessions: &'static str,
    created: &'static str,
    last_used: &'static str,
    never_used: &'static str,
    deletes: &'static str,
    role: &'static str,
    profile: &'static str,
    profile_default: &'static str,
    redirect_uris: &'static str,
    no_redirect_uris: &'static str,
    scopes: &'static str,
    no_scopes: &'static str,
    links: &'static str,
}

fn texts(lang: Lang) -> &'static AppOverviewTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: AppOverviewTexts = AppOverviewTexts {
    history: "변경 기록 보기",
    client_id: "클라이언트 ID",
    client_id_note: "공개해도 되는 값입니다.",
    users: "토큰이 있는 사람",
    sessions: "연결된 세션",
    created: "등록한 날",
    last_used: "마지막 사용",
    never_used: "아직 없음",
    deletes: "쓰지 않으면 삭제되는 날",
    role: "내 역할",
    profile: "응답 형식",
    profile_default: "서버 기본값",
    redirect_uris: "리디렉션 주소",
    no_redirect_uris: "등록한 주소가 없어 로그인을 시작할 수 없습니다.",
    scopes: "권한",
    no_scopes: "선택한 권한이 없습니다.",
    links: "링크",
};

const EN: AppOverviewTexts = AppOverviewTexts {
    history: "History of changes",
    client_id: "Client id",
    client_id_note: "It is no secret.",
    users: "People with tokens",
    sessions: "Connected sessions",
    created: "Registered",
    last_used: "Last used",
    never_used: "Not yet",
    deletes: "Deletion for inactivity",
    role: "Your role",
    profile: "Response format",
    profile_default: "Server default",
    redirect_uris: "Redirect addresses",
    no_redirect_uris: "There is none, so no sign-in can begin.",
    scopes: "Scopes",
    no_scopes: "No scope is chosen.",
    links: "Links",
};
