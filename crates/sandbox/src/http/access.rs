//! Who may call: programs with the operator's key, and browsers with the console's cookie. No web page of
//! another origin may.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use domain::secret::{OperatorKey, SecretHash};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::answer::Problem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Number of characters of the cookie's name that differ between sandboxes.
const NAME_CHARS: usize = 8;

/// What a caller must have.
#[derive(Clone, Debug)]
pub(super) struct Access {
    operator_key: SecretHash,
    cookie: Cookie,
}

/// The cookie of the console. Browsers share cookies between the ports of a host, so each sandbox has a name
/// of its own.
#[derive(Clone, Debug)]
struct Cookie {
    name: String,
    value: SecretHash,
    /// Whether browsers reach the sandbox by https.
    is_secure: bool,
}

impl Access {
    /// The access with this key. The cookie follows from the key: an open page stays valid when the sandbox
    /// is started again.
    pub fn new(operator_key: SecretHash, is_secure: bool) -> Self {
        let derived = |label: &str| SecretHash::of(&format!("{label} {}", operator_key.as_str()));
        let name: String = derived("name of the console").as_str().chars().take(NAME_CHARS).collect();
        let name = format!("stagedoor_console_{name}");
        let cookie = Cookie { name, value: derived("cookie of the console"), is_secure };
        Self { operator_key, cookie }
    }

    /// Whether this is the operator's key.
    pub fn is_key(&self, presented: &str) -> bool {
        OperatorKey::presented(presented.trim()).is_some_and(|key| self.operator_key.matches(&key.hash()))
    }

    /// Whether the browser has the cookie.
    pub fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let value = cookie(headers, &self.cookie.name);
        value.is_some_and(|value| self.cookie.value.matches(&SecretHash::stored(value.to_owned())))
    }

    /// The header that gives the cookie to a browser.
    pub fn set_cookie(&self) -> Option<HeaderValue> {
        let Cookie { name, value, is_secure } = &self.cookie;
        let secure = if *is_secure { "; Secure" } else { "" };
        let cookie = format!("{name}={}; Path=/; HttpOnly; SameSite=Strict{secure}", value.as_str());
        HeaderValue::from_str(&cookie).ok()
    }

    /// Refuses a caller with neither the key nor the cookie. A browser with the cookie must prove that a page
    /// of the sandbox changes something.
    pub fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        if is_foreign(headers) {
            let message = "Origin: web pages of other origins may not call the sandbox API";
            return Err(Problem::new(StatusCode::FORBIDDEN, message));
        }
        if bearer(headers).is_some_and(|key| self.is_key(key)) {
            return Ok(());
        }
        if self.has_cookie(headers) {
            if method.is_safe() || is_of_own_page(headers) {
                return Ok(());
            }
            let message = "Origin: must be that of the console, or the request needs the operator key";
            return Err(Problem::new(StatusCode::FORBIDDEN, message));
        }
        let message = "Authorization: the sandbox API needs the operator key as a bearer token; `stagedoor dev` prints it";
        Err(Problem::new(StatusCode::UNAUTHORIZED, message))
    }
}

/// Refuses callers without access.
pub(super) fn layer<S: Clone + Send + Sync + 'static>(routes: Router<S>, access: Access) -> Router<S> {
    routes.layer(from_fn(move |request: Request, next: Next| {
        let access = access.clone();
        async move { admit(&access, request, next).await }
    }))
}

async fn admit(access: &Access, request: Request, next: Next) -> Response {
    match access.check(request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// The value of a cookie.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = text(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether the request comes from a web page of another origin than the address that it calls.
pub(super) fn is_foreign(headers: &HeaderMap) -> bool {
    let is_elsewhere = |site: &HeaderValue| !matches!(site.as_bytes(), b"same-origin" | b"none");
    headers.get(SEC_FETCH_SITE).is_some_and(is_elsewhere)
        || (headers.contains_key(header::ORIGIN) && !has_own_origin(headers))
}

/// Whether the request provably comes from a page of the sandbox. Browsers add `Origin` to what can change
/// something, and `Sec-Fetch-Site` on loopback and under https.
fn is_of_own_page(headers: &HeaderMap) -> bool {
    has_own_origin(headers) || text(headers, &SEC_FETCH_SITE) == Some("same-origin")
}

fn has_own_origin(headers: &HeaderMap) -> bool {
    let origin = text(headers, &header::ORIGIN).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, host)| text(headers, &header::HOST) == Some(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "127.0.0.1:8080";

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(HOST))]);
        for (name, value) in given {
            headers.insert(*name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    #[test]
    fn only_pages_of_the_same_origin_and_programs_may_call() {
        for (given, foreign) in [
            (vec![], false),
            (vec![("origin", "http://127.0.0.1:8080")], false),
            (vec![("origin", "http://127.0.0.1:8081")], true),
            (vec![("origin", "https://evil.example")], true),
            (vec![("origin", "null")], true),
            (vec![("sec-fetch-site", "same-origin")], false),
            (vec![("sec-fetch-site", "none")], false),
            (vec![("sec-fetch-site", "same-site")], true),
            (vec![("sec-fetch-site", "cross-site")], true),
            (vec![("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:8080")], true),
        ] {
            assert_eq!(is_foreign(&headers(&given)), foreign, "{given:?}");
        }
    }

    #[test]
    fn a_cookie_changes_something_only_from_a_page_of_the_sandbox() {
        let access = access_of("key");
        let cookie = format!("a=b; {}={}", access.cookie.name, access.cookie.value.as_str());
        let with = |more: &[(&'static str, &str)]| headers(&[&[("cookie", cookie.as_str())], more].concat());
        let origin = ("origin", "http://127.0.0.1:8080");
        let (same, elsewhere) = (("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site"));
        for (method, more, allowed) in [
            (Method::GET, vec![], true),
            (Method::GET, vec![elsewhere], false),
            (Method::POST, vec![], false),
            (Method::POST, vec![origin], true),
            (Method::POST, vec![same], true),
            (Method::DELETE, vec![origin, elsewhere], false),
        ] {
            assert_eq!(access.check(&method, &with(&more)).is_ok(), allowed, "{method} {more:?}");
        }
        let wrong = format!("{}=x", access.cookie.name);
        assert!(access.check(&Method::GET, &headers(&[("cookie", &wrong)])).is_err());
        let other = access_of("other key");
        assert!(other.check(&Method::GET, &with(&[])).is_err());
    }

    #[test]
    fn the_cookie_is_of_one_sandbox_and_is_not_the_key() {
        let set = |key| access_of(key).set_cookie().expect("a cookie").to_str().expect("a text").to_owned();
        let (first, second) = (set("one"), set("two"));
        let name = |cookie: &str| cookie.split('=').next().expect("a name").to_owned();
        assert_ne!(name(&first), name(&second));
        assert!(!first.contains(SecretHash::of("one").as_str()), "{first}");
        assert!(first.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{first}");
    }

    fn access_of(key: &str) -> Access {
        Access::new(SecretHash::of(key), false)
    }
}
