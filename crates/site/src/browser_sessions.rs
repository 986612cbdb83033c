//! `/account/sessions`: the browsers in which a person is signed in, and how to sign them out.

use askama::Template;
use domain::refusal::Resource;
use domain::user_agent::device;
use domain::{BrowserSessionId, Refusal, Timestamp};
use service::browser_sessions::{PersonsBrowser, PersonsBrowsers};
use web::pages::{Area, Flash, Lang, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy, Visitor};

/// The list. Posted to, it signs all other browsers out.
pub(crate) const SESSIONS: &str = "/account/sessions";

/// A browser in the list.
#[derive(Debug)]
struct BrowserRow<'a> {
    /// Browser and system; `None` if they are unknown.
    device: Option<String>,
    is_this: bool,
    since: Moment,
    last_used: Option<Moment>,
    address: &'a str,
    form: FormTarget,
}

#[derive(Debug, Template)]
#[template(path = "site/browser_sessions.html")]
struct BrowserSessionsPage<'a> {
    shell: Shell<'a>,
    t: &'static BrowserSessionTexts,
    rows: Vec<BrowserRow<'a>>,
    first: Option<String>,
    next: Option<String>,
    /// Signs all other browsers out.
    form: FormTarget,
}

impl BrowserSessionsPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }

    fn has_others(&self) -> bool {
        self.first.is_some() || self.next.is_some() || self.rows.iter().any(|row| !row.is_this)
    }
}

/// `GET /account/sessions`. `after` is the last browser of the page before.
pub(crate) async fn list(person: Person) -> PageAnswer {
    let Person { visitor, channel_id, .. } = &person;
    let after = visitor.request().parameter("after").and_then(|after| place(&after));
    let is_first = after.is_none();
    let token = Some(visitor.browser_token());
    let found = visitor.web().service().browser_sessions(channel_id, token, after).await?;
    let PersonsBrowsers { browsers, next } = &found;
    let next = next.as_ref().map(|(end, id)| format!("{SESSIONS}?after={}.{id}", end.as_millis()));
    visitor.page(&BrowserSessionsPage {
        shell: visitor.shell(Area::Elsewhere),
        t: texts(visitor.lang()),
        rows: browsers.iter().map(|browser| row(visitor, browser)).collect(),
        first: (!is_first).then(|| SESSIONS.to_owned()),
        next,
        form: visitor.form(SESSIONS),
    })
}

/// `POST /account/sessions`: signs all other browsers out.
pub(crate) async fn end_others(PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let Person { visitor, channel_id, .. } = &person;
    let token =
        visitor.web().service().end_other_browser_sessions(channel_id, visitor.browser_token()).await?;
    visitor.renew_browser(token);
    Ok(visitor.redirect(SESSIONS, Some(Flash::BrowsersSignedOut)))
}

/// `POST /account/sessions/{sessionId}`: signs one browser out.
pub(crate) async fn end(PathId(id): PathId, PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let Person { visitor, channel_id, .. } = &person;
    let not_found = |_| Refusal::NotFound(Resource::Path);
    let id = BrowserSessionId::parse("sessionId", &id).map_err(not_found)?;
    visitor.web().service().end_browser_session(channel_id, &id).await?;
    Ok(visitor.redirect(SESSIONS, Some(Flash::BrowserSignedOut)))
}

/// End and id of a browser, from the address of a page.
fn place(after: &str) -> Option<(Timestamp, String)> {
    let (time, id) = after.split_once('.')?;
    let id = BrowserSessionId::parse("sessionId", id).ok()?;
    Some((Timestamp::from_millis(time.parse().ok()?), id.to_string()))
}

fn row<'a>(visitor: &Visitor, browser: &'a PersonsBrowser) -> BrowserRow<'a> {
    let (now, lang) = (visitor.now(), visitor.lang());
    BrowserRow {
        device: device(&browser.user_agent),
        is_this: browser.is_this,
        since: Moment::of(browser.since, now, lang),
        last_used: browser.last_used_at.map(|at| Moment::to_the_hour(at, now, lang)),
        address: &browser.address,
        form: visitor.form(format!("{SESSIONS}/{}", browser.session_id)),
    }
}

/// The words of the page.
#[derive(Debug)]
struct BrowserSessionTexts {
    title: &'static str,
    lead: &'static str,
    browser: &'static str,
    unknown: &'static str,
    this: &'static str,
    since: &'static str,
    last_used: &'static str,
    never: &'static str,
    address: &'static str,
    action: &'static str,
    end: &'static str,
    others: &'static str,
    others_about: &'static str,
    others_question: &'static str,
    keep: &'static str,
    back: &'static str,
}

fn texts(lang: Lang) -> &'static BrowserSessionTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: BrowserSessionTexts = BrowserSessionTexts {
    title: "로그인한 브라우저",
    lead: "내 계정으로 로그인한 브라우저입니다. 모르는 브라우저가 있으면 로그아웃하고 비밀번호를 바꿔 주세요. 로그인은 12시간 뒤에 자동으로 끝납니다.",
    browser: "브라우저",
    unknown: "알 수 없는 브라우저",
    this: "이 브라우저",
    since: "로그인",
    last_used: "마지막 사용",
    never: "아직 없음",
    address: "주소",
    action: "동작",
    end: "로그아웃",
    others: "다른 브라우저 모두 로그아웃",
    others_about: "연결한 앱은 그대로 남습니다.",
    others_question: "이 브라우저를 뺀 모든 브라우저에서 로그아웃할까요?",
    keep: "그대로 두기",
    back: "내 계정으로",
};

const EN: BrowserSessionTexts = BrowserSessionTexts {
    title: "Signed-in browsers",
    lead: "The browsers in which your account is signed in. If you do not know one, sign it out and change your \
           password. A sign-in ends by itself after 12 hours.",
    browser: "Browser",
    unknown: "Unknown browser",
    this: "This browser",
    since: "Signed in",
    last_used: "Last used",
    never: "Not yet",
    address: "Address",
    action: "Action",
    end: "Sign out",
    others: "Sign all other browsers out",
    others_about: "Connected apps stay connected.",
    others_question: "Sign out every browser but this one?",
    keep: "Keep them",
    back: "Your account",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_list_is_a_time_and_an_id() {
        assert_eq!(place("17.ab_c"), Some((Timestamp::from_millis(17), "ab_c".to_owned())));
        for wrong in ["", "17", "17.", ".ab", "x.ab", "17.한글"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
