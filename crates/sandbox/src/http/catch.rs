//! `/sandbox/catch`: a redirect address for applications without a server of their own. It shows the code,
//! exchanges it on a button, and shows the request that did it. It works without JavaScript.

mod page;
mod token_call;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use domain::application::{Application, RedirectUri};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use service::Purpose;
use service::applications::ApplicationRecord;

use super::access::is_foreign;
use super::answer::Problem;
use super::environment::secret_of;
use super::names;
use crate::sandbox::{CATCH_PATH, Parts, Sandbox};
use page::{Caught, StateCheck};

const COOKIE: &str = "stagedoor_catch";
/// How long a sign-in may take, in seconds.
const COOKIE_AGE_S: u32 = 600;

/// The page and its forms.
pub(super) fn routes(sandbox: Sandbox) -> Router {
    Router::new()
        .route(CATCH_PATH, get(show))
        .route("/sandbox/catch/start", post(start))
        .route("/sandbox/catch/exchange", post(exchange))
        .route("/sandbox/catch/style.css", get(style))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND") })
        .with_state(sandbox)
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
}

/// The beginning of a sign-in, or its end.
async fn show(State(sandbox): State<Sandbox>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let Some(parts) = sandbox.parts() else { return page::failure(&starting()) };
    let fields = FormFields::parse(query.unwrap_or_default().as_bytes());
    let begun = begun(&headers);
    let check = |state: Option<&str>| match (&begun, state) {
        (Some(begun), Some(state)) if begun.state == state => StateCheck::Same,
        (Some(_), _) => StateCheck::Differs,
        (None, _) => StateCheck::NotBegun,
    };
    let state = fields.get("state");
    if let Some(error) = fields.get("error") {
        return page::refused(error, check(state));
    }
    let Some(code) = fields.get("code") else {
        // The cookie is of one host, and the redirect comes to the host of the base URL.
        if headers.get(header::HOST).is_some_and(|host| !is_host_of(&parts.base_url, host)) {
            return Redirect::to(&catch_uri(parts)).into_response();
        }
        return page::start(&catch_uri(parts), fields.get("clientId"));
    };
    let client_id = begun.as_ref().map(|begun| begun.client_id.clone());
    let client_id = match client_id {
        Some(client_id) => client_id,
        None => match names::first_application(&parts.service, "clientId").await {
            Ok(application) => application.client_id.to_string(),
            Err(problem) => return page::failure(&problem),
        },
    };
    page::caught(&Caught {
        code,
        state: state.unwrap_or_default(),
        client_id: &client_id,
        check: check(state),
    })
}

/// Begins a sign-in with a state of its own, which a cookie keeps.
async fn start(State(sandbox): State<Sandbox>, headers: HeaderMap, body: Bytes) -> Response {
    begin(&sandbox, &headers, &body).await.unwrap_or_else(|problem| page::failure(&problem))
}

async fn begin(sandbox: &Sandbox, headers: &HeaderMap, body: &[u8]) -> Result<Response, Problem> {
    let parts = own_form(sandbox, headers)?;
    let application = application(parts, &FormFields::parse(body)).await?;
    let client_id = application.client_id.to_string();
    let uri = catch_uri(parts);
    register(parts, application, &uri).await?;
    let state: String = parts
        .service
        .entropy()
        .bytes::<16>(Purpose::Browser)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("clientId", &client_id).append_pair("redirectUri", &uri).append_pair("state", &state);
    let mut response = Redirect::to(&format!("/account-interlock?{}", query.finish())).into_response();
    set_cookie(&mut response, &format!("{state}.{client_id}"), COOKIE_AGE_S);
    Ok(response)
}

/// Exchanges a code, by the same call as an application.
async fn exchange(State(sandbox): State<Sandbox>, headers: HeaderMap, body: Bytes) -> Response {
    exchanged(&sandbox, &headers, &body).await.unwrap_or_else(|problem| page::failure(&problem))
}

async fn exchanged(sandbox: &Sandbox, headers: &HeaderMap, body: &[u8]) -> Result<Response, Problem> {
    let parts = own_form(sandbox, headers)?;
    let fields = FormFields::parse(body);
    let required = |name: &str| fields.get(name).ok_or_else(|| Problem::invalid(name, "is required"));
    let (code, state) = (required("code")?, required("state")?);
    let application = application(parts, &fields).await?;
    let secret = secret_of(sandbox, parts, &application.client_id).await?;
    let call = token_call::TokenCall::new(&application.client_id, &secret, code, state);
    let answer = call.send(parts).await?;
    let mut response = page::exchanged(&call.as_curl(&parts.base_url), &answer);
    set_cookie(&mut response, "", 0);
    Ok(response)
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css")], include_str!("catch/style.css")).into_response()
}

/// The parts of the node, for a form of this page.
fn own_form<'a>(sandbox: &'a Sandbox, headers: &HeaderMap) -> Result<&'a Parts, Problem> {
    if is_foreign(headers) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "Origin: web pages of other origins may not do this",
        ));
    }
    sandbox.parts().ok_or_else(starting)
}

fn starting() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again")
}

/// Adds the address of the page to those of an application. Everything else of it stays as it is.
async fn register(parts: &Parts, application: Application, uri: &str) -> Result<(), Problem> {
    let details = parts.service.application_details(&application.client_id).await?;
    if details.redirect_uris.iter().any(|known| known == uri) {
        return Ok(());
    }
    // An address of an earlier start may have another port.
    let others =
        details.redirect_uris.iter().map(String::as_str).filter(|known| !known.ends_with(CATCH_PATH));
    let parsed = others.chain([uri]).map(RedirectUri::parse).collect::<Result<_, _>>();
    let redirect_uris =
        parsed.map_err(|_| Problem::invalid("redirectUri", format!("{uri} cannot be one")))?;
    let Application { client_id, name, organization, scopes, profile, quota } = application;
    let organization_id = organization.map(|organization| organization.organization_id);
    let record =
        ApplicationRecord { client_id, name, organization_id, redirect_uris, scopes, profile, quota };
    parts.service.put_application(record).await?;
    Ok(())
}

async fn application(parts: &Parts, fields: &FormFields) -> Result<Application, Problem> {
    match fields.get("clientId") {
        Some(name) => names::application(&parts.service, "clientId", name).await,
        None => names::first_application(&parts.service, "clientId").await,
    }
}

fn catch_uri(parts: &Parts) -> String {
    format!("{}{CATCH_PATH}", parts.base_url)
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
