//! `/account/apps`: what a person allows applications, and how to take it back.

use askama::Template;
use domain::{ClientId, Refusal, Timestamp, refusal::Resource};
use service::consents::{ConnectedApplication, ConnectedApplications};
use web::pages::{AppFace, Area, Flash, Lang, Moment, ScopeLine, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy, Visitor};

/// The list of a person's applications.
pub(crate) const APPS: &str = "/account/apps";

/// An application in the list.
#[derive(Debug)]
pub(crate) struct AppRow<'a> {
    name: &'a str,
    href: String,
    organization: Option<&'a str>,
    is_verified: bool,
    logo: Option<String>,
    scopes: usize,
    since: Moment,
    last_used: Option<Moment>,
    is_unusable: bool,
}

/// The list.
#[derive(Debug, Template)]
#[template(path = "site/apps.html")]
pub(crate) struct AppsPage<'a> {
    shell: Shell<'a>,
    t: &'static AppTexts,
    rows: Vec<AppRow<'a>>,
    first: Option<String>,
    next: Option<String>,
}

impl AppsPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// One application.
#[derive(Debug, Template)]
#[template(path = "site/app.html")]
pub(crate) struct AppPage<'a> {
    shell: Shell<'a>,
    t: &'static AppTexts,
    row: AppRow<'a>,
    face: AppFace<'a>,
    acts: Vec<ScopeLine<'a>>,
    reads: Vec<ScopeLine<'a>>,
    form: FormTarget,
}

