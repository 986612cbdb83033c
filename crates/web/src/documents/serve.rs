//! Serves the documentation for people, in Korean and English. The reference is generated from the documents
//! for programs, so it cannot contradict them.

use askama::Template;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use domain::refusal::Resource;
use http::{HeaderValue, StatusCode, header};
use service::Error;

use super::events::{
    EventsPage, WebhookPage, attempts, event_views, listening_programs, system_samples, verifying_programs,
    webhook_message, webhook_tables,
};
use super::frame::Navigation;
use super::guide::{GuidePage, guide_html};
use super::overview::{OverviewPage, first_call, steps};
use super::place::{DOCS, DocsPlace};
use super::reference::{Callers, GroupPage, views};
use super::search::{ASKED_CHARS_MAX, SearchPage, search};
use super::texts::texts;
use crate::account_forms::charge_search;
use crate::constant::is_known;
use crate::envelope::Failure;
use crate::page_request::PageRequest;
use crate::pages::{Account, AccountPart, Area, Lang, Shell, documentation_policy, language_href};
use crate::{Visitor, Web};

/// How long a browser may keep a page: ten minutes. The language is that of a cookie, so no other cache may
/// keep it.
const CACHE: HeaderValue = HeaderValue::from_static("private, max-age=600");
/// Maximum number of people to choose from.
const PEOPLE_MAX: i64 = 20;
/// Maximum number of applications to choose from.
const APPLICATIONS_MAX: usize = 20;
const VARY: HeaderValue = HeaderValue::from_static("accept-encoding, accept-language, cookie");

/// `GET /docs` and every page below it, without credentials.
pub(super) async fn show(visitor: Visitor) -> Response {
    let (web, request) = (visitor.web(), visitor.request());
    let asked = request.parameter("q").unwrap_or_default();
    if request.path() == DOCS && !asked.trim().is_empty() {
        if let Err(refusal) = charge_search(web, request) {
            return Failure::from(refusal).into_response();
        }
        return found(&visitor, asked.trim()).await;
    }
    let Some(place) = DocsPlace::at(request.path()) else {
        return Failure::from(Refusal::NotFound(Resource::Path)).into_response();
    };
    if web.config().sandbox && matches!(place, DocsPlace::Group(_)) {
        // A sandbox's people and applications change, so the page is made anew each time.
        return match callers(web).await {
            Ok(callers) => {
                let account = visitor.shell(Area::Documentation).account;
                let html = render(web, request, place, Some(callers), account);
                request.page(html, &documentation_policy(), None)
            }
            Err(error) => Failure::from(error).into_response(),
        };
    }
    kept(&visitor, place)
}

/// A page that browsers may keep.
fn kept(visitor: &Visitor, place: DocsPlace) -> Response {
    let (web, request) = (visitor.web(), visitor.request());
    let account = || AccountPart { shell: visitor.shell(Area::Documentation) }.render().unwrap_or_default();
    let page = web.docs().page(request.lang(), request.path(), || {
        let signed_out = Shell { account: Account::SignedOut, ..visitor.shell(Area::Documentation) };
        let signed_out = AccountPart { shell: signed_out }.render().unwrap_or_default();
        [render(web, request, place, None, Account::LeftOut), signed_out]
    });
    let body = match visitor.is_signed_in() {
        true => {
            let (html, etag) = page.with_account(&account());
            let mut response = match is_known(&request.headers, &etag) {
                true => (StatusCode::NOT_MODIFIED, Body::empty()).into_response(),
                false => html.into_response(),
            };
            response.headers_mut().insert(header::ETAG, etag);
            response
        }
        false => page.signed_out.answer(&request.headers),
    };
    let mut response = request.page(body, &documentation_policy(), None);
    response.headers_mut().insert(header::CACHE_CONTROL, CACHE);
    response.headers_mut().insert(header::VARY, VARY);
    response
}

/// The page with what was found.
async fn found(visitor: &Visitor, asked: &str) -> Response {
    let (request, lang) = (visitor.request(), visitor.lang());
    let asked: String = asked.chars().take(ASKED_CHARS_MAX).collect();
    let shell = visitor.shell(Area::Documentation);
    let words = asked.clone();
    let Ok(results) = tokio::task::spawn_blocking(move || search(&words, lang)).await else {
        return Failure::from(Error::Internal("the search failed")).into_response();
    };
    let nav = Navigation { asked, ..Navigation::of(None, lang) };
    let page = SearchPage { shell, nav, t: texts(lang), results };
    request.page(page.render().unwrap_or_default(), &documentation_policy(), None)
}

/// The people and applications of a sandbox.
async fn callers(web: &Web) -> Result<Callers, Error> {
    let people = web.service().people(PEOPLE_MAX).await?;
    let listed = web.service().applications_by_age().await?;
    let alive = listed.into_iter().filter(|life| life.deleted_at.is_none() && life.disabled_at.is_none());
    Ok(Callers {
        people: people.into_iter().map(|person| (person.login, person.channel_name)).collect(),
        applications: alive
            .take(APPLICATIONS_MAX)
            .map(|life| life.application.client_id.to_string())
            .collect(),
    })
}

/// A page as HTML.
fn render(
    web: &Web,
    request: &PageRequest,
    place: DocsPlace,
    callers: Option<Callers>,
    account: Account<'_>,
) -> String {
    let (lang, base_url) = (request.lang(), web.config().base_url.as_str());
    let shell = Shell {
        language_href: Some(language_href(&place.href(), None, lang.other())),
        is_alone: false,
        account,
        area: Area::Documentation,
        flash: None,
        ..request.shell(web)
    };
    let (nav, t) = (Navigation::of(Some(place), lang), texts(lang));
    let about = place.about(lang);
    let page = match place {
        DocsPlace::Overview => {
            let (first, steps) = (first_call(base_url), steps(base_url, lang));
            OverviewPage { shell, nav, t, base_url, first, steps }.render()
        }
        DocsPlace::Group(group) => {
            let operations = views(group, base_url, lang);
            GroupPage { shell, nav, t, group, operations, callers }.render()
        }
        DocsPlace::Events => EventsPage {
            shell,
            nav,
            t,
            about,
            system: system_samples(lang),
            events: event_views(lang),
            programs: listening_programs(),
        }
        .render(),
        DocsPlace::Webhook => webhook(shell, nav, about).render(),
        DocsPlace::Guide(guide) => {
            GuidePage { shell, nav, t, guide, html: guide_html(guide, base_url, lang) }.render()
        }
    };
    page.unwrap_or_default()
}

fn webhook<'a>(shell: Shell<'a>, nav: Navigation, about: &'static str) -> WebhookPage<'a> {
    let lang: Lang = shell.lang;
    let [headers, body] = webhook_tables(lang);
    WebhookPage {
        shell,
        nav,
        t: texts(lang),
        about,
        headers,
        body,
        message: webhook_message(),
        programs: verifying_programs(),
        attempts: attempts(lang),
    }
}
