//! Who may call: those with the operator's key, and no web page of another origin.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use domain::secret::{OperatorKey, SecretHash};
use http::{HeaderMap, StatusCode, header};

use super::answer::Problem;

/// Refuses callers without the key, and requests of web pages of other origins.
pub(super) fn layer<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    operator_key: SecretHash,
) -> Router<S> {
    routes.layer(from_fn(move |request: Request, next: Next| {
        let key = operator_key.clone();
        async move { check(&key, request, next).await }
    }))
}

async fn check(key: &SecretHash, request: Request, next: Next) -> Response {
    if is_foreign(request.headers()) {
        let message = "Origin: web pages of other origins may not call the sandbox API";
        return Problem::new(StatusCode::FORBIDDEN, message).into_response();
    }
    if bearer(request.headers()).is_some_and(|presented| key.matches(&presented.hash())) {
        return next.run(request).await;
    }
    let message =
        "Authorization: the sandbox API needs the operator key as a bearer token; `stagedoor dev` prints it";
    Problem::new(StatusCode::UNAUTHORIZED, message).into_response()
}

fn bearer(headers: &HeaderMap) -> Option<OperatorKey> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    OperatorKey::presented(key.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"))
}

/// Whether the request comes from a web page of another origin than the address that it calls.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let host = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    host.is_none() || host != text(header::HOST)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_pages_of_the_same_host_and_programs_may_call() {
        for (origin, foreign) in [
            (None, false),
            (Some("http://127.0.0.1:8080"), false),
            (Some("http://127.0.0.1:8081"), true),
            (Some("https://evil.example"), true),
            (Some("null"), true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8080"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_foreign(&headers), foreign, "{origin:?}");
        }
    }
}
