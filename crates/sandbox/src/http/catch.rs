//! `/sandbox/catch`: a redirect address for applications without a server of their own. It shows the code,
//! exchanges it on a button, and shows the request that did it. It works without JavaScript.

mod page;
mod texts;
mod token_call;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use domain::application::Application;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use service::Purpose;

use super::access::Access;
use super::answer::Problem;
use super::console::{View, language_cookie};
use super::environment::secret_of;
use super::names;
use super::own_form::{own_form, starting};
use crate::catch_address::{CATCH_PATH, catch_address, with_own};
use crate::sandbox::{Parts, Sandbox};
use page::{CaughtPage, ExchangedPage, Frame, RefusedPage, StartPage, StateCheck, failure, page};

const COOKIE: &str = "stagedoor_catch";
/// How long a sign-in may take, in seconds.
const COOKIE_AGE_S: u32 = 600;
/// Maximum number of applications to choose from.
const APPLICATIONS_MAX: usize = 100;

/// What the handlers need.
#[derive(Clone)]
struct Catcher {
    sandbox: Sandbox,
    access: Access,
}

/// The page and its forms.
pub(super) fn routes(sandbox: Sandbox, access: Access) -> Router {
    Router::new()
        .route(CATCH_PATH, get(show))
        .route("/sandbox/catch/start", post(start))
        .route("/sandbox/catch/exchange", post(exchange))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND") })
        .with_state(Catcher { sandbox, access })
}

/// A sign-in that the page has begun: its state and its application.
#[derive(Debug, PartialEq, Eq)]
struct Begun {
    state: String,
    client_id: String,
}

/// The fields of a query or a form. The first one of a name counts.
struct FormFields(Vec<(String, String)>);

impl FormFields {
    fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(key, _)| key == name)?;
        Some(field.1.as_str()).filter(|value| !value.is_empty())
    }

    /// The address with these fields in the other language.
    fn language_href(&self, view: &View) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.0.iter().filter(|(name, _)| name != "lang"));
        query.append_pair("lang", view.language.pick("en", "ko"));
        format!("{CATCH_PATH}?{}", query.finish())
    }
}

/// The beginning of a sign-in, or its end.
async fn show(State(catcher): State<Catcher>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = query.unwrap_or_default();
    let view = View::of(&query, &headers);
    let shown = shown(&catcher.sandbox, &query, &view, &headers).await;
    let mut response = shown.unwrap_or_else(|problem| failure(view.language, &problem));
    let remembered = view.is_language_new.then(|| language_cookie(&view)).flatten();
    remembered.into_iter().for_each(|cookie| _ = response.headers_mut().append(header::SET_COOKIE, cookie));
    response
}

async fn shown(
    sandbox: &Sandbox,
    query: &str,
    view: &View,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let parts = sandbox.parts().ok_or_else(starting)?;
    let fields = FormFields::parse(query.as_bytes());
    let frame = Frame::new(view.language, Some(fields.language_href(view)));
    let begun = begun(headers);
    let state = fields.get("state").unwrap_or_default();
    let check = match &begun {
        Some(begun) if begun.state == state => StateCheck::Same,
        Some(_) => StateCheck::Differs,
        None => StateCheck::NotBegun,
    };
    if let Some(error) = fields.get("error") {
        return Ok(page(&RefusedPage { frame, error, state, check }));
    }
    let Some(code) = fields.get("code") else {
        // The cookie is of one host, and the redirect comes to the host of the base URL.
        if headers.get(header::HOST).is_some_and(|host| !is_host_of(&parts.base_url, host)) {
            return Ok(Redirect::to(&format!("{}{CATCH_PATH}", parts.base_url)).into_response());
        }
        return start_page(parts, frame, fields.get("clientId")).await;
    };
    let client_id = match parts.service.application_of_code(code).await? {
        Some(client_id) => client_id,
        None => names::first_application(&parts.service, "clientId").await?.client_id,
    };
    Ok(page(&CaughtPage { frame, code, state, client_id: client_id.as_str(), check }))
}

async fn start_page(parts: &Parts, frame: Frame, chosen: Option<&str>) -> Result<Response, Problem> {
    let listed = parts.service.applications_by_age().await?.into_iter().take(APPLICATIONS_MAX);
    let alive = listed.filter(|life| life.deleted_at.is_none() && life.disabled_at.is_none());
    let label = |application: Application| match application.client_id.to_string() {
        id if id == application.name => (id, application.name),
        id => (id.clone(), format!("{} ({id})", application.name)),
    };
    Ok(page(&StartPage {
        frame,
        address: format!("{}{CATCH_PATH}", parts.base_url),
        applications: alive.map(|life| label(life.application)).collect(),
        chosen: chosen.unwrap_or_default().to_owned(),
    }))
}