impl AppPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET /account/apps`. `after` is the last consent of the page before.
pub(crate) async fn list(person: Person) -> PageAnswer {
    let Person { visitor, channel_id, .. } = &person;
    let after = visitor.request().parameter("after").and_then(|after| place(&after));
    let is_first = after.is_none();
    let found = visitor.web().service().connected_applications(channel_id, after).await?;
    let ConnectedApplications { applications, next } = &found;
    let next =
        next.as_ref().map(|(time, client_id)| format!("{APPS}?after={}.{client_id}", time.as_millis()));
    visitor.page(&AppsPage {
        shell: visitor.shell(Area::ConnectedApps),
        t: texts(visitor.lang()),
        rows: applications.iter().map(|connected| row(visitor, connected)).collect(),
        first: (!is_first).then(|| APPS.to_owned()),
        next,
    })
}

/// `GET /account/apps/{clientId}`.
pub(crate) async fn show(person: Person, PathId(id): PathId) -> PageAnswer {
    let Person { visitor, channel_id, .. } = &person;
    let client_id = ClientId::parse("clientId", &id).map_err(|_| not_found())?;
    let found = visitor.web().service().connected_application(channel_id, &client_id).await?;
    let connected = found.ok_or_else(not_found)?;
    let lang = visitor.lang();
    let lines = |acts: bool| {
        let lines = connected.scopes.iter().map(|scope| ScopeLine::new(scope.name(), lang));
        lines.filter(|line| line.write == acts).collect()
    };
    visitor.page(&AppPage {
        shell: visitor.shell(Area::ConnectedApps),
        t: texts(lang),
        row: row(visitor, &connected),
        face: AppFace::of(&connected.application),
        acts: lines(true),
        reads: lines(false),
        form: visitor.form(visitor.request().path()),
    })
}

/// `POST /account/apps/{clientId}`: withdraws the consent. Tokens and subscriptions end at once. Nothing
/// changes without a consent.
pub(crate) async fn withdraw(PathId(id): PathId, posted: PostedBy) -> PageAnswer {
    let Person { visitor, channel_id, .. } = &posted.person;
    let client_id = ClientId::parse("clientId", &id).map_err(|_| not_found())?;
    visitor.web().service().withdraw_consent(&client_id, channel_id).await?;
    Ok(visitor.redirect(APPS, Some(Flash::Withdrawn)))
}

/// The refusal of an application that does not exist, or is not the person's: one for both.
fn not_found() -> Refusal {
    Refusal::NotFound(Resource::Application)
}

/// Time and client id of a consent, from the address of a page.
fn place(after: &str) -> Option<(Timestamp, String)> {
    let (time, client_id) = after.split_once('.')?;
    let client_id = ClientId::parse("clientId", client_id).ok()?;
    Some((Timestamp::from_millis(time.parse().ok()?), client_id.to_string()))
}

fn row<'a>(visitor: &Visitor, connected: &'a ConnectedApplication) -> AppRow<'a> {
    let (now, lang) = (visitor.now(), visitor.lang());
    let application = &connected.application;
    let organization = application.organization.as_ref();
    AppRow {
        name: &application.name,
        href: format!("{APPS}/{}", application.client_id),
        organization: organization.map(|organization| organization.name.as_str()),
        is_verified: organization.is_some_and(|organization| organization.verified),
        logo: AppFace::of(application).logo,
        scopes: connected.scopes.iter().count(),
        since: Moment::of(connected.created_at, now, lang),
        last_used: connected.last_used_at.map(|at| Moment::of(at, now, lang)),
        is_unusable: connected.unusable_since.is_some(),
    }
}

/// The words of the pages.
#[derive(Debug)]
pub(crate) struct AppTexts {
    title: &'static str,
    lead: &'static str,
    app: &'static str,
    permissions: &'static str,
    since: &'static str,
    last_used: &'static str,
    never: &'static str,
    open: &'static str,
    verified: &'static str,
    unusable: &'static str,
    none: &'static str,
    none_about: &'static str,
    acts: &'static str,
    reads: &'static str,
    nothing: &'static str,
    withdraw: &'static str,
    withdraw_question: &'static str,
    withdraw_about: &'static str,
    keep: &'static str,
}

fn texts(lang: Lang) -> &'static AppTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: AppTexts = AppTexts {
    title: "연결된 앱",
    lead: "내 계정에 접근하도록 허용한 앱입니다. 더 이상 쓰지 않는 앱의 접근은 언제든 취소할 수 있습니다.",
    app: "앱",
    permissions: "권한",
    since: "허용한 날",
    last_used: "마지막 사용",
    never: "아직 없음",
    open: "자세히",
    verified: "인증된 기업",
    unusable: "사용 중지된 앱",
    none: "연결된 앱이 없습니다.",
    none_about: "앱에서 로그인하고 접근을 허용하면 여기에 표시됩니다.",
    acts: "나를 대신해 할 수 있는 일",
    reads: "확인만 할 수 있는 정보",
    nothing: "이 앱은 아무 권한도 없습니다.",
    withdraw: "접근 취소",
    withdraw_question: "이 앱의 접근을 취소할까요?",
    withdraw_about: "앱은 바로 내 계정에 접근할 수 없게 되고, 실시간 이벤트도 더 이상 받지 못합니다. 앱이 이미 저장한 정보는 지워지지 않습니다.",
    keep: "그대로 두기",
};

const EN: AppTexts = AppTexts {
    title: "Connected apps",
    lead: "Apps that you allowed to access your account. Take it back from those that you no longer use.",
    app: "App",
    permissions: "Permissions",
    since: "Allowed",
    last_used: "Last used",
    never: "Not yet",
    open: "Details",
    verified: "Verified organization",
    unusable: "Switched off",
    none: "No app is connected.",
    none_about: "When you sign in to an app and allow it to access your account, it is listed here.",
    acts: "What it can do on your behalf",
    reads: "What it can only see",
    nothing: "This app has no permission.",
    withdraw: "Remove access",
    withdraw_question: "Remove this app’s access?",
    withdraw_about: "At once the app can no longer access your account, and it receives no more events. What it has \
                     stored is not deleted.",
    keep: "Cancel",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_list_is_a_time_and_an_id() {
        let time = Timestamp::from_millis(17);
        assert_eq!(place("17.bot.two"), Some((time, "bot.two".to_owned())));
        for wrong in ["", "17", "17.", ".bot", "x.bot", "17.한글", "99999999999999999999.bot"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
