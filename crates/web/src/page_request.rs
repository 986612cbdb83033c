//! A request for a page, and the headers of its answer.

use axum::response::{IntoResponse, Response};
use domain::secret::BrowserToken;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::cookies::{self, draft_cookie, flash_cookie, language_cookie, sign_in_cookie};
use crate::envelope::Cause;
use crate::input::Pairs;
use crate::pages::{Account, Area, Flash, Lang, Shell, language_href, with_next};
use crate::quota::Charged;
use crate::{ClientAddress, RequestId, SecureOrigin, Web};

/// The facts of a request that its page depends on.
#[derive(Clone, Debug)]
pub struct PageRequest {
    pub(crate) id: RequestId,
    pub(crate) client: Option<ClientAddress>,
    pub(crate) charged: Charged,
    /// The query, percent-encoded.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    /// Whether browsers reach the service over https.
    pub(crate) https: bool,
    path: String,
    is_get: bool,
    lang: Lang,
    /// Whether the query names the language, so that it is remembered.
    is_lang_chosen: bool,
}

impl PageRequest {
    /// The facts of a request.
    pub(crate) fn of(parts: &Parts, web: &Web) -> Self {
        let extensions = &parts.extensions;
        let https =
            extensions.get::<SecureOrigin>().is_some() || web.config().base_url.starts_with("https://");
        let mut request = Self {
            id: extensions.get().copied().unwrap_or(RequestId::new([0; 10], 0)),
            client: extensions.get().copied(),
            charged: extensions.get().cloned().unwrap_or_default(),
            query: parts.uri.query().unwrap_or("").to_owned(),
            headers: parts.headers.clone(),
            https,
            path: parts.uri.path().to_owned(),
            is_get: matches!(parts.method, Method::GET | Method::HEAD),
            lang: Lang::default(),
            is_lang_chosen: false,
        };
        request.choose_lang(None);
        request
    }

    /// Chooses the language: that of the form, of the query, of the cookie, of the browser.
    pub(crate) fn choose_lang(&mut self, form: Option<&str>) {
        let pairs = Pairs::parse(&self.query).ok();
        let query = pairs.as_ref().and_then(|pairs| pairs.optional("lang").ok().flatten());
        let accepted = self.headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        self.is_lang_chosen = query.is_some_and(Lang::exists) && self.is_get;
        self.lang = Lang::choose([form, query, cookies::language(&self.headers)], accepted);
    }

    /// The id of the request.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// The language of the page.
    pub fn lang(&self) -> Lang {
        self.lang
    }

    /// The path of the request.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Path and query of the request.
    pub fn path_and_query(&self) -> String {
        match self.query.as_str() {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }

    /// Whether the request only reads.
    pub(crate) fn is_get(&self) -> bool {
        self.is_get
    }

    /// A parameter of the query: its value, if it occurs once.
    pub fn parameter(&self, name: &'static str) -> Option<String> {
        let pairs = Pairs::parse(&self.query).ok()?;
        pairs.optional(name).ok().flatten().map(str::to_owned)
    }

    /// The layout of a page that stands for itself and does not know who is signed in.
    pub(crate) fn shell<'a>(&self, web: &'a Web) -> Shell<'a> {
        Shell {
            lang: self.lang,
            language_href: Some(language_href(&self.path, Some(&self.query), self.lang.other())),
            brand: &web.config().brand,
            files: web.files(),
            is_alone: true,
            account: Account::Unknown,
            area: Area::Elsewhere,
            flash: None,
        }
    }

    /// The notice for this page.
    pub(crate) fn flash(&self) -> Option<Flash> {
        cookies::flash(&self.headers)
    }

    /// The answer with a page. `policy` is its content security policy, `token` the browser's new token.
    pub(crate) fn page(
        &self,
        html: impl IntoResponse,
        policy: &str,
        token: Option<&BrowserToken>,
    ) -> Response {
        let mut response = html.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        if let Ok(policy) = HeaderValue::from_str(policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        keep_private(headers);
        let cookies = [
            token.map(|token| sign_in_cookie(token, self.https)),
            self.is_lang_chosen.then(|| language_cookie(self.lang, self.https)),
            self.flash().map(|_| flash_cookie(None, self.https)),
        ];
        cookies.into_iter().flatten().for_each(|cookie| set_cookie(headers, &cookie));
        response
    }

    /// Leads the browser to another page of this origin, which shows the notice.
    pub(crate) fn redirect(
        &self,
        location: &str,
        flash: Option<Flash>,
        token: Option<&BrowserToken>,
    ) -> Response {
        let mut response = see_other(location);
        let headers = response.headers_mut();
        let cookies = [
            token.map(|token| sign_in_cookie(token, self.https)),
            flash.map(|flash| flash_cookie(Some(flash), self.https)),
        ];
        cookies.into_iter().flatten().for_each(|cookie| set_cookie(headers, &cookie));
        response
    }
}

impl PageRequest {
    /// Says that what was typed into a form waits for its page, or that it was shown.
    pub(crate) fn set_draft_cookie(&self, response: &mut Response, waits: bool) {
        set_cookie(response.headers_mut(), &draft_cookie(waits, self.https));
    }
}

fn set_cookie(headers: &mut HeaderMap, cookie: &str) {
    headers.extend(HeaderValue::from_str(cookie).map(|cookie| (header::SET_COOKIE, cookie)));
}

/// 303, so that the browser follows with a GET. The address may contain a code, so it is kept out of caches
/// and referrers.
pub(crate) fn see_other(location: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    match HeaderValue::from_str(location) {
        Ok(location) => drop(response.headers_mut().insert(header::LOCATION, location)),
        Err(_) => {
            let cause = service::Error::Internal("a redirect address does not fit into a header");
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

/// The address of the page that asks for the code of a sign-in's second step, and leads to `next`.
pub fn code_page(next: &str) -> String {
    with_next("/sign-in/code", next)
}