/// Begins a sign-in with a state of its own, which a cookie keeps.
async fn start(State(catcher): State<Catcher>, headers: HeaderMap, body: Bytes) -> Response {
    let begun = begin(&catcher, &headers, &body).await;
    begun.unwrap_or_else(|problem| failure(View::of("", &headers).language, &problem))
}

async fn begin(catcher: &Catcher, headers: &HeaderMap, body: &[u8]) -> Result<Response, Problem> {
    let parts = own_form(&catcher.sandbox, &catcher.access, headers)?;
    let Application { client_id, .. } = application(parts, &FormFields::parse(body)).await?;
    let rule =
        "http is only for this machine: start the sandbox with --listen on a loopback address, or with --tls";
    let own = catch_address(&parts.base_url).ok_or_else(|| Problem::invalid("redirectUri", rule))?;
    let uri = own.as_str().to_owned();
    let known = parts.service.application_details(&client_id).await?.redirect_uris;
    if !known.contains(&uri) {
        parts.service.put_redirect_uris(client_id.clone(), with_own(&known, own)).await?;
    }
    let state: String = parts
        .service
        .entropy()
        .bytes::<16>(Purpose::Browser)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("clientId", client_id.as_str());
    query.append_pair("redirectUri", &uri).append_pair("state", &state);
    let mut response = Redirect::to(&format!("/account-interlock?{}", query.finish())).into_response();
    set_cookie(&mut response, &format!("{state}.{client_id}"), COOKIE_AGE_S);
    Ok(response)
}

/// Exchanges a code, by the same call as an application.
async fn exchange(State(catcher): State<Catcher>, headers: HeaderMap, body: Bytes) -> Response {
    let exchanged = exchanged(&catcher, &headers, &body).await;
    exchanged.unwrap_or_else(|problem| failure(View::of("", &headers).language, &problem))
}

async fn exchanged(catcher: &Catcher, headers: &HeaderMap, body: &[u8]) -> Result<Response, Problem> {
    let parts = own_form(&catcher.sandbox, &catcher.access, headers)?;
    let fields = FormFields::parse(body);
    let required = |name: &str| fields.get(name).ok_or_else(|| Problem::invalid(name, "is required"));
    let (code, state) = (required("code")?, required("state")?);
    let application = application(parts, &fields).await?;
    let secret = secret_of(&catcher.sandbox, parts, &application.client_id).await?;
    let call = token_call::TokenCall::new(&application.client_id, &secret, code, state);
    let answer = call.send(parts).await?;
    let mut response = page(&ExchangedPage {
        frame: Frame::new(View::of("", headers).language, None),
        curl: call.as_curl(&parts.base_url),
        answer: &answer,
        base_url: &parts.base_url,
    });
    set_cookie(&mut response, "", 0);
    Ok(response)
}

async fn application(parts: &Parts, fields: &FormFields) -> Result<Application, Problem> {
    match fields.get("clientId") {
        Some(name) => names::application(&parts.service, "clientId", name).await,
        None => names::first_application(&parts.service, "clientId").await,
    }
}

fn is_host_of(base_url: &str, host: &HeaderValue) -> bool {
    base_url.split_once("://").is_some_and(|(_, authority)| authority.as_bytes() == host.as_bytes())
}

fn set_cookie(response: &mut Response, value: &str, age_s: u32) {
    let cookie = format!("{COOKIE}={value}; Path={CATCH_PATH}; Max-Age={age_s}; HttpOnly; SameSite=Lax");
    // Client ids and hexadecimal digits are valid in a header.
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

fn begun(headers: &HeaderMap) -> Option<Begun> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let value = lines.flat_map(|line| line.split(';')).find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE).then_some(value)
    })?;
    let (state, client_id) = value.split_once('.')?;
    Some(Begun { state: state.to_owned(), client_id: client_id.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_names_the_sign_in_that_was_begun() {
        let check = |cookies: &'static str, expected: Option<(&str, &str)>| {
            let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(cookies))]);
            let found = begun(&headers);
            let found = found.as_ref().map(|begun| (begun.state.as_str(), begun.client_id.as_str()));
            assert_eq!(found, expected, "{cookies}");
        };
        check("stagedoor_catch=12ab.demo", Some(("12ab", "demo")));
        check("other=1; stagedoor_catch=12ab.de.mo", Some(("12ab", "de.mo")));
        check("stagedoor_catch=", None);
        check("xstagedoor_catch=1.demo", None);
    }
}
