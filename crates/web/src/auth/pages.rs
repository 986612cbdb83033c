//! The answers of a sign-in: pages and the redirect, with their headers.

use askama::Template;
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use domain::application::{Organization, origin_of, percent_encode};
use domain::limits::BROWSER_SESSION_LIFETIME_MS;
use domain::secret::BrowserToken;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use service::sign_in::SignInRequest;

use super::flow::{Browser, SWITCH, Stop, csrf};
use crate::RequestId;
use crate::envelope::Cause;
use crate::pages::{
    ConsentPage, ErrorPage, Lang, PageProblem, ScopeLine, SeededPerson, SignInError, SignInPage,
    content_security_policy, language_href,
};

/// The address of every page.
pub(super) const PATH: &str = "/account-interlock";
const COOKIE: &str = "stagedoor_browser";
/// The cookie's name under https. The prefix makes browsers accept the cookie only from this host and over
/// https, so no other host of the domain can set it.
const HOST_COOKIE: &str = "__Host-stagedoor_browser";

/// Renders the pages of one request.
pub(super) struct Pages<'a> {
    /// The language of the pages.
    pub lang: Lang,
    /// The query of the request, which all pages keep.
    pub query: &'a str,
    /// Whether browsers reach the service over https.
    pub https: bool,
    /// The id of the request.
    pub id: &'a RequestId,
}

impl Pages<'_> {
    /// The page that asks for login and password.
    pub fn sign_in(
        &self,
        request: &SignInRequest,
        browser: &Browser,
        login: &str,
        error: Option<SignInError>,
        people: &[SeededPerson<'_>],
    ) -> Result<Response, Stop> {
        let (action, proof) = (action(request), csrf(&browser.token, request));
        let page = SignInPage {
            lang: self.lang,
            language_href: Some(&self.language_href()),
            application_name: &request.application.name,
            action: &action,
            hidden: &[("csrf", proof.as_str())],
            login,
            error,
            people,
        };
        let mut response = self.page(page.render()?, Some(request), Some(browser));
        if let Some(retry_after_seconds) = error.and_then(SignInError::retry_after_seconds) {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert(header::RETRY_AFTER, retry_after_seconds.into());
        }
        if let Some(reason) = error.and_then(SignInError::reason) {
            response.extensions_mut().insert(reason);
        }
        Ok(response)
    }

    /// The page that asks for consent.
    pub fn consent(&self, request: &SignInRequest, browser: &Browser) -> Result<Response, Stop> {
        let lang = self.lang;
        let scopes = request.application.user_scopes().iter().map(|scope| ScopeLine::new(scope.name(), lang));
        let organization = request.application.organization.as_ref();
        let origin = origin_of(&request.redirect_uri);
        let (action, proof) = (action(request), csrf(&browser.token, request));
        let page = ConsentPage {
            lang,
            language_href: Some(&self.language_href()),
            application_name: &request.application.name,
            organization: organization.map(|organization| organization.name.as_str()),
            verified: organization.is_some_and(|Organization { verified, .. }| *verified),
            person_name: browser.person.as_ref().map_or("", |(_, name)| name),
            person_image: None,
            scopes: &scopes.collect::<Vec<_>>(),
            redirect_host: origin.split_once("://").map_or(origin, |(_, host)| host),
            action: &action,
            hidden: &[("csrf", proof.as_str())],
            switch_account_href: &format!("{action}&{SWITCH}=1"),
        };
        Ok(self.page(page.render()?, Some(request), Some(browser)))
    }

    /// The page for a failure of the service. The cause goes to the log.
    pub fn failure(&self, error: service::Error) -> Response {
        let mut response = self.problem(match error.refusal() {
            Refusal::DiskFull => PageProblem::DiskFull,
            _ => PageProblem::ServerError,
        });
        response.extensions_mut().insert(Cause(error));
        response
    }

    /// The page for a problem of the request.
    pub fn problem(&self, problem: PageProblem) -> Response {
        let page = ErrorPage {
            lang: self.lang,
            language_href: None,
            problem,
            retry_href: None,
            request_id: &self.id.to_string(),
        };
        let mut response = self.page(page.render().unwrap_or_default(), None, None);
        *response.status_mut() =
            StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.extensions_mut().insert(problem.reason());
        if let Some(seconds) = problem.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }

    /// A page with its content security policy. The policy allows the form to end only at the validated
    /// redirect address.
    fn page(&self, html: String, request: Option<&SignInRequest>, browser: Option<&Browser>) -> Response {
        let policy = content_security_policy(request.map(|request| origin_of(&request.redirect_uri)));
        let mut response = html.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        keep_private(headers);
        if let Some(browser) = browser.filter(|browser| browser.new)
            && let Ok(cookie) = HeaderValue::from_str(&sign_in_cookie(&browser.token, self.https))
        {
            headers.insert(header::SET_COOKIE, cookie);
        }
        response
    }

    fn language_href(&self) -> String {
        language_href(PATH, Some(self.query), self.lang.other())
    }
}

/// The browser's token, from the cookie of its request.
pub(super) fn browser_token(headers: &HeaderMap, https: bool) -> Option<BrowserToken> {
    cookie(headers, if https { HOST_COOKIE } else { COOKIE }).and_then(BrowserToken::presented)
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The cookie that signs a browser in on the sign-in pages, for `Set-Cookie`.
pub fn sign_in_cookie(token: &BrowserToken, https: bool) -> String {
    // The prefix `__Host-` requires `Path=/`.
    let (name, path, secure) = match https {
        true => (HOST_COOKIE, "/", "; Secure"),
        false => (COOKIE, PATH, ""),
    };
    let age = BROWSER_SESSION_LIFETIME_MS / 1_000;
    format!("{name}={}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}", token.expose())
}

/// The address of the form: its query has only the parameters of the application's request.
fn action(request: &SignInRequest) -> String {
    let mut action = format!("{PATH}?clientId={}&redirectUri=", request.application.client_id);
    percent_encode(&request.redirect_uri, &mut action);
    action.push_str("&state=");
    percent_encode(&request.state, &mut action);
    action
}

/// 303, so that the browser follows with a GET. The address contains a code, so it is kept out of caches and
/// referrers.
pub(super) fn redirect(location: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    match HeaderValue::from_str(location) {
        Ok(location) => drop(response.headers_mut().insert(header::LOCATION, location)),
        Err(_) => {
            let cause = service::Error::Internal("a registered redirect address does not fit into a header");
            response.extensions_mut().insert(Cause(cause));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }
    keep_private(response.headers_mut());
    response
}

fn keep_private(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}
