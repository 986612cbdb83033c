//! Serves the documentation for people, in Korean and English. The reference is generated from the documents
//! for programs, so it cannot contradict them.

use askama::Template;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use domain::refusal::Resource;
use http::{HeaderValue, StatusCode, header};

use super::events::{
    EventsPage, WebhookPage, attempts, event_views, listening_programs, system_samples, verifying_programs,
    webhook_message, webhook_tables,
};
use super::frame::Navigation;
use super::guide::{GuidePage, guide_html};
use super::overview::{OverviewPage, first_call};
use super::place::{DOCS, DocsPlace};
use super::reference::{Callers, GroupPage, views};
use super::search::{ASKED_CHARS_MAX, SearchPage, search};
use super::texts::texts;
use crate::Web;
use crate::envelope::Failure;
use crate::page_request::PageRequest;
use crate::pages::{Area, Lang, Shell, documentation_policy, language_href};

/// How long a browser may keep a page: ten minutes. The language is that of a cookie, so no other cache may
/// keep it.
const CACHE: HeaderValue = HeaderValue::from_static("private, max-age=600");
/// Maximum number of people, and of applications, to choose from.
const CALLERS_MAX: i64 = 20;
const VARY: HeaderValue = HeaderValue::from_static("accept-language, cookie");

/// `GET /docs` and every page below it, without credentials.
pub(super) async fn show(State(web): State<Web>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let request = PageRequest::of(&parts, &web);
    let asked = request.parameter("q").unwrap_or_default();
    if request.path() == DOCS && !asked.trim().is_empty() {
        return found(&web, &request, asked.trim());
    }
    let Some(place) = DocsPlace::at(request.path()) else {
        return Failure::from(Refusal::NotFound(Resource::Path)).into_response();
    };
    let lang = request.lang();
    if web.config().sandbox && matches!(place, DocsPlace::Group(_)) {
        // A sandbox's people and applications change, so the page is made anew each time.
        return match callers(&web).await {
            Ok(callers) => {
                request.page(render(&web, &request, place, Some(callers)), &documentation_policy(), None)
            }
            Err(error) => Failure::from(error).into_response(),
        };
    }
    let page = web.docs().page(lang, request.path(), || render(&web, &request, place, None));
    let mut response = request.page(page.html.clone(), &documentation_policy(), None);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, CACHE);
    headers.insert(header::VARY, VARY);
    headers.insert(header::ETAG, page.etag.clone());
    let known = parts.headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = |list: &str| list.split(',').any(|etag| page.etag == etag.trim().trim_start_matches("W/"));
    if known.into_iter().any(is_known) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
    }
    response
}

/// The page with what was found.
fn found(web: &Web, request: &PageRequest, asked: &str) -> Response {
    let lang = request.lang();
    let asked: String = asked.chars().take(ASKED_CHARS_MAX).collect();
    let shell = Shell { is_alone: false, area: Area::Documentation, ..request.shell(web) };
    let results = search(&asked, lang);
    let nav = Navigation { asked, ..Navigation::of(None, lang) };
    let page = SearchPage { shell, nav, t: texts(lang), results };
    request.page(page.render().unwrap_or_default(), &documentation_policy(), None)
}

/// The people and applications of a sandbox.
async fn callers(web: &Web) -> Result<Callers, service::Error> {
    let people = web.service().people(CALLERS_MAX).await?;
    let listed = web.service().applications(None, CALLERS_MAX, None).await?.applications;
    let alive = listed.into_iter().filter(|life| life.deleted_at.is_none() && life.disabled_at.is_none());
    Ok(Callers {
        people: people.into_iter().map(|person| (person.login, person.channel_name)).collect(),
        applications: alive.map(|life| life.application.client_id.to_string()).collect(),
    })
}

/// A page as HTML.
fn render(web: &Web, request: &PageRequest, place: DocsPlace, callers: Option<Callers>) -> String {
    let (lang, base_url) = (request.lang(), web.config().base_url.as_str());
    let shell = Shell {
        language_href: Some(language_href(&place.href(), None, lang.other())),
        is_alone: false,
        area: Area::Documentation,
        flash: None,
        ..request.shell(web)
    };
    let (nav, t) = (Navigation::of(Some(place), lang), texts(lang));
    let about = place.about(lang);
    let page = match place {
        DocsPlace::Overview => OverviewPage { shell, nav, t, base_url, first: first_call(base_url) }.render(),
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
