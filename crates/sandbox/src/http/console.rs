//! The console: the page at `/` by which a person watches and steers a sandbox.
//!
//! The page is rendered here, works without a script, and loads nothing from other hosts. Its forms go to
//! `/sandbox/console/act`, which makes the call of the API that the form names. The script sends the same
//! forms, and replaces the parts of the page that change by those that `/sandbox/console/live` sends.

mod act;
mod assets;
mod chat;
mod effects;
mod form;
mod handle;
mod html;
mod kinds;
mod korean;
mod live;
mod networks;
mod page;
mod record;
mod regions;
mod sign_in;
mod texts;
mod view;
mod worlds;

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::access::{Access, is_foreign};
use super::answer::Problem;
use super::surroundings::Surroundings;
use crate::console_links::OPEN_PATH;
use crate::sandbox::Sandbox;
use handle::{Console, FORM_BYTES_MAX, field, read_form};
use page::{KeyPage, Page};
use view::LANGUAGE_COOKIE;

pub(super) use assets::{script_href, style_href};
pub(super) use html::{html_answer, write};
pub(super) use view::View;

/// The page.
pub(super) const PATH: &str = "/";
/// The first part of all other paths.
pub(super) const PREFIX: &str = "/sandbox/console";
/// How long a browser remembers the language.
const LANGUAGE_COOKIE_S: u32 = 365 * 24 * 60 * 60;

/// The routes of the console. `api` does not check its caller.
pub(super) fn routes(sandbox: Sandbox, access: Access, api: Router, surroundings: Surroundings) -> Router {
    Router::new()
        .route(PATH, get(show))
        .route(OPEN_PATH, get(open))
        .route("/sandbox/console/key", post(present_key))
        .route("/sandbox/console/act", post(act::act))
        .route("/sandbox/console/sign-in", post(sign_in::sign_in))
        .route("/sandbox/console/live", get(live::live))
        .route("/sandbox/console/style.css", get(assets::style))
        .route("/sandbox/console/script.js", get(assets::script))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED")
        })
        .with_state(Console::new(sandbox, access, api, surroundings))
}

/// `GET /`: the console, for a browser with the cookie. Any other one is told how to get it.
async fn show(State(console): State<Console>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let view = View::of(&query.unwrap_or_default(), &headers);
    let mut response = match console.access().has_cookie(&headers) {
        true => Page::answer(&console, &view, None).await,
        false => KeyPage::answer(&view, false),
    };
    let remembered = view.is_language_new.then(|| language_cookie(&view)).flatten();
    remembered.into_iter().for_each(|cookie| _ = response.headers_mut().append(header::SET_COOKIE, cookie));
    response
}

/// `GET /sandbox/console/open?token=…`: gives the cookie to the browser that uses a one-time address first,
/// and leads it to the console, or to the page of the sandbox in `to`.
async fn open(State(console): State<Console>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = query.unwrap_or_default();
    let fields: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let page = Redirect::to(own_path(field(&fields, "to")).unwrap_or(PATH));
    let access = console.access();
    if access.has_cookie(&headers) {
        return page.into_response();
    }
    let is_right = console.sandbox().console_links().take(field(&fields, "token"));
    match access.set_cookie().filter(|_| is_right) {
        Some(cookie) => ([(header::SET_COOKIE, cookie)], page).into_response(),
        None => KeyPage::answer(&View::of("", &headers), false),
    }
}

/// A path of this origin, for a redirect.
fn own_path(to: &str) -> Option<&str> {
    let is_local = to.starts_with('/') && !to.starts_with("//") && !to.contains('\\');
    (is_local && to.bytes().all(|byte| byte.is_ascii_graphic())).then_some(to)
}

/// The cookie that remembers the language.
pub(super) fn language_cookie(view: &View) -> Option<HeaderValue> {
    let tag = view.language.pick("ko", "en");
    let cookie = format!("{LANGUAGE_COOKIE}={tag}; Path=/; Max-Age={LANGUAGE_COOKIE_S}; SameSite=Strict");
    HeaderValue::from_str(&cookie).ok()
}

/// `POST /sandbox/console/key`: gives the cookie to a browser whose user knows the operator's key.
async fn present_key(State(console): State<Console>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    if is_foreign(&parts.headers) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "Origin: must be that of the console"));
    }
    let (access, fields) = (console.access(), read_form(body, FORM_BYTES_MAX).await?);
    Ok(match access.set_cookie().filter(|_| access.is_key(field(&fields, "key"))) {
        Some(cookie) => ([(header::SET_COOKIE, cookie)], Redirect::to(PATH)).into_response(),
        None => KeyPage::answer(&View::of("", &parts.headers), true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_console_leads_only_to_own_pages() {
        for to in ["/docs", "/account-interlock?clientId=demo&redirectUri=http://127.0.0.1/"] {
            assert_eq!(own_path(to), Some(to));
        }
        for to in ["", "docs", "//evil.example", "/\\evil.example", "https://evil.example", "/a\r\nb"] {
            assert_eq!(own_path(to), None, "{to:?}");
        }
    }
}
